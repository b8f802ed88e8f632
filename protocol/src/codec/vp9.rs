//! VP9: VPCodecConfigurationRecord (VP Codec ISOBMFF binding §2.2).

use bytes::Bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The body of the `vpcC` box after its FullBox header.
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
