//! Streams: who owns a name, the live log that players follow, and the copies on other cores.

pub mod gate;
pub mod left_out;
pub mod log;
pub mod message;
pub mod meter;
pub mod owner;
mod pattern;
pub mod registry;
pub mod spans;
pub mod track_set;
pub mod viewers;

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use weir_hls::Window;
use weir_protocol::flv::Event;
use weir_protocol::stream_name::StreamName;

use crate::limits;
use log::{Cursor, Item, Log};
use message::{Estate, Snapshot, Update};
use owner::State;
use track_set::SharedTracks;
use viewers::Viewers;

pub use owner::{Owner, Publisher};
pub use pattern::{Pattern, PatternError};
pub use registry::Registry;
pub use track_set::TrackSet;

/// On the owner's core the log is fed by the publisher, on any other by the owner: players can't
/// tell the difference.
pub struct Stream {
    pub name: StreamName,
    pub generation: Cell<u64>,
    /// Wakes live players: new access units, or the end.
    pub log_news: Arc<Notify>,
    /// Wakes held HLS requests: another window, or the end.
    pub window_news: Arc<Notify>,
    pub players: PlayerCounts,
    pub viewers: RefCell<Viewers>,
    pub bytes_out: Cell<u64>,
    log: RefCell<Log>,
    role: RefCell<Role>,
    phase: Cell<Phase>,
    /// As [`Owner::began_as`], of what is in the log.
    began_as: Cell<u64>,
    used_at: Cell<Instant>,
    /// When the owner last sent news.
    heard_at: Cell<Instant>,
}

enum Role {
    Owner { owner: Box<Owner>, unsent: Vec<Item>, window_version: u64 },
    Replica { tracks: SharedTracks, window: Option<Arc<Window>> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A replica that waits for its owner's answer.
    Attaching,
    Running,
    Ended,
}

/// Live players of this stream on this core.
#[derive(Default)]
pub struct PlayerCounts {
    pub flv: Cell<usize>,
    pub rtmp: Cell<usize>,
    /// To other servers, connected or not.
    pub pushes: Cell<usize>,
}

impl PlayerCounts {
    pub fn none(&self) -> bool {
        self.flv.get() + self.rtmp.get() + self.pushes.get() == 0
    }
}

impl Stream {
    pub fn owned(name: StreamName, now: Instant, owner: Owner) -> Self {
        let generation = owner.generation;
        let role = Role::Owner { owner: Box::new(owner), unsent: Vec::new(), window_version: 0 };
        Self::with(name, generation, now, role, Phase::Running)
    }

    pub fn replica(name: StreamName, generation: u64, now: Instant) -> Self {
        let role = Role::Replica { tracks: Arc::default(), window: None };
        Self::with(name, generation, now, role, Phase::Attaching)
    }

