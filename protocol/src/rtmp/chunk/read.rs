use bytes::{Bytes, BytesMut};

use crate::limits::{DEFAULT_CHUNK_SIZE, FIRST_RESERVE, Limits, MAX_CHUNK_SIZE, RESERVED_AHEAD};
use crate::pool::{Pool, Region};
use crate::rtmp::Error;
use crate::rtmp::message::{Message, MessageHeader, kind, leading_u32};

mod cut;
mod header;
#[cfg(test)]
mod tests;

use cut::Cut;
use header::{Continuation, Header};

/// Puts messages together from chunks: each media body straight into its own region, commands and
/// control on the heap as they arrive. Other types are skipped.
///
/// Set Chunk Size and Abort concern this layer alone; they are obeyed here and not returned.
///
/// What it holds is bounded: the number of chunk streams, the length of a message, and the
/// declared bytes of all half-done messages together. Memory of the pool follows what has arrived:
/// only a little is reserved ahead of it, and a longer message is moved to twice the room when its
/// region is full. Work per received byte is bounded as well:
/// one header per chunk, whose bytes were received too, and a copy by slices.
pub struct Reader<P: Pool> {
    pool: P,
    chunk_size: usize,
    min_chunk_size: u32,
    max_media: usize,
    max_command: usize,
    max_streams: usize,
    max_unfinished: usize,
    /// Declared bytes of the messages that have begun and are stored.
    unfinished: usize,
    /// Bytes reserved for media that have not arrived.
    ahead: usize,
    stores_media: bool,
    streams: Vec<ChunkStream<P::Region>>,
    /// The chunk being read: the index of its chunk stream, and the body bytes to come.
    open: Option<(usize, usize)>,
    /// The front of a header that was cut by the end of the input. What of it was none after all is
    /// to be read before the input.
    cut: Cut,
    continuation: Continuation,
    skipped: u64,
}

struct ChunkStream<R> {
    id: u32,
    header: Header,
    body: Body<R>,
}

/// The body of the message that a chunk stream is in the middle of.
enum Body<R> {
    None,
    /// With the number of bytes still to come that the region has no room for.
    Media(R, usize),
    /// Commands and control, with the number of bytes still to come. They are short and soon
    /// gone, so they grow with what arrives, and a peer that only talks takes nothing of the pool.
    Command(BytesMut, usize),
    /// Nobody wants it: this many bytes are still to come.
    Skipped(usize),
}

impl<P: Pool> Reader<P> {
    /// A reader that stores no media until [`Reader::store_media`].
    #[must_use]
    pub fn new(limits: &Limits, pool: P) -> Self {
        Self {
            pool,
            chunk_size: DEFAULT_CHUNK_SIZE as usize,
            min_chunk_size: limits.min_chunk_size,
            max_media: limits.message_bytes,
            max_command: limits.command_bytes,
            max_streams: limits.chunk_streams,
            max_unfinished: limits.unfinished_bytes,
            unfinished: 0,
            ahead: 0,
            stores_media: false,
            streams: Vec::new(),
            open: None,
            cut: Cut::default(),
            continuation: Continuation::Unknown,
            skipped: 0,
        }
    }

    /// From now on messages with media begin to be stored, or are skipped as they arrive.
    pub fn store_media(&mut self, wanted: bool) {
        self.stores_media = wanted;
    }

    /// Bounds the declared bytes of half-done messages.
    pub fn set_max_unfinished(&mut self, bytes: usize) {
        self.max_unfinished = bytes;
    }

    /// The pool that bodies are put into, for what is derived from them.
    pub fn pool_mut(&mut self) -> &mut P {
        &mut self.pool
    }

