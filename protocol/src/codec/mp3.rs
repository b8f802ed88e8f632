//! MP3: MPEG-1/2 audio frame header (ISO 11172-3 §2.4.1.3).

use super::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub sample_rate: u32,
    pub channels: u8,
    /// Samples per frame: 1152 (MPEG-1) or 576 (MPEG-2).
    pub frame_samples: u32,
}

impl Config {
    /// The configuration that the first frame of an access unit tells.
    ///
    /// # Errors
    /// When it does not begin with the header of a layer III frame.
    pub fn from_access_unit(payload: &[u8]) -> Result<Self, Error> {
        let header = FrameHeader::parse(payload)?;
        let FrameHeader { sample_rate, channels, samples, .. } = header;
        Ok(Self { sample_rate, channels, frame_samples: samples })
    }
}

/// Samples per channel in the frames of an access unit; `None` when there is no whole header.
#[must_use]
pub fn samples(payload: &[u8]) -> Option<u32> {
    let (mut rest, mut samples) = (payload, 0_u32);
    while let Ok(header) = FrameHeader::parse(rest) {
        samples = samples.saturating_add(header.samples);
        rest = rest.get(header.frame_bytes..).unwrap_or_default();
    }
    (samples > 0).then_some(samples)
}

struct FrameHeader {
    sample_rate: u32,
    channels: u8,
    samples: u32,
    /// At least the four of the header.
    frame_bytes: usize,
}

impl FrameHeader {
    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        const MPEG_1_KBPS: [u32; 15] =
            [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
        const MPEG_2_KBPS: [u32; 15] =
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
        const MPEG_1_RATES: [u32; 3] = [44_100, 48_000, 32_000];

        let [sync, flags, rates, mode] = *bytes.first_chunk().ok_or(Error::Truncated)?;
        if sync != 0xff || flags & 0xe0 != 0xe0 {
            return Err(Error::Invalid("MPEG audio sync word"));
        }
        if flags & 0x06 != 0x02 {
            return Err(Error::Unsupported("MPEG audio layer"));
        }
        // MPEG-2 halves the sampling rates, the unofficial MPEG-2.5 quarters them.
        let (rate_shift, kbps) = match flags & 0x18 {
            0x18 => (0, MPEG_1_KBPS),
            0x10 => (1, MPEG_2_KBPS),
            0x00 => (2, MPEG_2_KBPS),
            _ => return Err(Error::Invalid("MPEG audio version")),
        };
        let sample_rate = MPEG_1_RATES
            .get(usize::from(rates >> 2 & 3))
            .ok_or(Error::Invalid("sampling rate"))?
            .wrapping_shr(rate_shift);
        let kbps = *kbps.get(usize::from(rates >> 4)).ok_or(Error::Invalid("bit rate"))?;
        let samples: u32 = if rate_shift == 0 { 1152 } else { 576 };
        let padding = u32::from(rates >> 1 & 1);
        // Bytes of a frame: samples / 8 at the bit rate. Free format (0) has to be searched for
        // the next header, which no encoder asks for: it counts as one frame.
        let frame_bytes = (samples >> 3)
            .saturating_mul(kbps.saturating_mul(1000))
            .checked_div(sample_rate)
            .filter(|bytes| *bytes >= 4)
            .map_or(u32::MAX, |bytes| bytes.saturating_add(padding));
        Ok(Self {
            sample_rate,
            channels: if mode >> 6 == 3 { 1 } else { 2 },
            samples,
            frame_bytes: usize::try_from(frame_bytes).unwrap_or(usize::MAX),
        })
    }
}
