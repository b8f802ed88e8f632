use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::flv::{Tag, TagKind};
use crate::limits::{IDLE_OUTPUTS, Limits};
use crate::pool::Pool;
use crate::rtmp::chunk::Writer;
use crate::rtmp::link::{Link, Rate};
use crate::rtmp::message::{self, Message, kind};
use crate::rtmp::{Error, Waiting};
use crate::stream_name::{NameError, Query, StreamName};

mod answers;
mod commands;

/// The server's side of one RTMP connection: publishers and players speak to it.
///
/// See [`crate::rtmp`] for how it is driven. One publish at a time, any number of plays within
/// [`Limits::message_streams`].
pub struct ServerSession<P: Pool> {
    link: Link<P>,
    limits: Limits,
    now: Instant,
    /// What the session's time limit is for, and since when it runs.
    waiting: Option<(Waiting, Instant)>,
    connect: Option<Connect>,
    streams: Vec<MessageStream>,
    next_stream: u32,
    /// Input behind a publish command that is not answered yet.
    held: Vec<u8>,
    commands: Rate,
    outputs: VecDeque<Output>,
}

/// What a session has to say.
#[derive(Debug, PartialEq)]
pub enum Output<E = Event> {
    /// Bytes for the peer, chunked.
    Send(Bytes),
    Event(E),
}

