//! From stamps to the containers' clocks.

use weir_protocol::codec::CodecConfig;
use weir_protocol::media::{TIMESCALE, Ticks};

use crate::limits;

/// Audio frames over which the usual distance between sound and picture stamps is averaged.
const SKEW_FRAMES: u32 = 32;

/// Places audio frames by counting samples, so that the milliseconds of their stamps neither
/// tremble nor drift (ISO 14496-12 §8.8.8 wants durations that add up).
///
/// The stamps take over once they are [`limits::AUDIO_DRIFT`] away from the count, because then
/// frames were lost or doubled. One case is told apart: stamps that leave the count slowly, frame
/// by frame, and the pictures with them, are wrong themselves (an encoder that stamps every frame
/// 23 ms later where it lasts 23.22 ms), and the count goes on.
#[derive(Debug)]
pub(crate) struct AudioClock {
    rate: u32,
    last: Option<Last>,
    /// How far the count may rightly be from the stamps, found when it went on against them.
    accepted: Ticks,
    skew: Skew,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    stamp: Ticks,
    /// Where the frame ends, in samples.
    end: i64,
    duration: Ticks,
}

/// How far audio stamps usually are from the newest picture's.
#[derive(Debug, Default)]
struct Skew {
    sum: i64,
    frames: u32,
}

impl AudioClock {
    pub fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), last: None, accepted: Ticks::ZERO, skew: Skew::default() }
    }

    /// Where a frame of `samples` with this stamp starts, in samples; `None` for a frame that there
    /// is no time for. `picture` is the newest picture's stamp.
    pub fn place(&mut self, stamp: Ticks, samples: u32, picture: Option<Ticks>) -> Option<i64> {
        let position = match self.last {
            None => stamp.to_rate(self.rate),
            Some(last) => self.follow(last, stamp, picture)?,
        };
        self.skew.learn(stamp, picture);
        let end = position.saturating_add(i64::from(samples));
        let duration = Ticks::from_rate(i64::from(samples), self.rate);
        self.last = Some(Last { stamp, end, duration });
        Some(position)
    }

    fn follow(&mut self, last: Last, stamp: Ticks, picture: Option<Ticks>) -> Option<i64> {
        let counted = Ticks::from_rate(last.end, self.rate);
        let bound = Ticks::from(limits::AUDIO_DRIFT);
        if distance(counted - self.accepted, stamp) < bound {
            return Some(last.end);
        }
        let step = stamp - last.stamp;
        let drifted = distance(step, last.duration) <= Ticks(last.duration.0 >> 1);
        let stamps_agree = picture
            .is_some_and(|picture| self.skew.of(stamp, picture) < self.skew.of(counted, picture));
        if drifted && !stamps_agree {
            self.accepted = counted - stamp;
            return Some(last.end);
        }
        let position = stamp.to_rate(self.rate);
        if position < last.end {
            // Too many frames for the time they claim: this one is surplus.
            self.last = Some(Last { stamp, ..last });
            return None;
        }
        self.accepted = Ticks::ZERO;
        Some(position)
    }
}

impl Skew {
    fn learn(&mut self, stamp: Ticks, picture: Option<Ticks>) {
        if let Some(picture) = picture.filter(|_| self.frames < SKEW_FRAMES) {
            self.sum = self.sum.saturating_add((stamp - picture).0);
            self.frames = self.frames.saturating_add(1);
        }
    }

    /// How unusual it is for sound at `stamp` to come with this picture.
    fn of(&self, stamp: Ticks, picture: Ticks) -> Ticks {
        let usual = self.sum.checked_div(i64::from(self.frames)).unwrap_or(0);
        distance(stamp - picture, Ticks(usual))
    }
}

fn distance(a: Ticks, b: Ticks) -> Ticks {
    Ticks((a - b).0.saturating_abs())
}

/// Shifts DTS ahead of PTS for transport streams, where PTS below DTS is not allowed
/// (ISO 13818-1 §2.4.3.7): by a constant, which grows only where a picture needs more than any
/// before it. PTS, and with it the sync to audio, stays.
#[derive(Debug, Default)]
pub(crate) struct DecodeShift {
    shift: Ticks,
    last: Option<Ticks>,
}

impl DecodeShift {
    /// Learns from a picture before it is placed.
    pub fn observe(&mut self, composition_offset: Ticks) {
        let need = Ticks(composition_offset.0.saturating_neg());
        self.shift = self.shift.max(need.min(limits::DECODE_SHIFT.into()));
    }

