//! One connection of a script: what it has told the gateway, and what is to be sent next.

use std::net::SocketAddr;
use std::time::Instant;

use weir_protocol::amf0::{self, Value};
use weir_protocol::limits::{DEFAULT_CHUNK_SIZE, MAX_CHUNK_SIZE};
use weir_protocol::rtmp::command::{Command, object};
use weir_protocol::rtmp::message::{Message, UserControl, kind};

use super::chunks::ChunkHeader;
use super::handshake::{BLOCK_BYTES, Form, Hello};
use super::step::Second;
use crate::rtmp_peer::{Next, Peer};

/// More than this is sent at once, even within a `repeat`.
const SEND_AT: usize = 64 * 1024;

/// Transactions of `sync`, which no script counts up to.
const SYNC_TRANSACTIONS: f64 = 900_000.0;

pub struct Actor {
    peer: Peer,
    out: Vec<u8>,
    pub corked: bool,
    chunk_size: usize,
    shaken: bool,
    transaction: f64,
    syncs: f64,
    pub message_stream: u32,
    pub pongs: u64,
    /// The script has seen that the gateway ended the connection.
    pub end_was_expected: bool,
}

/// A C1 with the way to send it.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    pub form: Form,
    pub time: u32,
    pub version: Option<u32>,
    pub second: Second,
    pub split: Option<usize>,
    pub seed: u64,
}

impl Greeting {
    /// What `open` and `publish` say.
    #[must_use]
    pub fn plain(seed: u64) -> Self {
        let second = Second::Echo;
        Self { form: Form::Plain, time: 0, version: None, second, split: None, seed }
    }
}

