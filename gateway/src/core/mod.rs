//! A core: one pinned thread with a runtime of its own, its timers and its mailbox.

pub mod admission;
mod claim;
pub mod connection;
mod control;
mod inheritance;
pub mod letter;
pub mod mailbox;
mod report;
pub mod runtime;
pub mod serve;
mod state;

pub use claim::{ClaimError, PREFIX_LEN};
pub use state::Core;

/// A core's number, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoreId(pub usize);
