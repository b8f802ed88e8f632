//! What the two tasks of a connection know together.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use weir_protocol::rtmp::{self, ServerSession, Waiting};
use weir_protocol::stream_name::StreamName;

use super::player::Player;
use crate::config::Config;
use crate::core::Core;
use crate::core::connection::Connection;
use crate::io::ArenaPool;
use crate::metrics::Closed;

/// What the two tasks of a connection share.
pub struct Shared {
    pub core: Rc<Core>,
    pub connection: Rc<Connection>,
    pub session: RefCell<ServerSession<ArenaPool>>,
    pub player: RefCell<Option<Player>>,
    pub awaited: RefCell<Option<Awaited>>,
    pub wishes: Cell<Wishes>,
    pub pulse: Pulse,
    /// Answers of the session that are not sent yet.
    pub replies: RefCell<Vec<Bytes>>,
    /// Nothing more will come from the reading task.
    pub finished: Cell<bool>,
}

impl Shared {
    pub fn new(core: Rc<Core>, connection: Rc<Connection>) -> Self {
        let limits = session_limits(&core.config);
        let pool = ArenaPool::new(core.arena);
        let session = ServerSession::new(limits, connection.id, pool, connection.since);
        Self {
            core,
            connection,
            session: RefCell::new(session),
            player: RefCell::default(),
            awaited: RefCell::default(),
            wishes: Cell::default(),
            pulse: Pulse::default(),
            replies: RefCell::default(),
            finished: Cell::new(false),
        }
    }

    /// Notes until when the peer must have said something, and why it is closed if it has not.
    pub fn set_deadline(&self) {
        let session = self.session.borrow();
        // A wait has an end of its own.
        let waits = self.awaited.borrow().is_some();
        match session.poll_timeout().filter(|_| !waits) {
            Some(at) => {
                let reason = match session.waiting() {
                    Some(Waiting::Handshake) => Closed::HandshakeTimeout,
                    Some(Waiting::Media) => Closed::Idle,
                    Some(Waiting::Request | Waiting::Answer) | None => Closed::NoRequest,
                };
                self.connection.set_deadline(at, reason);
            }
            None => self.connection.clear_deadline(),
        }
    }

    /// Has the sending task send what the session has to say, as far as no event comes before it.
    pub fn send_answers(&self) {
        let mut session = self.session.borrow_mut();
        while let Some(bytes) = session.poll_send() {
            self.replies.borrow_mut().push(bytes);
        }
    }
}

/// What a peer may make its session do, with the operator's time limits.
fn session_limits(config: &Config) -> rtmp::Limits {
    rtmp::Limits {
        handshake_timeout: config.timeouts.handshake,
        idle_timeout: config.timeouts.handshake,
        media_timeout: config.timeouts.idle,
        ..rtmp::Limits::default()
    }
}

/// The stream that a player waits for. Apart from this, in its own connection, nobody knows of it.
pub struct Awaited {
    pub message_stream: u32,
    pub name: StreamName,
    pub until: Instant,
    /// The stream was there, and the player has been told that it is over for now.
    pub interrupted: bool,
}

/// What a player has asked for besides the stream, for as long as it plays.
#[derive(Clone, Copy)]
pub struct Wishes {
    pub paused: bool,
    pub audio: bool,
    pub video: bool,
}

impl Default for Wishes {
    fn default() -> Self {
        Self { paused: false, audio: true, video: true }
    }
}

/// Whether a player is still there, where nothing else tells: one that is sent media either takes it
/// or is cut off, one that is sent none is asked.
#[derive(Default)]
pub struct Pulse {
    pub received_bytes: Cell<u64>,
    /// Media was sent since the last look.
    pub fed: Cell<bool>,
    pub quiet: Cell<u32>,
}