    fn with(name: StreamName, generation: u64, now: Instant, role: Role, phase: Phase) -> Self {
        Self {
            name,
            generation: Cell::new(generation),
            log_news: Arc::default(),
            window_news: Arc::default(),
            players: PlayerCounts::default(),
            viewers: RefCell::default(),
            bytes_out: Cell::new(0),
            log: RefCell::default(),
            role: RefCell::new(role),
            phase: Cell::new(phase),
            began_as: Cell::new(generation),
            used_at: Cell::new(now),
            heard_at: Cell::new(now),
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub fn is_ended(&self) -> bool {
        self.phase.get() == Phase::Ended
    }

    /// Lends the log to a player. The log must not be kept over an await.
    pub fn with_log<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        read(&self.log.borrow())
    }

    pub fn join(&self) -> Cursor {
        Cursor::default()
    }

    /// Whether a player that joins now has something to begin with.
    pub fn can_be_joined(&self) -> bool {
        self.log.borrow().since_join().next().is_some()
    }

    /// The newest HLS window; `None` before the owner has answered a replica.
    pub fn window(&self) -> Option<Arc<Window>> {
        match &mut *self.role.borrow_mut() {
            Role::Owner { owner, .. } => Some(owner.window()),
            Role::Replica { window, .. } => window.clone(),
        }
    }

    pub fn tracks(&self) -> SharedTracks {
        match &*self.role.borrow() {
            Role::Owner { owner, .. } => owner.tracks().clone(),
            Role::Replica { tracks, .. } => tracks.clone(),
        }
    }

    /// Lends the owner's state, on the owner's core.
    pub fn with_owner<T>(&self, act: impl FnOnce(&mut Owner) -> T) -> Option<T> {
        match &mut *self.role.borrow_mut() {
            Role::Owner { owner, .. } => Some(act(owner)),
            Role::Replica { .. } => None,
        }
    }

    /// Marks the stream as wanted here, which keeps a replica attached.
    pub fn touch(&self, now: Instant) {
        self.used_at.set(now);
    }

    pub fn used_at(&self) -> Instant {
        self.used_at.get()
    }

    fn wake_all(&self) {
        self.log_news.notify_waiters();
        self.window_news.notify_waiters();
    }
}

/// The owner's core.
impl Stream {
    pub fn begin(&self, generation: u64, publisher: Publisher) {
        self.generation.set(generation);
        self.with_owner(|owner| owner.begin(generation, publisher));
    }

    /// Takes one event of the publisher. Players learn of it at [`Stream::flush`].
    pub fn take(&self, now: Instant, event: Event) {
        if let Role::Owner { owner, unsent, .. } = &mut *self.role.borrow_mut() {
            owner.take(now, event, &mut self.log.borrow_mut(), unsent);
        }
    }

    /// The session with this generation ended. An older session's end changes nothing, nor does that
    /// of one whose stream has ended.
    pub fn leave(&self, generation: u64, now: Instant, until: Instant) -> bool {
        match &mut *self.role.borrow_mut() {
            Role::Owner { owner, unsent, .. }
                if owner.generation == generation && !owner.is_ended() =>
            {
                owner.leave(now, until, &mut self.log.borrow_mut(), unsent);
                true
            }
            _ => false,
        }
    }

    /// No publisher will come back.
    pub fn end(&self, linger_until: Instant) {
        if let Role::Owner { owner, .. } = &mut *self.role.borrow_mut() {
            owner.end(linger_until);
        }
        self.phase.set(Phase::Ended);
    }

    pub fn state(&self) -> Option<State> {
        self.with_owner(|owner| owner.state)
    }

    /// Tells players here what is new since the last flush, and returns what followers must hear.
    pub fn flush(&self) -> Option<(Vec<crate::core::CoreId>, Update)> {
        let mut role = self.role.borrow_mut();
        let Role::Owner { owner, unsent, window_version } = &mut *role else { return None };
        self.log_news.notify_waiters();
        let version = owner.version();
        let changed = std::mem::replace(window_version, version) != version;
        if changed {
            self.window_news.notify_waiters();
        }
        if owner.followers.is_empty() {
            unsent.clear();
            return None;
        }
        let update = Update {
            name: self.name.clone(),
            generation: owner.generation,
            items: Arc::new(std::mem::take(unsent)),
            window: changed.then(|| owner.window()),
            ended: owner.is_ended(),
        };
        Some((owner.followers.clone(), update))
    }

    pub fn snapshot(&self) -> Option<Snapshot> {
        let items = self.items();
        self.with_owner(|owner| Snapshot {
            name: self.name.clone(),
            generation: owner.generation,
            began_as: owner.began_as,
            items,
            window: Some(owner.window()),
            ended: owner.is_ended(),
        })
    }

    /// Gives the stream's state away and stays behind as a replica of it.
    pub fn hand_over(&self) -> Option<Estate> {
        let items = self.items();
        let mut role = self.role.borrow_mut();
        let Role::Owner { owner, .. } = &mut *role else { return None };
        let replica =
            Role::Replica { tracks: owner.tracks().clone(), window: Some(owner.window()) };
        match std::mem::replace(&mut *role, replica) {
            Role::Owner { owner, .. } => Some(Estate { owner: *owner, items }),
            Role::Replica { .. } => None,
        }
    }

