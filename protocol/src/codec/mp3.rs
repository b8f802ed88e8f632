//! MP3: MPEG-1/2 audio frame header (ISO 11172-3 §2.4.1.3).

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub sample_rate: u32,
    pub channels: u8,
    /// Samples per frame: 1152 (MPEG-1) or 576 (MPEG-2).
    pub frame_samples: u32,
}
