//! Listening sockets: one per core on the same address, between which the kernel spreads connections.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket as RawSocket, TcpKeepalive, Type};

use super::Conn;
use super::socket::Socket;
use crate::clock;

/// Connections that wait to be accepted, per core. The kernel's own bound (net.core.somaxconn) is 4096;
/// a quarter per core rides out a burst of reconnections without holding clients that will time out.
const BACKLOG: i32 = 1024;

/// Accepts that may succeed one after the other before the core's other tasks have a turn.
const BURST: u32 = 16;

/// Pause after an error, so that a lasting one (no descriptors left) does not spin.
const PAUSE: Duration = Duration::from_millis(50);

/// One warning about failing accepts per core and interval.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// A silent peer is probed after a minute, and given up after about another.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(15))
    .with_retries(4);

/// One core's listening socket.
pub struct Listener {
    socket: Socket,
    local: SocketAddr,
    accepted_in_turn: Cell<u32>,
    warned: Cell<Option<Instant>>,
}

impl Listener {
    /// Listens with `count` sockets on one address; with port 0, on one port that was free. Hand one to
    /// each core, and drop none while the others serve: it would take its waiting connections along.
    ///
    /// # Errors
    /// `AddrInUse` when another process listens there, even one that shares its port, because it would
    /// silently take a part of the connections.
    pub fn bind_group(
        address: SocketAddr,
        count: usize,
    ) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
        // The first binds alone, which fails if anybody is there, and shares the port afterwards.
        let first = open(address)?;
        first.bind(&address.into())?;
        first.set_reuse_port(true)?;
        let bound = first.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        let mut group = vec![first];
        while group.len() < count {
            let next = open(bound)?;
            next.set_reuse_port(true)?;
            next.bind(&bound.into())?;
            group.push(next);
        }
        for socket in &group {
            socket.listen(BACKLOG)?;
        }
        Ok((bound, group.into_iter().map(TcpListener::from).collect()))
    }

    /// Takes over a listening socket, for the calling core.
    ///
    /// # Errors
    /// The system's error.
    pub fn from_std(listener: TcpListener) -> io::Result<Listener> {
        listener.set_nonblocking(true)?;
        // Accepted sockets inherit these, which saves two calls for each.
        let options = SockRef::from(&listener);
        options.set_tcp_nodelay(true)?;
        options.set_tcp_keepalive(&KEEPALIVE)?;
        Ok(Listener {
            local: listener.local_addr()?,
            socket: Socket::new(OwnedFd::from(listener))?,
            accepted_in_turn: Cell::new(0),
            warned: Cell::new(None),
        })
    }

    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The next connection. Dropping the future loses none, so it may stand in a `select!`.
    ///
    /// # Errors
    /// When the system is out of descriptors or memory, or the socket is unusable: count it and call
    /// again. The error comes after a pause, and the log has it once per interval.
    pub async fn accept(&self) -> io::Result<(Conn, SocketAddr)> {
        let error = match poll_fn(|cx| self.poll_accept(cx)).await {
            Ok(accepted) => return Ok(accepted),
            Err(error) => error,
        };
        if self.warned.get().is_none_or(|last| clock::now() - last >= WARN_EVERY) {
            self.warned.set(Some(clock::now()));
            tracing::warn!(address = %self.local, %error, "connections cannot be accepted");
        }
        tokio::time::sleep(PAUSE).await;
        Err(error)
    }

    fn poll_accept(&self, cx: &mut Context) -> Poll<io::Result<(Conn, SocketAddr)>> {
        loop {
            if self.accepted_in_turn.get().is_multiple_of(BURST) {
                ready!(self.socket.poll_readable(cx))?;
            }
            match self.socket.try_read(|fd| SockRef::from(&fd).accept(), |_| false) {
                Ok((socket, peer)) => {
                    self.accepted_in_turn.set(self.accepted_in_turn.get().wrapping_add(1));
                    let peer = peer.as_socket().ok_or(io::ErrorKind::Unsupported)?;
                    return Poll::Ready(
                        Conn::from_fd(socket.into(), peer).map(|conn| (conn, peer)),
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accepted_in_turn.set(0)
                }
                // The peer went away between its handshake and now.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

fn open(address: SocketAddr) -> io::Result<RawSocket> {
    let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart does not wait for the last run's connections to time out.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}
