use std::time::Duration;

use weir_protocol::media::Ticks;

use crate::target::TargetDuration;

/// How a stream is cut and named; constant for the life of its playlists.
#[derive(Clone, Debug)]
pub struct Config {
    /// Segments are cut at the first keyframe after this much media.
    pub segment: Duration,
    /// TARGETDURATION is chosen by the first keyframes, but not above this: segments whose next
    /// keyframe comes later are cut without one. Never below `segment`.
    pub segment_max: Duration,
    /// What parts aim at. PART-TARGET is a whole number of frames near it, with room for jitter.
    pub part: Duration,
    /// Segments that are listed; more where they would not fill three target durations
    /// (RFC 8216 §6.2.2).
    pub window: usize,
    /// Random, never used before for this stream: makes every media URI unique for ever.
    pub prefix: String,
    /// Goes before `prefix` in the transport-stream playlist, which lives one level up from the
    /// fMP4 one: `name/`.
    pub ts_base: String,
    /// Media sequence number of the first segment: not below any number used before at this
    /// address, for example one made from the wall clock.
    pub first_msn: u64,
    /// Discontinuities before the first segment: more than a playlist at this address has told of,
    /// because players time what follows a discontinuity by its number.
    pub first_discontinuity: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            segment: Duration::from_secs(2),
            segment_max: Duration::from_secs(10),
            part: Duration::from_millis(200),
            window: 7,
            prefix: String::from("0"),
            ts_base: String::new(),
            first_msn: 0,
            first_discontinuity: 0,
        }
    }
}

const SHORTEST_SEGMENT: Duration = Duration::from_millis(500);
const LONGEST_SEGMENT: Duration = Duration::from_secs(60);
const SHORTEST_PART: Duration = Duration::from_millis(50);
const LONGEST_PART: Duration = SHORTEST_SEGMENT;

/// Room above a whole number of frames for jitter of the stamps. The same room is below, down to
/// the 85 % that a part must reach (rfc8216bis §4.4.4.9).
const PART_ROOM_PERCENT: i64 = 108;

/// A configuration made usable: the durations that everything else counts in.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub segment: Ticks,
    pub segment_max: Ticks,
    pub part: Ticks,
    pub window: usize,
    pub prefix: String,
    pub ts_base: String,
}

impl Shape {
    pub fn new(config: Config) -> Self {
        let segment = config.segment.clamp(SHORTEST_SEGMENT, LONGEST_SEGMENT);
        Self {
            segment: segment.into(),
            segment_max: config.segment_max.clamp(segment, LONGEST_SEGMENT).into(),
            part: config.part.clamp(SHORTEST_PART, LONGEST_PART).into(),
            window: config.window.max(3),
            prefix: config.prefix,
            ts_base: config.ts_base,
        }
    }

    /// What TARGETDURATION can be at most.
    pub fn greatest_target(&self) -> TargetDuration {
        TargetDuration::fitting(self.segment_max)
    }

    /// TARGETDURATION when the first segment, of this `duration`, is whole: the first keyframe past
    /// `segment` comes no later than `longest_gop` behind it. Where no second keyframe came yet,
    /// they may be as far apart as the segment is long.
    pub fn target(
        &self,
        longest_gop: Option<Ticks>,
        duration: Ticks,
        part: Ticks,
    ) -> TargetDuration {
        let gop = longest_gop.unwrap_or(self.segment.max(duration));
        let longest = (self.segment + gop).max(duration);
        TargetDuration::fitting(longest)
            .max(TargetDuration::above(part))
            .min(self.greatest_target())
    }

    /// PART-TARGET for frames that are `frame` apart: the whole number of them that is nearest to
    /// the configured part, and room for jitter, in whole milliseconds; never above TARGETDURATION.
    pub fn part_target(&self, frame: Option<Ticks>) -> Ticks {
        let part = self.part.0;
        let frame = frame.map_or(part, |frame| frame.0).max(1);
        let half = frame >> 1;
        let count = part.saturating_add(half).checked_div(frame).unwrap_or(1).max(1);
        let aim = count.saturating_mul(frame).saturating_mul(PART_ROOM_PERCENT) / 100;
        let most = self.segment_max.min(self.greatest_target().duration());
        Ticks::from_ms(Ticks(aim.saturating_add(44)).as_ms()).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_target_fits_the_frame_rate() {
        let shape = Shape::new(Config::default());
        for (fps, ms) in
            [(25, 216), (30, 216), (60, 216), (24, 225), (15, 216), (10, 216), (1, 1080)]
        {
            assert_eq!(shape.part_target(Some(Ticks(90_000 / fps))).as_ms(), ms, "{fps} fps");
        }
        assert_eq!(shape.part_target(None).as_ms(), 216);
        let short = Duration::from_millis(2200);
        let shape = Shape::new(Config { segment: short, segment_max: short, ..Config::default() });
        assert_eq!(shape.part_target(Some(Ticks::from_ms(6000))).as_ms(), 2000);
    }

    #[test]
    fn the_target_has_room_for_the_longest_gop() {
        let shape = Shape::new(Config::default());
        let part = shape.part_target(None);
        for (gop_ms, first_ms, seconds) in [
            (Some(2000), 2000, 4),
            (Some(1000), 2000, 3),
            (Some(21), 2000, 2),
            (Some(3300), 3300, 5),
            (Some(10_000), 10_000, 10),
            (None, 800, 4),
            (None, 10_400, 10),
        ] {
            let target = shape.target(gop_ms.map(Ticks::from_ms), Ticks::from_ms(first_ms), part);
            assert_eq!(target.seconds(), seconds, "{gop_ms:?} {first_ms}");
        }
        let part = shape.part_target(Some(Ticks::from_ms(6000)));
        assert_eq!(shape.target(None, Ticks::from_ms(3000), part).seconds(), 7);
    }
}
