//! The gateway that is measured.

use std::thread;

use super::cpu::{self, LOAD_CPU, SERVER_CPU};
use crate::{Backend, Gateway};

/// For thousands of publishers from one address, each with its GOP and its window, of which the first
/// waits for the last to be there.
const ROOM: [&str; 6] =
    ["--memory-max", "16GiB", "--limits-connections-per-address", "16000", "--timeouts-idle", "5m"];

/// A release gateway alone on [`SERVER_CPU`], with this process on [`LOAD_CPU`].
pub struct Server {
    pub gateway: Gateway,
    pub id: u32,
}

impl Server {
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(backend: Backend) -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from).max(LOAD_CPU + 1);
        // It may only use what its parent may.
        cpu::bind(&format!("0-{}", cpus - 1));
        let core = format!("{SERVER_CPU}-{SERVER_CPU}");
        let mut gateway =
            Gateway::start(backend, &[&["--cores", &core, "--log", "warn"], &ROOM[..]].concat());
        cpu::bind(&LOAD_CPU.to_string());
        let id = gateway.process().id();
        Self { gateway, id }
    }

    /// CPU time that it takes while `work` runs, in seconds, and what `work` gives.
    pub fn cost<T>(&self, work: impl FnOnce() -> T) -> (f64, T) {
        let before = cpu::seconds(self.id);
        let result = work();
        (cpu::seconds(self.id) - before, result)
    }
}
