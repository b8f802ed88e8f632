//! What one core holds: its streams, its connections and the ways to the other cores.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Notify;
use tokio::task::spawn_local;
use weir_protocol::stream_name::StreamName;

use super::CoreId;
use super::connection::{Connections, Role};
use super::inheritance::Inheritances;
use super::letter::Letter;
use super::mailbox::{Handle, PostError};
use crate::auth::Door;
use crate::config::Config;
use crate::io::{Arena, ArenaPool};
use crate::limits;
use crate::metrics::{Closed, Counters};
use crate::relay::{Demand, Relays};
use crate::stream::Phase;
use crate::stream::message::{Message, Snapshot};
use crate::stream::owner::State;
use crate::stream::{Registry, Stream, spans};
use crate::trust::Clients;

/// One per core, shared by all its tasks. Nothing here is `Send`: what other cores need reaches
/// them as a [`Message`].
pub struct Core {
    pub id: CoreId,
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
    pub door: Arc<Door>,
    /// What players have asked for that other servers may have.
    pub demand: Arc<Demand>,
    pub relays: Relays,
    /// How other servers are spoken to over TLS.
    pub clients: Arc<Clients>,
    pub counters: Arc<Counters>,
    pub connections: Connections,
    pub arena: &'static Arena,
    /// For what the core itself makes: packaged media and wire headers.
    pub pool: RefCell<ArenaPool>,
    /// Wakes what has to end when the process stops.
    pub stop_news: Arc<Notify>,
    stopping: Cell<bool>,
    /// Claims of all cores up to the last tick.
    claims_seen: Cell<u64>,
    /// In an order of their own, so that a run of the same events is the same run.
    streams: RefCell<BTreeMap<StreamName, Rc<Stream>>>,
    pub(super) inheritances: Inheritances,
    mailboxes: Vec<Handle<Letter>>,
}

impl Core {
    pub fn new(
        id: CoreId,
        config: Arc<Config>,
        registry: Arc<Registry>,
        counters: Arc<Counters>,
        arena: &'static Arena,
        mailboxes: Vec<Handle<Letter>>,
    ) -> Self {
        Self {
            id,
            door: Arc::new(Door::new(config.publish_keys.clone())),
            config,
            registry,
            demand: Arc::default(),
            relays: Relays::default(),
            clients: Arc::default(),
            counters,
            connections: Connections::new(id),
            arena,
            pool: RefCell::new(ArenaPool::new(arena)),
            stop_news: Arc::default(),
            stopping: Cell::new(false),
            claims_seen: Cell::new(0),
            streams: RefCell::default(),
            inheritances: Inheritances::default(),
            mailboxes,
        }
    }

    /// Shares the door with other cores, so that they count wrong keys together.
    #[must_use]
    pub fn behind(self, door: Arc<Door>) -> Self {
        Self { door, ..self }
    }

    #[must_use]
    pub fn with_clients(self, clients: Arc<Clients>) -> Self {
        Self { clients, ..self }
    }

    /// Shares with other cores what players have asked for.
    #[must_use]
    pub fn with_demand(self, demand: Arc<Demand>) -> Self {
        Self { demand, ..self }
    }

