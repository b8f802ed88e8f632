//! Opus: identification header (RFC 7845 §5.1) and packet durations (RFC 6716 §3.1).

use bytes::Bytes;

/// Opus always counts in 48 kHz (RFC 7845 §4).
pub const SAMPLE_RATE: u32 = 48_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The body of the `dOps` box (Opus in ISOBMFF §4.3.2).
    pub record: Bytes,
    pub channels: u8,
    pub pre_skip: u16,
}
