use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::amf0::Value;
use crate::flv::{Tag, TagKind};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::rtmp::chunk::Writer;
use crate::rtmp::command::Command;
use crate::rtmp::enhanced::{self, PeerCodecs};
use crate::rtmp::link::{Link, Queue};
use crate::rtmp::message::{self, Message, MessageHeader, SET_DATA_FRAME, UserControl, kind};
use crate::rtmp::{Error, Output, RtmpUrl, Waiting, via};

/// The client's side of one RTMP connection: publishes one stream to a server, or plays one.
///
/// It is driven like [`ServerSession`](crate::rtmp::ServerSession), but has something to send from
/// the start: begin with `poll_output`. What the server refuses is an [`Error::Rejected`].
pub struct ClientSession<P: Pool> {
    link: Link<P>,
    limits: Limits,
    url: RtmpUrl,
    purpose: Purpose,
    state: State,
    now: Instant,
    waiting: Option<(Waiting, Instant)>,
    message_stream: u32,
    peer_codecs: PeerCodecs,
    via: Vec<u64>,
    outputs: VecDeque<Output<ClientEvent>>,
}

#[derive(Debug, PartialEq)]
pub enum ClientEvent {
    /// Media may be published from now on.
    Published,
    /// Media follows.
    Playing,
    /// `body` is that of an FLV tag, and not empty.
    Media { kind: TagKind, timestamp_ms: u32, body: Bytes },
    /// The server has ended the stream.
    Ended { code: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Publish,
    Play,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Handshake,
    Connecting,
    CreatingStream,
    Requesting,
    Active,
    Ended,
}

/// Transactions of the commands, each sent once.
mod transaction {
    pub const CONNECT: f64 = 1.0;
    pub const RELEASE_STREAM: f64 = 2.0;
    pub const FC_PUBLISH: f64 = 3.0;
    pub const CREATE_STREAM: f64 = 4.0;
    pub const REQUEST: f64 = 5.0;
    pub const FC_UNPUBLISH: f64 = 6.0;
}

/// Servers know this name as that of an encoder which wants releaseStream and FCPublish answered.
const FLASH_VERSION: &str = "FMLE/3.0 (compatible; Weir)";

/// What Adobe's player says that it decodes (RTMP 1.0 §7.2.1.1): old servers send what they are told.
const PLAYER: [(&str, f64); 4] = [
    ("capabilities", 15.0),
    ("audioCodecs", 4071.0),
    ("videoCodecs", 252.0),
    ("videoFunction", 1.0),
];

/// What a player asks servers to send ahead, in milliseconds.
const BUFFER_MS: u32 = 1000;

impl<P: Pool> ClientSession<P> {
    /// Publishes to `url`. `seed` fills the random fields of the handshake.
    #[must_use]
    pub fn publish(url: RtmpUrl, limits: Limits, seed: u64, pool: P, now: Instant) -> Self {
        Self::new(Purpose::Publish, url, Link::client(seed, &limits, pool), limits, now)
    }

    /// Plays `url`. `seed` fills the random fields of the handshake.
    #[must_use]
    pub fn play(url: RtmpUrl, limits: Limits, seed: u64, pool: P, now: Instant) -> Self {
        Self::new(Purpose::Play, url, Link::client(seed, &limits, pool), limits, now)
    }

    /// Tells the server by which places the stream has come, each a number that the gateway there knows
    /// again. For a gateway that passes a stream on; other servers pass over it.
    #[must_use]
    pub fn coming_via(self, places: Vec<u64>) -> Self {
        Self { via: places, ..self }
    }

