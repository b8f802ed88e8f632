//! PES headers (ISO 13818-1 §2.4.3.6).

use weir_protocol::media::Ticks;

use super::packet::wrap33;

const VIDEO_STREAM: u8 = 0xe0;
/// MPEG audio, AAC included.
pub const AUDIO_STREAM: u8 = 0xc0;
/// Everything that MPEG did not define, such as AC-3 (ATSC A/52 §A3.2).
pub const PRIVATE_STREAM: u8 = 0xbd;

pub const AUDIO_HEADER_BYTES: usize = 14;
pub const VIDEO_HEADER_BYTES: usize = 19;

/// With PTS; the length is given, as it must be for audio.
pub fn audio_header(stream: u8, pts: Ticks, payload_len: usize) -> [u8; AUDIO_HEADER_BYTES] {
    let len = payload_len.saturating_add(AUDIO_HEADER_BYTES).saturating_sub(6);
    let [len_high, len_low] = u16::try_from(len).unwrap_or(0).to_be_bytes();
    let [a, b, c, d, e] = stamp(0x20, pts);
    [0, 0, 1, stream, len_high, len_low, 0x84, 0x80, 5, a, b, c, d, e]
}

/// With PTS and DTS; the length is left open, as only video may (§2.4.3.7).
pub fn video_header(pts: Ticks, dts: Ticks) -> [u8; VIDEO_HEADER_BYTES] {
    let [a, b, c, d, e] = stamp(0x30, pts);
    let [f, g, h, i, j] = stamp(0x10, dts);
    [0, 0, 1, VIDEO_STREAM, 0, 0, 0x84, 0xc0, 10, a, b, c, d, e, f, g, h, i, j]
}

/// A 33-bit time in three pieces with marker bits, behind a 4-bit `prefix`.
fn stamp(prefix: u8, at: Ticks) -> [u8; 5] {
    let at = wrap33(at);
    [
        prefix | (at >> 29) as u8 & 0x0e | 1,
        (at >> 22) as u8,
        (at >> 14) as u8 | 1,
        (at >> 7) as u8,
        (at << 1) as u8 | 1,
    ]
}
