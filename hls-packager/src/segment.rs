use std::sync::Arc;
use std::time::Duration;

use weir_protocol::media::{TIMESCALE, Ticks};

use crate::part::Part;
use crate::{Epoch, Format};

/// A whole segment, or the part of one that there is so far: the concatenation of its parts.
#[derive(Debug)]
pub struct Segment {
    msn: u64,
    duration: Ticks,
    parts: Box<[Arc<Part>]>,
    discontinuity: bool,
    discontinuities: u64,
    wall_clock: Option<Duration>,
    independent: bool,
}

impl Segment {
    pub(crate) fn new(open: &OpenSegment) -> Self {
        Self {
            msn: open.msn,
            duration: open.end() - open.start,
            parts: open.parts.iter().cloned().collect(),
            discontinuity: open.discontinuity,
            discontinuities: open.discontinuities,
            wall_clock: open.wall_clock,
            independent: open.independent,
        }
    }

    #[must_use]
    pub fn msn(&self) -> u64 {
        self.msn
    }

    #[must_use]
    pub fn duration(&self) -> Ticks {
        self.duration
    }

    /// Its parts, never listed or not: their bytes one after the other are the segment's.
    #[must_use]
    pub fn parts(&self) -> &[Arc<Part>] {
        &self.parts
    }

    /// `None` for a segment without parts yet.
    #[must_use]
    pub fn epoch(&self) -> Option<&Arc<Epoch>> {
        self.parts.first().map(|part| part.epoch())
    }

    /// A player can start with it.
    #[must_use]
    pub fn is_independent(&self) -> bool {
        self.independent
    }

    /// Length in bytes in `format`, known without making them.
    #[must_use]
    pub fn len(&self, format: Format) -> u64 {
        let len = |part: &Arc<Part>| match format {
            Format::Fmp4 => part.fmp4_len(),
            Format::Ts => part.ts_len(),
        };
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(len(part)))
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.payload_bytes()))
    }

    pub(crate) fn bits_per_second(&self) -> u64 {
        bit_rate(self.len(Format::Fmp4), self.duration)
    }

    pub(crate) fn discontinuity(&self) -> bool {
        self.discontinuity
    }

    pub(crate) fn discontinuities(&self) -> u64 {
        self.discontinuities
    }

    /// Wall-clock time of the start, since the Unix epoch.
    pub(crate) fn wall_clock(&self) -> Option<Duration> {
        self.wall_clock
    }
}

/// A segment that is being filled.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub msn: u64,
    pub start: Ticks,
    pub parts: Vec<Arc<Part>>,
    /// This segment does not follow on the one before it.
    pub discontinuity: bool,
    /// Discontinuities up to and with this segment.
    pub discontinuities: u64,
    /// Wall-clock time of `start`, since the Unix epoch.
    pub wall_clock: Option<Duration>,
    /// A player can start with it: its first part begins with a keyframe, or has no pictures.
    pub independent: bool,
    pub bytes: u64,
    pub units: usize,
}

impl OpenSegment {
    pub fn first(msn: u64) -> Self {
        Self {
            msn,
            start: Ticks::ZERO,
            parts: Vec::new(),
            discontinuity: false,
            discontinuities: 0,
            wall_clock: None,
            independent: true,
            bytes: 0,
            units: 0,
        }
    }

    /// The segment that follows this one at `start`.
    pub fn next(&self, start: Ticks) -> Self {
        let mut next = Self {
            start: self.start,
            discontinuities: self.discontinuities,
            wall_clock: self.wall_clock,
            ..Self::first(self.msn.saturating_add(1))
        };
        next.start_later(start);
        next
    }

    /// Before its first part.
    pub fn start_later(&mut self, start: Ticks) {
        let passed = (start - self.start).to_duration();
        self.wall_clock = self.wall_clock.map(|begun| begun.saturating_add(passed));
        self.start = start;
    }

    pub fn add(&mut self, part: Arc<Part>) {
        if self.parts.is_empty() {
            self.independent = part.begins_independent();
        }
        self.bytes = self.bytes.saturating_add(part.payload_bytes());
        self.units = self.units.saturating_add(part.units());
        self.parts.push(part);
    }

    pub fn end(&self) -> Ticks {
        self.parts.last().map_or(self.start, |part| part.end())
    }
}

pub(crate) fn bit_rate(bytes: u64, duration: Ticks) -> u64 {
    // A sliver of media has no rate worth telling.
    let ticks = duration.max(Ticks::from_ms(200)).0.unsigned_abs();
    let bits = u128::from(bytes).saturating_mul(8).saturating_mul(u128::from(TIMESCALE));
    u64::try_from(bits.checked_div(ticks.into()).unwrap_or(0)).unwrap_or(u64::MAX)
}
