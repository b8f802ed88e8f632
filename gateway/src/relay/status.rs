//! What operators see of the relays of a core.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use slab::Slab;
use weir_protocol::rtmp::RtmpUrl;
use weir_protocol::stream_name::StreamName;

use super::failure::Failure;
use crate::admin::model::{RelayDirection, RelayInfo, RelayState, wall_clock};
use crate::core::connection::Connection;
use crate::metrics::{Counters, Label as _, PullState, PushState};

/// The relays of one core, and what they must know of it.
#[derive(Default)]
pub struct Relays {
    slab: RefCell<Slab<Rc<Status>>>,
    /// Where this gateway takes RTMP itself.
    pub own_addresses: RefCell<Vec<SocketAddr>>,
}

/// Keeps a relay listed for as long as its task runs.
pub struct Listed<'a> {
    relays: &'a Relays,
    key: usize,
    pub status: Rc<Status>,
}

pub struct Status {
    direction: RelayDirection,
    pub name: StreamName,
    pub url: RtmpUrl,
    state: Cell<RelayState>,
    since: Cell<Instant>,
    retry_at: Cell<Option<Instant>>,
    connection: RefCell<Option<Rc<Connection>>>,
    /// Of the connections before this one.
    bytes: Cell<u64>,
    reconnects: Cell<u64>,
    last_error: RefCell<Option<String>>,
    left_out: RefCell<Vec<&'static str>>,
}

impl Relays {
    pub fn list(
        &self,
        direction: RelayDirection,
        name: &StreamName,
        url: &RtmpUrl,
        now: Instant,
    ) -> Listed<'_> {
        let status = Rc::new(Status {
            direction,
            name: name.clone(),
            url: url.clone(),
            state: Cell::new(RelayState::Waiting),
            since: Cell::new(now),
            retry_at: Cell::new(None),
            connection: RefCell::default(),
            bytes: Cell::new(0),
            reconnects: Cell::new(0),
            last_error: RefCell::default(),
            left_out: RefCell::default(),
        });
        let key = self.slab.borrow_mut().insert(status.clone());
        Listed { relays: self, key, status }
    }

    pub fn report(&self, core: usize, now: Instant) -> Vec<RelayInfo> {
        self.slab.borrow().iter().map(|(_, status)| status.info(core, now)).collect()
    }

    /// Brings the gauges up to date.
    pub fn sample(&self, counters: &Counters) {
        let slab = self.slab.borrow();
        let count = |direction, state| {
            let relays = slab.iter().filter(|(_, relay)| relay.direction == direction);
            relays.filter(|(_, relay)| relay.state.get() == state).count() as u64
        };
        for state in PushState::ALL {
            counters.pushes.of(*state).set(count(RelayDirection::Push, (*state).into()));
        }
        for state in PullState::ALL {
            counters.pulls.of(*state).set(count(RelayDirection::Pull, (*state).into()));
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.relays.slab.borrow_mut().remove(self.key);
    }
}

impl Status {
    pub fn state(&self) -> RelayState {
        self.state.get()
    }

    pub fn enter(&self, state: RelayState, now: Instant) {
        if self.state.replace(state) != state {
            self.since.set(now);
        }
        self.retry_at.set(None);
    }

    pub fn wait_until(&self, at: Instant, now: Instant) {
        self.enter(RelayState::Waiting, now);
        self.retry_at.set(Some(at));
    }

    pub fn connected(&self, connection: &Rc<Connection>) {
        *self.connection.borrow_mut() = Some(connection.clone());
    }

    pub fn disconnected(&self) {
        let last = self.connection.take();
        let bytes = last.map_or(0, |connection| self.bytes_of(&connection));
        self.bytes.set(self.bytes.get() + bytes);
        self.left_out.borrow_mut().clear();
    }

    pub fn failed(&self, failure: &Failure) {
        *self.last_error.borrow_mut() = Some(failure.text(&self.url));
    }

    pub fn count_reconnect(&self) {
        self.reconnects.set(self.reconnects.get() + 1);
    }

    /// Notes which codecs of the stream the server does not take; whether that is news.
    pub fn leave_out(&self, codecs: &[&'static str]) -> bool {
        let mut left_out = self.left_out.borrow_mut();
        let is_news = *left_out != codecs;
        if is_news {
            *left_out = codecs.to_vec();
        }
        is_news
    }

    fn bytes_of(&self, connection: &Connection) -> u64 {
        match self.direction {
            RelayDirection::Push => connection.conn.sent().bytes,
            RelayDirection::Pull => connection.conn.received().bytes,
        }
    }

    fn info(&self, core: usize, now: Instant) -> RelayInfo {
        let connection = self.connection.borrow();
        let live = connection.as_ref().map_or(0, |connection| self.bytes_of(connection));
        let retry_in = self.retry_at.get().map(|at| at.saturating_duration_since(now));
        RelayInfo {
            stream: self.name.clone(),
            direction: self.direction,
            url: self.url.to_string(),
            state: self.state.get(),
            core,
            client: connection.as_ref().map(|connection| connection.id),
            since: wall_clock(self.since.get()),
            retry_in_ms: retry_in.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            bytes: self.bytes.get() + live,
            reconnects: self.reconnects.get(),
            last_error: self.last_error.borrow().clone(),
            left_out: self.left_out.borrow().clone(),
        }
    }
}