    /// Messages that were aborted, superseded, malformed or unwanted.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Takes bytes from the front of `input` until a message is whole (`Some`) or the input is
    /// used up (`None`).
    ///
    /// # Errors
    /// On a violation, or when a bound is exceeded. The reader is of no use afterwards.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Message>, Error> {
        loop {
            if self.open.is_none() && !self.read_header(input)? {
                return Ok(None);
            }
            let Some(message) = self.read_cut_and_body(input)? else {
                if self.open.is_some() {
                    return Ok(None);
                }
                continue;
            };
            match message.header.kind {
                kind::SET_CHUNK_SIZE => self.set_chunk_size(&message.body)?,
                kind::ABORT => self.abort(&message.body),
                _ => return Ok(Some(message)),
            }
        }
    }

    /// Opens the next chunk; `false` where the input ends before that.
    fn read_header(&mut self, input: &mut &[u8]) -> Result<bool, Error> {
        let (chunk, len) = if self.cut.len == 0 {
            let Some(parsed) = self.parse_header(input)? else {
                self.cut.append(input);
                return Ok(false);
            };
            parsed
        } else {
            let before = self.cut.len;
            let whole = *input;
            self.cut.append(input);
            let Some((chunk, len)) = self.parse_header(self.cut.as_slice())? else {
                return Ok(false);
            };
            *input = whole;
            self.cut.len = before;
            self.cut.take(len);
            (chunk, len.saturating_sub(before))
        };
        *input = input.get(len..).unwrap_or_default();
        self.continuation = chunk.continuation;
        self.open_chunk(chunk)?;
        Ok(true)
    }

    fn parse_header(&self, bytes: &[u8]) -> Result<Option<(header::Chunk, usize)>, Error> {
        let known = |id| {
            let stream = self.streams.iter().find(|stream| stream.id == id)?;
            Some((stream.header, !matches!(stream.body, Body::None)))
        };
        header::parse(bytes, self.continuation, known)
    }

    fn open_chunk(&mut self, chunk: header::Chunk) -> Result<(), Error> {
        let position = self.streams.iter().position(|stream| stream.id == chunk.stream);
        let index = match position {
            Some(index) => index,
            None if self.streams.len() >= self.max_streams => {
                return Err(Error::TooManyChunkStreams(self.max_streams));
            }
            None => self.streams.len(),
        };
        if chunk.begins_message {
            // An encoder that starts anew within a message has given the first one up.
            self.drop_body(index);
            let body = self.begin_body(&chunk.header)?;
            let stream = ChunkStream { id: chunk.stream, header: chunk.header, body };
            match self.streams.get_mut(index) {
                Some(slot) => *slot = stream,
                None => self.streams.push(stream),
            }
        }
        let left = self.streams.get(index).map_or(0, |stream| stream.body.remaining());
        self.open = Some((index, left.min(self.chunk_size)));
        Ok(())
    }

    fn begin_body(&mut self, header: &Header) -> Result<Body<P::Region>, Error> {
        let length = header.length as usize;
        let class = Class::of(header.kind);
        let limit = match class {
            Class::Command => self.max_command,
            Class::Media | Class::Unknown => self.max_media,
        };
        if length > limit {
            return Err(Error::MessageTooLong { length, limit });
        }
        if class == Class::Unknown || (class == Class::Media && !self.stores_media) {
            return Ok(Body::Skipped(length));
        }
        let unfinished = self.unfinished.saturating_add(length);
        if unfinished > self.max_unfinished {
            return Err(Error::TooMuchUnfinished(self.max_unfinished));
        }
        let body = match class {
            Class::Command => Body::Command(BytesMut::new(), length),
            _ => self.begin_media(length)?,
        };
        self.unfinished = unfinished;
        Ok(body)
    }

    fn begin_media(&mut self, length: usize) -> Result<Body<P::Region>, Error> {
        let room = RESERVED_AHEAD.saturating_sub(self.ahead).max(FIRST_RESERVE).min(length);
        let region = self.pool.reserve(room).ok_or(Error::OutOfMemory)?;
        self.ahead = self.ahead.saturating_add(room);
        Ok(Body::Media(region, length.saturating_sub(room)))
    }

    /// As [`Reader::read_body`], of what was held for a header first: it could have been an extended
    /// timestamp until more came.
    fn read_cut_and_body(&mut self, input: &mut &[u8]) -> Result<Option<Message>, Error> {
        if self.cut.len > 0 {
            let left = self.open.map_or(0, |(_, left)| left);
            let (held, len) = self.cut.take(left);
            let message = self.read_body(&mut held.get(..len).unwrap_or_default())?;
            if message.is_some() || self.open.is_none() {
                return Ok(message);
            }
        }
        self.read_body(input)
    }

    /// Copies what belongs to the open chunk; the message if that was its last byte.
    fn read_body(&mut self, input: &mut &[u8]) -> Result<Option<Message>, Error> {
        let Some((index, left)) = self.open else { return Ok(None) };
        let (now, rest) = input.split_at_checked(left).unwrap_or((*input, &[]));
        *input = rest;
        let Some(stream) = self.streams.get_mut(index) else { return Ok(None) };
        match &mut stream.body {
            Body::Media(region, later) => {
                put_media(&mut self.pool, &mut self.ahead, region, later, now)?;
            }
            body => body.put(now),
        }
        let left = left.saturating_sub(now.len());
        if left > 0 {
            self.open = Some((index, left));
            return Ok(None);
        }
        self.open = None;
        if stream.body.remaining() > 0 {
            return Ok(None);
        }
        let body = match std::mem::replace(&mut stream.body, Body::None) {
            Body::Media(region, _) => region.freeze(),
            Body::Command(bytes, _) => bytes.freeze(),
            Body::None | Body::Skipped(_) => {
                self.skipped = self.skipped.saturating_add(1);
                return Ok(None);
            }
        };
        self.unfinished = self.unfinished.saturating_sub(stream.header.length as usize);
        Ok(Some(Message { header: stream.header.of_message(stream.id), body }))
    }

    fn set_chunk_size(&mut self, body: &Bytes) -> Result<(), Error> {
        // 0 is not allowed and the first bit must be 0 (RTMP 1.0 §5.4.1); a size above the
        // greatest message means the same as the greatest message.
        match leading_u32(body) {
            None | Some(0) => self.skipped = self.skipped.saturating_add(1),
            Some(size) if size < self.min_chunk_size => return Err(Error::ChunkSizeTooSmall(size)),
            Some(size) => self.chunk_size = size.min(MAX_CHUNK_SIZE) as usize,
        }
        Ok(())
    }

    fn abort(&mut self, body: &Bytes) {
        let id = leading_u32(body);
        if let Some(index) = self.streams.iter().position(|stream| Some(stream.id) == id) {
            self.drop_body(index);
        }
    }

    /// Gives up the message that a chunk stream is in the middle of, and keeps its header.
    fn drop_body(&mut self, index: usize) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        match std::mem::replace(&mut stream.body, Body::None) {
            Body::None => return,
            Body::Skipped(_) => {}
            body @ (Body::Media(..) | Body::Command(..)) => {
                let length = stream.header.length as usize;
                self.unfinished = self.unfinished.saturating_sub(length);
                if let Body::Media(region, _) = body {
                    self.ahead = self.ahead.saturating_sub(region.remaining());
                }
            }
        }
        self.skipped = self.skipped.saturating_add(1);
    }
}

