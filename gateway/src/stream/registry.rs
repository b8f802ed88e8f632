use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_protocol::stream_name::StreamName;

use crate::core::CoreId;
use crate::limits;

/// Which core owns which stream: the one table that all cores share.
///
/// It is touched when a publish begins or ends and when a core meets a name that it doesn't hold
/// yet, never per frame or per request of a known stream, so a plain mutex is the simplest thing
/// that is right. Looking up an absent name leaves nothing behind.
#[derive(Default)]
pub struct Registry {
    entries: Mutex<Entries>,
    /// The newest generation, for whoever waits for a name.
    claims: AtomicU64,
}

#[derive(Default)]
struct Entries {
    by_name: HashMap<StreamName, (Entry, Heard)>,
    last_generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub owner: CoreId,
    /// Rises with every claim; whoever holds an older one has lost the name.
    pub generation: u64,
    pub holder: Holder,
}

/// Who publishes under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Publisher,
    /// The gateway itself, with what it pulls from another server. It stands back for a publisher.
    Pull,
    /// The stream is kept for a publisher that may come back, or for players that are late.
    Nobody,
}

/// The right to publish under a name, until someone claims it anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: StreamName,
    pub generation: u64,
    /// Who owned the name just before.
    pub previous: Option<Entry>,
    /// For the publisher to note its media.
    pub heard: Heard,
}

/// When a publisher last sent media, for all cores to see. Clones are the same.
#[derive(Clone, Debug)]
pub struct Heard {
    since: Instant,
    /// Milliseconds after `since`.
    last_ms: Arc<AtomicU64>,
}

impl Heard {
    fn new(now: Instant) -> Self {
        Self { since: now, last_ms: Arc::default() }
    }

    pub fn note(&self, now: Instant) {
        let after = now.saturating_duration_since(self.since).as_millis() as u64;
        self.last_ms.store(after, Ordering::Relaxed);
    }

    /// How long nothing has come, counted from the claim where nothing came at all.
    fn silence(&self, now: Instant) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
        now.saturating_duration_since(self.since).saturating_sub(last)
    }
}

impl PartialEq for Heard {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.last_ms, &other.last_ms)
    }
}

impl Eq for Heard {}

impl Registry {
    /// Makes `core` the owner of `name` at once, whoever owned it before.
    pub fn claim(&self, name: &StreamName, core: CoreId, now: Instant) -> Claim {
        self.note(self.lock().claim(name, core, Holder::Publisher, now))
    }

    /// As [`Registry::claim`], but not from a publisher that sends.
    pub fn claim_unless_busy(
        &self,
        name: &StreamName,
        core: CoreId,
        now: Instant,
    ) -> Option<Claim> {
        let mut entries = self.lock();
        let busy = entries.by_name.get(name).is_some_and(|(entry, heard)| {
            entry.holder == Holder::Publisher && heard.silence(now) < limits::PUBLISHER_SILENCE
        });
        (!busy).then(|| self.note(entries.claim(name, core, Holder::Publisher, now)))
    }

    /// As [`Registry::claim`], for a pull: only where nobody publishes under the name.
    pub fn claim_if_vacant(&self, name: &StreamName, core: CoreId, now: Instant) -> Option<Claim> {
        let mut entries = self.lock();
        let holder = entries.by_name.get(name).map(|(entry, _)| entry.holder);
        let vacant = holder.is_none_or(|holder| holder == Holder::Nobody);
        vacant.then(|| self.note(entries.claim(name, core, Holder::Pull, now)))
    }

    fn note(&self, claim: Claim) -> Claim {
        self.claims.fetch_max(claim.generation, Ordering::Relaxed);
        claim
    }

    /// Rises with each claim of any name.
    pub fn claims(&self) -> u64 {
        self.claims.load(Ordering::Relaxed)
    }

    pub fn is_vacant(&self, name: &StreamName) -> bool {
        self.find(name).is_none_or(|entry| entry.holder == Holder::Nobody)
    }

    /// Notes that the holder is gone, unless the name has been claimed anew since `generation`.
    pub fn vacate(&self, name: &StreamName, generation: u64) {
        let mut entries = self.lock();
        let entry = entries.by_name.get_mut(name).map(|(entry, _)| entry);
        if let Some(entry) = entry.filter(|entry| entry.generation == generation) {
            entry.holder = Holder::Nobody;
        }
    }

