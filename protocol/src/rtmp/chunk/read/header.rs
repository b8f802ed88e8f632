use super::super::EXTENDED;
use crate::rtmp::Error;

/// Three bytes of basic header, eleven of message header, four of extended timestamp.
pub(super) const MAX_HEADER_BYTES: usize = 18;

/// What the next chunk of a chunk stream may leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub message_stream: u32,
    pub kind: u8,
    pub length: u32,
    /// Absolute, of the latest message.
    pub timestamp: u32,
    /// What a message that leaves out its timestamp adds. After format 0 that is the timestamp
    /// itself (RTMP 1.0 §5.3.1.2.4), which is also how ffmpeg compresses headers.
    delta: u32,
    /// The extended field of the latest format 0, 1 or 2.
    extended: Option<u32>,
}

/// Whether the peer's format 3 chunks repeat the extended timestamp. RTMP 1.0 §5.3.1.3 asks for
/// it since 2012; older peers leave it out. One peer does it one way, so the first chunk that
/// tells decides, and later payloads that happen to look like the timestamp do no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuation {
    Unknown,
    Repeats,
    LeavesOut,
}

/// The start of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub stream: u32,
    pub header: Header,
    pub begins_message: bool,
    pub continuation: Continuation,
}

/// Reads the headers of one chunk: `None` while bytes are missing, else the chunk and the bytes
/// that its headers take. `known` gives a chunk stream's latest header, and whether it is in the
/// middle of a message.
pub(super) fn parse(
    bytes: &[u8],
    continuation: Continuation,
    known: impl Fn(u32) -> Option<(Header, bool)>,
) -> Result<Option<(Chunk, usize)>, Error> {
    let mut rest = bytes;
    let Some((format, stream)) = basic_header(&mut rest) else { return Ok(None) };
    let (mut header, in_message) = match (known(stream), format) {
        (Some(known), _) => known,
        // Seen from old librtmp: a first header that leaves out the message stream, which is 0.
        (None, 0 | 1) => (Header::default(), false),
        (None, _) => return Err(Error::NoHeader(stream)),
    };
    let mut continuation = continuation;
    if format == 3 {
        match extended_again(&mut rest, header.extended, continuation) {
            Some(decided) => continuation = decided,
            None => return Ok(None),
        }
    } else if message_header(&mut rest, format, &mut header).is_none() {
        return Ok(None);
    }
    let begins_message = format != 3 || !in_message;
    if begins_message && format != 0 {
        header.timestamp = header.timestamp.wrapping_add(header.delta);
    }
    let used = bytes.len().saturating_sub(rest.len());
    Ok(Some((Chunk { stream, header, begins_message, continuation }, used)))
}

/// The chunk's format and chunk stream id (RTMP 1.0 §5.3.1.1).
fn basic_header(rest: &mut &[u8]) -> Option<(u8, u32)> {
    let [first] = take(rest)?;
    let stream = match first & 0x3f {
        0 => {
            let [low] = take(rest)?;
            u32::from(low).saturating_add(64)
        }
        1 => {
            let [low, high] = take(rest)?;
            u32::from(u16::from_le_bytes([low, high])).saturating_add(64)
        }
        stream => u32::from(stream),
    };
    Some((first >> 6, stream))
}

/// Formats 0 to 2 (RTMP 1.0 §5.3.1.2), with the extended timestamp.
fn message_header(rest: &mut &[u8], format: u8, header: &mut Header) -> Option<()> {
    let [t2, t1, t0] = take(rest)?;
    if format < 2 {
        let [l2, l1, l0, kind] = take(rest)?;
        header.length = u32::from_be_bytes([0, l2, l1, l0]);
        header.kind = kind;
    }
    if format == 0 {
        header.message_stream = u32::from_le_bytes(take(rest)?);
    }
    let short = u32::from_be_bytes([0, t2, t1, t0]);
    header.extended = match short {
        EXTENDED => Some(u32::from_be_bytes(take(rest)?)),
        _ => None,
    };
    header.delta = header.extended.unwrap_or(short);
    if format == 0 {
        header.timestamp = header.delta;
    }
    Some(())
}

/// The place where a format 3 chunk may repeat the extended timestamp. Takes it where it does, and
/// tells what is known then; `None` while too few bytes are there to tell.
fn extended_again(
    rest: &mut &[u8],
    extended: Option<u32>,
    continuation: Continuation,
) -> Option<Continuation> {
    let (Some(extended), Continuation::Unknown | Continuation::Repeats) = (extended, continuation)
    else {
        return Some(continuation);
    };
    if continuation == Continuation::Repeats {
        take::<4>(rest)?;
        return Some(continuation);
    }
    let expected = extended.to_be_bytes();
    if let Some(after) = rest.strip_prefix(&expected) {
        *rest = after;
        return Some(Continuation::Repeats);
    }
    let differs = rest.iter().zip(&expected).any(|(byte, expected)| byte != expected);
    differs.then_some(Continuation::LeavesOut)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}
