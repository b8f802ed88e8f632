//! AV1: AV1CodecConfigurationRecord (AV1-ISOBMFF §2.3).

use bytes::Bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub record: Bytes,
    pub width: u32,
    pub height: u32,
}

impl Config {
    #[must_use]
    pub fn rfc6381(&self) -> String {
        String::new()
    }
}
