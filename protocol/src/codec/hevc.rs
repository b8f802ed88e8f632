//! HEVC: HEVCDecoderConfigurationRecord (ISO 14496-15 §8.3.3.1) and its parameter sets.

use bytes::Bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub record: Bytes,
    pub vps: Vec<Bytes>,
    pub sps: Vec<Bytes>,
    pub pps: Vec<Bytes>,
    pub width: u32,
    pub height: u32,
}

impl Config {
    #[must_use]
    pub fn rfc6381(&self) -> String {
        String::new()
    }
}
