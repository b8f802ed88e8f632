//! RTMP messages above the chunk layer (RTMP 1.0 §5.4, §6, §7.1).

use bytes::Bytes;

use crate::flv::{Tag, TagKind};
use crate::rtmp::command::amf0_part;

/// Message type ids.
pub mod kind {
    pub const SET_CHUNK_SIZE: u8 = 1;
    pub const ABORT: u8 = 2;
    pub const ACKNOWLEDGEMENT: u8 = 3;
    pub const USER_CONTROL: u8 = 4;
    pub const WINDOW_SIZE: u8 = 5;
    pub const PEER_BANDWIDTH: u8 = 6;
    pub const AUDIO: u8 = 8;
    pub const VIDEO: u8 = 9;
    pub const DATA_AMF3: u8 = 15;
    pub const COMMAND_AMF3: u8 = 17;
    pub const DATA: u8 = 18;
    pub const COMMAND: u8 = 20;
    pub const AGGREGATE: u8 = 22;
}

/// Chunk streams of what Weir sends. Control must be 2 (RTMP 1.0 §5.4); the others are those that
/// strict clients know from Adobe's server.
mod chunk_stream {
    pub const CONTROL: u32 = 2;
    pub const COMMAND: u32 = 3;
    pub const AUDIO: u32 = 4;
    pub const STREAM: u32 = 5;
    pub const VIDEO: u32 = 6;
}

/// Everything about a message but its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    pub chunk_stream: u32,
    /// 0 is the connection itself.
    pub message_stream: u32,
    pub kind: u8,
    /// Milliseconds, modulo 2^32.
    pub timestamp: u32,
}

impl MessageHeader {
    /// A protocol or user control message.
    #[must_use]
    pub fn control(kind: u8) -> Self {
        Self { chunk_stream: chunk_stream::CONTROL, message_stream: 0, kind, timestamp: 0 }
    }

    /// A command of the connection, or of one message stream.
    #[must_use]
    pub fn command(message_stream: u32) -> Self {
        let chunk_stream =
            if message_stream == 0 { chunk_stream::COMMAND } else { chunk_stream::STREAM };
        Self { chunk_stream, message_stream, kind: kind::COMMAND, timestamp: 0 }
    }

    /// Audio, video or data of a message stream.
    #[must_use]
    pub fn media(message_stream: u32, kind: TagKind, timestamp: u32) -> Self {
        let (chunk_stream, kind) = match kind {
            TagKind::Audio => (chunk_stream::AUDIO, kind::AUDIO),
            TagKind::Video => (chunk_stream::VIDEO, kind::VIDEO),
            TagKind::Script => (chunk_stream::STREAM, kind::DATA),
        };
        Self { chunk_stream, message_stream, kind, timestamp }
    }
}

/// A whole message as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub header: MessageHeader,
    pub body: Bytes,
}

/// User control events that Weir sends or obeys (RTMP 1.0 §7.1.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserControl {
    StreamBegin(u32),
    StreamEof(u32),
    /// Message stream, milliseconds.
    SetBufferLength(u32, u32),
    Ping(u32),
    Pong(u32),
}

impl UserControl {
    /// `None` for events that are unknown or too short; both are to be ignored.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Self> {
        let (event, data) = body.split_first_chunk()?;
        let (value, more) = data.split_first_chunk()?;
        let value = u32::from_be_bytes(*value);
        Some(match u16::from_be_bytes(*event) {
            0 => Self::StreamBegin(value),
            1 => Self::StreamEof(value),
            3 => Self::SetBufferLength(value, u32::from_be_bytes(*more.first_chunk()?)),
            6 => Self::Ping(value),
            7 => Self::Pong(value),
            _ => return None,
        })
    }

    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        let (event, value, more) = match self {
            Self::StreamBegin(stream) => (0_u16, stream, None),
            Self::StreamEof(stream) => (1, stream, None),
            Self::SetBufferLength(stream, ms) => (3, stream, Some(ms)),
            Self::Ping(timestamp) => (6, timestamp, None),
            Self::Pong(timestamp) => (7, timestamp, None),
        };
        let mut body = event.to_be_bytes().to_vec();
        body.extend(value.to_be_bytes());
        body.extend(more.into_iter().flat_map(u32::to_be_bytes));
        body
    }
}

/// The 32-bit value that bodies of types 1, 2, 3, 5 and 6 begin with; `None` if cut short.
#[must_use]
pub fn leading_u32(body: &[u8]) -> Option<u32> {
    body.first_chunk().copied().map(u32::from_be_bytes)
}

/// The audio, video and data of a message as FLV tags, an aggregate's one by one. `None` stands
/// for something to be ignored: another type, or nothing at all.
pub(super) fn tags(message: Message) -> impl Iterator<Item = Option<Tag>> {
    let Message { header, body } = message;
    let (one, many) = match header.kind {
        kind::AGGREGATE => (None, Some(Aggregate::new(header.timestamp, body))),
        kind => (Some((kind, header.timestamp, body)), None),
    };
    let messages = one.into_iter().chain(many.into_iter().flatten());
    messages.map(|(kind, timestamp_ms, body)| {
        let (kind, body) = match kind {
            kind::AUDIO => (TagKind::Audio, body),
            kind::VIDEO => (TagKind::Video, body),
            kind::DATA | kind::DATA_AMF3 => (TagKind::Script, script(kind, body)?),
            _ => return None,
        };
        (!body.is_empty()).then_some(Tag { kind, timestamp_ms, body })
    })
}