#[derive(Debug, PartialEq)]
pub enum Event {
    /// Wants to publish. Answer with `accept_publish` or `reject_publish`; until then input is
    /// held back, see [`ServerSession::wants_input`].
    Publish {
        message_stream: u32,
        name: StreamName,
        query: Query,
        mode: PublishMode,
    },
    /// The publish that was asked for or accepted is over.
    Unpublish {
        message_stream: u32,
    },
    /// Wants to play. Answer with `accept_play` or `reject_play`.
    Play {
        message_stream: u32,
        name: StreamName,
        query: Query,
    },
    /// The play that was asked for or accepted is over.
    StopPlay {
        message_stream: u32,
    },
    Pause {
        message_stream: u32,
        paused: bool,
    },
    /// A player wants to go on elsewhere. It has been told that it does, and what that means for
    /// live media is up to the gateway.
    Seek {
        message_stream: u32,
    },
    /// A player turned one kind of media off or on.
    Receive {
        message_stream: u32,
        kind: TagKind,
        wanted: bool,
    },
    /// Media of the accepted publish, in order. Never empty. `body` is that of an FLV tag.
    Media {
        kind: TagKind,
        timestamp_ms: u32,
        body: Bytes,
    },
    /// A publish or play was refused because its address names no stream.
    BadName(NameError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishMode {
    Live,
    Record,
    Append,
}

/// What the peer said of itself in `connect` (RTMP 1.0 §7.2.1.1). `app` and `tc_url` may hold
/// secrets in their queries.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Connect {
    pub app: String,
    pub tc_url: String,
    pub flash_version: String,
    pub page_url: String,
    pub swf_url: String,
    /// The peer speaks Enhanced RTMP.
    pub enhanced: bool,
    /// The peer follows a request to reconnect (Enhanced RTMP v2).
    pub reconnects: bool,
    /// The places that what it publishes has come by, see [`ClientSession::coming_via`].
    ///
    /// [`ClientSession::coming_via`]: crate::rtmp::ClientSession::coming_via
    pub via: Vec<u64>,
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connect")
            .field("flash_version", &self.flash_version)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct MessageStream {
    id: u32,
    /// By `createStream`, and not made up.
    created: bool,
    /// Did something, and has stopped.
    used: bool,
    activity: Activity,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Activity {
    Idle,
    PublishAsked(StreamName),
    Publishing(StreamName),
    PlayAsked,
    Playing,
}

impl<P: Pool> ServerSession<P> {
    /// `seed` fills the random fields of the handshake, which hold no secret. Bodies are put into
    /// `pool`.
    #[must_use]
    pub fn new(limits: Limits, seed: u64, pool: P, now: Instant) -> Self {
        Self {
            link: Link::server(seed, &limits, pool),
            limits,
            now,
            waiting: Some((Waiting::Handshake, now)),
            connect: None,
            streams: Vec::new(),
            next_stream: 1,
            held: Vec::new(),
            commands: Rate::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes what was received, in any portions.
    ///
    /// # Errors
    /// On a violation, or when a bound is exceeded.
    pub fn handle_input(&mut self, now: Instant, input: &[u8]) -> Result<(), Error> {
        self.now = now;
        self.link.count(input.len());
        self.process(input)?;
        self.link.acknowledge();
        Ok(())
    }

    /// Whether the peer may go on sending. While a publish waits for its answer, what arrives is
    /// held in memory up to [`Limits::held_bytes`]; not reading lets TCP hold it instead.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.streams.iter().any(|stream| matches!(stream.activity, Activity::PublishAsked(_)))
    }

    /// What to send or to act upon next.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.outputs.pop_front();
        if output.is_none() {
            // A burst of tiny messages must not leave its queue behind.
            self.outputs.shrink_to(IDLE_OUTPUTS);
        }
        output.or_else(|| self.link.take_output().map(Output::Send))
    }

    /// What to send next, unless an event comes before it.
    pub fn poll_send(&mut self) -> Option<Bytes> {
        if let Some(Output::Event(_)) = self.outputs.front() {
            return None;
        }
        match self.poll_output() {
            Some(Output::Send(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// When [`ServerSession::handle_timeout`] wants to be called. It changes with every input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (waiting, since) = self.waiting?;
        since.checked_add(self.timeout(waiting))
    }

    /// What the peer is given time for, while it is.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        self.waiting.map(|(waiting, _)| waiting)
    }

    /// # Errors
    /// When the peer has let its time pass.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.now = now;
        match self.waiting {
            Some((waiting, _)) if self.poll_timeout().is_some_and(|deadline| now >= deadline) => {
                Err(Error::Timeout(waiting, self.timeout(waiting)))
            }
            _ => Ok(()),
        }
    }

    fn timeout(&self, waiting: Waiting) -> Duration {
        match waiting {
            Waiting::Handshake => self.limits.handshake_timeout,
            Waiting::Request | Waiting::Answer => self.limits.idle_timeout,
            Waiting::Media => self.limits.media_timeout,
        }
    }

    /// What `connect` said, once it came.
    #[must_use]
    pub fn connect(&self) -> Option<&Connect> {
        self.connect.as_ref()
    }

    /// Cuts messages for this peer into chunks, as announced to it. It stays the same from the
    /// first event on, and for all sessions.
    #[must_use]
    pub fn writer(&self) -> Writer {
        self.link.writer()
    }

    /// The pool that message bodies are put into.
    pub fn pool_mut(&mut self) -> &mut P {
        self.link.reader.pool_mut()
    }

    /// Bytes received, the handshake's included.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.link.received()
    }

    /// Messages that were skipped: of unknown types, malformed, aborted, or not asked for.
    #[must_use]
    pub fn ignored_messages(&self) -> u64 {
        self.link.ignored()
    }

    fn process(&mut self, mut input: &[u8]) -> Result<(), Error> {
        while self.wants_input() {
            let message = self.link.next(self.now, &mut input)?;
            if matches!(self.waiting, Some((Waiting::Handshake, _))) && !self.link.in_handshake() {
                self.waiting = Some((Waiting::Request, self.now));
            }
            let Some(message) = message else { return Ok(()) };
            match message.header.kind {
                kind::COMMAND | kind::COMMAND_AMF3 => self.command(&message)?,
                _ => self.media(message),
            }
        }
        if self.held.len().saturating_add(input.len()) > self.limits.held_bytes {
            return Err(Error::TooMuchHeld(self.limits.held_bytes));
        }
        self.held.extend_from_slice(input);
        Ok(())
    }

    /// Goes on with what was held back for the answer to a publish.
    fn process_held(&mut self) -> Result<(), Error> {
        let held = std::mem::take(&mut self.held);
        self.process(&held)
    }

    /// Media counts for the one publish there is, on whatever message stream it comes: some
    /// encoders number them wrongly.
    fn media(&mut self, message: Message) {
        if !self.is_publishing() {
            return self.link.ignore();
        }
        for tag in message::tags(message) {
            let Some(Tag { kind, timestamp_ms, body }) = tag else {
                self.link.ignore();
                continue;
            };
            self.waiting = Some((Waiting::Media, self.now));
            self.emit(Event::Media { kind, timestamp_ms, body });
        }
    }

    fn is_publishing(&self) -> bool {
        self.streams.iter().any(|stream| matches!(stream.activity, Activity::Publishing(_)))
    }

    /// Queues an event behind everything that was sent before it.
    fn emit(&mut self, event: Event) {
        if let Some(bytes) = self.link.take_output() {
            self.outputs.push_back(Output::Send(bytes));
        }
        self.outputs.push_back(Output::Event(event));
    }

    fn stream(&self, id: u32) -> Option<&MessageStream> {
        self.streams.iter().find(|stream| stream.id == id)
    }

    fn set_activity(&mut self, id: u32, activity: Activity) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
            stream.used |= activity == Activity::Idle;
            stream.activity = activity;
        }
        let publishing = self.is_publishing();
        self.link.reader.store_media(publishing);
        let plays = self.streams.iter().any(|stream| stream.activity == Activity::Playing);
        self.waiting = match self.waiting {
            _ if publishing => Some((Waiting::Media, self.now)),
            _ if plays => None,
            Some((Waiting::Request, since)) => Some((Waiting::Request, since)),
            _ => Some((Waiting::Request, self.now)),
        };
    }
}
