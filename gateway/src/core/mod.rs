//! A core: one pinned thread with a runtime of its own, and its mailbox.

pub mod mailbox;
pub mod runtime;