/// `@setDataFrame` as AMF0 string: publishers wrap in it what a script tag holds bare.
pub const SET_DATA_FRAME: &[u8] = b"\x02\x00\x0d@setDataFrame";
const CLEAR_DATA_FRAME: &[u8] = b"\x02\x00\x0f@clearDataFrame";

/// The body of the script tag in a data message.
fn script(message_kind: u8, body: Bytes) -> Option<Bytes> {
    let bare = amf0_part(message_kind, kind::DATA_AMF3, &body);
    if bare.starts_with(CLEAR_DATA_FRAME) {
        return None;
    }
    let bare = bare.strip_prefix(SET_DATA_FRAME).unwrap_or(bare);
    Some(body.slice_ref(bare))
}

/// The messages inside an aggregate, with timestamps shifted so that the first one's equals the
/// aggregate's own (RTMP 1.0 §7.1.6). A cut-off tail ends it.
struct Aggregate {
    rest: Bytes,
    timestamp: u32,
    first: Option<u32>,
}

impl Aggregate {
    fn new(timestamp: u32, body: Bytes) -> Self {
        Self { rest: body, timestamp, first: None }
    }
}

impl Iterator for Aggregate {
    /// Type id, timestamp, body.
    type Item = (u8, u32, Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        // The layout of an FLV tag: type, length, timestamp (24 + 8 bits), stream id; then the
        // body and a back pointer, which is of no use and may be missing at the end.
        const HEADER: usize = 11;
        const BACK_POINTER: usize = 4;
        let &[kind, l0, l1, l2, t2, t1, t0, t3, ..] = self.rest.first_chunk::<HEADER>()?;
        let end = HEADER.checked_add(u32::from_be_bytes([0, l0, l1, l2]) as usize)?;
        if self.rest.len() < end {
            return None;
        }
        let inner = u32::from_be_bytes([t3, t2, t1, t0]);
        let first = *self.first.get_or_insert(inner);
        let timestamp = self.timestamp.wrapping_add(inner.wrapping_sub(first));
        let body = self.rest.slice(HEADER..end);
        let next = end.saturating_add(BACK_POINTER).min(self.rest.len());
        self.rest = self.rest.slice(next..);
        Some((kind, timestamp, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(kind: u8, timestamp: u32, body: &[u8]) -> Vec<u8> {
        let [t3, t2, t1, t0] = timestamp.to_be_bytes();
        let mut tag = vec![kind, 0, 0, body.len() as u8, t2, t1, t0, t3, 0, 0, 0];
        tag.extend(body);
        tag.extend((11 + body.len() as u32).to_be_bytes());
        tag
    }

    /// CH-15: inner stamps are relative to the first one, and a cut tail is dropped.
    #[test]
    fn ch_15_aggregates() {
        let tags = [tag(9, 100, b"a"), tag(8, 120, b"bc"), tag(9, 133, b"def")].concat();
        let messages = |body: &[u8]| {
            Aggregate::new(50_000, Bytes::copy_from_slice(body))
                .map(|(kind, timestamp, body)| (kind, timestamp, body.to_vec()))
                .collect::<Vec<_>>()
        };
        let whole =
            [(9, 50_000, b"a".to_vec()), (8, 50_020, b"bc".to_vec()), (9, 50_033, b"def".to_vec())];
        assert_eq!(messages(&tags), whole);
        assert_eq!(messages(&tags[..tags.len() - 4]), whole, "without the last back pointer");
        assert_eq!(messages(&tags[..tags.len() - 5]), whole[..2]);
        assert_eq!(messages(&tags[..10]), []);
        assert_eq!(messages(&tag(9, 7, b"")), [(9, 50_000, vec![])]);
        let wrapped = [tag(9, u32::MAX, b"a"), tag(9, 1, b"b")].concat();
        assert_eq!(messages(&wrapped)[1].1, 50_002);
    }

    /// CH-04: control bodies of any length are read or ignored.
    #[test]
    fn ch_04_short_user_control() {
        for event in [0, 1, 3, 6, 7, 26, 27, 31, 32, 0x7fff_u16] {
            for len in 0..16 {
                let mut body = event.to_be_bytes().to_vec();
                body.resize(2 + len, 0);
                let least = match event {
                    0 | 1 | 6 | 7 => 4,
                    3 => 8,
                    _ => usize::MAX,
                };
                let parsed = UserControl::parse(&body);
                assert_eq!(parsed.is_some(), len >= least, "{event} {len}");
                if let Some(parsed) = parsed {
                    assert_eq!(UserControl::parse(&parsed.encode()), Some(parsed));
                }
            }
        }
        assert_eq!(UserControl::parse(&[0]), None);
        assert_eq!(leading_u32(&[0, 0, 1]), None);
        assert_eq!(leading_u32(&[0, 0, 1, 2, 3]), Some(258));
    }
}
