//! A core: one pinned thread with a runtime of its own, its timers and its mailbox.

pub mod mailbox;
pub mod runtime;
pub mod timer;
