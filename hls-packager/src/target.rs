use weir_protocol::media::{TIMESCALE, Ticks};

/// TARGETDURATION, in whole seconds: no segment's duration, rounded, is above it, and it is the same
/// for the life of a playlist (RFC 8216 §4.3.3.1, §6.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TargetDuration {
    seconds: u32,
}

/// A segment may be so much longer: it still rounds down, with 50 ms to spare.
const ROUNDING: Ticks = Ticks::from_ms(450);

impl TargetDuration {
    /// The least for segments of `longest`.
    pub fn fitting(longest: Ticks) -> Self {
        let seconds = (longest - ROUNDING).0.max(1).unsigned_abs().div_ceil(TIMESCALE.into());
        Self { seconds: u32::try_from(seconds).unwrap_or(u32::MAX) }
    }

    /// The least that `part_target` is not above.
    pub fn above(part_target: Ticks) -> Self {
        Self::fitting(part_target + ROUNDING)
    }

    pub fn seconds(self) -> u32 {
        self.seconds
    }

    pub fn duration(self) -> Ticks {
        Ticks::from_ms(i64::from(self.seconds).saturating_mul(1000))
    }

    pub fn longest_segment(self) -> Ticks {
        self.duration() + ROUNDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_rounds_to_it() {
        for (longest_ms, seconds) in
            [(1, 1), (1450, 1), (1451, 2), (2000, 2), (4450, 4), (4500, 5), (10_000, 10)]
        {
            let target = TargetDuration::fitting(Ticks::from_ms(longest_ms));
            assert_eq!(target.seconds(), seconds, "{longest_ms} ms");
            assert!(target.longest_segment() >= Ticks::from_ms(longest_ms));
        }
        assert_eq!(TargetDuration::above(Ticks::from_ms(6480)).seconds(), 7);
    }
}