    /// Another timeline: DTS may go back, the shift stays.
    pub fn restart(&mut self) {
        self.last = None;
    }

    /// The DTS and PTS to write.
    pub fn place(&mut self, dts: Ticks, pts: Ticks) -> (Ticks, Ticks) {
        self.observe(pts - dts);
        let rising = self.last.map_or(Ticks(i64::MIN), |last| last + Ticks(1));
        let shifted = (dts - self.shift).max(rising);
        self.last = Some(shifted);
        (shifted, pts.max(shifted))
    }
}

/// Samples that a frame lasts, on the track's own clock; at most a second. A frame that does not
/// tell lasts 20 ms, as every Opus encoder's do unless told otherwise.
pub(crate) fn frame_samples(codec: &CodecConfig, payload: &[u8]) -> u32 {
    let rate = codec.sample_rate().unwrap_or(TIMESCALE).max(1);
    codec.frame_samples(payload).unwrap_or(rate / 50).clamp(1, rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 44_100;

    /// Places `count` frames stamped `step_ms` apart next to pictures in true time.
    fn run(count: i64, step_us: i64, picture: bool) -> Vec<Option<i64>> {
        let mut clock = AudioClock::new(RATE);
        (0..count)
            .map(|n| {
                let stamp = Ticks::from_ms(n * step_us / 1000);
                let true_time = Ticks::from_rate(n * 1024, RATE);
                clock.place(stamp, 1024, picture.then_some(true_time))
            })
            .collect()
    }

    #[test]
    fn rounded_stamps_count_in_whole_frames() {
        let placed = run(20_000, 23_220, true);
        for (n, position) in placed.iter().enumerate() {
            assert_eq!(*position, Some(n as i64 * 1024));
        }
    }

    #[test]
    fn constant_wrong_stamps_do_not_leave_the_pictures() {
        for (step, picture) in [(23_000, true), (23_000, false), (24_000, true), (24_000, false)] {
            let placed = run(300_000, step, picture);
            assert_eq!(placed.last(), Some(&Some(299_999 * 1024)), "{step} {picture}");
        }
    }

    #[test]
    fn slow_drift_follows_the_stamps_where_pictures_do() {
        let mut clock = AudioClock::new(RATE);
        let mut worst = 0;
        for n in 0..100_000_i64 {
            // A sound card 0.2 % fast: frames come, and are stamped, by the wall clock.
            let stamp = Ticks::from_rate(n * 1024 * 1000, RATE * 1000 / 1000 * 998);
            let stamp = Ticks::from_ms(stamp.as_ms());
            if let Some(at) = clock.place(stamp, 1024, Some(stamp)) {
                worst = worst.max(distance(Ticks::from_rate(at, RATE), stamp).as_ms());
            }
        }
        assert!(worst <= 125, "{worst} ms");
    }

    #[test]
    fn lost_frames_leave_a_gap_and_doubled_ones_are_dropped() {
        let mut clock = AudioClock::new(RATE);
        assert_eq!(clock.place(Ticks(0), 1024, None), Some(0));
        assert_eq!(clock.place(Ticks::from_ms(500), 1024, None), Some(22_050));

        let mut clock = AudioClock::new(RATE);
        let placed = (0..100).filter_map(|n: i64| {
            let stamp = Ticks::from_ms(n / 2 * 23) + Ticks(n % 2);
            clock.place(stamp, 1024, None)
        });
        let placed: Vec<i64> = placed.collect();
        assert!(placed.len() < 60, "{}", placed.len());
        assert!(placed.is_sorted_by(|a, b| b - a >= 1024));
    }

    #[test]
    fn decode_times_stay_below_presentation() {
        let mut shift = DecodeShift::default();
        let mut last = Ticks(i64::MIN);
        // Decoding order I P B B, with the encoder's delay left out of the stamps.
        for (dts, offset) in [(0, 0), (40, 80), (80, -40), (120, -40), (160, 80), (200, -40)] {
            let dts = Ticks::from_ms(1000 + dts);
            let wanted = dts + Ticks::from_ms(offset);
            let (decode, present) = shift.place(dts, wanted);
            assert!(decode <= present && decode > last);
            last = decode;
        }
        assert_eq!(shift.shift, Ticks::from_ms(40));
    }
}
