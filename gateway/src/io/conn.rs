//! One TCP connection on its core.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket as RawSocket, Type};

use super::socket::{Readiness, Socket};
use super::{Batch, sys, uring};
use crate::clock;

/// One TCP connection; clones are the same connection.
///
/// One task reads and one task sends. Waiting to read loses nothing when it is dropped, so it may stand
/// in a `select!`. A deadline acts by [`Conn::shutdown`], which ends whatever is in flight. The
/// descriptor closes when the last clone and the last operation are gone.
#[derive(Clone)]
pub struct Conn(Rc<Inner>);

/// A handle that does not keep the connection open, for timers and lists.
#[derive(Clone)]
pub struct WeakConn(Weak<Inner>);

struct Inner {
    socket: Socket,
    peer: SocketAddr,
    sender: Cell<Sender>,
    received: Cell<Direction>,
    sent: Cell<Direction>,
}

#[derive(Clone, Copy, PartialEq)]
enum Sender {
    Idle,
    Busy,
    /// A send failed or was dropped in the middle: the peer saw an unknown part of it.
    Broken,
}

/// What went one way.
#[derive(Clone, Copy, Debug)]
pub struct Direction {
    pub bytes: u64,
    /// When something last did; at first, when the connection was made.
    pub last: Instant,
}

impl Direction {
    fn plus(self, bytes: usize) -> Direction {
        Direction { bytes: self.bytes + bytes as u64, last: clock::now() }
    }
}

/// A core reads all its connections into one buffer of this size, one call per turn: enough to take
/// what has come in for a fast publisher, small enough to stay in the cache.
const READ_BUFFER_BYTES: usize = 128 * 1024;

thread_local! {
    /// Taken while it is in use.
    static READ_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Conn {
    /// Takes over a connected socket, for the calling core.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(stream: TcpStream) -> io::Result<Conn> {
        let peer = stream.peer_addr()?;
        stream.set_nodelay(true)?;
        Conn::from_fd(stream.into(), peer)
    }

    /// Connects to `peer`, for the calling core. Dropping the future ends the attempt.
    ///
    /// # Errors
    /// The system's error: `ConnectionRefused` where nobody listens.
    pub async fn connect(peer: SocketAddr) -> io::Result<Conn> {
        let socket = RawSocket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&peer.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        // Registered after the attempt has begun: before, the socket counts as writable.
        let conn = Conn::from_fd(socket.into(), peer)?;
        conn.0.socket.connected().await?;
        Ok(conn)
    }

    /// As [`Conn::new`], for a connected stream socket of any family whose peer is known.
    ///
    /// # Errors
    /// The system's error.
    pub fn from_fd(fd: OwnedFd, peer: SocketAddr) -> io::Result<Conn> {
        let start = Cell::new(Direction { bytes: 0, last: clock::now() });
        Ok(Conn(Rc::new(Inner {
            socket: Socket::new(fd)?,
            peer,
            sender: Cell::new(Sender::Idle),
            received: start.clone(),
            sent: start,
        })))
    }

    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }

    /// The address the peer reached.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = SockRef::from(self.0.socket.fd().as_ref()).local_addr()?;
        address.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    #[must_use]
    pub fn received(&self) -> Direction {
        self.0.received.get()
    }

    #[must_use]
    pub fn sent(&self) -> Direction {
        self.0.sent.get()
    }

    /// Waits until there are bytes, the end, or an error to read.
    ///
    /// # Errors
    /// The system's error.
    pub async fn readable(&self) -> io::Result<()> {
        poll_fn(|cx| self.poll_readable(cx)).await
    }

    /// As [`Conn::readable`]. The task that polled last is woken.
    pub fn poll_readable(&self, cx: &mut Context) -> Poll<io::Result<()>> {
        self.0.socket.poll_readable(cx)
    }

    /// Reads what is there; `Ok(0)` is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there now, or the connection's error.
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len();
        let result = self.0.socket.try_read(|fd| sys::recv(fd, buffer), is_short(room));
        self.note_received(result)
    }

    /// As [`Conn::try_recv`]; as many bytes of `buffer` as returned are initialised.
    pub(super) fn try_recv_uninit(&self, buffer: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        let room = buffer.len();
        let result = self.0.socket.try_read(|fd| sys::recv_uninit(fd, buffer), is_short(room));
        self.note_received(result)
    }

    /// One turn of reading: waits until there is something, reads once into the core's shared buffer
    /// (an idle connection has none) and hands the bytes to `take`. `None` is the end of the stream.
    ///
    /// Dropping the future before it is ready loses nothing.
    ///
    /// # Errors
    /// The connection's error.
    pub async fn read_with<T>(&self, take: impl FnOnce(&[u8]) -> T) -> io::Result<Option<T>> {
        loop {
            self.readable().await?;
            let mut buffer = READ_BUFFER.take();
            buffer.resize(READ_BUFFER_BYTES, 0);
            let result = self.try_recv(&mut buffer);
            if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                READ_BUFFER.set(buffer);
                continue;
            }
            let taken = result.map(|count| (count > 0).then(|| take(&buffer[..count])));
            READ_BUFFER.set(buffer);
            return taken;
        }
    }

    /// Sends the whole batch, and gives it back, cleared, for the next one.
    ///
    /// A future that is dropped before it is ready leaves the connection unfit for sending, because
    /// the peer has seen an unknown part; later sends fail. The kernel then keeps what it needs.
    pub fn send(&self, batch: Batch) -> Sending {
        Sending { conn: self.clone(), state: State::New(batch) }
    }

    /// As [`Conn::send`], but shuts the connection down when the peer has not taken the batch within
    /// `limit`; the error is then `TimedOut`.
    pub async fn send_within(&self, batch: Batch, limit: Duration) -> (Batch, io::Result<()>) {
        let mut sending = self.send(batch);
        let mut timer = pin!(tokio::time::sleep(limit));
        let mut late = false;
        poll_fn(|cx| {
            if let Poll::Ready((batch, result)) = Pin::new(&mut sending).poll(cx) {
                let timed_out = |error| if late { io::ErrorKind::TimedOut.into() } else { error };
                return Poll::Ready((batch, result.map_err(timed_out)));
            }
            if !late && timer.as_mut().poll(cx).is_ready() {
                late = true;
                self.shutdown(Shutdown::Both);
            }
            Poll::Pending
        })
        .await
    }

    /// Ends the given directions: operations in flight end, and the peer sees the end of the stream
    /// after all that was sent. May be called at any time, more than once.
    pub fn shutdown(&self, how: Shutdown) {
        self.0.socket.shutdown(how);
    }

    /// Ends sending, then discards what still comes until the peer ends too, for at most `limit`. A
    /// socket that is closed with bytes unread resets the connection, and the peer may so lose what was
    /// sent last: the reason why it is turned away.
    pub async fn close(self, limit: Duration) {
        self.shutdown(Shutdown::Write);
        let drained = async { while let Ok(Some(())) = self.read_with(|_| ()).await {} };
        // A wait can be dropped: nothing in flight is lost that anybody wants.
        let _ = tokio::time::timeout(limit, drained).await;
    }

    #[must_use]
    pub fn downgrade(&self) -> WeakConn {
        WeakConn(Rc::downgrade(&self.0))
    }

    fn note_received(&self, result: io::Result<usize>) -> io::Result<usize> {
        if let Ok(bytes @ 1..) = result {
            self.0.received.set(self.0.received.get().plus(bytes));
        }
        result
    }
}