impl Actor {
    /// # Errors
    /// When nobody listens.
    pub fn connect(address: SocketAddr) -> Result<Self, String> {
        let peer = Peer::connect(address).map_err(|error| error.to_string())?;
        Ok(Self {
            peer,
            out: Vec::new(),
            corked: false,
            chunk_size: DEFAULT_CHUNK_SIZE as usize,
            shaken: false,
            transaction: 0.0,
            syncs: SYNC_TRANSACTIONS,
            message_stream: 1,
            pongs: 0,
            end_was_expected: false,
        })
    }

    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    pub fn peer_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }

    /// Ends the connection by a reset.
    pub fn reset(self) {
        self.peer.reset();
    }

    /// Puts bytes behind what is to be sent.
    pub fn push(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        if self.out.len() > SEND_AT && !self.corked {
            self.flush(None);
        }
    }

    /// Sends what is to be sent, in one write or in writes of `split` bytes. Where the gateway has
    /// closed the connection, an `expect closed` may follow; all else will fail.
    pub fn flush(&mut self, split: Option<usize>) {
        let out = std::mem::take(&mut self.out);
        for portion in out.chunks(split.unwrap_or(usize::MAX).max(1)) {
            if self.peer.send(portion).is_err() {
                return;
            }
        }
    }

    /// # Errors
    /// When the gateway's answer is wrong, or does not come.
    pub fn greet(&mut self, greeting: Greeting, deadline: Instant) -> Result<(), String> {
        self.shaken = true;
        let version = greeting.version.unwrap_or(match greeting.form {
            Form::Plain => 0,
            Form::Digest(_) | Form::Broken(_) => 0x8000_0702,
        });
        let hello = Hello::new(greeting.form, greeting.time, version, greeting.seed);
        self.push(&[3]);
        self.push(&hello.c1);
        self.peer.expect_hello(hello);
        if greeting.second == Second::Early || self.corked {
            self.push(&[0; BLOCK_BYTES]);
            if !self.corked {
                self.flush(greeting.split);
            }
            return Ok(());
        }
        self.flush(greeting.split);
        let s1 = self.peer.read_hello(deadline)?;
        self.push(if greeting.second == Second::Zero { &[0; BLOCK_BYTES] } else { &s1 });
        self.flush(greeting.split);
        Ok(())
    }

    /// Announces a chunk size and uses it from now on. One that is not allowed is only announced.
    pub fn set_chunk_size(&mut self, size: u32) {
        self.message(2, 0, kind::SET_CHUNK_SIZE, &size.to_be_bytes());
        if size > 0 {
            self.chunk_size = size.min(MAX_CHUNK_SIZE) as usize;
        }
    }

    #[must_use]
    pub fn chunk_size(&self) -> usize {
        self.chunk_size
    }

    /// A message in the usual form.
    pub fn message(&mut self, chunk_stream: u32, message_stream: u32, kind: u8, body: &[u8]) {
        let header = ChunkHeader {
            format: 0,
            chunk_stream,
            form: None,
            timestamp: 0,
            length: body.len() as u32,
            kind,
            message_stream,
            repeats_extended: true,
        };
        let mut out = Vec::new();
        header.write_message(body, self.chunk_size, &mut out);
        self.push(&out);
    }

    /// Puts a command with the next transaction, or a given one, behind what is to be sent.
    pub fn command(
        &mut self,
        name: &str,
        transaction: Option<Value>,
        message_stream: u32,
        values: &[Value],
    ) -> Value {
        let transaction = transaction.unwrap_or_else(|| {
            self.transaction += 1.0;
            Value::Number(self.transaction)
        });
        let mut body = amf0::encode_all(&[name.into(), transaction.clone()]);
        let values = if values.is_empty() { &[Value::Null] } else { values };
        values.iter().for_each(|value| amf0::encode(value, &mut body));
        let chunk_stream = if message_stream == 0 { 3 } else { 5 };
        self.message(chunk_stream, message_stream, kind::COMMAND, &body);
        transaction
    }

    /// Connects to `app` and waits for the answer, after a handshake if there was none.
    ///
    /// # Errors
    /// When the gateway refuses.
    pub fn enter(&mut self, app: &str, url: &str, seed: u64, by: Instant) -> Result<(), String> {
        if !self.shaken {
            self.greet(Greeting::plain(seed), by)?;
        }
        let about =
            object([("app", app.into()), ("flashVer", "weir-e2e".into()), ("tcUrl", url.into())]);
        let transaction = self.command("connect", None, 0, &[about]);
        self.flush(None);
        self.answer(&transaction, by).map(drop)
    }

    /// Connects to `app` and creates a message stream.
    ///
    /// # Errors
    /// When the gateway refuses.
    pub fn open(&mut self, app: &str, url: &str, seed: u64, by: Instant) -> Result<(), String> {
        self.enter(app, url, seed, by)?;
        let transaction = self.command("createStream", None, 0, &[]);
        self.flush(None);
        let answer = self.answer(&transaction, by)?;
        let number = answer.arguments.first().and_then(Value::as_number);
        self.message_stream = number.ok_or("createStream gave no number")? as u32;
        Ok(())
    }

    fn answer(&mut self, transaction: &Value, by: Instant) -> Result<Command, String> {
        let (command, _) = self.next_command(by, |command| {
            ["_result", "_error"].contains(&command.name.as_str())
                && Some(command.transaction) == transaction.as_number()
        })?;
        if command.name == "_result" { Ok(command) } else { Err(format!("{command:?}")) }
    }

    /// The next command that `is` what is awaited, and its message; others before it are skipped.
    ///
    /// # Errors
    /// When the end comes, or nothing in time.
    pub fn next_command(
        &mut self,
        deadline: Instant,
        is: impl Fn(&Command) -> bool,
    ) -> Result<(Command, Message), String> {
        loop {
            let message = self.next_message(false, deadline)?;
            if message.header.kind != kind::COMMAND {
                continue;
            }
            let command = Command::parse(message.header.kind, &message.body);
            let command = command.map_err(|error| error.to_string())?;
            if let Some(command) = command.filter(&is) {
                return Ok((command, message));
            }
        }
    }

    /// # Errors
    /// When the end comes, or nothing in time.
    pub fn next_message(&mut self, wants_acks: bool, by: Instant) -> Result<Message, String> {
        let message = told(self.peer.next(wants_acks, by))?;
        let is_pong = matches!(UserControl::parse(&message.body), Some(UserControl::Pong(_)));
        self.pongs += u64::from(message.header.kind == kind::USER_CONTROL && is_pong);
        Ok(message)
    }

    /// Waits until the gateway has read all that was sent: it answers a command behind it.
    ///
    /// # Errors
    /// When the end comes, or nothing in time.
    pub fn sync(&mut self, deadline: Instant) -> Result<(), String> {
        self.syncs += 1.0;
        let transaction = self.syncs;
        self.command("getStreamLength", Some(transaction.into()), 0, &[]);
        self.flush(None);
        told(self.peer.await_message(deadline, |message| {
            let command = Command::parse(message.header.kind, &message.body);
            message.header.kind == kind::COMMAND
                && command.is_ok_and(|command| {
                    command.is_some_and(|command| command.transaction == transaction)
                })
        }))
        .map(drop)
    }
}

fn told(next: Next) -> Result<Message, String> {
    match next {
        Next::Message(message) => Ok(message),
        Next::End => Err("the gateway closed the connection".into()),
        Next::Nothing => Err("nothing came in time".into()),
        Next::Wrong(error) => Err(format!("what came is no RTMP: {error}")),
    }
}
