//! From the 32-bit milliseconds of RTMP to one 64-bit timeline per stream (RTMP 1.0 §4, RFC 1982).
//!
//! Encoders wrap at 2³², 2³¹ or 2²⁴, repeat or go back a little, throw single frames hours off, or
//! start again. Each step is classed and repaired here, once, so that behind this point decoding
//! times rise strictly within every track and tracks stay together.

mod samples;
#[cfg(test)]
mod tests;

use super::{Ticks, TrackId};
use samples::SampleClock;

/// A step back by no more than this is jitter: the frame is put right behind its neighbour.
const JITTER_MS: i64 = 500;
/// A step forward by no more than this is always believed.
const STEP_MS: i64 = 1_000;
/// A track on its own may pause for this long, and tracks of one timeline are no further apart.
const GAP_MS: i64 = 10_000;
/// A longer step forward is believed when it leads to within this distance of the other tracks.
const LEAD_MS: i64 = 3_000;
/// So many frames in a row make a jump a new timeline; fewer are outliers.
const PERSISTING_FRAMES: u8 = 3;
/// Tracks that jump one after the other do so for one reason.
const ONE_RESTART: Ticks = Ticks::from_ms(5_000);
/// The distance of frames where none has been seen yet.
const USUAL_STEP: Ticks = Ticks::from_ms(20);

/// What was repaired, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Timestamps that went round and on. No repair for a player, but worth knowing.
    pub wraps: u64,
    /// Timestamps equal to, or a little before, the one before.
    pub jitter: u64,
    /// Isolated frames put next to their neighbours.
    pub outliers: u64,
    /// Jumps that persisted.
    pub new_timelines: u64,
    /// Tracks whose first frame was far from the others and was placed by its arrival.
    pub aligned: u64,
    /// Times an audio track's samples and timestamps had come apart, and one was made to follow the
    /// other.
    pub resyncs: u64,
}

/// Where a frame lies on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub dts: Ticks,
    /// The encoder started again: tell players once, before this frame. The timeline goes on.
    pub new_timeline: bool,
}

/// What arrived: a timestamp and, for audio, how long the frame lasts by its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub timestamp_ms: u32,
    /// Beyond the timestamp (the nanosecond offset of Enhanced RTMP v2).
    pub fraction: Ticks,
    /// Samples in the frame and samples per second.
    pub samples: Option<(u32, u32)>,
}

/// Puts the frames of one publisher, in the order of their arrival, on one timeline.
///
/// The first frame gets the start; a track that is a little ahead of it can begin before.
#[derive(Debug, Default)]
pub struct Normaliser {
    start: Ticks,
    clocks: Vec<Clock>,
    restarted_at: Option<Ticks>,
    /// How many times the timestamps of a track have begun anew.
    timelines: u64,
    repairs: Repairs,
}

/// How a track's timestamps map to the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    /// The newest timestamp that it held for, as it came and on 64 bits.
    wire: u32,
    wire_ms: i64,
    offset: Ticks,
    /// Which of the timelines it belongs to, by their number.
    timeline: u64,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    mapping: Mapping,
    frames: u8,
}

#[derive(Debug)]
struct Clock {
    track: TrackId,
    mapping: Mapping,
    /// A jump that has not persisted yet.
    candidate: Option<Candidate>,
    last: Ticks,
    step: Ticks,
    /// Where the newest timestamp led.
    mapped: Ticks,
    samples: Option<SampleClock>,
}

impl Normaliser {
    /// A timeline that begins at `start`: zero, or where an earlier publisher's ended.
    #[must_use]
    pub fn starting_at(start: Ticks) -> Self {
        Self { start, ..Self::default() }
    }

    #[must_use]
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// The place of the next frame of `track`.
    pub fn stamp(&mut self, track: TrackId, arrival: Arrival) -> Stamp {
        let Some(index) = self.clocks.iter().position(|clock| clock.track == track) else {
            return self.first(track, arrival);
        };
        let mut clock = self.clocks.swap_remove(index);
        let picture = self.newest_picture();
        let (mapped, new_timeline) = self.place(&mut clock, arrival.timestamp_ms);
        let dts =
            clock.advance(mapped + arrival.fraction, arrival.samples, picture, &mut self.repairs);
        self.clocks.push(clock);
        let new_timeline = new_timeline && self.is_news(dts);
        Stamp { dts, new_timeline }
    }

