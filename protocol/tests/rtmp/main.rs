//! RTMP sessions as a peer sees them: two ends on a pipe, scripted clients, foreign code, noise.
//! Tests carry the id of the trouble they guard against, where it has one.

mod commands;
mod controls;
mod noise;
mod pair;
mod peer;
mod publishing;
mod rml;

use std::time::Instant;

/// Where virtual time begins.
#[expect(clippy::disallowed_methods, reason = "an Instant cannot be made from nothing")]
fn start() -> Instant {
    Instant::now()
}

/// SplitMix64: a seeded sequence for tests.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
