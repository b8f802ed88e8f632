//! Weir, the live-streaming gateway: cores, sockets, streams, HTTP, admin and metrics.

pub mod cli;
pub mod config;
pub mod limits;
pub mod log;
mod start_error;

pub use start_error::{Listener, StartError};
