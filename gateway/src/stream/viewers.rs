//! Counts HLS players, who come and go by plain requests.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::limits;

/// HLS players seen lately, told apart by address and user agent. No cookie, so nothing that a
/// cache in front would trip over; players behind one address with one user agent count as one.
#[derive(Default)]
pub struct Viewers {
    last_seen: HashMap<u64, Seen>,
    hasher: RandomState,
}

struct Seen {
    at: Instant,
    low_latency: bool,
}

impl Viewers {
    pub fn saw(&mut self, now: Instant, address: IpAddr, user_agent: &[u8], low_latency: bool) {
        let key = self.hasher.hash_one((address, user_agent));
        if let Some(seen) = self.last_seen.get_mut(&key) {
            seen.at = now;
            seen.low_latency |= low_latency;
            return;
        }
        if self.last_seen.len() < limits::HLS_VIEWERS_COUNTED {
            self.last_seen.insert(key, Seen { at: now, low_latency });
        }
    }

    /// Players seen within `span`: (plain HLS, LL-HLS). Forgets the others.
    pub fn count(&mut self, now: Instant, span: impl FnOnce() -> Duration) -> (usize, usize) {
        if self.last_seen.is_empty() {
            return (0, 0);
        }
        let span = span();
        self.last_seen.retain(|_, seen| now.duration_since(seen.at) <= span);
        let low_latency = self.last_seen.values().filter(|seen| seen.low_latency).count();
        (self.last_seen.len() - low_latency, low_latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_told_apart_and_forgotten() {
        let (mut viewers, start) = (Viewers::default(), Instant::now());
        let address = |last| IpAddr::from([127, 0, 0, last]);
        viewers.saw(start, address(1), b"hls.js", true);
        viewers.saw(start, address(1), b"hls.js", false);
        viewers.saw(start, address(1), b"mpv", false);
        let later = start + Duration::from_secs(5);
        viewers.saw(later, address(2), b"mpv", false);
        let span = || Duration::from_secs(10);
        assert_eq!(viewers.count(later, span), (2, 1));
        assert_eq!(viewers.count(later + Duration::from_secs(6), span), (1, 0));
    }
}
