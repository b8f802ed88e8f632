use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use weir_protocol::media::Ticks;

use crate::config::Shape;
use crate::limits;
use crate::part::Part;
use crate::window::{Segment, Window, WindowState};

/// The segments that players may still fetch: those listed, and those that left the playlist not
/// long ago.
#[derive(Debug, Default)]
pub(crate) struct History {
    segments: VecDeque<Arc<Segment>>,
    /// How many of `segments`, from the front, are no longer listed.
    retired: usize,
    bytes: u64,
    peak_bits: u64,
}

impl History {
    pub fn add(&mut self, segment: Arc<Segment>, shape: &Shape) {
        self.bytes = self.bytes.saturating_add(segment.payload_bytes());
        self.peak_bits = self.peak_bits.max(segment.bits_per_second());
        self.segments.push_back(segment);
        self.retire(shape);
        self.forget();
    }

    pub fn window(&self, state: WindowState) -> Window {
        Window::new(self.segments.iter().cloned().collect(), self.retired, self.peak_bits, state)
    }

    fn listed(&self) -> usize {
        self.segments.len().saturating_sub(self.retired)
    }

    /// Takes segments off the playlist that it is full without: `window` of them, and three target
    /// durations (RFC 8216 §6.2.2). Segments cut short by a limit do not stretch it without end.
    fn retire(&mut self, shape: &Shape) {
        let least = Ticks(shape.target_duration().0.saturating_mul(3));
        let most = shape.window.saturating_mul(4);
        while self.listed() > shape.window {
            let left: Ticks = duration(self.segments.iter().skip(self.retired.saturating_add(1)));
            if left < least && self.listed() <= most {
                break;
            }
            self.retired = self.retired.saturating_add(1);
        }
    }

    /// Drops segments that were off the playlist for its duration and their own (§6.2.2), and
    /// more when over the byte budget.
    fn forget(&mut self) {
        let listed = duration(self.segments.iter().skip(self.retired));
        while let Some(oldest) = self.segments.front() {
            let after = duration(self.segments.iter().take(self.retired).skip(1));
            let expired = self.retired > 0 && after > listed;
            let over_budget =
                self.bytes > limits::WINDOW_BYTES && self.segments.len() > limits::FEWEST_LISTED;
            if !expired && !over_budget {
                break;
            }
            self.bytes = self.bytes.saturating_sub(oldest.payload_bytes());
            self.segments.pop_front();
            self.retired = self.retired.saturating_sub(1);
        }
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
    /// Cut at a keyframe.
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
    pub fn next(&self, start: Ticks, independent: bool) -> Self {
        let lasted = (start - self.start).to_duration();
        Self {
            start,
            discontinuities: self.discontinuities,
            wall_clock: self.wall_clock.map(|begun| begun.saturating_add(lasted)),
            independent,
            ..Self::first(self.msn.saturating_add(1))
        }
    }

    pub fn add(&mut self, part: Arc<Part>) {
        self.bytes = self.bytes.saturating_add(part.payload_bytes());
        self.units = self.units.saturating_add(part.units());
        self.parts.push(part);
    }

    pub fn end(&self) -> Ticks {
        self.parts.last().map_or(self.start, |part| part.end())
    }
}

fn duration<'a>(segments: impl Iterator<Item = &'a Arc<Segment>>) -> Ticks {
    segments.fold(Ticks::ZERO, |sum, segment| sum + segment.duration())
}
