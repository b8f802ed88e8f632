use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Ticks per second of every stream's timeline: the 90 kHz of MPEG (ISO 13818-1 §2.4.3.7).
pub const TIMESCALE: u32 = 90_000;

const TICKS_PER_MS: i64 = 90;

/// A point on, or a distance along, a stream's timeline, in 1/90 000 s.
///
/// 64 bits hold three million years, so sums saturate rather than wrap or panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub i64);

impl Ticks {
    pub const ZERO: Self = Self(0);

    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms.saturating_mul(TICKS_PER_MS))
    }

    /// Whole milliseconds, rounded to the nearest.
    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0.saturating_add(TICKS_PER_MS / 2).div_euclid(TICKS_PER_MS)
    }

    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / f64::from(TIMESCALE)
    }

    /// The nearest tick to `count` units of a clock with `rate` units per second.
    #[must_use]
    pub fn from_rate(count: i64, rate: u32) -> Self {
        let rate = i128::from(rate.max(1));
        let scaled = i128::from(count).saturating_mul(i128::from(TIMESCALE));
        let nearest = scaled.saturating_add(rate >> 1).checked_div_euclid(rate).unwrap_or(0);
        Self(nearest.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// This many units of a clock with `rate` units per second, rounded to the nearest.
    #[must_use]
    pub fn to_rate(self, rate: u32) -> i64 {
        let scaled = i128::from(self.0).saturating_mul(i128::from(rate));
        let half = i128::from(TIMESCALE >> 1);
        let nearest =
            scaled.saturating_add(half).checked_div_euclid(i128::from(TIMESCALE)).unwrap_or(0);
        nearest.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// As a `Duration`; negative distances become zero.
    #[must_use]
    pub fn to_duration(self) -> Duration {
        let ticks = u64::try_from(self.0).unwrap_or(0);
        Duration::from_nanos(ticks.saturating_mul(100_000) / 9)
    }
}

impl From<Duration> for Ticks {
    fn from(duration: Duration) -> Self {
        let ticks = duration.as_nanos().saturating_mul(9) / 100_000;
        Self(i64::try_from(ticks).unwrap_or(i64::MAX))
    }
}

impl Add for Ticks {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Ticks {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Ticks {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_round_to_the_nearest_and_come_back() {
        for (count, rate, ticks) in [(1024, 48_000, 1920), (1024, 44_100, 2090), (-1, 1000, -90)] {
            assert_eq!(Ticks::from_rate(count, rate), Ticks(ticks));
            assert_eq!(Ticks(ticks).to_rate(rate), count);
        }
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(Ticks(i64::MAX) + Ticks(1), Ticks(i64::MAX));
        assert_eq!(Ticks(i64::MIN) - Ticks(1), Ticks(i64::MIN));
        assert_eq!(Ticks(-5).to_duration(), Duration::ZERO);
        assert_eq!(Ticks::from(Duration::from_millis(200)), Ticks::from_ms(200));
    }
}
