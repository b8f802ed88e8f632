//! AAC: AudioSpecificConfig (ISO 14496-3 §1.6.2.1).

use bytes::Bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The AudioSpecificConfig as it came.
    pub record: Bytes,
    /// Audio object type of the outermost configuration: 2 LC, 5 HE-AAC (SBR), 29 HE-AAC v2 (PS).
    pub object_type: u8,
    /// Core sampling rate in Hz: the clock that frames count in.
    pub sample_rate: u32,
    pub channels: u8,
    /// Core samples per frame: 1024 or 960.
    pub frame_samples: u32,
}

impl Config {
    #[must_use]
    pub fn rfc6381(&self) -> String {
        format!("mp4a.40.{}", self.object_type)
    }
}
