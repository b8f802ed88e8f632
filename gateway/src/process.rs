//! What was decided at the start, and how the process does since: for the API and the metrics.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::certificates::Certificates;
use crate::io::Arena;

pub struct Process {
    pub started: Instant,
    pub started_at: SystemTime,
    /// `uring` or `epoll`.
    pub io_backend: &'static str,
    /// Why it is not the one that was asked for or would be best, and the remedy.
    pub io_note: Option<String>,
    /// The CPU of each core's thread.
    pub cpus: Vec<usize>,
    /// Where all media is.
    pub arena: &'static Arena,
    /// What RTMPS shows, if it is spoken.
    pub certificates: Option<Arc<Certificates>>,
}

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Process {
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Bytes of the process in memory.
#[must_use]
pub fn rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[must_use]
pub fn open_fds() -> Option<u64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    entries.checked_sub(1) // the directory itself, open while it is read
}

/// The soft limit of file descriptors.
#[must_use]
pub fn fd_limit() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells() {
        assert!(rss_bytes().unwrap() > 100_000);
        assert!((3..fd_limit().unwrap()).contains(&open_fds().unwrap()));
    }
}