    /// Cores of this process, this one included.
    pub fn count(&self) -> usize {
        self.mailboxes.len().max(1)
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Nothing is here that anybody left behind: no connection, no stream, no state on its way.
    pub fn is_at_rest(&self) -> bool {
        let streams = self.streams.borrow().is_empty();
        streams && self.connections.is_empty() && self.inheritances.is_empty()
    }

    pub fn streams(&self) -> Vec<Rc<Stream>> {
        self.streams.borrow().values().cloned().collect()
    }

    pub fn stream(&self, name: &StreamName) -> Option<Rc<Stream>> {
        self.streams.borrow().get(name).cloned()
    }

    pub(super) fn insert(&self, stream: &Rc<Stream>) {
        self.streams.borrow_mut().insert(stream.name.clone(), stream.clone());
    }

    /// The stream with this name, followed from its owner's core where need be. `None` at once when
    /// nobody publishes it: a lookup leaves nothing behind.
    pub async fn find(&self, name: &StreamName, now: Instant) -> Option<Rc<Stream>> {
        let stream = match self.current(name) {
            Some(stream) => stream,
            None => self.attach(name, now)?,
        };
        stream.touch(now);
        if stream.phase() == Phase::Attaching {
            let answered = async {
                loop {
                    let news = stream.window_news.notified();
                    if stream.phase() != Phase::Attaching {
                        return;
                    }
                    news.await;
                }
            };
            tokio::time::timeout(limits::ATTACH_TIMEOUT, answered).await.ok()?;
        }
        // An abandoned replica has no window; an ended stream still has its last one.
        stream.window().is_some().then_some(stream)
    }

    /// The stream as this core knows it, unless the name has a newer owner elsewhere.
    fn current(&self, name: &StreamName) -> Option<Rc<Stream>> {
        let stream = self.stream(name)?;
        let stale = stream.is_ended()
            && self.registry.find(name).is_some_and(|e| e.generation != stream.generation.get());
        (!stale).then_some(stream)
    }

    fn attach(&self, name: &StreamName, now: Instant) -> Option<Rc<Stream>> {
        let entry = self.registry.find(name)?;
        let here = entry.owner == self.id;
        if here && !self.inheritances.follow_later(name, self.id) {
            // Claimed, but the publisher has not been let in yet.
            return None;
        }
        let stream = Rc::new(Stream::replica(name.clone(), entry.generation, now));
        self.insert(&stream);
        if !here {
            self.post(entry.owner, Message::Attach { name: name.clone(), core: self.id });
        }
        Some(stream)
    }

    /// Ends the session that publishes this stream; the stream itself goes on.
    pub fn kick_publisher(&self, stream: &Stream, reason: Closed) -> bool {
        let publisher = stream.with_owner(|owner| owner.publisher.take()).flatten();
        publisher.is_some_and(|publisher| self.connections.close(publisher.client_id, reason))
    }

    /// The publisher's session ended by itself; players keep the stream for the resume window.
    /// `false` where the stream was not this session's any more.
    pub fn leave(&self, stream: &Stream, generation: u64, now: Instant) -> bool {
        if !stream.leave(generation, now, now + self.config.resume_window) {
            return false;
        }
        self.registry.vacate(&stream.name, generation);
        if self.is_stopping() || self.config.resume_window.is_zero() {
            self.end(stream, now);
        }
        self.flush(stream);
        true
    }

    pub fn end(&self, stream: &Stream, now: Instant) {
        self.kick_publisher(stream, Closed::Ended);
        stream.end(now + spans::linger(stream.window().as_deref()));
        self.registry.vacate(&stream.name, stream.generation.get());
        self.flush(stream);
    }

    /// Tells players on all cores what is new. Once per read batch of the publisher.
    pub fn flush(&self, stream: &Stream) {
        let Some((followers, update)) = stream.flush() else { return };
        for core in followers {
            if !self.post(core, Message::Update(update.clone())) {
                // It has missed something now; it asks anew when it hears nothing.
                stream.with_owner(|owner| owner.followers.retain(|follower| *follower != core));
            }
        }
    }

    /// `false` when the other core is far behind, or has stopped.
    pub(super) fn post(&self, core: CoreId, message: Message) -> bool {
        let posted = self.mailboxes[core.0].post(Letter::Message(message));
        if posted.is_err() && !self.is_stopping() {
            tracing::warn!(from = self.id.0, to = core.0, "a core does not take its messages");
        }
        posted.is_ok()
    }

    /// As [`Core::post`], for what the other core must learn however late: nothing would tell it again.
    pub(super) fn post_surely(&self, core: CoreId, message: Message) {
        let mailbox = &self.mailboxes[core.0];
        if let Err(PostError::Full(letter)) = mailbox.post(Letter::Message(message)) {
            let mailbox = mailbox.clone();
            // A core that stops meanwhile needs nothing any more.
            spawn_local(async move { drop(mailbox.post_waiting(letter).await) });
        }
    }
}

/// Messages from other cores.
impl Core {
    pub fn receive(&self, message: Message, now: Instant) {
        match message {
            Message::Attach { name, core } => self.on_attach(name, core),
            Message::Detach { name, core } => {
                if let Some(stream) = self.stream(&name) {
                    stream.with_owner(|owner| owner.followers.retain(|follower| *follower != core));
                }
            }
            Message::Snapshot(snapshot) => self.on_snapshot(*snapshot, now),
            Message::Absent { name } => {
                let stream = self.stream(&name).filter(|stream| stream.is_replica());
                if let Some(stream) = stream {
                    stream.abandon();
                    self.streams.borrow_mut().remove(&name);
                }
            }
            Message::Update(update) => {
                let stream = self.stream(&update.name);
                match stream {
                    Some(stream) => stream.apply_update(update, now),
                    None => self.detach(&update.name),
                }
            }
            Message::Handover { name, generation, heir } => self.hand_over(&name, generation, heir),
        }
    }