    fn first(&mut self, track: TrackId, arrival: Arrival) -> Stamp {
        let timestamp = arrival.timestamp_ms;
        let near = Ticks::from_ms(GAP_MS);
        let shared = self.clocks.iter().find_map(|other| other.continued(timestamp, near));
        let mapping = shared.unwrap_or_else(|| {
            let head = self.clocks.iter().map(|clock| clock.last).max();
            self.repairs.aligned = self.repairs.aligned.saturating_add(head.is_some().into());
            Mapping {
                timeline: self.timelines,
                ..Mapping::placing(timestamp, timestamp.into(), head.unwrap_or(self.start))
            }
        });
        let dts = mapping.place() + arrival.fraction;
        let (candidate, step) = (None, USUAL_STEP);
        let samples =
            arrival.samples.map(|(count, rate)| SampleClock::new(rate, dts, count.into()));
        self.clocks.push(Clock {
            track,
            mapping,
            candidate,
            last: dts,
            step,
            mapped: dts,
            samples,
        });
        Stamp { dts, new_timeline: false }
    }

    /// The time of the newest frame that is not counted in samples, of a track that has not paused.
    fn newest_picture(&self) -> Option<Ticks> {
        let head = self.clocks.iter().map(|clock| clock.last).max()?;
        let pictures = self.clocks.iter().filter(|clock| clock.samples.is_none());
        let newest = pictures.map(|clock| clock.last).max()?;
        (head - newest < Ticks::from_ms(STEP_MS)).then_some(newest)
    }

    /// Where the timestamp leads, and whether with it a jump has become a new timeline.
    fn place(&mut self, clock: &mut Clock, timestamp: u32) -> (Ticks, bool) {
        let step = Step::between(clock.mapping.wire, timestamp);
        let mapping = clock.mapping.after(step.ms, timestamp);
        if self.is_plausible(clock, step.ms, mapping.place()) {
            clock.mapping = mapping;
            let repairs = &mut self.repairs;
            repairs.wraps = repairs.wraps.saturating_add(step.wrapped.into());
            repairs.jitter = repairs.jitter.saturating_add((step.ms <= 0).into());
            self.drop_candidate(clock);
            return (mapping.place(), false);
        }
        if let Some(mapping) = self.follow(clock, timestamp) {
            return (mapping.place(), false);
        }
        self.consider(clock, timestamp, mapping)
    }

    /// Goes with another track that has gone over to a new timeline; or back to one that this track
    /// alone was ahead of.
    fn follow(&mut self, clock: &mut Clock, timestamp: u32) -> Option<Mapping> {
        let before = clock.mapping.timeline;
        let mapping = self.clocks.iter().find_map(|other| {
            let near = if other.mapping.timeline > before { LEAD_MS } else { JITTER_MS };
            other.continued(timestamp, Ticks::from_ms(near))
        })?;
        if mapping.timeline > before {
            // What looked like outliers was the new timeline.
            clock.candidate = None;
        }
        self.drop_candidate(clock);
        clock.mapping = mapping;
        Some(mapping)
    }

    fn is_plausible(&self, clock: &Clock, step_ms: i64, place: Ticks) -> bool {
        if step_ms <= STEP_MS {
            return step_ms >= -JITTER_MS;
        }
        let silent_before = clock.last - Ticks::from_ms(GAP_MS);
        let active = self.clocks.iter().filter(|other| other.last >= silent_before);
        match active.map(|other| other.last).max() {
            Some(head) => distance(head, place) <= Ticks::from_ms(LEAD_MS),
            None => step_ms <= GAP_MS,
        }
    }

    /// Takes a jump as an outlier until enough frames confirm it.
    fn consider(&mut self, clock: &mut Clock, timestamp: u32, own: Mapping) -> (Ticks, bool) {
        let confirmed = clock.candidate.and_then(|candidate| {
            let step = Step::between(candidate.mapping.wire, timestamp);
            (-JITTER_MS..=STEP_MS).contains(&step.ms).then(|| Candidate {
                mapping: candidate.mapping.after(step.ms, timestamp),
                frames: candidate.frames.saturating_add(1),
            })
        });
        let candidate = match confirmed {
            Some(candidate) => candidate,
            None => {
                self.drop_candidate(clock);
                let near = Ticks::from_ms(LEAD_MS);
                let shared =
                    self.clocks.iter().find_map(|other| other.candidate_continued(timestamp, near));
                let place = clock.last + clock.step;
                let alone = || Mapping::placing(timestamp, own.wire_ms, place);
                Candidate { mapping: shared.unwrap_or_else(alone), frames: 1 }
            }
        };
        if candidate.frames < PERSISTING_FRAMES {
            clock.candidate = Some(candidate);
            return (candidate.mapping.place(), false);
        }
        clock.candidate = None;
        let pause = own.place() - clock.last;
        if (Ticks::ZERO..=Ticks::from_ms(GAP_MS)).contains(&pause) {
            // All tracks paused together: nothing is new, the gap is real.
            clock.mapping = own;
            return (own.place(), false);
        }
        self.timelines = self.timelines.saturating_add(1);
        clock.mapping = Mapping { timeline: self.timelines, ..candidate.mapping };
        (candidate.mapping.place(), true)
    }

