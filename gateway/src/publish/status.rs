//! The line that tells how a publish is doing.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

use weir_protocol::flv::Tag;

/// On a terminal one line, kept up to date; elsewhere a line at the start and at the end.
pub struct Status {
    url: String,
    terminal: bool,
    begun: Option<Instant>,
    bytes: u64,
    shown: Option<Shown>,
    /// The last timestamp, and how often 32 bits of milliseconds were full before it.
    last_ms: u32,
    wraps: u64,
}

struct Shown {
    at: Instant,
    bytes: u64,
}

const SHOW_EVERY: Duration = Duration::from_secs(1);

impl Status {
    pub fn new(url: &str) -> Self {
        // What follows the question mark may be a secret.
        let url = url.split('?').next().unwrap_or_default().to_owned();
        let terminal = stderr().is_terminal();
        Self { url, terminal, begun: None, bytes: 0, shown: None, last_ms: 0, wraps: 0 }
    }

    pub fn begun(&mut self) {
        let now = Instant::now();
        self.begun = Some(now);
        self.shown = Some(Shown { at: now, bytes: 0 });
        eprintln!("publishing to {}", self.url);
    }

    /// How long after the begin a tag with this timestamp, the next one, is due.
    pub fn elapsed_until(&self, timestamp_ms: u32) -> Duration {
        let wrapped =
            u64::from(timestamp_ms < self.last_ms && self.last_ms - timestamp_ms > 1 << 31);
        Duration::from_millis(((self.wraps + wrapped) << 32) + u64::from(timestamp_ms))
    }

    pub fn published(&mut self, tag: &Tag) {
        let due = self.elapsed_until(tag.timestamp_ms);
        self.wraps = (due.as_millis() >> 32) as u64;
        self.last_ms = tag.timestamp_ms;
        self.bytes += tag.body.len() as u64;
        let now = Instant::now();
        if let Some(shown) = &self.shown
            && self.terminal
            && now.duration_since(shown.at) >= SHOW_EVERY
        {
            let seconds = now.duration_since(shown.at).as_secs_f64();
            let kbps = (self.bytes - shown.bytes) as f64 * 8.0 / 1000.0 / seconds;
            let line = format!("\r{}  {kbps:.0} kbit/s  {}  ", self.clock(now), size(self.bytes));
            let _ = stderr().write_all(line.as_bytes());
            self.shown = Some(Shown { at: now, bytes: self.bytes });
        }
    }

    pub fn ended(&self) {
        let newline = if self.terminal { "\n" } else { "" };
        eprintln!("{newline}published {} in {}", size(self.bytes), self.clock(Instant::now()));
    }

    fn clock(&self, now: Instant) -> String {
        let seconds = self.begun.map_or(0, |begun| now.duration_since(begun).as_secs());
        format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
