//! Pictures seconds apart, from the start or from some time on (VI-09).

use std::sync::Arc;

use weir_hls::{Config, Dropped, Format, Part, Window};
use weir_protocol::media::{AccessUnit, Ticks};

use super::{Feed, check_parts, run};

const AUDIO: [Option<u32>; 2] = [None, Some(48_000)];

fn package(feed: &Feed, units: &[AccessUnit]) -> (Arc<Window>, Vec<Arc<Part>>) {
    let config = Config { prefix: "p".into(), window: 500, ..Config::default() };
    let mut packager = feed.packager(config);
    let (window, parts) = run(&mut packager, units);
    assert_eq!(packager.dropped(), Dropped::default());
    let text = String::from_utf8(window.media_playlist(Format::Fmp4).to_vec()).unwrap();
    assert!(!text.contains("DISCONTINUITY\n"), "{text}");
    (window, parts)
}

fn lasting(window: &Window) -> i64 {
    window.listed().iter().fold(Ticks(0), |sum, segment| sum + segment.duration()).as_ms()
}

#[test]
fn vi_09_parts_are_as_long_as_pictures_that_are_rare_from_the_start() {
    for (seconds_each, part_target_ms) in [(1, 1080), (3, 3240), (5, 5400), (6, 6480), (9, 9720)] {
        for (audio, gop) in AUDIO.into_iter().flat_map(|audio| [(audio, 1), (audio, 10)]) {
            let rate = Some((1, seconds_each));
            let feed = Feed { rate, gop, audio, seconds: 90, ..Feed::default() };
            let (window, parts) = package(&feed, &feed.units());
            assert_eq!(window.part_target().as_ms(), part_target_ms);
            check_parts(&parts, window.part_target(), 85);
            assert!(window.listed()[0].is_independent());
            for segment in window.listed().iter().filter(|_| gop == 1) {
                assert!(segment.is_independent(), "{audio:?} {seconds_each}");
            }
            // How long the last picture is to be seen, nothing tells.
            let lasting = lasting(&window);
            assert!((90_999 - seconds_each * 1000..=90_000).contains(&lasting), "{lasting}");
        }
    }
}

#[test]
fn vi_09_a_slow_start_does_not_make_parts_long() {
    for wait_ms in [700, 1500, 4000] {
        let steady = Feed { seconds: 20, start_ms: wait_ms, gop: 1000, ..Feed::default() };
        let first = Feed { seconds: 1, rate: Some((1, 1)), audio: None, ..Feed::default() };
        let units = [first.units(), steady.units()].concat();
        let (window, _) = package(&steady, &units);
        assert_eq!(window.part_target().as_ms(), 216, "{wait_ms}");
    }
}

#[test]
fn vi_09_pictures_may_become_rare() {
    for audio in AUDIO {
        let steady = Feed { rate: Some((30, 1)), gop: 60, audio, seconds: 6, ..Feed::default() };
        let rare = Feed { rate: Some((1, 5)), gop: 100, start_ms: 6000, seconds: 60, ..steady };
        let again = Feed { start_ms: 66_000, ..steady.clone() };
        let units = [steady.units(), rare.units(), again.units()].concat();
        let (window, parts) = package(&steady, &units);
        let longest = parts.iter().map(|part| part.duration()).max().unwrap();
        match audio {
            Some(_) => {
                assert!(longest <= window.part_target());
                assert!((71_900..=72_100).contains(&lasting(&window)), "{}", lasting(&window));
            }
            // A picture cannot be divided among segments; it is shown to its end.
            None => assert!(longest.as_ms() <= 4450, "{longest:?}"),
        }
    }
}

#[test]
fn vi_09_the_target_that_the_first_segment_chose_holds_for_the_picture_after_it() {
    let feed = Feed { audio: None, gop: 1000, seconds: 1, ..Feed::default() };
    for late_ms in [10_500, 10_900, 12_900] {
        for more in [false, true] {
            let late = Feed { start_ms: late_ms, ..feed.clone() }.units().into_iter();
            let late = late.map(|unit| AccessUnit { keyframe: false, ..unit });
            let units: Vec<_> =
                feed.units().into_iter().chain(late.take(if more { 25 } else { 1 })).collect();
            // `run` compares every segment with the target.
            let (window, _) = package(&feed, &units);
            let target = window.target_duration().as_secs();
            assert_eq!(target, 4, "{late_ms}");
        }
    }
}
