//! Which CPU does what, and how much time a process took.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;

/// The gateway's, or nginx's.
pub const SERVER_CPU: usize = 0;
/// That of everything in this process.
pub const LOAD_CPU: usize = 1;

/// `USER_HZ`: what `/proc` counts CPU time in, on every architecture that matters here.
const TICKS_PER_SECOND: f64 = 100.0;

/// Binds all threads of this process to `cpus`, and so those that they start.
///
/// # Panics
/// When the machine has only one CPU.
pub fn bind(cpus: &str) {
    let id = std::process::id().to_string();
    let mut command = Command::new("taskset");
    command.args(["--all-tasks", "--pid", "--cpu-list", cpus, &id]).stdout(Stdio::null());
    let bound = command.status().is_ok_and(|status| status.success());
    assert!(bound, "cannot bind to CPU {cpus}: the bench needs two CPUs and taskset (util-linux)");
}

/// CPU time of a process so far, user and system, in seconds.
///
/// # Panics
/// When it has ended.
#[must_use]
pub fn seconds(process: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a running process");
    // The second field is the program's name, in brackets, with any characters.
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<f64>().expect("a number of ticks");
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// Resident memory of a process, in KiB.
///
/// # Panics
/// When it has ended.
#[must_use]
pub fn resident_kib(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("VmRSS in /proc/PID/status")
}

/// The machine, for the table's first line: a figure means little without it.
#[must_use]
pub fn machine() -> String {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = text("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown CPU", |(_, name)| name);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let kernel = text("/proc/sys/kernel/osrelease");
    let load = text("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    format!("{model}, {cpus} CPUs, Linux {}, load at the start {load}", kernel.trim())
}