    /// Becomes the owner with the state of another core's.
    pub fn adopt(&self, estate: Estate) {
        // The last news may still be on their way, and come too late then.
        self.apply_log(estate.owner.began_as, &estate.items);
        let owner = Box::new(estate.owner);
        *self.role.borrow_mut() = Role::Owner { owner, unsent: Vec::new(), window_version: 0 };
        self.phase.set(Phase::Running);
        self.wake_all();
    }

    fn items(&self) -> Vec<Item> {
        let log = self.log.borrow();
        let mut last_tracks: Option<SharedTracks> = None;
        let mut items = Vec::new();
        for entry in log.since_join() {
            if last_tracks.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &entry.tracks)) {
                last_tracks = Some(entry.tracks.clone());
                items.push(Item::Tracks(entry.tracks.clone()));
            }
            items.push(Item::Unit(entry.unit.clone()));
        }
        if last_tracks.is_none() {
            items.push(Item::Tracks(self.tracks()));
        }
        items
    }
}

/// Any other core.
impl Stream {
    /// Begins with what the owner has, or goes on with it where news got lost.
    pub fn apply_snapshot(&self, snapshot: Snapshot, now: Instant) {
        if !self.is_replica() || self.is_ended() {
            return;
        }
        self.generation.set(snapshot.generation);
        self.apply_log(snapshot.began_as, &snapshot.items);
        self.apply_window(snapshot.window);
        self.heard_at.set(now);
        self.phase.set(if snapshot.ended { Phase::Ended } else { Phase::Running });
        self.wake_all();
    }

    pub fn apply_update(&self, update: Update, now: Instant) {
        if self.phase.get() != Phase::Running || !self.is_replica() {
            return;
        }
        self.generation.set(update.generation);
        self.apply_items(&update.items);
        self.apply_window(update.window);
        self.heard_at.set(now);
        if update.ended {
            self.phase.set(Phase::Ended);
        }
        self.wake_all();
    }

    /// The owner's last news, of the end perhaps, is older than this.
    pub fn heard_before(&self, now: Instant, span: Duration) -> bool {
        now.saturating_duration_since(self.heard_at.get()) > span
    }

    /// The owner has sent no news for a while.
    pub fn is_silent(&self, now: Instant) -> bool {
        let silent = self.heard_before(now, limits::REPLICA_SILENCE);
        if silent {
            self.heard_at.set(now);
        }
        silent
    }

    /// There is nothing to follow (any more).
    pub fn abandon(&self) {
        self.phase.set(Phase::Ended);
        self.wake_all();
    }

    pub fn is_replica(&self) -> bool {
        matches!(&*self.role.borrow(), Role::Replica { .. })
    }

    /// Takes up an owner's log, whose times mean nothing next to those of an owner that began anew.
    fn apply_log(&self, began_as: u64, items: &[Item]) {
        if self.began_as.replace(began_as) != began_as {
            self.log.borrow_mut().start_over();
        }
        self.apply_items(items);
    }

    fn apply_items(&self, items: &[Item]) {
        let Role::Replica { tracks, .. } = &mut *self.role.borrow_mut() else { return };
        let mut log = self.log.borrow_mut();
        for item in items {
            match item {
                Item::Tracks(new) => {
                    if new.tracks != tracks.tracks {
                        log.forget_join_point();
                    }
                    *tracks = new.clone();
                }
                // A snapshot repeats what this log has already.
                Item::Unit(unit) if log.has(unit) => {}
                Item::Unit(unit) => log.push(unit.clone(), tracks),
            }
        }
    }

    fn apply_window(&self, new: Option<Arc<Window>>) {
        if let Role::Replica { window, .. } = &mut *self.role.borrow_mut()
            && new.is_some()
        {
            *window = new;
        }
    }
}
