//! What one core holds: its streams, its connections and the ways to the other cores.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};
use weir_hls::Packager;
use weir_protocol::stream_name::StreamName;

use super::CoreId;
use super::connection::Connections;
use super::mailbox::Handle;
use crate::config::Config;
use crate::io::{Arena, ArenaPool};
use crate::limits;
use crate::metrics::{Closed, Counters};
use crate::stream::Phase;
use crate::stream::message::{Control, Estate, Message, Snapshot};
use crate::stream::owner::State;
use crate::stream::registry::Claim;
use crate::stream::{Owner, Publisher, Registry, Stream};

/// One per core, shared by all its tasks. Nothing here is `Send`: what other cores need reaches
/// them as a [`Message`].
pub struct Core {
    pub id: CoreId,
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
    pub counters: Arc<Counters>,
    pub connections: Connections,
    pub arena: &'static Arena,
    /// For what the core itself makes: packaged media and wire headers.
    pub pool: RefCell<ArenaPool>,
    /// Wakes what has to end when the process stops.
    pub stop_news: Arc<Notify>,
    stopping: Cell<bool>,
    streams: RefCell<HashMap<StreamName, Rc<Stream>>>,
    /// Names whose state is on its way from another core, and who asked for it meanwhile.
    arriving: RefCell<HashMap<StreamName, Vec<Waiting>>>,
    mailboxes: Vec<Handle<Message>>,
}

struct Waiting {
    to: CoreId,
    reply: oneshot::Sender<Option<Box<Estate>>>,
}

/// Why a name could not be had for publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// A newer session claimed the name while this one was waiting.
    Overtaken,
    Stopping,
}

