use bytes::Bytes;

use super::{Ticks, TrackId};

/// One coded picture or one audio frame, as it travels from the publisher to every player.
///
/// The payload's form depends on the track's codec and on nothing else:
///
/// | codec | payload |
/// | --- | --- |
/// | AVC, HEVC | NAL units, each behind a 4-byte big-endian length (ISO 14496-15) |
/// | AV1 | OBUs of one temporal unit with sizes, without temporal delimiter (AV1-ISOBMFF §2.4) |
/// | VP9 | one frame or superframe |
/// | AAC | one raw_data_block, without ADTS header |
/// | Opus | one packet |
/// | MP3 | whole frames with their headers |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessUnit {
    pub track: TrackId,
    /// Decoding time on the stream's one timeline; strictly rising within a track.
    pub dts: Ticks,
    /// Presentation time minus decoding time; negative where the encoder says so.
    pub composition_offset: Ticks,
    /// A player can start decoding here. Always true for audio.
    pub keyframe: bool,
    pub payload: Bytes,
}

impl AccessUnit {
    /// Presentation time.
    #[must_use]
    pub fn pts(&self) -> Ticks {
        self.dts + self.composition_offset
    }
}
