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
        let mut entries = self.lock();
        entries.last_generation += 1;
        let generation = entries.last_generation;
        let previous = entries.by_name.insert(name.clone(), Entry { owner: core, generation });
        Claim { name: name.clone(), generation, previous }
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
        assert_eq!(second.previous, Some(Entry { owner: CoreId(0), generation: first.generation }));
        assert!(!registry.release(&name, first.generation));
        assert_eq!(registry.find(&name).map(|entry| entry.owner), Some(CoreId(1)));
        assert!(registry.release(&name, second.generation));
        assert_eq!(registry.find(&name), None);
    }
}
