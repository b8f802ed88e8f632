//! Where parts and segments end, over many seeded streams.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use m3u8_rs::MediaPlaylistType;
use weir_hls::{Config, Format, Packager, Part, Window, limits};
use weir_protocol::media::{AccessUnit, Ticks};
use weir_protocol::pool::HeapPool;

use crate::feed::{AUDIO, Feed, Random, VIDEO, nals, seconds};

mod bounds;
mod gops;
mod properties;
mod rare_pictures;

/// Pushes `units` and checks every window on the way. The last one, with every part there was.
fn run(packager: &mut Packager, units: &[AccessUnit]) -> (Arc<Window>, Vec<Arc<Part>>) {
    let mut checker = Checker::default();
    for unit in units {
        packager.push(unit);
        checker.check(packager);
    }
    packager.end();
    checker.check(packager);
    (packager.window(), checker.parts)
}

/// What must hold from window to window.
#[derive(Default)]
struct Checker {
    version: u64,
    target: Option<Duration>,
    part_target: Option<Ticks>,
    media_sequence: u64,
    newest: Option<u64>,
    uris: HashSet<(u64, u32)>,
    parts: Vec<Arc<Part>>,
}

impl Checker {
    fn check(&mut self, packager: &mut Packager) {
        if packager.version() == self.version {
            return;
        }
        assert!(packager.version() > self.version);
        let window = packager.window();
        self.version = window.version();
        assert_eq!(self.version, packager.version());
        if window.epoch().is_none() {
            return;
        }
        let part_target = window.part_target();
        assert_eq!(*self.part_target.get_or_insert(part_target), part_target);
        let (listed, target) = (window.listed(), window.target_duration());
        if !listed.is_empty() {
            assert_eq!(*self.target.get_or_insert(target), target, "it never changes");
            assert!(part_target.to_duration() <= target);
        }
        for (segment, next) in listed.iter().zip(listed.iter().skip(1)) {
            assert_eq!(segment.msn() + 1, next.msn());
        }
        for segment in listed {
            let duration = seconds(segment.duration());
            assert!(duration.round() <= window.target_duration().as_secs_f64(), "{duration}");
            let sum = segment.parts().iter().fold(Ticks(0), |sum, part| sum + part.duration());
            assert_eq!(sum, segment.duration());
        }
        if let Some(first) = listed.first() {
            assert!(first.msn() >= self.media_sequence);
            self.media_sequence = first.msn();
        }
        let newest = listed.last().into_iter().flat_map(|segment| segment.parts());
        for part in newest.chain(open_parts(&window).iter()) {
            if self.uris.insert((part.msn(), part.index())) {
                self.parts.push(part.clone());
            }
        }
        if listed.last().map(|segment| segment.msn()) != self.newest {
            self.newest = listed.last().map(|segment| segment.msn());
            check_playlist(&window, Format::Fmp4);
            check_playlist(&window, Format::Ts);
        }
    }
}

/// The parts of the open segment, by asking for them.
fn open_parts(window: &Window) -> Vec<Arc<Part>> {
    let msn = window.listed().last().map_or(0, |segment| segment.msn() + 1);
    let part = |index| match window.find(&format!("p/{msn}.{index}.m4s")) {
        weir_hls::Resource::Part(part) => Some(part),
        _ => None,
    };
    (0..).map_while(part).collect()
}

fn check_playlist(window: &Window, format: Format) {
    let text = window.media_playlist(format);
    let (rest, playlist) = m3u8_rs::parse_media_playlist(&text).expect("m3u8-rs reads it");
    assert!(rest.is_empty());
    let listed = window.listed();
    assert_eq!(playlist.target_duration, window.target_duration().as_secs());
    assert_eq!(playlist.end_list, window.is_ended());
    assert_ne!(playlist.playlist_type, Some(MediaPlaylistType::Vod));
    assert!(playlist.segments.len() >= listed.len());
    for (entry, segment) in playlist.segments.iter().zip(listed) {
        assert_eq!(playlist.media_sequence, listed[0].msn());
        assert!((f64::from(entry.duration) - seconds(segment.duration())).abs() < 0.001);
    }
}

