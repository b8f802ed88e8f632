//! From stamps to the containers' clocks.

use weir_protocol::codec::CodecConfig;
use weir_protocol::media::{TIMESCALE, Ticks};

use crate::limits;

/// Places audio frames by counting samples, so that neither the rounding of their stamps trembles
/// nor durations fail to add up (ISO 14496-12 §8.8.8).
///
/// The stamps, which [`weir_protocol::media::normalise::Normaliser`] has judged, take over once they are
/// [`limits::AUDIO_DRIFT`] away from the count: then frames were lost or doubled.
#[derive(Debug)]
pub(crate) struct AudioClock {
    rate: u32,
    /// Where the last frame ends, in samples.
    end: Option<i64>,
}

impl AudioClock {
    pub fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), end: None }
    }

    /// Where a frame of `samples` with this stamp starts, in samples; `None` for a frame that there
    /// is no time for.
    pub fn place(&mut self, stamp: Ticks, samples: u32) -> Option<i64> {
        let stamped = stamp.to_rate(self.rate);
        let drift = Ticks::from(limits::AUDIO_DRIFT);
        let counted =
            self.end.filter(|end| distance(Ticks::from_rate(*end, self.rate), stamp) < drift);
        let position = counted.unwrap_or(stamped);
        if self.end.is_some_and(|end| position < end) {
            return None;
        }
        self.end = Some(position.saturating_add(i64::from(samples)));
        Some(position)
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

/// Not on the timeline of what was at `last`.
pub(crate) fn is_far(at: Ticks, last: Ticks) -> bool {
    let step = at - last;
    step > Ticks::from(limits::PAUSE) || step < Ticks::ZERO - limits::STEP_BACK.into()
}

/// Within 25 000 years, so that no sum or clock rate is near the end of 64 bits.
pub(crate) fn on_timeline(stamp: Ticks) -> Ticks {
    const END: i64 = 1 << 56;
    Ticks(stamp.0.clamp(-END, END)) + Ticks::from(limits::ORIGIN)
}

#[cfg(test)]
mod tests {
    use weir_protocol::media::TrackId;
    use weir_protocol::media::normalise::{Arrival, Normaliser};

    use super::*;

    const RATE: u32 = 44_100;

    #[test]
    fn rounded_stamps_count_in_whole_frames() {
        let mut clock = AudioClock::new(RATE);
        for n in 0..20_000 {
            let stamp = Ticks::from_ms(Ticks::from_rate(n * 1024, RATE).as_ms());
            assert_eq!(clock.place(stamp, 1024), Some(n * 1024));
        }
    }

    /// A sound card 0.2 % fast or slow: frames come, and are stamped, by the clock of the pictures.
    #[test]
    fn slow_drift_stays_with_the_pictures() {
        for per_mille in [998, 1002] {
            let (mut normaliser, mut clock) = (Normaliser::default(), AudioClock::new(RATE));
            let (mut next_picture, mut worst) = (0, 0);
            for n in 0..100_000_i64 {
                let time = n * 1024 * per_mille / i64::from(RATE);
                while next_picture <= time {
                    normaliser.stamp(TrackId(0), arrival(next_picture, None));
                    next_picture += 40;
                }
                let sound = arrival(time, Some((1024, RATE)));
                let stamp = normaliser.stamp(TrackId(1), sound).dts;
                if let Some(at) = clock.place(stamp, 1024) {
                    worst = worst.max((Ticks::from_rate(at, RATE).as_ms() - time).abs());
                }
            }
            assert!(worst <= 125, "{per_mille}: {worst} ms");
        }
    }

    fn arrival(timestamp_ms: i64, samples: Option<(u32, u32)>) -> Arrival {
        let timestamp_ms = u32::try_from(timestamp_ms).unwrap();
        Arrival { timestamp_ms, fraction: Ticks::ZERO, samples }
    }

    #[test]
    fn lost_frames_leave_a_gap_and_doubled_ones_are_dropped() {
        let mut clock = AudioClock::new(RATE);
        assert_eq!(clock.place(Ticks(0), 1024), Some(0));
        assert_eq!(clock.place(Ticks::from_ms(500), 1024), Some(22_050));

        let mut clock = AudioClock::new(RATE);
        let placed = (0..100).filter_map(|n: i64| {
            let stamp = Ticks::from_ms(n / 2 * 23) + Ticks(n % 2);
            clock.place(stamp, 1024)
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
