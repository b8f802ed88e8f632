//! A scripted client: it sends exactly what a test says and records every answer.

use std::time::{Duration, Instant};

use bytes::Bytes;
use weir_protocol::amf0::Value;
use weir_protocol::flv::TagKind;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::chunk::{Reader, Writer};
use weir_protocol::rtmp::command::{Command, object};
use weir_protocol::rtmp::message::{Message, MessageHeader, kind};
use weir_protocol::rtmp::{Error, Event, Limits, Output, ServerSession};

pub struct Peer {
    pub server: ServerSession<HeapPool>,
    pub now: Instant,
    pub events: Vec<Event>,
    pub answers: Vec<Message>,
    reader: Reader<HeapPool>,
    handshake_left: usize,
    pub sent_by_server: usize,
}

impl Peer {
    /// A client before its handshake.
    pub fn silent(limits: Limits) -> Self {
        let now = crate::start();
        let mut reader = Reader::new(&Limits::default(), HeapPool::default());
        reader.store_media(true);
        Self {
            server: ServerSession::new(limits, 1, HeapPool::default(), now),
            now,
            events: Vec::new(),
            answers: Vec::new(),
            reader,
            handshake_left: 3073,
            sent_by_server: 0,
        }
    }

    /// A client behind its handshake.
    pub fn new() -> Self {
        let mut peer = Self::silent(Limits::default());
        peer.bytes(&[3]).unwrap();
        peer.bytes(&[0; 3072]).unwrap();
        peer
    }

    /// A client whose `connect` to `app` was accepted.
    pub fn connected(app: &str) -> Self {
        let mut peer = Self::new();
        peer.connect(app, &format!("rtmp://h/{app}")).unwrap();
        peer
    }

    /// A client that publishes `live/k` on message stream 1.
    pub fn publishing() -> Self {
        let mut peer = Self::connected("live");
        peer.command(0, "createStream", 2.0, vec![]).unwrap();
        peer.command(1, "publish", 3.0, vec!["k".into(), "live".into()]).unwrap();
        peer.server.accept_publish(1).unwrap();
        peer.drain();
        peer.events.clear();
        peer.answers.clear();
        peer
    }

    pub fn connect(&mut self, app: &str, tc_url: &str) -> Result<(), Error> {
        let object =
            object([("app", app.into()), ("tcUrl", tc_url.into()), ("flashVer", "test".into())]);
        self.send_command(
            0,
            &Command { name: "connect".into(), transaction: 1.0, object, arguments: vec![] },
        )
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let result = self.server.handle_input(self.now, bytes);
        self.drain();
        result
    }

    pub fn message(&mut self, header: MessageHeader, body: &[u8]) -> Result<(), Error> {
        self.bytes(&encode(header, body))
    }

    /// A message of any kind on chunk stream 3, message stream 0.
    pub fn raw(&mut self, kind: u8, body: &[u8]) -> Result<(), Error> {
        let header = MessageHeader { kind, ..MessageHeader::command(0) };
        self.message(header, body)
    }

    pub fn send_command(&mut self, stream: u32, command: &Command) -> Result<(), Error> {
        self.message(MessageHeader::command(stream), &command.encode())
    }

    pub fn command(
        &mut self,
        stream: u32,
        name: &str,
        transaction: f64,
        arguments: Vec<Value>,
    ) -> Result<(), Error> {
        self.send_command(stream, &Command { transaction, ..Command::new(name, arguments) })
    }

    pub fn media(&mut self, kind: TagKind, timestamp: u32, body: &[u8]) -> Result<(), Error> {
        self.message(MessageHeader::media(1, kind, timestamp), body)
    }

    pub fn drain(&mut self) {
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Event(event) => self.events.push(event),
                Output::Send(bytes) => self.receive(&bytes),
            }
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.sent_by_server += bytes.len();
        let skip = bytes.len().min(self.handshake_left);
        self.handshake_left -= skip;
        let mut bytes = &bytes[skip..];
        while let Some(message) = self.reader.read(&mut bytes).unwrap() {
            self.answers.push(message);
        }
    }

    pub fn pass(&mut self, time: Duration) -> Result<(), Error> {
        self.now += time;
        self.server.handle_timeout(self.now)
    }

    /// The commands that the server sent, with their message streams.
    pub fn commands(&self) -> Vec<(u32, Command)> {
        let commands = self.answers.iter().filter(|message| message.header.kind == kind::COMMAND);
        let parse = |message: &Message| Command::parse(kind::COMMAND, &message.body);
        commands.map(|m| (m.header.message_stream, parse(m).unwrap().unwrap())).collect()
    }

    /// Name, transaction and, of an `onStatus` or event, the code.
    pub fn replies(&self) -> Vec<(String, f64, String)> {
        let code = |command: &Command| {
            let code = command.arguments.first().and_then(|value| value.get("code")?.as_str());
            code.unwrap_or_default().to_owned()
        };
        let commands = self.commands().into_iter();
        commands.map(|(_, c)| (c.name.clone(), c.transaction, code(&c))).collect()
    }

    pub fn codes(&self) -> Vec<String> {
        let replies = self.replies().into_iter();
        replies.filter(|(name, ..)| name == "onStatus").map(|(_, _, code)| code).collect()
    }

    /// Kind, timestamp and body of all media that came through.
    pub fn media_events(&self) -> Vec<(TagKind, u32, Vec<u8>)> {
        let media = |event: &Event| match event {
            Event::Media { kind, timestamp_ms, body } => {
                Some((*kind, *timestamp_ms, body.to_vec()))
            }
            _ => None,
        };
        self.events.iter().filter_map(media).collect()
    }
}

/// One message as chunks of the default size.
pub fn encode(header: MessageHeader, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::new(128).write(header, body, &Bytes::new(), &mut bytes);
    bytes
}
