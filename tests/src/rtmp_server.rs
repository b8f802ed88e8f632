//! A scripted RTMP server: it takes what the gateway sends to other servers, or does not.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::{Event, Limits, Output, ServerSession};

/// How long the gateway may take for anything.
const COMES_WITHIN: Duration = Duration::from_secs(15);

/// A listener that no one serves yet.
pub struct RtmpServer(TcpListener);

impl RtmpServer {
    /// # Panics
    /// When there is no port.
    #[must_use]
    pub fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket option");
        Self(listener)
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound socket")
    }

    /// The next connection.
    ///
    /// # Panics
    /// When none comes.
    #[must_use]
    pub fn accept(&self) -> ServedClient {
        let (socket, _) = crate::wait_until("a connection", COMES_WITHIN, || self.0.accept().ok());
        socket.set_nonblocking(false).expect("a socket option");
        socket.set_read_timeout(Some(COMES_WITHIN)).expect("a socket option");
        let now = Instant::now();
        let session = ServerSession::new(Limits::default(), 1, HeapPool::default(), now);
        ServedClient { socket, session, unknown: None, events: VecDeque::new() }
    }
}

/// One connection to the server.
pub struct ServedClient {
    pub socket: TcpStream,
    pub session: ServerSession<HeapPool>,
    /// A word that this server does not know, so that it says another one of the same length.
    pub unknown: Option<(&'static [u8; 4], &'static [u8; 4])>,
    events: VecDeque<Event>,
}

impl ServedClient {
    /// What the client does next; `None` at the end of the connection.
    ///
    /// # Panics
    /// When nothing comes for long, or what comes is no RTMP.
    pub fn next_event(&mut self) -> Option<Event> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            self.answer();
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => {
                    let taken = self.session.handle_input(Instant::now(), &buffer[..count]);
                    taken.expect("RTMP");
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// Sends what the session has to say.
    pub fn answer(&mut self) {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Send(bytes) => {
                    let mut bytes = bytes.to_vec();
                    if let Some((word, instead)) = self.unknown {
                        let places = 0..bytes.len().saturating_sub(word.len());
                        for at in places {
                            let here = &mut bytes[at..at + word.len()];
                            if here == word {
                                here.copy_from_slice(instead);
                            }
                        }
                    }
                    // The client may be gone.
                    let _ = self.socket.write_all(&bytes);
                }
                Output::Event(event) => self.events.push_back(event),
            }
        }
    }

    /// Waits for the publish command, and gives its message stream and the stream's name.
    ///
    /// # Panics
    /// When something else comes.
    pub fn publish_asked(&mut self) -> (u32, String) {
        match self.next_event() {
            Some(Event::Publish { message_stream, name, .. }) => {
                (message_stream, name.as_str().to_owned())
            }
            other => panic!("no publish: {other:?}"),
        }
    }

    /// Lets it publish.
    ///
    /// # Panics
    /// When it does not ask to.
    pub fn accept_publish(&mut self) -> String {
        let (stream, name) = self.publish_asked();
        self.session.accept_publish(stream).expect("nothing was held back");
        self.answer();
        name
    }

    /// Refuses to let it publish.
    ///
    /// # Panics
    /// When it does not ask to.
    pub fn reject_publish(&mut self, code: &str, description: &str) {
        let (stream, _) = self.publish_asked();
        self.session.reject_publish(stream, code, description).expect("nothing was held back");
        self.answer();
    }
}