    pub(super) fn on_attach(&self, name: StreamName, core: CoreId) {
        let owned = self.stream(&name).is_some_and(|stream| !stream.is_replica());
        if !owned && self.inheritances.follow_later(&name, core) {
            return;
        }
        let stream = self.stream(&name);
        let snapshot = stream.and_then(|stream| {
            let snapshot = stream.snapshot()?;
            stream.with_owner(|owner| {
                if !owner.followers.contains(&core) {
                    owner.followers.push(core);
                }
            });
            Some(snapshot)
        });
        let answer = match snapshot {
            Some(snapshot) => Message::Snapshot(Box::new(snapshot)),
            // The stream has moved on since this core was asked.
            None => match self.registry.find(&name).filter(|entry| entry.owner != self.id) {
                Some(entry) if entry.owner == core => return,
                Some(entry) => {
                    self.post(entry.owner, Message::Attach { name, core });
                    return;
                }
                None => Message::Absent { name },
            },
        };
        self.post(core, answer);
    }

    fn on_snapshot(&self, snapshot: Snapshot, now: Instant) {
        let stream = self.stream(&snapshot.name);
        match stream {
            Some(stream) => stream.apply_snapshot(snapshot, now),
            None => self.detach(&snapshot.name),
        }
    }

    fn detach(&self, name: &StreamName) {
        if let Some(entry) = self.registry.find(name).filter(|entry| entry.owner != self.id) {
            self.post(entry.owner, Message::Detach { name: name.clone(), core: self.id });
        }
    }

    /// Ends every stream, so that players get a clean end, and lets connections go. Replicas end with
    /// their owners' last words.
    pub fn stop(&self, now: Instant) {
        self.stopping.set(true);
        for stream in self.streams().into_iter().filter(|stream| !stream.is_replica()) {
            self.end(&stream, now);
        }
        self.connections.for_each(|connection| {
            if matches!(connection.role(), Role::Rtmp | Role::RtmpWaiting | Role::Pull) {
                // It neither publishes nor plays here, so there is nothing to wait for.
                connection.close(Closed::Stopping);
            }
        });
        self.stop_news.notify_waiters();
    }
}

/// The core's clock.
impl Core {
    /// Acts on everything that has waited long enough. Called several times a second.
    pub fn tick(&self, now: Instant) {
        self.connections.close_overdue(now);
        let claims = self.registry.claims();
        let streams_came = self.claims_seen.replace(claims) != claims;
        self.connections.wake(now, streams_came);
        for stream in self.streams() {
            self.tick_stream(&stream, now);
        }
    }

    fn tick_stream(&self, stream: &Rc<Stream>, now: Instant) {
        match stream.state() {
            Some(State::Resuming { until }) if until <= now => self.end(stream, now),
            Some(State::Ended { until }) if until <= now => self.forget(stream),
            Some(State::Live) => {
                // The session that took the stream over was gone before it could begin.
                let until = now + self.config.resume_window;
                if stream.with_owner(|owner| owner.resume_if_deserted(until)) == Some(true) {
                    self.registry.vacate(&stream.name, stream.generation.get());
                }
            }
            Some(_) => {}
            None => self.tick_replica(stream, now),
        }
    }

    fn tick_replica(&self, stream: &Rc<Stream>, now: Instant) {
        let unused = now.saturating_duration_since(stream.used_at());
        let window = stream.window();
        let over = stream.is_ended() && stream.heard_before(now, spans::linger(window.as_deref()));
        // A pull ends when no core follows it any more, so that is told early.
        let is_pulled = self.config.relays.on_demand(&stream.name).is_some();
        let linger =
            if is_pulled { spans::viewer(window.as_deref()) } else { limits::REPLICA_LINGER };
        if over || stream.players.none() && unused > linger {
            self.streams.borrow_mut().remove(&stream.name);
            self.detach(&stream.name);
        } else if !stream.is_ended() && stream.is_silent(now) {
            // Its publisher pauses, or news got lost: the answer tells.
            match self.registry.find(&stream.name) {
                Some(entry) if entry.owner != self.id => {
                    let name = stream.name.clone();
                    self.post(entry.owner, Message::Attach { name, core: self.id });
                }
                Some(_) => {}
                None => stream.abandon(),
            }
        }
    }

    fn forget(&self, stream: &Rc<Stream>) {
        self.streams.borrow_mut().remove(&stream.name);
        self.registry.release(&stream.name, stream.generation.get());
    }
}
