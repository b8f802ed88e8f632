//! The connections of one core: who they are, and how they are ended from outside.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Instant;

use slab::Slab;
use tokio::sync::Notify;
use weir_protocol::stream_name::StreamName;

use super::CoreId;
use super::admission::payer;
use crate::io;
use crate::metrics::{Closed, Counters, Transport};

/// A peer's connection as the rest of the core sees it. Its own tasks do the reading and writing;
/// everybody else ends it by [`Connection::close`], never by dropping what is in flight.
pub struct Connection {
    pub id: u64,
    pub peer: SocketAddr,
    pub since: Instant,
    pub conn: io::Transport,
    role: Cell<Role>,
    stream: RefCell<Option<StreamName>>,
    /// One connection may publish and, in a role of its own, play.
    publishes: RefCell<Option<StreamName>>,
    /// `flashVer` or `User-Agent`.
    pub agent: RefCell<Option<String>>,
    /// Wakes the task that sends.
    pub news: Notify,
    wake_at: Cell<Option<Instant>>,
    woken: Cell<bool>,
    /// Places that what it publishes has come by, see [`crate::relay::is_circle`].
    pub via: RefCell<Vec<u64>>,
    deadline: Cell<Option<(Instant, Closed)>>,
    closed: Cell<Option<Closed>>,
    /// Bytes in and out that the metrics know of.
    accounted: Cell<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// RTMP before publish or play.
    Rtmp,
    RtmpPublisher,
    RtmpPlayer,
    /// Of a stream that is not there (yet).
    RtmpWaiting,
    /// To another server, which is sent a stream.
    Push,
    /// To another server, from which a stream comes.
    Pull,
    /// HTTP/1.1 keep-alive: playlists, segments, pages.
    Http,
    FlvPlayer,
}

impl Connection {
    /// Ends the connection; its tasks notice within the same turn of the loop. An RTMP session
    /// still says why to its peer, unless the peer takes nothing any more.
    pub fn close(&self, reason: Closed) {
        if self.closed.get().is_none() {
            self.closed.set(Some(reason));
        }
        let says_why = self.transport() != Transport::Http && reason != Closed::SendStall;
        self.conn.shutdown(if says_why { Shutdown::Read } else { Shutdown::Both });
    }

    pub fn transport(&self) -> Transport {
        match self.role() {
            Role::Rtmp
            | Role::RtmpPublisher
            | Role::RtmpPlayer
            | Role::RtmpWaiting
            | Role::Push
            | Role::Pull => {
                if self.conn.is_tls() {
                    Transport::Rtmps
                } else {
                    Transport::Rtmp
                }
            }
            Role::Http | Role::FlvPlayer => Transport::Http,
        }
    }

    /// What the connection is to others. One that publishes is a publisher, whatever it plays.
    pub fn role(&self) -> Role {
        let publishes = self.publishes.borrow().is_some();
        if publishes { Role::RtmpPublisher } else { self.role.get() }
    }

    /// The stream that goes with the role.
    pub fn stream(&self) -> Option<StreamName> {
        self.publishes.borrow().clone().or_else(|| self.stream.borrow().clone())
    }

    pub fn begin_publish(&self, stream: &StreamName) {
        *self.publishes.borrow_mut() = Some(stream.clone());
    }

    pub fn end_publish(&self) {
        *self.publishes.borrow_mut() = None;
    }

    /// From now on the connection stands for a player of `stream`, or for a relay.
    pub fn take_role(&self, role: Role, stream: &StreamName) {
        self.role.set(role);
        *self.stream.borrow_mut() = Some(stream.clone());
    }

    pub fn leave_role(&self, role: Role) {
        self.role.set(role);
        *self.stream.borrow_mut() = None;
    }

    /// Adds what has gone in and out since the last call to the metrics.
    pub fn account(&self, counters: &Counters) {
        let (bytes_in, bytes_out) = (self.conn.received().bytes, self.conn.sent().bytes);
        let (known_in, known_out) = self.accounted.replace((bytes_in, bytes_out));
        let transport = self.transport();
        counters.bytes_in.of(transport).add(bytes_in - known_in);
        counters.bytes_out.of(transport).add(bytes_out - known_out);
    }

