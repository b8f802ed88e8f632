use bytes::{Bytes, BytesMut};

use super::EXTENDED;
use crate::rtmp::message::MessageHeader;

/// Cuts messages into chunks.
///
/// Every message begins with a full header (format 0). Four to eleven bytes more than needed for
/// each frame buy that the bytes depend on nothing sent before: one encoding of a frame serves
/// every player, and a player can begin or jump anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    chunk_size: usize,
}

/// Takes the bytes of a message in order: headers, which are copied, and slices of its payload,
/// which are not.
pub trait Sink {
    fn small(&mut self, bytes: &[u8]);
    fn shared(&mut self, bytes: Bytes);
}

impl Sink for Vec<u8> {
    fn small(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn shared(&mut self, bytes: Bytes) {
        self.extend_from_slice(&bytes);
    }
}

impl Sink for BytesMut {
    fn small(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn shared(&mut self, bytes: Bytes) {
        self.extend_from_slice(&bytes);
    }
}

impl Writer {
    /// `chunk_size` is what the peer was told: 128 before any Set Chunk Size.
    #[must_use]
    pub fn new(chunk_size: u32) -> Self {
        Self { chunk_size: (chunk_size as usize).max(1) }
    }

    /// Writes one message whose body is `head` followed by `payload`, together below 16 MiB.
    ///
    /// `header.chunk_stream` lies in 2..=63.
    pub fn write(
        &self,
        header: MessageHeader,
        mut head: &[u8],
        payload: &Bytes,
        out: &mut impl Sink,
    ) {
        let length = head.len().saturating_add(payload.len());
        let mut left = length;
        let mut sent = 0_usize;
        first_header(header, length, out);
        loop {
            let mut room = self.chunk_size.min(left);
            left = left.saturating_sub(room);
            let (now, rest) = head.split_at_checked(room).unwrap_or((head, &[]));
            if !now.is_empty() {
                out.small(now);
            }
            head = rest;
            room = room.saturating_sub(now.len());
            if room > 0 {
                let end = sent.saturating_add(room);
                out.shared(payload.slice(sent..end));
                sent = end;
            }
            if left == 0 {
                return;
            }
            next_header(header, out);
        }
    }
}

/// Format 0 (RTMP 1.0 §5.3.1.2.1).
fn first_header(header: MessageHeader, length: usize, out: &mut impl Sink) {
    let short = header.timestamp.min(EXTENDED);
    let [_, t2, t1, t0] = short.to_be_bytes();
    let [_, l2, l1, l0] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let [m0, m1, m2, m3] = header.message_stream.to_le_bytes();
    let basic = basic_header(0, header.chunk_stream);
    out.small(&[basic, t2, t1, t0, l2, l1, l0, header.kind, m0, m1, m2, m3]);
    extended(header, out);
}

/// Format 3, with the extended timestamp again (RTMP 1.0 §5.3.1.3).
fn next_header(header: MessageHeader, out: &mut impl Sink) {
    out.small(&[basic_header(3, header.chunk_stream)]);
    extended(header, out);
}

fn basic_header(format: u8, chunk_stream: u32) -> u8 {
    format << 6 | u8::try_from(chunk_stream & 0x3f).unwrap_or(2)
}

fn extended(header: MessageHeader, out: &mut impl Sink) {
    if header.timestamp >= EXTENDED {
        out.small(&header.timestamp.to_be_bytes());
    }
}
