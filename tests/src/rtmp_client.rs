//! A scripted RTMP client: it says what a test tells it to, when it is told.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use weir_protocol::amf0::Value;
use weir_protocol::flv::{Tag, TagKind};
use weir_protocol::limits::DEFAULT_CHUNK_SIZE;
use weir_protocol::rtmp::chunk::Writer;
use weir_protocol::rtmp::command::{Command, object};
use weir_protocol::rtmp::message::{Message, MessageHeader, UserControl, kind};

use crate::replay::handshake::{Form, Hello};
use crate::rtmp_peer::{Next, Peer};

/// How long the gateway may take for any answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Of what the client sends, once it is open.
pub const CHUNK_SIZE: u32 = 4096;

/// A connection whose handshake is done.
pub struct RtmpClient {
    peer: Peer,
    writer: Writer,
    transaction: f64,
    /// The message stream that createStream gave.
    pub message_stream: u32,
}

impl RtmpClient {
    /// # Panics
    /// When the gateway does not answer.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("the RTMP listener takes connections"))
    }

    /// Makes the handshake over a new connection.
    ///
    /// # Panics
    /// When the gateway does not answer.
    #[must_use]
    pub fn over(socket: TcpStream) -> Self {
        let mut peer = Peer::over(socket).expect("a socket");
        let hello = Hello::new(Form::Plain, 0, 0, 1);
        let c1 = [&[3][..], &hello.c1].concat();
        peer.expect_hello(hello);
        peer.send(&c1).expect("the handshake is taken");
        let s1 = peer.read_hello(Instant::now() + ANSWERS_WITHIN).expect("an answer");
        peer.send(&s1).expect("the handshake is taken");
        let writer = Writer::new(DEFAULT_CHUNK_SIZE);
        Self { peer, writer, transaction: 0.0, message_stream: 0 }
    }

    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.socket().local_addr().expect("a bound socket")
    }

    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        self.peer.socket()
    }

    /// `connect` and `createStream`.
    ///
    /// # Panics
    /// When the gateway refuses.
    pub fn open(&mut self, app: &str, tc_url: &str) {
        self.write(MessageHeader::control(kind::SET_CHUNK_SIZE), &CHUNK_SIZE.to_be_bytes());
        self.writer = Writer::new(CHUNK_SIZE);
        let about = object([
            ("app", app.into()),
            ("flashVer", "weir-e2e".into()),
            ("tcUrl", tc_url.into()),
        ]);
        self.transaction += 1.0;
        let transaction = self.transaction;
        let connect = Command { transaction, object: about, ..Command::new("connect", Vec::new()) };
        self.write(MessageHeader::command(0), &connect.encode());
        self.answer_to(self.transaction);
        self.command(0, "createStream", Vec::new());
        let number = self.answer_to(self.transaction).arguments[0].as_number();
        self.message_stream = number.expect("the number of a message stream") as u32;
    }

    /// Sends a command with the next transaction number.
    ///
    /// # Panics
    /// When the connection is gone.
    pub fn command(&mut self, message_stream: u32, name: &str, arguments: Vec<Value>) {
        self.try_command(message_stream, name, arguments).expect("the gateway takes messages");
    }

    /// # Errors
    /// When the connection is gone.
    pub fn try_command(
        &mut self,
        message_stream: u32,
        name: &str,
        arguments: Vec<Value>,
    ) -> io::Result<()> {
        self.transaction += 1.0;
        let command = Command { transaction: self.transaction, ..Command::new(name, arguments) };
        self.try_write(MessageHeader::command(message_stream), &command.encode())
    }

    fn answer_to(&mut self, transaction: f64) -> Command {
        loop {
            let command = self.next_command().expect("an answer, not the end");
            match command.name.as_str() {
                "_result" if command.transaction == transaction => return command,
                "_error" => panic!("refused: {command:?}"),
                _ => {}
            }
        }
    }

    /// Asks to publish, and gives the status code of the answer.
    ///
    /// # Panics
    /// When there is none.
    pub fn ask_to_publish(&mut self, key: &str) -> String {
        let stream = self.message_stream;
        self.command(stream, "publish", vec![key.into(), "live".into()]);
        self.next_status().expect("an answer to publish")
    }

    /// Asks to play, and gives the status code of the answer.
    ///
    /// # Panics
    /// When there is none.
    pub fn ask_to_play(&mut self, key: &str) -> String {
        let stream = self.message_stream;
        self.command(stream, "play", vec![key.into(), (-2.0).into()]);
        loop {
            let code = self.next_status().expect("an answer to play");
            if code != "NetStream.Play.Reset" {
                return code;
            }
        }
    }

    /// The code of the next `onStatus`; `None` at the end of the connection. Media is skipped.
    pub fn next_status(&mut self) -> Option<String> {
        self.next_explained().map(|(code, _)| code)
    }

    /// The code of the next `onStatus` and the sentence that goes with it.
    pub fn next_explained(&mut self) -> Option<(String, String)> {
        loop {
            let command = self.next_command()?;
            if command.name == "onStatus" {
                let information = command.arguments.first();
                let text = |key| information?.get(key)?.as_str();
                let text = |key| text(key).unwrap_or_default().to_owned();
                return Some((text("code"), text("description")));
            }
        }
    }

    fn next_command(&mut self) -> Option<Command> {
        loop {
            let message = self.next_message()?;
            if message.header.kind == kind::COMMAND {
                let command = Command::parse(message.header.kind, &message.body);
                return Some(command.expect("a command").expect("a command with a name"));
            }
        }
    }

    /// The next media message; `None` when the gateway says that the stream has ended, or ends
    /// the connection.
    pub fn next_media(&mut self) -> Option<Tag> {
        loop {
            let Message { header, body } = self.next_message()?;
            if header.kind == kind::COMMAND {
                let command = Command::parse(header.kind, &body).expect("a command");
                let code = command?.arguments.first()?.get("code")?.as_str()?.to_owned();
                if code == "NetStream.Play.UnpublishNotify" {
                    return None;
                }
            } else if let Some(kind) = TagKind::from_type(header.kind) {
                return Some(Tag { kind, timestamp_ms: header.timestamp, body });
            }
        }
    }

    /// The next message of any kind; `None` at the end of the connection.
    ///
    /// # Panics
    /// When nothing comes for long, or what comes is no RTMP.
    pub fn next_message(&mut self) -> Option<Message> {
        match self.peer.next(true, Instant::now() + ANSWERS_WITHIN) {
            Next::Message(message) => Some(message),
            Next::End => None,
            Next::Nothing => panic!("nothing came"),
            Next::Wrong(error) => panic!("what came is wrong: {error}"),
        }
    }

    /// Waits for a ping, and gives its timestamp; `None` at the end of the connection.
    pub fn next_ping(&mut self) -> Option<u32> {
        loop {
            let message = self.next_message()?;
            if message.header.kind == kind::USER_CONTROL
                && let Some(UserControl::Ping(timestamp)) = UserControl::parse(&message.body)
            {
                return Some(timestamp);
            }
        }
    }

    /// # Errors
    /// When the connection is gone.
    pub fn try_pong(&mut self, timestamp: u32) -> io::Result<()> {
        let answer = UserControl::Pong(timestamp).encode();
        self.try_write(MessageHeader::control(kind::USER_CONTROL), &answer)
    }

    /// Publishes a tag. An error means that the gateway has closed the connection.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn try_send(&mut self, tag: &Tag) -> io::Result<()> {
        let header = MessageHeader::media(self.message_stream, tag.kind, tag.timestamp_ms);
        let mut out = Vec::new();
        self.writer.write(header, &[], &tag.body, &mut out);
        self.peer.send(&out)
    }

    /// # Panics
    /// When the connection is gone.
    pub fn send(&mut self, tags: &[Tag]) {
        for tag in tags {
            self.try_send(tag).expect("media is taken");
        }
    }

    fn write(&mut self, header: MessageHeader, body: &[u8]) {
        self.try_write(header, body).expect("the gateway takes messages");
    }

    fn try_write(&mut self, header: MessageHeader, body: &[u8]) -> io::Result<()> {
        let mut out = Vec::new();
        self.writer.write(header, body, &Bytes::new(), &mut out);
        self.peer.send(&out)
    }

    /// Waits for the end of the connection, and gives the status codes before it.
    ///
    /// # Panics
    /// When the end does not come.
    pub fn codes_to_the_end(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next_status()).collect()
    }

    /// Ends sending: the gateway sees the end after all that was sent.
    pub fn finish(&self) {
        self.peer.finish();
    }

    /// Ends the connection by a reset.
    pub fn reset(self) {
        self.peer.reset();
    }
}
