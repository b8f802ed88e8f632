//! How values are written in playlists.

use std::fmt;
use std::time::Duration;

use weir_protocol::media::{TIMESCALE, Ticks};

/// Seconds as a decimal number, to the nearest 10 µs; 90 kHz ticks are 11 µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub Ticks);

const PER_SECOND: u128 = 100_000;

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ticks = u128::from(u64::try_from(self.0.0).unwrap_or(0));
        let timescale = u128::from(TIMESCALE);
        let scaled = ticks.saturating_mul(PER_SECOND).saturating_add(timescale >> 1);
        let parts = scaled.checked_div(timescale).unwrap_or(0);
        write!(f, "{}.{:05}", parts / PER_SECOND, parts % PER_SECOND)
    }
}

/// A wall-clock time in ISO 8601, UTC, to the millisecond (RFC 8216 §4.3.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date(pub Duration);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let ms = self.0.subsec_millis();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// Year, month and day of the `days`th day after 1970-01-01 in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    let mut left = days;
    let mut year = 1970_u64;
    // Whole 400-year cycles have one length; what is left takes at most 400 steps.
    year = year.saturating_add((left / 146_097).saturating_mul(400));
    left %= 146_097;
    loop {
        let len = if is_leap(year) { 366 } else { 365 };
        let Some(rest) = left.checked_sub(len) else { break };
        left = rest;
        year = year.saturating_add(1);
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1_u64;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        let Some(rest) = left.checked_sub(len) else { break };
        left = rest;
        month = month.saturating_add(1);
    }
    (year, month, left.saturating_add(1))
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest() {
        for (ticks, text) in [
            (0, "0.00000"),
            (180_000, "2.00000"),
            (1, "0.00001"),
            (89_999, "0.99999"),
            (3003, "0.03337"),
            (-1, "0.00000"),
        ] {
            assert_eq!(Seconds(Ticks(ticks)).to_string(), text);
        }
    }

    #[test]
    fn dates_are_civil() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (32_503_680_000, "3000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(Date(Duration::from_secs(seconds)).to_string(), text);
        }
    }
}
