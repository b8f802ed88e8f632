//! Which streams are being pulled because a player asked for them: one table for all cores.
//!
//! It is touched when a player asks for a name that nobody publishes, and when such a pull ends.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use weir_protocol::stream_name::StreamName;

use crate::limits;

#[derive(Default)]
pub struct Demand(Mutex<Table>);

#[derive(Default)]
struct Table {
    running: HashMap<StreamName, Arc<Attempt>>,
    absent: Absent,
    second: Second,
}

/// A pull as those see it who wait for its first frame.
#[derive(Default)]
pub struct Attempt {
    state: AtomicU8,
    news: Notify,
}

/// What comes of a player's question.
pub enum Asked {
    /// The caller runs the pull, and ends it with [`Demand::end`].
    Begin(Arc<Attempt>),
    /// It runs already, on whatever core.
    Join(Arc<Attempt>),
    /// The other server has just not had it.
    Absent,
    /// Too many pulls are running, or were begun in this second.
    Busy,
}

impl Demand {
    pub fn ask(&self, name: &StreamName, now: Instant) -> Asked {
        let mut table = self.lock();
        if let Some(attempt) = table.running.get(name) {
            return Asked::Join(attempt.clone());
        }
        if table.absent.holds(name, now) {
            return Asked::Absent;
        }
        if table.running.len() >= limits::DEMAND_PULLS || !table.second.allows(now) {
            return Asked::Busy;
        }
        let attempt = Arc::<Attempt>::default();
        table.running.insert(name.clone(), attempt.clone());
        Asked::Begin(attempt)
    }

    /// The pull is over. One that never began is not tried again for a moment.
    pub fn end(&self, name: &StreamName, now: Instant) {
        let mut table = self.lock();
        let attempt = table.running.remove(name);
        if attempt.is_some_and(|attempt| !attempt.settle(FAILED)) {
            return;
        }
        table.absent.insert(name.clone(), now);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing that runs under the lock can panic half-way, so a poisoned table is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PENDING: u8 = 0;
const BEGUN: u8 = 1;
const FAILED: u8 = 2;

impl Attempt {
    /// The stream is there.
    pub fn begun(&self) {
        self.settle(BEGUN);
    }

    pub fn has_begun(&self) -> bool {
        self.state.load(Ordering::Acquire) == BEGUN
    }

    /// `false` where it was settled before.
    fn settle(&self, state: u8) -> bool {
        let settled =
            self.state.compare_exchange(PENDING, state, Ordering::AcqRel, Ordering::Acquire);
        self.news.notify_waiters();
        settled.is_ok()
    }

    /// Waits until the stream is there, or is known not to come; `false` for the latter.
    pub async fn settled(&self) -> bool {
        loop {
            let news = self.news.notified();
            match self.state.load(Ordering::Acquire) {
                PENDING => news.await,
                state => return state == BEGUN,
            }
        }
    }
}

/// Names that the other server did not have, each for [`limits::PULL_ABSENT_SPAN`].
#[derive(Default)]
struct Absent {
    since: HashMap<StreamName, Instant>,
    oldest_first: VecDeque<StreamName>,
}

impl Absent {
    fn holds(&mut self, name: &StreamName, now: Instant) -> bool {
        self.forget(now, limits::PULL_ABSENT_NAMES);
        self.since.contains_key(name)
    }

    fn insert(&mut self, name: StreamName, now: Instant) {
        self.forget(now, limits::PULL_ABSENT_NAMES.saturating_sub(1));
        if self.since.insert(name.clone(), now).is_none() {
            self.oldest_first.push_back(name);
        }
    }

    /// Lets go of what is too old, and of the oldest beyond `most`.
    fn forget(&mut self, now: Instant, most: usize) {
        while let Some(name) = self.oldest_first.front() {
            let old = self.since.get(name).is_none_or(|since| {
                now.saturating_duration_since(*since) >= limits::PULL_ABSENT_SPAN
            });
            if !old && self.oldest_first.len() <= most {
                return;
            }
            self.since.remove(name);
            self.oldest_first.pop_front();
        }
    }
}

/// How many pulls were begun since when.
#[derive(Default)]
struct Second {
    since: Option<Instant>,
    count: u32,
}

impl Second {
    fn allows(&mut self, now: Instant) -> bool {
        let over = |since: Instant| now.saturating_duration_since(since).as_secs() >= 1;
        if self.since.is_none_or(over) {
            *self = Self { since: Some(now), count: 0 };
        }
        self.count += 1;
        self.count <= limits::DEMAND_PULLS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn name(number: usize) -> StreamName {
        StreamName::from_path(&format!("live/{number}")).unwrap()
    }

    #[test]
    fn one_attempt_per_name_and_its_end_is_remembered_for_a_while() {
        let (demand, now) = (Demand::default(), Instant::now());
        assert!(matches!(demand.ask(&name(1), now), Asked::Begin(_)));
        assert!(matches!(demand.ask(&name(1), now), Asked::Join(_)));
        demand.end(&name(1), now);
        assert!(matches!(demand.ask(&name(1), now), Asked::Absent));
        let later = now + limits::PULL_ABSENT_SPAN;
        let Asked::Begin(attempt) = demand.ask(&name(1), later) else { panic!("not again") };
        attempt.begun();
        assert!(attempt.has_begun());
        demand.end(&name(1), later);
        // What was there may come again at once.
        assert!(matches!(demand.ask(&name(1), later), Asked::Begin(_)));
    }

    #[test]
    fn a_flood_of_absent_names_is_bounded_in_rate_number_and_memory() {
        let demand = Demand::default();
        let mut now = Instant::now();
        let mut begun = 0;
        for number in 0..100_000 {
            now += Duration::from_micros(100);
            if let Asked::Begin(_) = demand.ask(&name(number), now) {
                begun += 1;
                demand.end(&name(number), now);
            }
        }
        assert!(begun <= 11 * limits::DEMAND_PULLS_PER_SECOND, "{begun} in ten seconds");
        let mut running = 0;
        for number in 0..10_000 {
            now += Duration::from_secs(1);
            running += usize::from(matches!(demand.ask(&name(number), now), Asked::Begin(_)));
            demand.end(&name(20_000 + number), now);
        }
        assert_eq!(running, limits::DEMAND_PULLS);
        let table = demand.lock();
        assert!(table.absent.since.len() <= limits::PULL_ABSENT_NAMES);
        assert_eq!(table.absent.since.len(), table.absent.oldest_first.len());
    }

    #[test]
    fn who_waits_is_told() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for begins in [true, false] {
            let demand = Demand::default();
            let now = Instant::now();
            let Asked::Begin(attempt) = demand.ask(&name(1), now) else { panic!("not begun") };
            let waiting = attempt.settled();
            runtime.block_on(async {
                tokio::pin!(waiting);
                let early = tokio::select! {
                    biased;
                    settled = &mut waiting => Some(settled),
                    () = std::future::ready(()) => None,
                };
                assert_eq!(early, None);
                if begins {
                    attempt.begun();
                }
                demand.end(&name(1), now);
                assert_eq!(waiting.await, begins);
            });
        }
    }
}
