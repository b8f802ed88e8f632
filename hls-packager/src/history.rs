use std::collections::VecDeque;
use std::sync::Arc;

use weir_protocol::media::Ticks;

use crate::config::Shape;
use crate::limits;
use crate::segment::Segment;
use crate::target::TargetDuration;
use crate::window::{Window, WindowState};

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
    pub fn add(&mut self, segment: Arc<Segment>, shape: &Shape, target: TargetDuration) {
        self.bytes = self.bytes.saturating_add(segment.payload_bytes());
        self.peak_bits = self.peak_bits.max(segment.bits_per_second());
        self.segments.push_back(segment);
        self.retire(shape, target);
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
    fn retire(&mut self, shape: &Shape, target: TargetDuration) {
        let least = Ticks(target.duration().0.saturating_mul(3));
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

fn duration<'a>(segments: impl Iterator<Item = &'a Arc<Segment>>) -> Ticks {
    segments.fold(Ticks::ZERO, |sum, segment| sum + segment.duration())
}
