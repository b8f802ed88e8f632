//! What is counted. Each core counts in [`Counters`] of its own; a scrape adds them up.
//!
//! The media path does one load and one store per count: no lock, no shared cache line, no
//! allocation. Labels are enums, so the number of series is fixed when the program is compiled.

mod exporter;
mod labels;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

pub use exporter::Exporter;
pub use labels::{
    Closed, HlsDropped, HlsResource, Label, MediaKind, PlayerProtocol, PullRefused, PullState,
    PushState, Refused, RelayFailure, Skipped, StatusClass, TimeRepair, Transport,
};

/// One core's counts. Only that core's thread writes them; any thread may read.
///
/// 128 bytes are two cache lines: the prefetcher of x86 fetches lines in pairs, so two cores'
/// counts must not share a pair.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Counters {
    /// Open connections.
    pub connections: Family<Gauge, Transport, { Transport::COUNT }>,
    /// Accepted connections.
    pub accepted: Family<Counter, Transport, { Transport::COUNT }>,
    /// Peers that were not let in.
    pub refused: Family<Counter, Refused, { Refused::COUNT }>,
    /// Connections that the gateway ended.
    pub closed: Family<Counter, Closed, { Closed::COUNT }>,
    /// Streams that this core owns, also while they wait for their publisher.
    pub streams: Gauge,
    pub publishers: Gauge,
    pub players: Family<Gauge, PlayerProtocol, { PlayerProtocol::COUNT }>,
    pub bytes_in: Family<Counter, Transport, { Transport::COUNT }>,
    pub bytes_out: Family<Counter, Transport, { Transport::COUNT }>,
    /// Access units that publishers sent and that went on to players.
    pub access_units: Family<Counter, MediaKind, { MediaKind::COUNT }>,
    /// Media messages of publishers that were passed over.
    pub skipped: Family<Counter, Skipped, { Skipped::COUNT }>,
    pub time_repairs: Family<Counter, TimeRepair, { TimeRepair::COUNT }>,
    /// Access units that no HLS part holds.
    pub hls_dropped: Family<Counter, HlsDropped, { HlsDropped::COUNT }>,
    /// HLS segments that begin without a keyframe, for the publisher's come too late.
    pub cuts_without_keyframe: Counter,
    /// Times that a slow player was moved on to the newest keyframe.
    pub player_jumps: Counter,
    /// Streams on their way to other servers.
    pub pushes: Family<Gauge, PushState, { PushState::COUNT }>,
    /// Streams from other servers.
    pub pulls: Family<Gauge, PullState, { PullState::COUNT }>,
    /// Times that a push or pull had to connect again.
    pub relay_failures: Family<Counter, RelayFailure, { RelayFailure::COUNT }>,
    /// Players' demands for absent streams that were not passed on.
    pub pulls_refused: Family<Counter, PullRefused, { PullRefused::COUNT }>,
    pub hls_requests: Family<Counter, HlsResource, { HlsResource::COUNT }>,
    pub http_responses: Family<Counter, StatusClass, { StatusClass::COUNT }>,
}

/// Only rises. One thread writes.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        // Load and store instead of `fetch_add`: there is one writer, so no locked instruction.
        self.0.store(self.get().wrapping_add(count), Ordering::Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Rises and falls. One thread writes.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    pub fn increment(&self) {
        self.set(self.get().saturating_add(1));
    }

    pub fn decrement(&self) {
        self.set(self.get().saturating_sub(1));
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One cell for each value of a label.
#[derive(Debug)]
pub struct Family<Cell, L, const N: usize> {
    cells: [Cell; N],
    label: PhantomData<L>,
}

impl<Cell: Default, L, const N: usize> Default for Family<Cell, L, N> {
    fn default() -> Self {
        Self { cells: std::array::from_fn(|_| Cell::default()), label: PhantomData }
    }
}

impl<Cell, L: Label, const N: usize> Family<Cell, L, N> {
    #[must_use]
    pub fn of(&self, label: L) -> &Cell {
        &self.cells[label.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_do_not_share_cache_lines() {
        assert_eq!(align_of::<Counters>(), 128);
        assert_eq!(size_of::<Counters>() % 128, 0);
    }

    #[test]
    fn cells_of_a_family_are_apart() {
        let counters = Counters::default();
        counters.refused.of(Refused::AddressLimit).add(2);
        counters.connections.of(Transport::Http).increment();
        counters.connections.of(Transport::Rtmp).decrement();
        assert_eq!(counters.refused.of(Refused::AddressLimit).get(), 2);
        assert_eq!(counters.refused.of(Refused::ConnectionLimit).get(), 0);
        assert_eq!(counters.connections.of(Transport::Http).get(), 1);
        assert_eq!(counters.connections.of(Transport::Rtmp).get(), 0);
    }
}
