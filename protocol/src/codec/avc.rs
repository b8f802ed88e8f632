//! AVC: AVCDecoderConfigurationRecord (ISO 14496-15 §5.3.3.1) and its parameter sets.

use bytes::Bytes;

/// A parsed avcC. Parameter sets are NAL units without length or start code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The record as containers carry it, rewritten so that NAL lengths are 4 bytes.
    pub record: Bytes,
    pub profile: u8,
    pub compatibility: u8,
    pub level: u8,
    pub sps: Vec<Bytes>,
    pub pps: Vec<Bytes>,
    pub width: u32,
    pub height: u32,
}

impl Config {
    #[must_use]
    pub fn rfc6381(&self) -> String {
        format!("avc1.{:02x}{:02x}{:02x}", self.profile, self.compatibility, self.level)
    }
}
