use std::collections::HashMap;
use std::sync::Mutex;

use weir_protocol::stream_name::StreamName;

use crate::core::CoreId;

/// Which core owns which stream: the one table that all cores share.
///
/// It is touched when a publish begins or ends and when a core meets a name that it doesn't hold
/// yet, never per frame or per request of a known stream, so a plain mutex is the simplest thing
/// that is right. Looking up an absent name leaves nothing behind.
#[derive(Default)]
pub struct Registry {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    by_name: HashMap<StreamName, Entry>,
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
}

impl Registry {
    /// Makes `core` the owner of `name` at once, whoever owned it before.
    pub fn claim(&self, name: &StreamName, core: CoreId) -> Claim {
        self.lock().claim(name, core, Holder::Publisher)
    }

    /// As [`Registry::claim`], for a pull: only where nobody publishes under the name.
    pub fn claim_if_vacant(&self, name: &StreamName, core: CoreId) -> Option<Claim> {
        let mut entries = self.lock();
        let vacant = entries.by_name.get(name).is_none_or(|entry| entry.holder == Holder::Nobody);
        vacant.then(|| entries.claim(name, core, Holder::Pull))
    }

    /// Notes that the holder is gone, unless the name has been claimed anew since `generation`.
    pub fn vacate(&self, name: &StreamName, generation: u64) {
        let mut entries = self.lock();
        let entry = entries.by_name.get_mut(name).filter(|entry| entry.generation == generation);
        if let Some(entry) = entry {
            entry.holder = Holder::Nobody;
        }
    }

    pub fn find(&self, name: &StreamName) -> Option<Entry> {
        self.lock().by_name.get(name).copied()
    }

    /// Forgets `name`, unless it has been claimed anew since `generation`.
    pub fn release(&self, name: &StreamName, generation: u64) -> bool {
        let mut entries = self.lock();
        let current = entries.by_name.get(name).is_some_and(|entry| entry.generation == generation);
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
    fn claim(&mut self, name: &StreamName, owner: CoreId, holder: Holder) -> Claim {
        self.last_generation += 1;
        let generation = self.last_generation;
        let previous = self.by_name.insert(name.clone(), Entry { owner, generation, holder });
        Claim { name: name.clone(), generation, previous }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_claim_can_release() {
        let registry = Registry::default();
        let name = StreamName::from_path("live/a").unwrap();
        let first = registry.claim(&name, CoreId(0));
        let second = registry.claim(&name, CoreId(1));
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
        let name = StreamName::from_path("live/a").unwrap();
        let pull = registry.claim_if_vacant(&name, CoreId(0)).unwrap();
        assert_eq!(registry.claim_if_vacant(&name, CoreId(1)), None);
        let publisher = registry.claim(&name, CoreId(1));
        assert_eq!(publisher.previous.map(|entry| entry.holder), Some(Holder::Pull));
        registry.vacate(&name, pull.generation);
        assert_eq!(registry.claim_if_vacant(&name, CoreId(0)), None);
        registry.vacate(&name, publisher.generation);
        assert!(registry.claim_if_vacant(&name, CoreId(0)).is_some());
    }
}
