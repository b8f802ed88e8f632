//! Many HTTP connections on one thread, which reads as much as there is and throws it away: a
//! client that is busy is not woken, so it costs the server little more than a network would.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// A server that sends nothing for so long is stuck.
const STALL: Duration = Duration::from_secs(20);
const READ_BYTES: usize = 16 * 1024;

/// Runs so many clients until all have ended.
///
/// # Panics
/// When one of them does.
pub fn run<F: Future<Output = ()> + Send + 'static>(clients: u64, client: impl Fn(u64) -> F) {
    runtime().block_on(async {
        let tasks: Vec<_> = (0..clients).map(|number| tokio::spawn(client(number))).collect();
        for task in tasks {
            task.await.expect("a client");
        }
    });
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub struct Connection {
    socket: TcpStream,
    bytes: Vec<u8>,
}

impl Connection {
    /// # Panics
    /// When nobody listens.
    pub async fn open(address: &str) -> Self {
        let socket = TcpStream::connect(address).await.expect("the server");
        socket.set_nodelay(true).expect("a socket");
        Self { socket, bytes: vec![0; READ_BYTES] }
    }

    /// # Panics
    /// When the server does not take it.
    pub async fn request(&mut self, host: &str, path: &str) {
        let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.socket.write_all(request.as_bytes()).await.expect("a request");
    }

    /// Reads an answer's head, which must be one of success, and gives how many bytes of the body
    /// came with it.
    ///
    /// # Panics
    /// When the answer is another one.
    pub async fn head(&mut self) -> usize {
        let mut filled = 0;
        loop {
            filled += self.read_from(filled).await;
            let end = self.bytes[..filled].windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                assert!(self.bytes.starts_with(b"HTTP/1.1 200"), "the server refused a request");
                return filled - (end + 4);
            }
        }
    }

    /// Reads what is there, and gives how much that was.
    ///
    /// # Panics
    /// When the server closes the connection or sends nothing.
    pub async fn read(&mut self) -> usize {
        self.read_from(0).await
    }

    async fn read_from(&mut self, start: usize) -> usize {
        let reading = self.socket.read(&mut self.bytes[start..]);
        let count = tokio::time::timeout(STALL, reading).await.expect("an answer in time");
        let count = count.expect("an answer");
        assert!(count > 0, "the server closed a connection");
        count
    }
}
