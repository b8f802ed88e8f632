//! One RTMP connection to the gateway, seen from its other end: bytes out, messages in.
//!
//! Nothing here panics for what the gateway does, and nothing is sent that was not asked for, so
//! that scripts can break any rule.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weir_protocol::limits::Limits;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::chunk::Reader;
use weir_protocol::rtmp::message::{Message, kind};

use crate::replay::handshake::{Hello, SERVER_BYTES};

/// The bytes of an acknowledgement on the wire: a header of format 0 and four bytes.
pub const ACKNOWLEDGEMENT_BYTES: u64 = 16;

/// A gateway that takes nothing for so long has forgotten this connection.
const TAKES_WITHIN: Duration = Duration::from_secs(15);

pub struct Peer {
    socket: TcpStream,
    reader: Reader<HeapPool>,
    /// Received and not read yet.
    received: Vec<u8>,
    /// Read while something else was awaited.
    inbox: VecDeque<Message>,
    /// S0, S1 and S2 are still to come, in answer to this.
    hello: Option<Hello>,
    ended: bool,
    /// The gateway has closed the connection while this end was sending.
    gone: bool,
    sent_bytes: u64,
    acknowledgements: u64,
}

/// What came, or why nothing did.
#[derive(Debug)]
pub enum Next {
    Message(Message),
    /// The gateway has ended the connection.
    End,
    /// The deadline has passed.
    Nothing,
    /// What came is no RTMP, or breaks a rule.
    Wrong(String),
}

impl Peer {
    /// # Errors
    /// When nobody listens.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// # Errors
    /// When the socket is broken.
    pub fn over(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(TAKES_WITHIN))?;
        // What the gateway may send is not what is tested here, so the bounds are wide.
        let limits = Limits { message_bytes: 16 << 20, ..Limits::default() };
        let mut reader = Reader::new(&limits, HeapPool::default());
        reader.store_media(true);
        reader.set_max_unfinished(limits.unfinished_bytes_publishing);
        Ok(Self {
            socket,
            reader,
            received: Vec::new(),
            inbox: VecDeque::new(),
            hello: None,
            ended: false,
            gone: false,
            sent_bytes: 0,
            acknowledgements: 0,
        })
    }

    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Acknowledgements read so far.
    #[must_use]
    pub fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }

    /// The connection was found closed while sending or reading.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.gone || self.ended
    }

    /// Sends `bytes`, in one call where the kernel takes them so.
    ///
    /// # Errors
    /// When the connection is closed; from then on nothing is sent any more.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.sent_bytes += bytes.len() as u64;
        let sent = self.socket.write_all(bytes);
        self.gone = sent.is_err();
        sent
    }

    /// From now on the answer to this C1 is expected before anything else.
    pub fn expect_hello(&mut self, hello: Hello) {
        self.hello = Some(hello);
    }

    /// Waits for S0, S1 and S2 and checks them; S1, to be echoed.
    ///
    /// # Errors
    /// Says what came instead.
    pub fn read_hello(&mut self, deadline: Instant) -> Result<Vec<u8>, String> {
        let Some(hello) = self.hello.take() else { return Err("no handshake was begun".into()) };
        while self.received.len() < SERVER_BYTES {
            match self.fill(deadline) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(format!("the end after {} bytes", self.received.len()));
                }
                Err(None) => return Err(format!("only {} bytes in time", self.received.len())),
                Err(Some(error)) => return Err(error.to_string()),
            }
        }
        let answer: Vec<u8> = self.received.drain(..SERVER_BYTES).collect();
        hello.check(&answer)?;
        Ok(answer[1..1 + (SERVER_BYTES - 1) / 2].to_vec())
    }

    /// The next message, of those set aside first. Acknowledgements are counted, and given only
    /// to whoever `wants` them.
    pub fn next(&mut self, wants_acknowledgements: bool, deadline: Instant) -> Next {
        if let Some(message) = self.inbox.pop_front() {
            return Next::Message(message);
        }
        loop {
            match self.arrival(deadline) {
                Next::Message(message)
                    if message.header.kind == kind::ACKNOWLEDGEMENT && !wants_acknowledgements => {}
                next => return next,
            }
        }
    }

    /// Waits for a message that `is` what is awaited; all others are set aside for
    /// [`Peer::next`].
    pub fn await_message(&mut self, deadline: Instant, is: impl Fn(&Message) -> bool) -> Next {
        loop {
            match self.arrival(deadline) {
                Next::Message(message) if is(&message) => return Next::Message(message),
                Next::Message(message) if message.header.kind == kind::ACKNOWLEDGEMENT => {}
                Next::Message(message) => self.inbox.push_back(message),
                next => return next,
            }
        }
    }

    fn arrival(&mut self, deadline: Instant) -> Next {
        if self.hello.is_some()
            && let Err(error) = self.read_hello(deadline)
        {
            return if self.ended { Next::End } else { Next::Wrong(error) };
        }
        loop {
            let mut input = self.received.as_slice();
            let message = match self.reader.read(&mut input) {
                Ok(message) => message,
                Err(error) => return Next::Wrong(error.to_string()),
            };
            self.received = input.to_vec();
            if let Some(message) = message {
                self.acknowledgements += u64::from(message.header.kind == kind::ACKNOWLEDGEMENT);
                return Next::Message(message);
            }
            match self.fill(deadline) {
                Ok(true) => {}
                Ok(false) => return Next::End,
                Err(None) => return Next::Nothing,
                Err(Some(error)) => return Next::Wrong(error.to_string()),
            }
        }
    }

    /// Waits for bytes; `false` at the end of the connection, `None` at the deadline.
    fn fill(&mut self, deadline: Instant) -> Result<bool, Option<io::Error>> {
        if self.ended {
            return Ok(false);
        }
        let mut buffer = [0; 64 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // A timeout of zero would mean none.
            self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            match self.socket.read(&mut buffer) {
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    self.ended = count == 0;
                    return Ok(count > 0);
                }
                Err(error) => match error.kind() {
                    ErrorKind::ConnectionReset => {
                        self.ended = true;
                        return Ok(false);
                    }
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut if left.is_zero() => {
                        return Err(None);
                    }
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(Some(error)),
                },
            }
        }
    }

    /// Reads to the end whatever comes, be it RTMP or not; false at the deadline.
    ///
    /// # Errors
    /// When the socket is broken.
    pub fn read_to_the_end(&mut self, deadline: Instant) -> io::Result<bool> {
        loop {
            self.received.clear();
            match self.fill(deadline) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(None) => return Ok(false),
                Err(Some(error)) => return Err(error),
            }
        }
    }

    /// Ends sending: the gateway sees the end after all that was sent.
    pub fn finish(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Ends the connection by a reset.
    pub fn reset(self) {
        let socket = socket2::SockRef::from(&self.socket);
        // That it fails where the connection is gone already makes no difference.
        let _ = socket.set_linger(Some(Duration::ZERO));
    }
}
