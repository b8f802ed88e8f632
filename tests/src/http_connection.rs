//! One HTTP/1.1 connection, byte by byte: what a client library would hide (how a body ends, which
//! connection is used, a target that is no URL) is what tests ask about.

use std::io::{self, ErrorKind, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::http::Answer;

const ANSWERS_WITHIN: Duration = Duration::from_secs(15);

pub struct HttpConnection {
    socket: TcpStream,
    received: Vec<u8>,
}

/// How a body ended, or that it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// As HTTP says it: the last chunk.
    End,
    /// The connection was closed in the middle.
    Cut,
}

impl HttpConnection {
    /// # Panics
    /// When nobody listens.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("the HTTP listener takes connections"))
    }

    /// # Panics
    /// When the socket is broken.
    #[must_use]
    pub fn over(socket: TcpStream) -> Self {
        socket.set_nodelay(true).expect("a socket option");
        socket.set_read_timeout(Some(ANSWERS_WITHIN)).expect("a socket option");
        Self { socket, received: Vec::new() }
    }

    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound socket")
    }

    /// Sends a request; `headers` are whole lines with their ends.
    ///
    /// # Panics
    /// When the connection is gone.
    pub fn ask(&mut self, method: &str, target: &str, headers: &str) {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: weir.test\r\n{headers}\r\n");
        self.send(head.as_bytes());
    }

    /// # Panics
    /// When the connection is gone.
    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("a request is taken");
    }

    /// A whole exchange.
    pub fn get(&mut self, target: &str) -> Answer {
        self.exchange("GET", target, "")
    }

    /// A whole exchange.
    pub fn exchange(&mut self, method: &str, target: &str, headers: &str) -> Answer {
        self.ask(method, target, headers);
        self.answer(method)
    }

    /// The answer to a request that was sent, read whole.
    ///
    /// # Panics
    /// When none comes, or it is cut off.
    pub fn answer(&mut self, method: &str) -> Answer {
        let mut answer = self.head();
        if method != "HEAD" && answer.status != 204 {
            while let Piece::Bytes(bytes) = self.piece(&answer) {
                answer.body.extend(bytes);
                if self.length(&answer) == Some(answer.body.len()) {
                    break;
                }
            }
        }
        answer
    }

    fn length(&self, answer: &Answer) -> Option<usize> {
        answer.header("content-length").map(|text| text.parse().expect("a length"))
    }

    /// The answer's head; its body is read with [`HttpConnection::piece`].
    ///
    /// # Panics
    /// When none comes.
    pub fn head(&mut self) -> Answer {
        self.try_head().expect("an answer")
    }

    /// `None` when the connection ends without an answer.
    ///
    /// # Panics
    /// When what comes is not HTTP.
    pub fn try_head(&mut self) -> Option<Answer> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at;
            }
            if !self.fill() {
                return None;
            }
        };
        let head: Vec<u8> = self.received.drain(..end + 4).collect();
        let head = String::from_utf8(head).expect("a head of text");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(Answer { status: status.expect("a status"), headers, body: Vec::new() })
    }

    /// The next piece of the body of `answer`.
    ///
    /// # Panics
    /// When nothing comes for long.
    pub fn piece(&mut self, answer: &Answer) -> Piece {
        if answer.header("transfer-encoding") != Some("chunked") {
            if self.length(answer) == Some(0) {
                return Piece::End;
            }
            let whole = !self.received.is_empty() || self.fill();
            let length = self.length(answer).unwrap_or(usize::MAX);
            let count = self.received.len().min(length.saturating_sub(answer.body.len()));
            return if whole {
                Piece::Bytes(self.received.drain(..count).collect())
            } else {
                Piece::Cut
            };
        }
        let Some(size) = self.line() else { return Piece::Cut };
        let size = usize::from_str_radix(&size, 16).expect("a chunk's size");
        while self.received.len() < size + 2 {
            if !self.fill() {
                return Piece::Cut;
            }
        }
        let bytes: Vec<u8> = self.received.drain(..size).collect();
        self.received.drain(..2);
        if size == 0 { Piece::End } else { Piece::Bytes(bytes) }
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.received.windows(2).position(|bytes| bytes == b"\r\n") {
                let line: Vec<u8> = self.received.drain(..at + 2).collect();
                return Some(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Waits for bytes; false at the end of the connection.
    fn fill(&mut self) -> bool {
        let mut buffer = [0; 64 * 1024];
        match self.socket.read(&mut buffer) {
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer: {error}"),
        }
    }

    /// Waits for the end of the connection and gives what came before it.
    ///
    /// # Errors
    /// When it does not come in time.
    pub fn to_the_end(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.received);
        match self.socket.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(error),
            _ => Ok(bytes),
        }
    }
}
