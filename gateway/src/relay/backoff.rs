//! How long a relay waits before it connects again.

use std::time::Duration;

use crate::limits;

/// Doubles with each failure in a row, up to a bound. Half of each wait is random, so that relays
/// which broke together do not come back together.
pub struct Backoff {
    most: Duration,
    ceiling: Duration,
    random: u64,
}

impl Backoff {
    pub fn new(seed: u64, most: Duration) -> Self {
        // A state of zero would stay zero.
        Self { most, ceiling: limits::RELAY_RETRY_FIRST.min(most), random: seed | 1 }
    }

    /// The wait before the next attempt.
    pub fn next(&mut self) -> Duration {
        let half = self.ceiling / 2;
        self.ceiling = (self.ceiling * 2).min(self.most);
        half + half.mul_f64(self.fraction())
    }

    /// The connection has lasted: the next failure is a new one.
    pub fn reset(&mut self) {
        self.ceiling = limits::RELAY_RETRY_FIRST.min(self.most);
    }

    /// Trying again soon would not help.
    pub fn be_patient(&mut self) {
        self.ceiling = self.most;
    }

    /// In 0..1 (xorshift64).
    fn fraction(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(60);

    #[test]
    fn waits_double_up_to_the_bound_and_begin_anew() {
        for seed in 0..100 {
            let mut backoff = Backoff::new(seed, MOST);
            let mut ceiling = limits::RELAY_RETRY_FIRST;
            for _ in 0..10 {
                let wait = backoff.next();
                assert!(wait >= ceiling / 2 && wait <= ceiling, "{wait:?} of {ceiling:?}");
                ceiling = (ceiling * 2).min(MOST);
            }
            assert_eq!(ceiling, MOST);
            backoff.reset();
            assert!(backoff.next() <= limits::RELAY_RETRY_FIRST);
            backoff.be_patient();
            assert!(backoff.next() >= MOST / 2);
        }
    }

    #[test]
    fn relays_that_broke_together_come_back_apart() {
        let waits = (0..100).map(|seed| Backoff::new(seed * 2654435761, MOST).next());
        let (early, late): (Vec<_>, Vec<_>) =
            waits.partition(|wait| *wait < limits::RELAY_RETRY_FIRST.mul_f64(0.75));
        assert!(early.len() > 20 && late.len() > 20, "{} and {}", early.len(), late.len());
    }
}
