//! Weir, the live-streaming gateway: cores, sockets, streams, HTTP, admin and metrics.

pub mod admin;
pub mod auth;
pub mod certificates;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod core;
pub mod http;
pub mod io;
pub mod limits;
pub mod log;
pub mod metrics;
mod pem_file;
pub mod process;
pub mod publish;
pub mod relay;
pub mod rtmp;
pub mod server;
mod start_error;
pub mod stream;
pub mod trust;

pub use start_error::{Listener, StartError};