/// Part durations: none above PART-TARGET, none but a segment's last below 85 % of it.
fn check_parts(parts: &[Arc<Part>], target: Ticks, least_percent: i64) {
    for (part, next) in parts.iter().zip(parts.iter().skip(1)) {
        assert!(part.duration() <= target, "{:?} > {target:?}", part.duration());
        let last_of_segment = next.msn() != part.msn();
        let long_enough = part.duration().0 * 100 >= target.0 * least_percent;
        assert!(long_enough || last_of_segment, "{:?} of {target:?}", part.duration());
    }
}

#[test]
fn steady_streams_of_every_rate() {
    let rates =
        [(24, 1), (25, 1), (30, 1), (30_000, 1001), (50, 1), (60_000, 1001), (10, 1), (15, 1)];
    for (seed, rate) in rates.into_iter().enumerate() {
        for audio in [None, Some(44_100), Some(48_000)] {
            let gop = 2 * rate.0 / rate.1;
            let seed = seed as u64 + 1;
            let feed = Feed {
                rate: Some(rate),
                gop,
                audio,
                reorder: true,
                seed,
                seconds: 20,
                ..Feed::default()
            };
            let mut packager = feed.packager(Config { prefix: "p".into(), ..Config::default() });
            let (window, parts) = run(&mut packager, &feed.units());
            check_parts(&parts, window.part_target(), 85);
            for segment in window.listed() {
                assert!(segment.is_independent());
                assert!(segment.parts()[0].is_independent());
            }
            let text = String::from_utf8(window.media_playlist(Format::Fmp4).to_vec()).unwrap();
            assert!(text.contains("#EXT-X-INDEPENDENT-SEGMENTS"), "{rate:?} {audio:?}");
        }
    }
}

#[test]
fn jittery_streams_stay_below_part_target() {
    for seed in 1..40 {
        let mut random = Random(seed * 77);
        let rate = (random.below(55) as i64 + 5, 1);
        let feed = Feed {
            rate: Some(rate),
            gop: random.below(200) as i64 + 1,
            jitter_ms: 12,
            reorder: seed % 2 == 0,
            negative_offsets: seed % 4 == 0,
            audio: [None, Some(22_050), Some(48_000)][random.below(3) as usize],
            seconds: 30,
            seed,
            start_ms: random.below(1 << 33) as i64,
        };
        let mut packager = feed.packager(Config { prefix: "p".into(), ..Config::default() });
        let (window, parts) = run(&mut packager, &feed.units());
        let longest = parts.iter().map(|part| part.duration()).max().unwrap();
        assert!(longest <= window.part_target(), "seed {seed}: {longest:?}");
    }
}

#[test]
fn lengths_are_known_before_the_bytes() {
    let mut pool = HeapPool::default();
    for seed in 1..6 {
        let feed = Feed { seed, reorder: true, rate: Some((7, 1)), gop: 9, ..Feed::default() };
        let window = feed.packaged(Config::default()).window();
        for part in window.listed().iter().flat_map(|segment| segment.parts()) {
            let len = |slices: &[bytes::Bytes]| slices.iter().map(|b| b.len() as u64).sum::<u64>();
            assert_eq!(len(part.fmp4(&mut pool).unwrap()), part.fmp4_len());
            assert_eq!(len(part.ts(&mut pool).unwrap()), part.ts_len());
        }
    }
}

#[test]
fn audio_alone_is_cut_by_time() {
    let feed = Feed { rate: None, audio: Some(44_100), seconds: 30, ..Feed::default() };
    let mut packager = feed.packager(Config { prefix: "p".into(), ..Config::default() });
    let (window, parts) = run(&mut packager, &feed.units());
    check_parts(&parts, window.part_target(), 85);
    for segment in &window.listed()[..window.listed().len() - 1] {
        assert!((2.0..2.03).contains(&seconds(segment.duration())));
        assert!(segment.is_independent());
    }
    assert_eq!(window.epoch().unwrap().audio().map(|track| track.id), Some(AUDIO));
}