/// Appends to the body of a media message, in a region of twice the size where the one it has is
/// full and more is to come.
fn put_media<P: Pool>(
    pool: &mut P,
    ahead: &mut usize,
    region: &mut P::Region,
    later: &mut usize,
    mut bytes: &[u8],
) -> Result<(), Error> {
    loop {
        let (now, rest) = bytes.split_at_checked(region.remaining()).unwrap_or((bytes, &[]));
        region.put(now);
        *ahead = ahead.saturating_sub(now.len());
        bytes = rest;
        if bytes.is_empty() || *later == 0 {
            return Ok(());
        }
        let more = region.filled().len().min(*later);
        let room = region.filled().len().saturating_add(more);
        let mut wider = pool.reserve(room).ok_or(Error::OutOfMemory)?;
        wider.put(region.filled());
        *region = wider;
        *later = later.saturating_sub(more);
        *ahead = ahead.saturating_add(more);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Media,
    Command,
    /// Shared objects and whatever else there may be.
    Unknown,
}

impl Class {
    fn of(kind: u8) -> Self {
        use kind::{AGGREGATE, AUDIO, COMMAND, COMMAND_AMF3, DATA, DATA_AMF3, VIDEO};
        match kind {
            AUDIO | VIDEO | DATA | DATA_AMF3 | AGGREGATE => Self::Media,
            COMMAND | COMMAND_AMF3 | kind::SET_CHUNK_SIZE..=kind::PEER_BANDWIDTH => Self::Command,
            _ => Self::Unknown,
        }
    }
}

impl Header {
    fn of_message(&self, chunk_stream: u32) -> MessageHeader {
        MessageHeader {
            chunk_stream,
            message_stream: self.message_stream,
            kind: self.kind,
            timestamp: self.timestamp,
        }
    }
}

impl<R: Region> Body<R> {
    fn remaining(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Media(region, later) => region.remaining().saturating_add(*later),
            Self::Command(_, left) | Self::Skipped(left) => *left,
        }
    }

    /// Media goes by [`put_media`].
    fn put(&mut self, bytes: &[u8]) {
        match self {
            Self::None | Self::Media(..) => {}
            Self::Command(body, left) => {
                body.extend_from_slice(bytes);
                *left = left.saturating_sub(bytes.len());
            }
            Self::Skipped(left) => *left = left.saturating_sub(bytes.len()),
        }
    }
}
