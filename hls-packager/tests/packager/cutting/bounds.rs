//! What a stream may hold before it is in a segment, whatever its stamps are.

use bytes::Bytes;
use weir_hls::{Config, Dropped, Packager, limits};
use weir_protocol::media::{AccessUnit, TIMESCALE, Ticks, TrackId};

use super::{AUDIO, Checker, Feed, VIDEO, nals};

/// Access units that are held without being counted: the newest of each track, and the one that
/// went over a limit.
const HELD: u64 = 3;

/// Pushes access units with one payload, behind a second of an ordinary stream, and compares what
/// is in segments with what was pushed.
struct Flood {
    packager: Packager,
    checker: Checker,
    payload: Bytes,
    pushed: u64,
}

impl Flood {
    fn new(feed: Feed, payload_bytes: usize) -> Self {
        let feed = Feed { seconds: 1, ..feed };
        let packager = feed.packaged(Config { prefix: "p".into(), ..Config::default() });
        let payload = nals(&[&vec![0x65; payload_bytes]]);
        Self { packager, checker: Checker::default(), payload, pushed: 0 }
    }

    /// `at`: from the end of the ordinary stream on.
    fn push(&mut self, track: TrackId, at: Ticks) {
        self.packager.push(&AccessUnit {
            track,
            dts: Ticks::from_ms(1000) + at,
            composition_offset: Ticks(0),
            keyframe: true,
            payload: self.payload.clone(),
        });
        assert_eq!(self.packager.dropped(), Dropped::default());
        self.checker.check(&mut self.packager);
        self.pushed += 1;
        let payloads = limits::SEGMENT_BYTES / self.payload.len() as u64;
        let most = payloads.min(limits::SEGMENT_UNITS as u64) + HELD;
        let window = self.packager.window();
        let segments = window.listed().last().map_or(0, |segment| segment.msn() + 1);
        assert!(self.pushed <= (segments + 1) * most, "{} in {segments}", self.pushed);
    }
}

const SIZES: [(i64, usize); 2] = [(200, 8 << 20), (40_000, 5)];

fn sound(n: i64) -> Ticks {
    Ticks::from_rate(n * 1024, 48_000)
}

#[test]
fn pictures_that_are_no_time_apart() {
    for (count, payload_bytes) in SIZES {
        let mut flood = Flood::new(Feed { audio: None, ..Feed::default() }, payload_bytes);
        for n in 0..count {
            flood.push(VIDEO, Ticks(n));
        }
    }
}

#[test]
fn sound_alone() {
    let mut flood = Flood::new(Feed { rate: None, ..Feed::default() }, 8 << 20);
    for n in 0..200 {
        flood.push(AUDIO, sound(n));
    }
}

#[test]
fn sound_between_two_pictures() {
    let mut flood = Flood::new(Feed::default(), 8 << 20);
    for n in 0..200 {
        flood.push(AUDIO, sound(n));
        if n % 20 == 0 {
            flood.push(VIDEO, sound(n));
        }
    }
}

#[test]
fn pictures_that_come_after_their_sound() {
    for (count, payload_bytes) in SIZES {
        let mut flood = Flood::new(Feed::default(), payload_bytes);
        for n in 0..200 {
            flood.push(AUDIO, sound(n));
        }
        for n in 0..count {
            flood.push(VIDEO, Ticks(n * 4 * i64::from(TIMESCALE) / count));
        }
    }
}

#[test]
fn a_lead_in() {
    for (count, payload_bytes) in [(200_i64, 1 << 20), (40_000, 5)] {
        for (track, feed) in [(VIDEO, Feed::default()), (AUDIO, Feed::default())] {
            let mut packager = feed.packager(Config { prefix: "p".into(), ..Config::default() });
            let payload = nals(&[&vec![0x65; payload_bytes]]);
            let unit = |n| AccessUnit {
                track,
                // Back and forth: no time passes.
                dts: Ticks(n % 2),
                composition_offset: Ticks(0),
                keyframe: true,
                payload: payload.clone(),
            };
            let taken =
                |packager: &Packager| packager.version() > 0 || packager.dropped().out_of_time > 0;
            let held = (0..count).take_while(|n| {
                packager.push(&unit(*n));
                !taken(&packager)
            });
            let held = held.count();
            assert!(held <= limits::LEAD_IN_UNITS, "{held}");
            assert!(held * payload_bytes <= limits::LEAD_IN_BYTES, "{held}");
        }
    }
}

/// Each of them breaks the timeline: held back together, they would be unwound one in the other.
#[test]
fn a_lead_in_whose_times_go_back() {
    let mut packager = Feed::default().packager(Config { prefix: "p".into(), ..Config::default() });
    for n in 0..1000 {
        packager.push(&AccessUnit {
            track: VIDEO,
            dts: Ticks::from_ms(10_000_000 - 5000 * n),
            composition_offset: Ticks(0),
            keyframe: true,
            payload: nals(&[&[0x65; 5]]),
        });
        let msn = packager.window().listed().last().map_or(-1, |segment| segment.msn() as i64);
        assert!(msn >= n - 2, "{msn} after {n}");
    }
}
