//! The multivariant playlist.

use bytes::Bytes;
use m3u8_rs::{MasterPlaylist, Resolution, VariantStream};

use crate::epoch::Epoch;

/// Less than this is never promised: the rate of the first moments, often a still picture, says
/// little.
const LEAST_BANDWIDTH: u64 = 128_000;

/// One stream as a variant: the attributes of EXT-X-STREAM-INF (RFC 8216 §4.3.4.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Peak segment bit rate so far, with a tenth on top for what comes.
    pub bandwidth: u64,
    pub average_bandwidth: u64,
    /// `None` where a codec's name is not known.
    pub codecs: Option<String>,
    pub resolution: Option<(u32, u32)>,
    pub frame_rate: Option<f64>,
}

impl Variant {
    pub(crate) fn measured(epoch: &Epoch, peak: u64, average: u64, frame_rate: f64) -> Self {
        let bandwidth = peak.saturating_add(peak / 10).max(LEAST_BANDWIDTH);
        Self {
            // In whole kbit/s, so that the playlist does not change with every part.
            bandwidth: bandwidth.div_ceil(1000).saturating_mul(1000),
            average_bandwidth: average.div_ceil(1000).saturating_mul(1000).max(1000),
            codecs: epoch.codecs(),
            resolution: epoch.video().and_then(|track| track.codec.resolution()),
            frame_rate: epoch.video().map(|_| usual_rate(frame_rate)),
        }
    }
}

/// The usual frame rate within half a percent of a measured one: a count over a few seconds is not
/// exact.
fn usual_rate(measured: f64) -> f64 {
    const USUAL: [f64; 8] = [23.976, 24.0, 25.0, 29.97, 30.0, 50.0, 59.94, 60.0];
    let off = |rate: &f64| (measured - rate).abs() / rate;
    USUAL
        .into_iter()
        .filter(|rate| off(rate) < 0.005)
        .min_by(|a, b| off(a).total_cmp(&off(b)))
        .unwrap_or(measured)
}

/// A multivariant playlist of media playlists by address.
#[must_use]
pub fn multivariant(variants: &[(&str, Variant)]) -> Bytes {
    let playlist = MasterPlaylist {
        version: Some(9),
        independent_segments: false,
        variants: variants.iter().map(|(uri, variant)| stream_inf(uri, variant)).collect(),
        ..MasterPlaylist::default()
    };
    let mut out = Vec::new();
    match playlist.write_to(&mut out) {
        Ok(()) => out.into(),
        // Writing to memory cannot fail.
        Err(_) => Bytes::new(),
    }
}

fn stream_inf(uri: &str, variant: &Variant) -> VariantStream {
    VariantStream {
        uri: uri.to_owned(),
        bandwidth: variant.bandwidth,
        average_bandwidth: Some(variant.average_bandwidth),
        codecs: variant.codecs.clone(),
        resolution: variant
            .resolution
            .map(|(width, height)| Resolution { width: width.into(), height: height.into() }),
        // Three decimals (RFC 8216 §4.3.4.2).
        frame_rate: variant.frame_rate.map(|rate| (rate * 1000.0).round() / 1000.0),
        ..VariantStream::default()
    }
}