    fn drop_candidate(&mut self, clock: &mut Clock) {
        if let Some(candidate) = clock.candidate.take() {
            self.repairs.outliers = self.repairs.outliers.saturating_add(candidate.frames.into());
        }
    }

    /// Whether this restart is not the one that another track has told of.
    fn is_news(&mut self, dts: Ticks) -> bool {
        let told = self.restarted_at.is_some_and(|at| distance(at, dts) < ONE_RESTART);
        if !told {
            self.restarted_at = Some(dts);
            self.repairs.new_timelines = self.repairs.new_timelines.saturating_add(1);
        }
        !told
    }
}

impl Mapping {
    fn placing(wire: u32, wire_ms: i64, place: Ticks) -> Self {
        Self { wire, wire_ms, offset: place - Ticks::from_ms(wire_ms), timeline: 0 }
    }

    fn after(self, step_ms: i64, wire: u32) -> Self {
        Self { wire, wire_ms: self.wire_ms.saturating_add(step_ms), ..self }
    }

    fn place(self) -> Ticks {
        Ticks::from_ms(self.wire_ms) + self.offset
    }
}

impl Clock {
    /// This track's mapping continued to `timestamp`, if that leads close to where the track is.
    fn continued(&self, timestamp: u32, near: Ticks) -> Option<Mapping> {
        self.close(self.mapping, timestamp, near)
    }

    fn candidate_continued(&self, timestamp: u32, near: Ticks) -> Option<Mapping> {
        self.close(self.candidate?.mapping, timestamp, near)
    }

    fn close(&self, mapping: Mapping, timestamp: u32, near: Ticks) -> Option<Mapping> {
        let step = Step::between(mapping.wire, timestamp);
        let mapping = mapping.after(step.ms, timestamp);
        (distance(mapping.place(), self.last) <= near).then_some(mapping)
    }

    /// Goes on to `mapped` or, for audio, to where its samples lead; always at least one tick.
    fn advance(
        &mut self,
        mapped: Ticks,
        samples: Option<(u32, u32)>,
        picture: Option<Ticks>,
        repairs: &mut Repairs,
    ) -> Ticks {
        let place = match samples {
            Some((count, rate)) => self.count_samples(mapped, count, rate, picture, repairs),
            None => mapped,
        };
        let dts = place.max(self.last + Ticks(1));
        let step = dts - self.last;
        if step <= Ticks::from_ms(STEP_MS) {
            self.step = step;
        }
        self.last = dts;
        dts
    }

    fn count_samples(
        &mut self,
        mapped: Ticks,
        count: u32,
        rate: u32,
        picture: Option<Ticks>,
        repairs: &mut Repairs,
    ) -> Ticks {
        let count = i64::from(count);
        let step = mapped - std::mem::replace(&mut self.mapped, mapped);
        // Timestamps behind the samples are caught up with in short frames, not all at once.
        let soonest = self.last + Ticks::from_rate(count / 2, rate);
        if let Some(clock) = self.samples.as_mut().filter(|clock| clock.rate == rate) {
            let expected = clock.expected();
            let apart = clock.is_apart(mapped);
            if apart {
                repairs.resyncs = repairs.resyncs.saturating_add(1);
            }
            let slowly = clock.is_slow(step, count);
            if !apart || slowly && clock.is_right() {
                clock.count(count, mapped, picture);
                if apart {
                    // The timestamps are wrong by themselves, and go on from here.
                    self.mapping.offset += expected - mapped;
                    self.mapped = expected;
                }
                return expected;
            }
            if slowly {
                let anchor = mapped.max(soonest);
                clock.follow(anchor, count);
                return anchor;
            }
        }
        let anchor = mapped.max(soonest);
        self.samples = Some(SampleClock::new(rate, anchor, count));
        anchor
    }
}

/// From one timestamp of a track to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    ms: i64,
    wrapped: bool,
}

impl Step {
    /// The shortest way in serial arithmetic, or the way over a border at which encoders with a
    /// signed clock (2³¹) or without extended timestamps (2²⁴) begin again at zero.
    fn between(from: u32, to: u32) -> Self {
        let ms = i64::from(to.wrapping_sub(from) as i32);
        if (-JITTER_MS..=GAP_MS).contains(&ms) {
            return Self { ms, wrapped: ms > 0 && to < from };
        }
        for border in [1_i64 << 31, 1 << 24] {
            let over = border.saturating_sub(from.into()).saturating_add(to.into());
            if i64::from(from) < border && (1..=GAP_MS).contains(&over) {
                return Self { ms: over, wrapped: true };
            }
        }
        Self { ms, wrapped: false }
    }
}

fn distance(a: Ticks, b: Ticks) -> Ticks {
    (a - b).max(b - a)
}
