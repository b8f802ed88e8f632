//! Weir, the live-streaming gateway: cores, sockets, streams, HTTP, admin and metrics.

pub mod admin;
pub mod cli;
pub mod config;
pub mod core;
pub mod io;
pub mod limits;
pub mod log;
pub mod metrics;
pub mod process;
mod start_error;

pub use start_error::{Listener, StartError};
