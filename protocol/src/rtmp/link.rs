use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use crate::limits::{
    DEFAULT_CHUNK_SIZE, Limits, MAX_PONGS, MIN_ACK_WINDOW, OUT_CHUNK_SIZE, OUT_WINDOW, RATE_WINDOW,
};
use crate::pool::Pool;
use crate::rtmp::chunk::{Reader, Sink, Writer};
use crate::rtmp::command::Command;
use crate::rtmp::handshake::Handshake;
use crate::rtmp::message::{Message, MessageHeader, UserControl, kind, leading_u32};
use crate::rtmp::{Error, Output};

/// What both ends of a connection have alike: the handshake, chunks both ways, acknowledgements
/// and pings. The sessions see only commands and media.
pub(super) struct Link<P: Pool> {
    handshake: Option<Box<Handshake>>,
    pub(super) reader: Reader<P>,
    writer: Writer,
    pub(super) out: Vec<u8>,
    received: u64,
    /// Of `received`, the bytes that are acknowledged.
    acknowledged: u64,
    /// After how many bytes the peer wants an acknowledgement.
    window: Option<u32>,
    pongs: Rate,
    ignored: u64,
}

impl<P: Pool> Link<P> {
    pub(super) fn server(seed: u64, limits: &Limits, pool: P) -> Self {
        Self::new(Handshake::server(seed), Vec::new(), limits, pool)
    }

    pub(super) fn client(seed: u64, limits: &Limits, pool: P) -> Self {
        let mut out = Vec::new();
        let handshake = Handshake::client(seed, &mut out);
        Self::new(handshake, out, limits, pool)
    }

    fn new(handshake: Handshake, out: Vec<u8>, limits: &Limits, pool: P) -> Self {
        Self {
            handshake: Some(Box::new(handshake)),
            reader: Reader::new(limits, pool),
            writer: Writer::new(DEFAULT_CHUNK_SIZE),
            out,
            received: 0,
            acknowledged: 0,
            window: None,
            pongs: Rate::default(),
            ignored: 0,
        }
    }

    pub(super) fn in_handshake(&self) -> bool {
        self.handshake.is_some()
    }

    pub(super) fn writer(&self) -> Writer {
        self.writer
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Messages that were skipped for one reason or another.
    pub(super) fn ignored(&self) -> u64 {
        self.ignored.saturating_add(self.reader.skipped())
    }

    pub(super) fn ignore(&mut self) {
        self.ignored = self.ignored.saturating_add(1);
    }

    /// Counts bytes that came from the peer, once each.
    pub(super) fn count(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// Acknowledges what was received, at most once per call (RTMP 1.0 §5.4.3).
    pub(super) fn acknowledge(&mut self) {
        let due = self.received.saturating_sub(self.acknowledged);
        if self.window.is_some_and(|window| due >= u64::from(window)) {
            self.acknowledged = self.received;
            // The sequence number wraps.
            let sequence = self.received as u32;
            self.send(MessageHeader::control(kind::ACKNOWLEDGEMENT), &sequence.to_be_bytes());
        }
    }

    /// The next command or media message, `None` once `input` is used up.
    pub(super) fn next(
        &mut self,
        now: Instant,
        input: &mut &[u8],
    ) -> Result<Option<Message>, Error> {
        if let Some(handshake) = &mut self.handshake {
            if !handshake.advance(input, &mut self.out)? {
                return Ok(None);
            }
            self.handshake = None;
        }
        while let Some(message) = self.reader.read(input)? {
            match message.header.kind {
                kind::USER_CONTROL => self.user_control(now, &message.body),
                kind::WINDOW_SIZE => match leading_u32(&message.body) {
                    Some(0) => self.window = None,
                    Some(window) => self.window = Some(window.max(MIN_ACK_WINDOW)),
                    None => self.ignore(),
                },
                kind::ACKNOWLEDGEMENT | kind::PEER_BANDWIDTH => {}
                _ => return Ok(Some(message)),
            }
        }
        Ok(None)
    }

    fn user_control(&mut self, now: Instant, body: &[u8]) {
        match UserControl::parse(body) {
            Some(UserControl::Ping(timestamp)) if self.pongs.allows(now, MAX_PONGS) => {
                self.send_user_control(UserControl::Pong(timestamp));
            }
            Some(UserControl::Ping(_)) | None => self.ignore(),
            Some(_) => {}
        }
    }

    pub(super) fn send_user_control(&mut self, event: UserControl) {
        self.send(MessageHeader::control(kind::USER_CONTROL), &event.encode());
    }

    pub(super) fn send_command(&mut self, message_stream: u32, command: &Command) {
        self.send(MessageHeader::command(message_stream), &command.encode());
    }

    /// Announces the window and the chunk size of what Weir sends, and uses the latter from now on.
    pub(super) fn send_chunk_size(&mut self) {
        self.send(MessageHeader::control(kind::WINDOW_SIZE), &OUT_WINDOW.to_be_bytes());
        self.send(MessageHeader::control(kind::SET_CHUNK_SIZE), &OUT_CHUNK_SIZE.to_be_bytes());
        self.writer = Writer::new(OUT_CHUNK_SIZE);
    }

    pub(super) fn send(&mut self, header: MessageHeader, body: &[u8]) {
        self.writer.write(header, body, &Bytes::new(), &mut self.out);
    }

    /// What is to be sent.
    pub(super) fn take_output(&mut self) -> Option<Bytes> {
        if self.out.is_empty() { None } else { Some(std::mem::take(&mut self.out).into()) }
    }
}

/// Slices smaller than this are copied next to the headers: cheaper than an output of their own.
const SMALL_BYTES: usize = 512;

/// Media among a session's outputs, behind what the link has to send.
pub(super) struct Queue<'a, P: Pool, E> {
    pub(super) outputs: &'a mut VecDeque<Output<E>>,
    pub(super) link: &'a mut Link<P>,
}

impl<P: Pool, E> Sink for Queue<'_, P, E> {
    fn small(&mut self, bytes: &[u8]) {
        self.link.out.extend_from_slice(bytes);
    }

    fn shared(&mut self, bytes: Bytes) {
        if bytes.len() < SMALL_BYTES {
            return self.small(&bytes);
        }
        self.outputs.extend(self.link.take_output().map(Output::Send));
        self.outputs.push_back(Output::Send(bytes));
    }
}

/// Counts events in windows of [`RATE_WINDOW`].
#[derive(Debug, Default)]
pub(super) struct Rate {
    since: Option<Instant>,
    count: u32,
}

impl Rate {
    /// Whether one more event stays within `most` for this window.
    pub(super) fn allows(&mut self, now: Instant, most: u32) -> bool {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= RATE_WINDOW) {
            *self = Self { since: Some(now), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}