#[test]
fn a_break_in_time_is_a_discontinuity_and_never_a_huge_segment() {
    for jump_ms in [-3_600_000, -5000, 13_000, 3_600_000] {
        let first = Feed { seconds: 6, start_ms: 10_000_000, ..Feed::default() };
        let second = Feed { start_ms: 10_006_000 + jump_ms, ..first.clone() };
        let mut packager = first.packager(Config { prefix: "p".into(), ..Config::default() });
        let (window, parts) = run(&mut packager, &[first.units(), second.units()].concat());
        let text = String::from_utf8(window.media_playlist(Format::Fmp4).to_vec()).unwrap();
        assert_eq!(text.matches("#EXT-X-DISCONTINUITY\n").count(), 1, "{jump_ms}\n{text}");
        let total = parts.iter().fold(Ticks(0), |sum, part| sum + part.duration());
        assert!((seconds(total) - 12.0).abs() < 0.3, "{}", seconds(total));
    }
}

#[test]
fn outrageous_audio_is_dropped_and_pictures_go_on() {
    let video = Feed { audio: None, seconds: 8, start_ms: 95_443_000, ..Feed::default() };
    let audio = Feed { rate: None, seconds: 8, ..Feed::default() };
    let mut units = video.units();
    units.extend(audio.units());
    units.sort_by_key(|unit| (unit.dts.0 % (95_443_000 * 90), unit.track));
    let mut packager = Feed::default().packager(Config { prefix: "p".into(), ..Config::default() });
    let (window, _) = run(&mut packager, &units);
    assert!(window.epoch().unwrap().audio().is_none());
    assert!(packager.dropped().out_of_time > 300);
    let text = String::from_utf8(window.media_playlist(Format::Fmp4).to_vec()).unwrap();
    assert!(!text.contains("DISCONTINUITY\n"));
}

#[test]
fn pictures_long_after_their_sound_are_no_break() {
    let feed = Feed { seconds: 30, ..Feed::default() };
    let mut units = feed.units();
    let arrival = |unit: &AccessUnit| match unit.track {
        VIDEO if unit.dts > Ticks::from_ms(5000) => unit.dts + Ticks::from_ms(8000),
        _ => unit.dts,
    };
    units.sort_by_key(arrival);
    let mut packager =
        feed.packager(Config { prefix: "p".into(), window: 30, ..Config::default() });
    let (window, parts) = run(&mut packager, &units);
    let text = String::from_utf8(window.media_playlist(Format::Fmp4).to_vec()).unwrap();
    assert!(!text.contains("DISCONTINUITY\n"));
    let total = parts.iter().fold(Ticks(0), |sum, part| sum + part.duration());
    assert!((seconds(total) - 30.0).abs() < 0.1, "{}", seconds(total));
}

#[test]
fn open_segments_are_bounded_in_bytes_and_units() {
    let mut packager = Feed::default().packager(Config { prefix: "p".into(), ..Config::default() });
    let payload = nals(&[&vec![0x41; 2 << 20]]);
    for n in 0..200 {
        packager.push(&AccessUnit {
            track: VIDEO,
            dts: Ticks::from_ms(n * 40),
            composition_offset: Ticks(0),
            keyframe: n == 0,
            payload: payload.clone(),
        });
    }
    let window = packager.window();
    for segment in window.listed() {
        assert!(segment.len(Format::Fmp4) < limits::SEGMENT_BYTES + (12 << 20));
    }
    let total: u64 = window.listed().iter().map(|segment| segment.len(Format::Fmp4)).sum();
    assert!(total <= limits::WINDOW_BYTES + limits::SEGMENT_BYTES);
}
