//! The process's log: lines on stderr, filtered as the `log` key says.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

/// Starts logging. Call it once, before any thread is started.
///
/// # Errors
/// When the filter is not valid, or logging was started before.
pub fn start(filter: &str) -> io::Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(io::Error::other)?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .try_init()
        .map_err(io::Error::other)
}
