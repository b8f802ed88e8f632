//! Program tables (ISO 13818-1 §2.4.4): one program, its PMT, its streams.

use super::layout::{Audio, Layout, Video};

pub const PAT_PID: u16 = 0;
pub const PMT_PID: u16 = 0x1000;
pub const VIDEO_PID: u16 = 0x100;
pub const AUDIO_PID: u16 = 0x101;

const PROGRAM: u16 = 1;
const RESERVED: u16 = 0xe000;

/// The stream whose packets carry the PCR.
pub fn clock_pid(layout: &Layout) -> u16 {
    if layout.video().is_some() { VIDEO_PID } else { AUDIO_PID }
}

/// The PAT, from pointer_field to CRC.
pub fn pat() -> Vec<u8> {
    let mut body = Vec::with_capacity(4);
    body.extend_from_slice(&PROGRAM.to_be_bytes());
    body.extend_from_slice(&(RESERVED | PMT_PID).to_be_bytes());
    // Version 0 for ever: the program's PID never changes.
    section(0x00, 1, 0, &body)
}

/// The PMT, from pointer_field to CRC.
pub fn pmt(layout: &Layout) -> Vec<u8> {
    let mut body = Vec::with_capacity(20);
    body.extend_from_slice(&(RESERVED | clock_pid(layout)).to_be_bytes());
    body.extend_from_slice(&0xf000_u16.to_be_bytes()); // no program descriptors
    let video = layout.video().map(|video| match video {
        Video::Avc { .. } => (0x1b, VIDEO_PID, None),
        Video::Hevc { .. } => (0x24, VIDEO_PID, None),
    });
    let audio = layout.audio().map(|audio| match audio {
        Audio::Adts(_) => (0x0f, AUDIO_PID, None),
        Audio::Mp3 { half_rate: false } => (0x03, AUDIO_PID, None),
        Audio::Mp3 { half_rate: true } => (0x04, AUDIO_PID, None),
        // Stream types of the user's range mean what the registration says (§2.6.8).
        Audio::Ac3 { is_enhanced: false } => (0x81, AUDIO_PID, Some(b"AC-3")),
        Audio::Ac3 { is_enhanced: true } => (0x87, AUDIO_PID, Some(b"EAC3")),
    });
    for (stream_type, pid, registration) in [video, audio].into_iter().flatten() {
        body.push(stream_type);
        body.extend_from_slice(&(RESERVED | pid).to_be_bytes());
        let descriptors =
            registration.map(|name| [&[5, 4], &name[..]].concat()).unwrap_or_default();
        let len = u16::try_from(descriptors.len()).unwrap_or_default();
        body.extend_from_slice(&(0xf000 | len).to_be_bytes());
        body.extend_from_slice(&descriptors);
    }
    section(0x02, PROGRAM, layout.version(), &body)
}

/// A section with the long syntax, whole in one packet.
fn section(table: u8, extension: u16, version: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap_or(u16::MAX).saturating_add(9);
    let mut out = vec![0, table]; // pointer_field: the section starts here
    out.extend_from_slice(&(0xb000 | len).to_be_bytes());
    out.extend_from_slice(&extension.to_be_bytes());
    out.push(0xc1 | version << 1); // reserved bits, version, current
    out.extend_from_slice(&[0, 0]); // section 0 of 0
    out.extend_from_slice(body);
    let crc = crc32(out.get(1..).unwrap_or_default());
    out.extend_from_slice(&crc.to_be_bytes());
    out
}

/// CRC-32/MPEG-2 (ISO 13818-1 annex A).
fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000_0000 == 0 { shifted } else { shifted ^ 0x04c1_1db7 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_has_the_check_value_of_its_catalogue_entry() {
        assert_eq!(crc32(b"123456789"), 0x0376_e6e7);
    }
}
