//! The gateway in one thread, on a clock that jumps from timer to timer: an hour of its life takes
//! seconds, and the same seed gives the same life again.
//!
//! What runs is the gateway's own: cores, sessions, streams, HTTP, over sockets. Only its listeners
//! are not there: a peer's socket is handed to the core that is to serve it. The peers are made here,
//! and with them the net between, which splits, stalls, falls silent and breaks.

pub mod clockwork;
pub mod crowd;
pub mod disturbers;
pub mod http;
pub mod players;
pub mod publishers;
pub mod rtmp;
pub mod watch;
pub mod wire;
pub mod world;

pub use crowd::{Plan, Story, tell};

/// FNV-1a: enough to tell whether two runs were the same.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