    pub fn find(&self, name: &StreamName) -> Option<Entry> {
        self.lock().by_name.get(name).map(|(entry, _)| *entry)
    }

    /// Forgets `name`, unless it has been claimed anew since `generation`.
    pub fn release(&self, name: &StreamName, generation: u64) -> bool {
        let mut entries = self.lock();
        let entry = entries.by_name.get(name).map(|(entry, _)| entry);
        let current = entry.is_some_and(|entry| entry.generation == generation);
        if current {
            entries.by_name.remove(name);
        }
        current
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        // Nothing that runs under the lock can panic half-way, so a poisoned table is still whole.
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Entries {
    fn claim(&mut self, name: &StreamName, owner: CoreId, holder: Holder, now: Instant) -> Claim {
        self.last_generation += 1;
        let generation = self.last_generation;
        let (entry, heard) = (Entry { owner, generation, holder }, Heard::new(now));
        let previous = self.by_name.insert(name.clone(), (entry, heard.clone()));
        let previous = previous.map(|(entry, _)| entry);
        Claim { name: name.clone(), generation, previous, heard }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_claim_can_release() {
        let registry = Registry::default();
        let (name, now) = (StreamName::from_path("live/a").unwrap(), Instant::now());
        let first = registry.claim(&name, CoreId(0), now);
        let second = registry.claim(&name, CoreId(1), now);
        assert_eq!(first.previous, None);
        let (owner, generation) = (CoreId(0), first.generation);
        let previous = Entry { owner, generation, holder: Holder::Publisher };
        assert_eq!(second.previous, Some(previous));
        assert!(!registry.release(&name, first.generation));
        assert_eq!(registry.find(&name).map(|entry| entry.owner), Some(CoreId(1)));
        assert!(registry.release(&name, second.generation));
        assert_eq!(registry.find(&name), None);
    }

    #[test]
    fn a_pull_takes_a_name_from_nobody_and_loses_it_to_a_publisher() {
        let registry = Registry::default();
        let (name, now) = (StreamName::from_path("live/a").unwrap(), Instant::now());
        let pull = registry.claim_if_vacant(&name, CoreId(0), now).unwrap();
        assert_eq!(registry.claim_if_vacant(&name, CoreId(1), now), None);
        let publisher = registry.claim(&name, CoreId(1), now);
        assert_eq!(publisher.previous.map(|entry| entry.holder), Some(Holder::Pull));
        registry.vacate(&name, pull.generation);
        assert_eq!(registry.claim_if_vacant(&name, CoreId(0), now), None);
        registry.vacate(&name, publisher.generation);
        assert!(registry.claim_if_vacant(&name, CoreId(0), now).is_some());
    }

    #[test]
    fn a_publisher_that_sends_keeps_its_name_and_a_silent_one_never_does() {
        let registry = Registry::default();
        let (name, start) = (StreamName::from_path("live/a").unwrap(), Instant::now());
        let claim = |core, now| registry.claim_unless_busy(&name, CoreId(core), now);
        let first = claim(0, start).unwrap();
        let just_before = limits::PUBLISHER_SILENCE - Duration::from_millis(1);
        assert_eq!(claim(1, start + just_before), None, "it has only just come");
        let heard_at = start + Duration::from_secs(60);
        first.heard.note(heard_at);
        assert_eq!(claim(1, heard_at + just_before), None);
        let second = claim(1, heard_at + limits::PUBLISHER_SILENCE).unwrap();
        assert_eq!(second.previous.map(|entry| entry.generation), Some(first.generation));
        // What the old session still sends does not count for the new one.
        let later = heard_at + 2 * limits::PUBLISHER_SILENCE;
        first.heard.note(later);
        let third = claim(0, later).unwrap();
        registry.vacate(&name, third.generation);
        assert!(claim(1, later).is_some(), "nobody has it");
        let registry = Registry::default();
        registry.claim_if_vacant(&name, CoreId(0), start).unwrap();
        assert!(registry.claim_unless_busy(&name, CoreId(0), start).is_some(), "only a pull");
    }
}
