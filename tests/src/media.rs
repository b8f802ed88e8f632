//! Media that is made, not encoded: every access unit tells who published it and its number, so a
//! test can say exactly what came through.

use bytes::Bytes;
use weir_protocol::flv::{FileReader, Tag, TagKind};

use crate::tools;

/// A video frame each 50 ms and two AAC frames of 25 ms; a keyframe each half second.
pub const FRAME_MS: u32 = 50;
pub const GOP: u32 = 10;

/// Fewer than 8 bits of each byte are used, so no run of them looks like a start code.
const FILLER: u8 = 0x55;

/// The sequence headers of the demo clip: a real AVC and a real AAC configuration.
///
/// # Panics
/// When the clip is broken.
#[must_use]
pub fn headers() -> Vec<Tag> {
    let mut reader = FileReader::default();
    reader.push(&std::fs::read(tools::demo_clip()).expect("the demo clip"));
    let tags = std::iter::from_fn(|| reader.next().expect("the demo clip is FLV"));
    let is_header = |tag: &Tag| tag.kind != TagKind::Script && tag.body.get(1) == Some(&0);
    tags.filter(is_header).take(2).map(|tag| Tag { timestamp_ms: 0, ..tag }).collect()
}

/// What a player finds in an access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    pub publisher: u8,
    pub number: u32,
    pub video: bool,
}

/// The frames `from..to` of `publisher`, each a video tag and its audio tags.
#[must_use]
pub fn frames(publisher: u8, from: u32, to: u32) -> Vec<Tag> {
    (from..to).flat_map(|number| frame(publisher, number, size_of(number))).collect()
}

/// One frame whose picture has `size` bytes.
#[must_use]
pub fn frame(publisher: u8, number: u32, size: usize) -> Vec<Tag> {
    let sounds = [number * 2, number * 2 + 1].map(|half| audio(publisher, half));
    [video(publisher, number, Some(size))].into_iter().chain(sounds).collect()
}

/// The video tag of a frame, whose picture has `size` bytes or those of its number.
///
/// # Panics
/// When `size` is no size of a picture.
#[must_use]
pub fn video(publisher: u8, number: u32, size: Option<usize>) -> Tag {
    let picture = picture(publisher, number, size.unwrap_or_else(|| size_of(number)));
    let kind = if number.is_multiple_of(GOP) { 0x17 } else { 0x27 };
    let length = u32::try_from(picture.len()).expect("a length").to_be_bytes();
    let body = [&[kind, 1, 0, 0, 0], &length[..], &picture].concat();
    Tag { kind: TagKind::Video, timestamp_ms: number * FRAME_MS, body: Bytes::from(body) }
}

/// An audio tag, two of which go with each frame.
#[must_use]
pub fn audio(publisher: u8, half: u32) -> Tag {
    let body = [&[0xaf, 1], &sound(publisher, half)[..]].concat();
    Tag { kind: TagKind::Audio, timestamp_ms: half * FRAME_MS / 2, body: Bytes::from(body) }
}

/// Sizes from one chunk to several.
fn size_of(number: u32) -> usize {
    let inter = 300 + number as usize * 37 % 900;
    if number.is_multiple_of(GOP) { 9000 } else { inter }
}

/// The NAL unit of a picture.
#[must_use]
pub fn picture(publisher: u8, number: u32, size: usize) -> Vec<u8> {
    let kind = if number.is_multiple_of(GOP) { 0x65 } else { 0x41 };
    let mut nal = [&[kind], &mark(b'V', publisher, number)[..]].concat();
    nal.resize(size, FILLER);
    nal
}

fn sound(publisher: u8, number: u32) -> Vec<u8> {
    let mut frame = mark(b'A', publisher, number).to_vec();
    frame.resize(180, FILLER);
    frame
}

const MAGIC: &[u8] = b"weir-e2e";
const MARK_BYTES: usize = 18;

/// Six hexadecimal digits: no zero bytes, which start codes are made of.
fn mark(kind: u8, publisher: u8, number: u32) -> [u8; MARK_BYTES] {
    let text = format!("weir-e2e{}{publisher:02x}{number:07x}", kind as char);
    text.as_bytes().try_into().expect("a mark")
}

/// The marks in `bytes`, in order.
#[must_use]
pub fn marks(bytes: &[u8]) -> Vec<Mark> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes[at..].windows(MAGIC.len()).position(|bytes| bytes == MAGIC) {
        at += next;
        let Some(mark) = bytes.get(at..at + MARK_BYTES) else { break };
        found.push(read(std::str::from_utf8(&mark[MAGIC.len()..]).expect("a whole mark")));
        at += MARK_BYTES;
    }
    found
}

fn read(mark: &str) -> Mark {
    let publisher = u8::from_str_radix(&mark[1..3], 16).expect("a publisher's number");
    let number = u32::from_str_radix(&mark[3..], 16).expect("a frame's number");
    Mark { publisher, number, video: mark.starts_with('V') }
}

/// Of the video frames among `marks`, those of `publisher`.
#[must_use]
pub fn pictures(marks: &[Mark], publisher: u8) -> Vec<u32> {
    let wanted = marks.iter().filter(|mark| mark.video && mark.publisher == publisher);
    wanted.map(|mark| mark.number).collect()
}

/// The elementary streams of a transport stream: the payload of each PID, joined.
///
/// # Panics
/// When the bytes are not packets of 188.
#[must_use]
pub fn ts_payloads(bytes: &[u8]) -> std::collections::BTreeMap<u16, Vec<u8>> {
    assert_eq!(bytes.len() % 188, 0, "not a transport stream");
    let mut payloads = std::collections::BTreeMap::<u16, Vec<u8>>::new();
    for cell in bytes.chunks(188) {
        assert_eq!(cell[0], 0x47, "no sync byte");
        let pid = u16::from_be_bytes([cell[1] & 0x1f, cell[2]]);
        let adaptation = if cell[3] & 0x20 == 0 { 0 } else { 1 + usize::from(cell[4]) };
        if cell[3] & 0x10 != 0 {
            payloads.entry(pid).or_default().extend_from_slice(&cell[4 + adaptation..]);
        }
    }
    payloads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_again() {
        let tags = frames(7, 9, 11);
        let bytes: Vec<u8> = tags.iter().flat_map(|tag| tag.body.to_vec()).collect();
        let marks = marks(&bytes);
        assert_eq!(pictures(&marks, 7), [9, 10]);
        assert_eq!(marks.len(), 6);
        assert_eq!(headers().len(), 2);
    }
}
