//! TARGETDURATION for keyframes at any distance, and segments where one comes too late (PL-01).

use std::time::Duration;

use weir_hls::{Config, Format};
use weir_protocol::media::{AccessUnit, Ticks};

use super::{Feed, Random, VIDEO, check_parts, run};

/// The default stream with keyframes where `distances` (in milliseconds, over and over) put them.
fn with_gops(seconds: i64, mut distances: impl FnMut() -> i64) -> (Feed, Vec<AccessUnit>) {
    let feed = Feed { seconds, ..Feed::default() };
    let mut units = feed.units();
    let mut next = Ticks::ZERO;
    for unit in units.iter_mut().filter(|unit| unit.track == VIDEO) {
        unit.keyframe = unit.dts >= next;
        if unit.keyframe {
            next = unit.dts + Ticks::from_ms(distances());
        }
    }
    (feed, units)
}

struct Expected {
    target_s: u64,
    /// Some segments have to begin without a keyframe.
    cut: bool,
}

fn check(seconds: i64, distances: impl FnMut() -> i64, expected: Expected) {
    let (feed, units) = with_gops(seconds, distances);
    let config = Config { prefix: "p".into(), window: 500, ..Config::default() };
    let mut packager = feed.packager(config);
    let (window, parts) = run(&mut packager, &units);
    assert_eq!(window.target_duration(), Duration::from_secs(expected.target_s));
    check_parts(&parts, window.part_target(), 85);
    let independent = |segment: &weir_hls::Segment| {
        assert!(!segment.is_independent() || segment.parts()[0].is_independent());
        segment.is_independent()
    };
    let cuts = window.listed().iter().filter(|segment| !independent(segment)).count() as u64;
    assert_eq!(packager.cuts_without_keyframe(), cuts);
    assert_eq!(cuts > 0, expected.cut, "{cuts} cuts");
    for format in [Format::Fmp4, Format::Ts] {
        let text = String::from_utf8(window.media_playlist(format).to_vec()).unwrap();
        assert_eq!(text.contains("INDEPENDENT-SEGMENTS"), cuts == 0);
    }
    let total = parts.iter().fold(Ticks(0), |sum, part| sum + part.duration());
    assert!((total.as_ms() - seconds * 1000).abs() < 50, "{total:?}");
}

#[test]
fn pl_01_the_first_keyframes_choose_the_target() {
    for (gop_ms, target_s) in [(480, 3), (1000, 3), (2000, 4), (3000, 5), (8000, 10), (10_000, 10)]
    {
        check(60, || gop_ms, Expected { target_s, cut: false });
    }
}

#[test]
fn pl_01_keyframes_beyond_the_greatest_target_are_not_waited_for() {
    for gop_ms in [11_000, 25_000, 300_000] {
        check(300, || gop_ms, Expected { target_s: 10, cut: true });
    }
}

#[test]
fn pl_01_keyframes_that_come_later_than_at_first_are_not_waited_for() {
    let mut gops = [2000; 5].into_iter().chain(std::iter::repeat(8000));
    check(60, || gops.next().unwrap(), Expected { target_s: 4, cut: true });
}

#[test]
fn pl_01_keyframes_at_cuts_of_the_scene() {
    for seed in 1..20 {
        let mut random = Random(seed);
        let mut gops = std::iter::once(2400)
            .chain(std::iter::repeat_with(|| random.below(13_700) as i64 + 1000));
        check(300, || gops.next().unwrap(), Expected { target_s: 4, cut: true });
    }
}
