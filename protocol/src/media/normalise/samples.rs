use super::distance;
use crate::media::Ticks;

/// Audio counts in samples while timestamps agree to within this (an AAC frame lasts 21 to 128 ms).
pub(super) const DRIFT: Ticks = Ticks::from_ms(80);

/// Audio time counted in samples, free of the rounding to milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleClock {
    pub(super) rate: u32,
    anchor: Ticks,
    samples_since: i64,
    lead: Lead,
}

/// How far audio is ahead of the newest picture: at first by its timestamps, lately by its samples.
#[derive(Clone, Copy, Debug, Default)]
struct Lead {
    stamped: Average,
    counted: Average,
}

#[derive(Clone, Copy, Debug, Default)]
struct Average {
    frames: i64,
    value: Ticks,
}

/// Timestamps in whole milliseconds are no further than this from where they should be.
const ROUNDING: Ticks = Ticks::from_ms(1);

/// Frames over which a lead is averaged: those of some pictures, so that it matters little where among
/// them an audio frame came.
const LEAD_FRAMES: i64 = 32;

impl SampleClock {
    pub(super) fn new(rate: u32, anchor: Ticks, samples_since: i64) -> Self {
        Self { rate, anchor, samples_since, lead: Lead::default() }
    }

    /// Where the next frame lies by the samples of those before.
    pub(super) fn expected(&self) -> Ticks {
        self.anchor + Ticks::from_rate(self.samples_since, self.rate)
    }

    pub(super) fn is_apart(&self, mapped: Ticks) -> bool {
        distance(self.expected(), mapped) > DRIFT
    }

    /// Takes the next frame, whose timestamp led to `mapped` and which came when `picture` was the newest
    /// one.
    pub(super) fn count(&mut self, samples: i64, mapped: Ticks, picture: Option<Ticks>) {
        if let Some(picture) = picture {
            if self.lead.stamped.frames < LEAD_FRAMES {
                self.lead.stamped.learn(mapped - picture);
            }
            self.lead.counted.learn(self.expected() - picture);
        }
        self.samples_since = self.samples_since.saturating_add(samples);
    }

    /// The count begins anew at `anchor`, where timestamps have led frame by frame.
    pub(super) fn follow(&mut self, anchor: Ticks, samples: i64) {
        let lead = Lead { counted: Average::default(), ..self.lead };
        *self = Self { anchor, samples_since: samples, lead, ..*self };
    }

    /// Whether timestamps go on from frame to frame as samples do, but for their rounding.
    pub(super) fn is_slow(&self, step: Ticks, samples: i64) -> bool {
        distance(step, Ticks::from_rate(samples, self.rate)) <= ROUNDING
    }

    /// Whether the count is to be believed, and not the timestamps that have slowly left it: the pictures
    /// have not left it with them. So it is with an encoder that stamps every frame 23 ms later where it
    /// lasts 23.22 ms.
    pub(super) fn is_right(&self) -> bool {
        distance(self.lead.stamped.value, self.lead.counted.value) < Ticks(DRIFT.0 / 2)
    }
}

impl Average {
    fn learn(&mut self, value: Ticks) {
        self.frames = self.frames.saturating_add(1).min(LEAD_FRAMES);
        let step = (value - self.value).0.checked_div(self.frames).unwrap_or_default();
        self.value += Ticks(step);
    }
}
