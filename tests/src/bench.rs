//! `make bench`: what Weir costs and how fast it is, measured from outside.
//!
//! The gateway has one CPU to itself and all load comes from another one, so that its CPU time is
//! its own. Both I/O backends, and nginx where there is something to compare, take turns within one
//! run. Nothing here passes or fails by a figure; a figure that cannot be taken fails.

mod chunks;
mod cpu;
mod delivery;
mod first_frame;
mod ingest;
mod latency;
mod load;
mod media;
mod nginx;
mod players;
mod publisher;
mod publishers;
mod server;
mod sessions;
mod table;

use crate::Backend;

pub use cpu::{LOAD_CPU, SERVER_CPU, machine};
pub use server::Server;
pub use table::Table;

/// How much of everything there is.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Times that everything is measured; figures are medians over them.
    pub rounds: usize,
    pub joins: u32,
    pub latency_seconds: f64,
    pub ingest_bytes: u64,
    /// For each chunk size.
    pub chunked_bytes: usize,
    pub paced_seconds: f64,
    pub segment_seconds: u32,
    pub player_seconds: f64,
    /// How many at once, one after the other.
    pub publishers: &'static [usize],
    pub sessions: usize,
}

impl Plan {
    /// About six minutes.
    pub const FULL: Self = Self {
        rounds: 3,
        joins: 15,
        latency_seconds: 4.0,
        ingest_bytes: 1 << 30,
        chunked_bytes: 32 << 20,
        paced_seconds: 4.0,
        segment_seconds: 2,
        player_seconds: 4.0,
        publishers: &[1, 100, 1000, 5000],
        sessions: 300,
    };

    /// Well under a minute.
    pub const QUICK: Self = Self {
        rounds: 1,
        joins: 5,
        latency_seconds: 1.5,
        ingest_bytes: 1 << 29,
        chunked_bytes: 8 << 20,
        paced_seconds: 1.5,
        segment_seconds: 1,
        player_seconds: 2.0,
        publishers: &[1, 100],
        sessions: 100,
    };
}

/// One group of figures that need the same kind of load.
type Measure = fn(&mut Server, &Plan, &mut Table);

const MEASURES: [(&str, Measure); 9] = [
    ("first-frame", first_frame::measure),
    ("latency", latency::measure),
    ("sessions", sessions::measure),
    ("ingest", ingest::measure),
    ("chunks", chunks::measure),
    ("connections", publishers::connections),
    ("publishers", publishers::measure),
    ("segments", delivery::measure),
    ("players", players::measure),
];

/// The groups that can be asked for by name.
#[must_use]
pub fn groups() -> Vec<&'static str> {
    MEASURES.map(|(name, _)| name).to_vec()
}

/// Takes all figures of the groups, or of the only one that is wanted.
///
/// # Panics
/// When a figure cannot be taken.
#[must_use]
pub fn run(plan: &Plan, backends: &[Backend], only: Option<&str>) -> Table {
    let mut table = Table::default();
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    for round in 1..=plan.rounds {
        for (name, measure) in MEASURES.iter().filter(|(name, _)| wanted(name)) {
            for backend in backends {
                eprintln!("round {round} of {}: {name}, {}", plan.rounds, backend.name());
                let mut server = Server::start(*backend);
                table.begin(*backend);
                measure(&mut server, plan, &mut table);
            }
        }
    }
    table
}