    pub fn close_reason(&self) -> Option<Closed> {
        self.closed.get()
    }

    /// Has the core's clock wake the task that sends at `at`. A connection needs no timer of its own.
    pub fn wake_at(&self, at: Instant) {
        self.wake_at.set(Some(at));
    }

    /// Whether the clock has done so; once for each time.
    pub fn is_woken(&self) -> bool {
        self.woken.take()
    }

    fn wake(&self, now: Instant, streams_came: bool) {
        let waits = streams_came && self.role.get() == Role::RtmpWaiting;
        if waits || self.wake_at.get().is_some_and(|at| at <= now) {
            self.wake_at.set(None);
            self.woken.set(true);
            self.news.notify_one();
        }
    }

    /// Closes the connection at `at` unless the deadline is moved before.
    pub fn set_deadline(&self, at: Instant, reason: Closed) {
        self.deadline.set(Some((at, reason)));
    }

    pub fn clear_deadline(&self) {
        self.deadline.set(None);
    }
}

pub struct Connections {
    core: CoreId,
    last_serial: Cell<u64>,
    slab: RefCell<Slab<Rc<Connection>>>,
}

/// Keeps the connection listed for as long as its task runs.
pub struct Listed<'a> {
    connections: &'a Connections,
    key: usize,
    pub connection: Rc<Connection>,
}

impl Connections {
    pub fn new(core: CoreId) -> Self {
        Self { core, last_serial: Cell::new(0), slab: RefCell::default() }
    }

    pub fn list(&self, conn: io::Transport, role: Role, now: Instant) -> Listed<'_> {
        let serial = self.last_serial.get() + 1;
        self.last_serial.set(serial);
        let connection = Rc::new(Connection {
            // Ids are never reused, and tell the core.
            id: serial << CORE_BITS | self.core.0 as u64,
            peer: conn.peer_addr(),
            since: now,
            conn,
            role: Cell::new(role),
            stream: RefCell::default(),
            publishes: RefCell::default(),
            agent: RefCell::default(),
            news: Notify::new(),
            wake_at: Cell::new(None),
            woken: Cell::new(false),
            via: RefCell::default(),
            deadline: Cell::new(None),
            closed: Cell::new(None),
            accounted: Cell::default(),
        });
        let key = self.slab.borrow_mut().insert(connection.clone());
        Listed { connections: self, key, connection }
    }

    pub fn is_empty(&self) -> bool {
        self.slab.borrow().is_empty()
    }

    pub fn close(&self, id: u64, reason: Closed) -> bool {
        let found = self.slab.borrow().iter().find(|(_, c)| c.id == id).map(|(_, c)| c.clone());
        if let Some(connection) = &found {
            connection.close(reason);
        }
        found.is_some()
    }

    pub fn close_all(&self, reason: Closed) {
        self.for_each(|connection| connection.close(reason));
    }

    pub fn close_overdue(&self, now: Instant) {
        self.for_each(|connection| {
            if let Some((_, reason)) = connection.deadline.get().filter(|(at, _)| *at <= now) {
                connection.clear_deadline();
                connection.close(reason);
            }
        });
    }

    /// Wakes the sending tasks that wanted it by now, and, where there are new streams, those of
    /// players that wait for one.
    pub fn wake(&self, now: Instant, streams_came: bool) {
        self.for_each(|connection| connection.wake(now, streams_came));
    }

    /// Players behind this address that wait for a stream. Counted anew each time, so that waiting
    /// leaves nothing behind.
    pub fn waiting_from(&self, address: IpAddr) -> usize {
        let waits = |connection: &Connection| {
            connection.role.get() == Role::RtmpWaiting
                && payer(connection.peer.ip()) == payer(address)
        };
        self.slab.borrow().iter().filter(|(_, connection)| waits(connection)).count()
    }

    pub fn for_each(&self, mut act: impl FnMut(&Connection)) {
        for (_, connection) in self.slab.borrow().iter() {
            act(connection);
        }
    }
}

const CORE_BITS: u32 = 10;

/// Which core a connection id belongs to.
pub fn core_of(id: u64) -> CoreId {
    CoreId((id & ((1 << CORE_BITS) - 1)) as usize)
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.connections.slab.borrow_mut().remove(self.key);
    }
}