impl Core {
    pub fn new(
        id: CoreId,
        config: Arc<Config>,
        registry: Arc<Registry>,
        counters: Arc<Counters>,
        arena: &'static Arena,
        mailboxes: Vec<Handle<Message>>,
    ) -> Self {
        Self {
            id,
            config,
            registry,
            counters,
            connections: Connections::new(id),
            arena,
            pool: RefCell::new(ArenaPool::new(arena)),
            stop_news: Arc::default(),
            stopping: Cell::new(false),
            streams: RefCell::default(),
            arriving: RefCell::default(),
            mailboxes,
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    pub fn streams(&self) -> Vec<Rc<Stream>> {
        self.streams.borrow().values().cloned().collect()
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
        let stream = self.streams.borrow().get(name).cloned()?;
        let stale = stream.is_ended()
            && self.registry.find(name).is_some_and(|e| e.generation != stream.generation.get());
        (!stale).then_some(stream)
    }

    fn attach(&self, name: &StreamName, now: Instant) -> Option<Rc<Stream>> {
        let entry = self.registry.find(name)?;
        if entry.owner == self.id {
            // Claimed, but the publisher has not been let in yet.
            return None;
        }
        let stream = Rc::new(Stream::replica(name.clone(), entry.generation, now));
        self.streams.borrow_mut().insert(name.clone(), stream.clone());
        self.post(entry.owner, Message::Attach { name: name.clone(), core: self.id });
        Some(stream)
    }

    /// Makes this core the owner of `name` and `publisher` its only publisher, taking over from
    /// whoever has it.
    pub async fn claim(
        &self,
        name: &StreamName,
        publisher: Publisher,
        now: Instant,
    ) -> Result<(Rc<Stream>, u64), ClaimError> {
        if self.is_stopping() {
            return Err(ClaimError::Stopping);
        }
        let claim = self.registry.claim(name, self.id);
        let elsewhere = claim.previous.filter(|previous| previous.owner != self.id);
        if let Some(previous) = elsewhere {
            let estate = self.request_estate(&claim, previous.owner).await;
            self.settle_estate(name, now, estate);
        } else if self.arriving.borrow().contains_key(name) {
            // Another session here claimed it first and its state is still on the way; it will see
            // that its claim is out of date.
            self.wait_for_arrival(name).await;
        }
        if self.registry.find(name).is_none_or(|entry| entry.generation != claim.generation) {
            return Err(ClaimError::Overtaken);
        }
        Ok((self.install(&claim, publisher, now), claim.generation))
    }

    fn install(&self, claim: &Claim, publisher: Publisher, now: Instant) -> Rc<Stream> {
        let known = self.streams.borrow().get(&claim.name).cloned();
        let last_owner = known.as_ref().filter(|stream| !stream.is_replica());
        if let Some(stream) = last_owner.filter(|stream| !stream.is_ended()) {
            self.kick_publisher(stream, Closed::TakenOver);
            stream.begin(claim.generation, publisher);
            return stream.clone();
        }
        let next_msn = last_owner.and_then(|stream| stream.window()).map_or(0, |w| w.next_msn());
        let packager = self.packager(&claim.name, next_msn);
        let owner = Owner::new(claim.generation, packager);
        let stream = Rc::new(Stream::owned(claim.name.clone(), now, owner));
        stream.begin(claim.generation, publisher);
        self.streams.borrow_mut().insert(claim.name.clone(), stream.clone());
        stream
    }

    async fn request_estate(&self, claim: &Claim, from: CoreId) -> Option<Box<Estate>> {
        let (reply, answer) = oneshot::channel();
        self.arriving.borrow_mut().insert(claim.name.clone(), Vec::new());
        let message = Message::Handover { name: claim.name.clone(), to: self.id, reply };
        self.post(from, message);
        tokio::time::timeout(limits::ATTACH_TIMEOUT, answer).await.ok()?.ok()?
    }

    /// Takes in a stream's state and passes it on at once where another core has claimed it since.
    fn settle_estate(&self, name: &StreamName, now: Instant, estate: Option<Box<Estate>>) {
        if let Some(estate) = estate {
            let known = self.streams.borrow().get(name).filter(|s| s.is_replica()).cloned();
            let ended = estate.owner.is_ended();
            let stream = known.unwrap_or_else(|| {
                let stream = Rc::new(Stream::replica(name.clone(), 0, now));
                self.streams.borrow_mut().insert(name.clone(), stream.clone());
                stream
            });
            stream.adopt(*estate);
            if ended {
                stream.end(now);
            }
        }
        let waiting = self.arriving.borrow_mut().remove(name).unwrap_or_default();
        for Waiting { to, reply } in waiting {
            self.hand_over(name, to, reply);
        }
    }

    async fn wait_for_arrival(&self, name: &StreamName) {
        let (reply, answer) = oneshot::channel();
        if let Some(waiting) = self.arriving.borrow_mut().get_mut(name) {
            waiting.push(Waiting { to: self.id, reply });
        }
        let _ = tokio::time::timeout(limits::ATTACH_TIMEOUT, answer).await;
    }

    fn hand_over(
        &self,
        name: &StreamName,
        to: CoreId,
        reply: oneshot::Sender<Option<Box<Estate>>>,
    ) {
        if let Some(waiting) = self.arriving.borrow_mut().get_mut(name) {
            return waiting.push(Waiting { to, reply });
        }
        let stream = self.streams.borrow().get(name).cloned();
        if to == self.id {
            let _ = reply.send(None);
            return;
        }
        let estate = stream.and_then(|stream| {
            self.kick_publisher(&stream, Closed::TakenOver);
            let mut estate = stream.hand_over()?;
            estate.owner.followers.retain(|core| *core != to);
            estate.owner.followers.push(self.id);
            Some(Box::new(estate))
        });
        let _ = reply.send(estate);
    }

    /// Ends the session that publishes this stream; the stream itself goes on.
    pub fn kick_publisher(&self, stream: &Stream, reason: Closed) -> bool {
        let publisher = stream.with_owner(|owner| owner.publisher.take()).flatten();
        publisher.is_some_and(|publisher| self.connections.close(publisher.client_id, reason))
    }

    /// The publisher's session ended by itself; players keep the stream for the resume window.
    pub fn leave(&self, stream: &Stream, generation: u64, now: Instant) {
        if !stream.leave(generation, now, now + self.config.resume_window) {
            return;
        }
        if self.is_stopping() || self.config.resume_window.is_zero() {
            self.end(stream, now);
        }
        self.flush(stream);
    }

    pub fn end(&self, stream: &Stream, now: Instant) {
        self.kick_publisher(stream, Closed::Ended);
        stream.end(now + self.linger());
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

    /// How long an ended stream can still be fetched: its whole playlist (RFC 8216 §6.2.2).
    fn linger(&self) -> Duration {
        let playlist = self.config.hls.segment * (self.config.hls.window as u32 + 1);
        playlist.max(limits::ENDED_LINGER_MIN)
    }

    fn packager(&self, name: &StreamName, next_msn: u64) -> Packager {
        let hls = &self.config.hls;
        let last_segment = name.url_path().to_string();
        let last_segment = last_segment.rsplit('/').next().unwrap_or_default();
        Packager::new(weir_hls::Config {
            segment: hls.segment,
            longest_segment: hls.segment * 2,
            part: hls.part,
            window: hls.window,
            prefix: random_prefix(),
            ts_base: format!("{last_segment}/"),
            first_msn: next_msn.max(msn_of_wall_clock()),
        })
    }

    /// `false` when the other core is far behind, or has stopped.
    fn post(&self, core: CoreId, message: Message) -> bool {
        let posted = self.mailboxes[core.0].post(message);
        if posted.is_err() && !self.is_stopping() {
            tracing::warn!(from = self.id.0, to = core.0, "a core does not take its messages");
        }
        posted.is_ok()
    }
}

/// Messages from other cores and from the control plane.
impl Core {
    pub fn receive(&self, message: Message, now: Instant) {
        match message {
            Message::Attach { name, core } => self.on_attach(name, core),
            Message::Detach { name, core } => {
                if let Some(stream) = self.streams.borrow().get(&name) {
                    stream.with_owner(|owner| owner.followers.retain(|follower| *follower != core));
                }
            }
            Message::Snapshot(snapshot) => self.on_snapshot(*snapshot, now),
            Message::Absent { name } => {
                let stream = self.streams.borrow().get(&name).filter(|s| s.is_replica()).cloned();
                if let Some(stream) = stream {
                    stream.abandon();
                    self.streams.borrow_mut().remove(&name);
                }
            }
            Message::Update(update) => {
                let stream = self.streams.borrow().get(&update.name).cloned();
                match stream {
                    Some(stream) => stream.apply_update(update, now),
                    None => self.detach(&update.name),
                }
            }
            Message::Handover { name, to, reply } => self.hand_over(&name, to, reply),
            Message::Control(control) => self.obey(control, now),
        }
    }

    fn on_attach(&self, name: StreamName, core: CoreId) {
        let stream = self.streams.borrow().get(&name).cloned();
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
            None => Message::Absent { name },
        };
        self.post(core, answer);
    }

    fn on_snapshot(&self, snapshot: Snapshot, now: Instant) {
        let stream = self.streams.borrow().get(&snapshot.name).cloned();
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

    fn obey(&self, control: Control, now: Instant) {
        match control {
            Control::Report(reply) => {
                let _ = reply.send(super::report::report(self, now));
            }
            Control::KickClient { id, reply } => {
                let _ = reply.send(self.connections.close(id, Closed::Kicked));
            }
            Control::KickStream { name, reply } => {
                let stream = self.streams.borrow().get(&name).cloned();
                let owned = stream.filter(|stream| !stream.is_replica() && !stream.is_ended());
                if let Some(stream) = &owned {
                    self.kick_publisher(stream, Closed::Kicked);
                    self.end(stream, now);
                }
                let _ = reply.send(owned.is_some());
            }
            Control::Stop => self.stop(now),
        }
    }

    /// Ends every stream, so that players get a clean end, and lets connections go.
    fn stop(&self, now: Instant) {
        self.stopping.set(true);
        for stream in self.streams() {
            if stream.is_replica() {
                stream.abandon();
            } else {
                self.end(&stream, now);
            }
        }
        self.stop_news.notify_waiters();
    }
}

/// The core's clock.
impl Core {
    /// Acts on everything that has waited long enough. Called several times a second.
    pub fn tick(&self, now: Instant) {
        self.connections.close_overdue(now);
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
                stream.with_owner(|owner| owner.resume_if_deserted(until));
            }
            Some(_) => {}
            None => self.tick_replica(stream, now),
        }
    }

    fn tick_replica(&self, stream: &Rc<Stream>, now: Instant) {
        let unused = now.saturating_duration_since(stream.used_at());
        let over = stream.is_ended() && unused > self.linger();
        if over || stream.players.none() && unused > limits::REPLICA_LINGER {
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

/// Length of the URI prefix of an epoch: `~` and 64 random bits.
pub const PREFIX_LEN: usize = 17;

/// A URI prefix that no other epoch of any stream has had or will have.
fn random_prefix() -> String {
    let mut bytes = [0; 8];
    // Without the system's random numbers the clock still keeps prefixes apart.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = nanoseconds_of_wall_clock().to_be_bytes();
    }
    format!("~{:016x}", u64::from_be_bytes(bytes))
}

/// Media sequence numbers begin with the seconds since 2026, so that they never go back for a URL,
/// not even when the process restarts: no stream makes more than one segment a second for long.
fn msn_of_wall_clock() -> u64 {
    const SECONDS_TO_2026: u64 = 1_767_225_600;
    (nanoseconds_of_wall_clock() / 1_000_000_000).saturating_sub(SECONDS_TO_2026)
}

fn nanoseconds_of_wall_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