/// Whether a read into so much room has taken all that there was. The end of the stream is not short:
/// it can be read again.
fn is_short(room: usize) -> impl FnOnce(&usize) -> bool {
    move |&count| (1..room).contains(&count)
}

impl WeakConn {
    #[must_use]
    pub fn upgrade(&self) -> Option<Conn> {
        self.0.upgrade().map(Conn)
    }

    /// As [`Conn::shutdown`], if the connection is still there.
    pub fn shutdown(&self, how: Shutdown) {
        if let Some(conn) = self.upgrade() {
            conn.shutdown(how);
        }
    }
}

/// A send that is under way: see [`Conn::send`]. Nothing happens before the first poll.
#[must_use]
pub struct Sending {
    conn: Conn,
    state: State,
}

enum State {
    New(Batch),
    Uring(uring::SendInFlight),
    Epoll(Batch),
    Done,
}

impl Sending {
    fn start(&self, batch: Batch) -> State {
        match self.conn.0.socket.readiness() {
            Readiness::Uring(_) => {
                State::Uring(uring::send(Rc::clone(self.conn.0.socket.fd()), batch))
            }
            Readiness::Epoll(_) => State::Epoll(batch),
        }
    }

    /// Sends once; `Pending` keeps the batch where it is.
    fn poll_once(&mut self, cx: &mut Context) -> Poll<(Batch, io::Result<usize>)> {
        match (&mut self.state, self.conn.0.socket.readiness()) {
            (State::Uring(send), _) => Pin::new(send).poll(cx),
            (State::Epoll(batch), Readiness::Epoll(readiness)) => {
                let result = ready!(readiness.poll_send(batch, cx));
                Poll::Ready((std::mem::take(batch), result))
            }
            _ => Poll::Pending,
        }
    }

    fn finish(&mut self, mut batch: Batch, result: io::Result<()>) -> (Batch, io::Result<()>) {
        self.state = State::Done;
        self.conn.0.sender.set(if result.is_ok() { Sender::Idle } else { Sender::Broken });
        batch.clear();
        (batch, result)
    }
}

impl Future for Sending {
    type Output = (Batch, io::Result<()>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::New(batch) = &mut this.state {
            let batch = std::mem::take(batch);
            if this.conn.0.sender.get() != Sender::Idle {
                return Poll::Ready(this.finish(batch, Err(io::ErrorKind::BrokenPipe.into())));
            }
            if batch.is_empty() {
                return Poll::Ready(this.finish(batch, Ok(())));
            }
            this.conn.0.sender.set(Sender::Busy);
            this.state = this.start(batch);
        }
        loop {
            let (mut batch, result) = ready!(this.poll_once(cx));
            match result {
                Ok(0) => {
                    return Poll::Ready(this.finish(batch, Err(io::ErrorKind::WriteZero.into())));
                }
                Ok(bytes) => {
                    batch.advance(bytes);
                    this.conn.0.sent.set(this.conn.0.sent.get().plus(bytes));
                    if batch.is_empty() {
                        return Poll::Ready(this.finish(batch, Ok(())));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(this.finish(batch, Err(error))),
            }
            this.state = this.start(batch);
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if matches!(self.state, State::Uring(_) | State::Epoll(_)) {
            self.conn.0.sender.set(Sender::Broken);
        }
    }
}

#[cfg(test)]
impl Conn {
    pub(super) fn with_socket<T>(&self, look: impl FnOnce(SockRef) -> T) -> T {
        look(SockRef::from(self.0.socket.fd().as_ref()))
    }
}