    fn new(purpose: Purpose, url: RtmpUrl, link: Link<P>, limits: Limits, now: Instant) -> Self {
        Self {
            link,
            limits,
            url,
            purpose,
            state: State::Handshake,
            now,
            waiting: Some((Waiting::Handshake, now)),
            message_stream: 0,
            peer_codecs: PeerCodecs::default(),
            via: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Takes what was received, in any portions.
    ///
    /// # Errors
    /// On a violation or a refusal by the server, or when a bound is exceeded.
    pub fn handle_input(&mut self, now: Instant, mut input: &[u8]) -> Result<(), Error> {
        self.now = now;
        self.link.count(input.len());
        loop {
            let message = self.link.next(now, &mut input)?;
            if self.state == State::Handshake && !self.link.in_handshake() {
                self.connect();
            }
            let Some(message) = message else { break };
            match message.header.kind {
                kind::COMMAND | kind::COMMAND_AMF3 => self.command(&message)?,
                _ => self.media(message),
            }
        }
        self.link.acknowledge();
        Ok(())
    }

    /// What to send or to act upon next.
    pub fn poll_output(&mut self) -> Option<Output<ClientEvent>> {
        let output = self.outputs.pop_front();
        output.or_else(|| self.link.take_output().map(Output::Send))
    }

    /// When [`ClientSession::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let (waiting, since) = self.waiting?;
        since.checked_add(self.timeout(waiting))
    }

    /// # Errors
    /// When the server has let its time pass.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
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

    /// Publishes one tag's body; nothing before [`ClientEvent::Published`]. Large bodies become
    /// outputs of their own, uncopied.
    pub fn publish_media(&mut self, kind: TagKind, timestamp_ms: u32, body: &Bytes) {
        if (self.purpose, self.state) != (Purpose::Publish, State::Active) {
            return;
        }
        let header = MessageHeader::media(self.message_stream, kind, timestamp_ms);
        let head = if kind == TagKind::Script { SET_DATA_FRAME } else { &[] };
        let writer = self.link.writer();
        writer.write(
            header,
            head,
            body,
            &mut Queue { outputs: &mut self.outputs, link: &mut self.link },
        );
    }

    /// Cuts media for this server into chunks, for whoever sends it without a copy instead of by
    /// [`ClientSession::publish_media`]: after [`ClientEvent::Published`], on
    /// [`ClientSession::message_stream`], and never between the two halves of an output.
    #[must_use]
    pub fn writer(&self) -> Writer {
        self.link.writer()
    }

    /// The message stream of what is published or played.
    #[must_use]
    pub fn message_stream(&self) -> u32 {
        self.message_stream
    }

    /// What the server has said that it takes.
    #[must_use]
    pub fn peer_codecs(&self) -> &PeerCodecs {
        &self.peer_codecs
    }

    /// Says goodbye; then drain the outputs and close the connection.
    pub fn close(&mut self) {
        if self.state != State::Active {
            return;
        }
        self.state = State::Ended;
        self.waiting = None;
        if self.purpose == Purpose::Publish {
            let key = self.url.key.as_str().into();
            self.request(0, "FCUnpublish", transaction::FC_UNPUBLISH, vec![key]);
        }
        let stream = f64::from(self.message_stream).into();
        self.request(0, "deleteStream", 0.0, vec![stream]);
    }

    fn request(&mut self, message_stream: u32, name: &str, transaction: f64, args: Vec<Value>) {
        let command = Command { transaction, ..Command::new(name, args) };
        self.link.send_command(message_stream, &command);
    }

    fn connect(&mut self) {
        self.state = State::Connecting;
        self.waiting = Some((Waiting::Answer, self.now));
        self.link.send_chunk_size();
        let about = [
            ("app", self.url.app.as_str().into()),
            ("type", "nonprivate".into()),
            ("flashVer", FLASH_VERSION.into()),
            ("tcUrl", self.url.tc_url().as_str().into()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let decodes: &[(&str, f64)] = match self.purpose {
            Purpose::Publish => &[],
            Purpose::Play => &PLAYER,
        };
        let decodes = decodes.iter().map(|&(name, value)| (name.to_owned(), value.into()));
        let path = (!self.via.is_empty()).then(|| (via::KEY.to_owned(), via::write(&self.via)));
        let about = about.into_iter().chain(decodes).chain(enhanced::properties()).chain(path);
        let connect = Command {
            name: "connect".to_owned(),
            transaction: transaction::CONNECT,
            object: Value::Object(about.collect()),
            arguments: Vec::new(),
        };
        self.link.send_command(0, &connect);
    }

    fn command(&mut self, message: &Message) -> Result<(), Error> {
        let Some(command) = Command::parse(message.header.kind, &message.body)? else {
            self.link.ignore();
            return Ok(());
        };
        match command.name.as_str() {
            "_result" => self.result(&command),
            "_error" => return self.error(&command),
            "onStatus" => return self.status(&command),
            "close" => self.end("NetConnection.Connect.Closed"),
            _ => self.link.ignore(),
        }
        Ok(())
    }

    fn result(&mut self, command: &Command) {
        if self.state == State::Connecting && command.transaction == transaction::CONNECT {
            self.state = State::CreatingStream;
            self.peer_codecs = PeerCodecs::read(&command.object);
            let key: Value = self.url.key.as_str().into();
            if self.purpose == Purpose::Publish {
                let release = transaction::RELEASE_STREAM;
                self.request(0, "releaseStream", release, vec![key.clone()]);
                self.request(0, "FCPublish", transaction::FC_PUBLISH, vec![key]);
            }
            self.request(0, "createStream", transaction::CREATE_STREAM, Vec::new());
        } else if self.state == State::CreatingStream
            && command.transaction == transaction::CREATE_STREAM
        {
            self.state = State::Requesting;
            let number = command.arguments.first().and_then(Value::as_number);
            self.message_stream = number.unwrap_or(1.0) as u32;
            self.request_stream();
        }
    }

    fn request_stream(&mut self) {
        let key: Value = self.url.key.as_str().into();
        let stream = self.message_stream;
        match self.purpose {
            Purpose::Publish => {
                self.request(stream, "publish", transaction::REQUEST, vec![key, "live".into()]);
            }
            Purpose::Play => {
                self.link.reader.store_media(true);
                self.link.reader.set_max_unfinished(self.limits.unfinished_bytes_publishing);
                // -2: live, else recorded (RTMP 1.0 §7.2.2.1).
                self.request(stream, "play", transaction::REQUEST, vec![key, (-2.0).into()]);
                self.link.send_user_control(UserControl::SetBufferLength(stream, BUFFER_MS));
            }
        }
    }

    /// Servers that do not know releaseStream or FCPublish say so, and mean no harm.
    fn error(&mut self, command: &Command) -> Result<(), Error> {
        use transaction::{FC_PUBLISH, FC_UNPUBLISH, RELEASE_STREAM};
        if [RELEASE_STREAM, FC_PUBLISH, FC_UNPUBLISH].contains(&command.transaction) {
            self.link.ignore();
            return Ok(());
        }
        Err(rejected(command.arguments.first()))
    }

    fn status(&mut self, command: &Command) -> Result<(), Error> {
        let information = command.arguments.first();
        let text = |key| information?.get(key)?.as_str();
        let code = text("code").unwrap_or_default();
        if text("level") == Some("error") {
            return Err(rejected(information));
        }
        match (code, self.state) {
            ("NetStream.Publish.Start", State::Requesting) => {
                self.state = State::Active;
                self.waiting = None;
                self.emit(ClientEvent::Published);
            }
            ("NetStream.Play.Start", State::Requesting) => {
                self.state = State::Active;
                self.waiting = Some((Waiting::Media, self.now));
                self.emit(ClientEvent::Playing);
            }
            (
                "NetStream.Play.UnpublishNotify"
                | "NetStream.Play.Stop"
                | "NetStream.Play.Complete"
                | "NetStream.Unpublish.Success",
                State::Active,
            ) => self.end(code),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, code: &str) {
        if self.state != State::Ended {
            self.state = State::Ended;
            self.waiting = None;
            self.emit(ClientEvent::Ended { code: code.to_owned() });
        }
    }

    fn media(&mut self, message: Message) {
        if (self.purpose, self.state) != (Purpose::Play, State::Active) {
            return self.link.ignore();
        }
        for tag in message::tags(message) {
            let Some(Tag { kind, timestamp_ms, body }) = tag else {
                self.link.ignore();
                continue;
            };
            self.waiting = Some((Waiting::Media, self.now));
            self.emit(ClientEvent::Media { kind, timestamp_ms, body });
        }
    }

    fn emit(&mut self, event: ClientEvent) {
        if let Some(bytes) = self.link.take_output() {
            self.outputs.push_back(Output::Send(bytes));
        }
        self.outputs.push_back(Output::Event(event));
    }
}

fn rejected(information: Option<&Value>) -> Error {
    let text = |key| {
        let value = information.and_then(|information| information.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Error::Rejected { code: text("code"), description: text("description") }
}
