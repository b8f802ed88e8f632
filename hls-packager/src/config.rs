use std::time::Duration;

use weir_protocol::media::Ticks;

/// How a stream is cut and named; constant for the life of its playlists.
#[derive(Clone, Debug)]
pub struct Config {
    /// Segments are cut at the first keyframe after this much media.
    pub segment: Duration,
    /// A segment without a keyframe is cut here, so that TARGETDURATION (this, in whole seconds,
    /// rounded up) can be constant. Twice `segment` where shorter than `segment`.
    pub longest_segment: Duration,
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
            longest_segment: Duration::from_secs(4),
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
    pub target_duration_s: u32,
    pub part: Ticks,
    pub window: usize,
    pub prefix: String,
    pub ts_base: String,
}

impl Shape {
    pub fn new(config: Config) -> Self {
        let segment = config.segment.clamp(SHORTEST_SEGMENT, LONGEST_SEGMENT);
        let longest = if config.longest_segment < segment {
            segment.saturating_mul(2)
        } else {
            config.longest_segment
        };
        let longest = longest.min(LONGEST_SEGMENT);
        let whole = longest.as_secs().saturating_add(u64::from(longest.subsec_nanos() > 0));
        Self {
            segment: segment.into(),
            target_duration_s: u32::try_from(whole).unwrap_or(u32::MAX).max(1),
            part: config.part.clamp(SHORTEST_PART, LONGEST_PART).into(),
            window: config.window.max(3),
            prefix: config.prefix,
            ts_base: config.ts_base,
        }
    }

    pub fn target_duration(&self) -> Ticks {
        Ticks::from_ms(i64::from(self.target_duration_s).saturating_mul(1000))
    }

    /// The longest that still rounds to the target duration (RFC 8216 §4.3.3.1), less 50 ms.
    pub fn longest(&self) -> Ticks {
        self.target_duration() + Ticks::from_ms(450)
    }

    /// PART-TARGET for frames that are `frame` apart: the whole number of them that is nearest to
    /// the configured part, and room for jitter, in whole milliseconds.
    pub fn part_target(&self, frame: Option<Ticks>) -> Ticks {
        let part = self.part.0;
        let frame = frame.map_or(part, |frame| frame.0).max(1);
        let half = frame >> 1;
        let count = part.saturating_add(half).checked_div(frame).unwrap_or(1).max(1);
        let aim = count.saturating_mul(frame).saturating_mul(PART_ROOM_PERCENT) / 100;
        Ticks::from_ms(Ticks(aim.saturating_add(44)).as_ms()).min(self.target_duration())
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
        assert_eq!(shape.target_duration_s, 4);
    }
}
