//! Tracks that change, come late or never come; publishers that leave and come back.

use std::sync::Arc;

use weir_hls::{Config, Format, MissingInTs, Packager, Window};
use weir_protocol::media::{AccessUnit, Ticks, Track};
use weir_protocol::pool::HeapPool;

use crate::feed::{AUDIO, Feed, VIDEO, aac_track, avc_track, mp3_track, opus_track};

fn text(window: &Window) -> String {
    String::from_utf8(window.media_playlist(Format::Fmp4).to_vec()).unwrap()
}

fn count(window: &Window, line: &str) -> usize {
    text(window).lines().filter(|other| other.starts_with(line)).count()
}

fn push(packager: &mut Packager, units: &[AccessUnit]) {
    units.iter().for_each(|unit| packager.push(unit));
}

fn config() -> Config {
    Config { prefix: "p".into(), window: 20, ..Config::default() }
}

fn discontinuities(window: &Window) -> usize {
    text(window).lines().filter(|line| *line == "#EXT-X-DISCONTINUITY").count()
}

#[test]
fn equal_tracks_change_nothing() {
    let feed = Feed::default();
    let mut packager = feed.packager(config());
    for unit in feed.units() {
        if unit.keyframe {
            packager.set_tracks(&feed.tracks());
        }
        packager.push(&unit);
    }
    let window = packager.window();
    assert_eq!((discontinuities(&window), count(&window, "#EXT-X-MAP")), (0, 1));
}

#[test]
fn a_changed_configuration_is_a_new_epoch_at_the_next_keyframe() {
    let feed = Feed::default();
    let mut packager = feed.packager(config());
    push(&mut packager, &feed.units());
    packager.set_tracks(&[avc_track(40), aac_track(48_000)]);
    let second = Feed { start_ms: 10_000, ..feed.clone() };
    push(&mut packager, &second.units());
    let window = packager.window();
    assert_eq!((discontinuities(&window), count(&window, "#EXT-X-MAP")), (1, 2));
    assert_eq!(window.epoch().unwrap().number(), 1);
    let levels = window.listed().iter().map(|segment| {
        let epoch = segment.epoch().unwrap();
        epoch.video().unwrap().codec.rfc6381()
    });
    let mut levels: Vec<String> = levels.collect();
    levels.dedup();
    assert_eq!(levels, ["avc1.64001f", "avc1.640028"]);
    assert!(packager.dropped().before_keyframe == 0 && packager.dropped().not_in_epoch == 0);
}

#[test]
fn audio_between_a_new_configuration_and_its_keyframe_waits_for_it() {
    let feed = Feed::default();
    let mut packager = feed.packager(config());
    push(&mut packager, &feed.units());
    packager.set_tracks(&[avc_track(40), aac_track(48_000)]);
    let second = Feed { start_ms: 10_000, ..feed };
    let mut units = second.units();
    let keyframe = units.iter().position(|unit| unit.track == VIDEO).unwrap();
    units.swap(keyframe, keyframe + 1);
    assert_eq!(units[keyframe].track, AUDIO);
    push(&mut packager, &units);
    let window = packager.window();
    assert_eq!((discontinuities(&window), count(&window, "#EXT-X-MAP")), (1, 2));
}

#[test]
fn a_track_that_is_no_longer_declared_is_left_out() {
    let feed = Feed::default();
    let mut packager = feed.packager(config());
    push(&mut packager, &feed.units());
    packager.set_tracks(&[aac_track(48_000)]);
    let sound = Feed { rate: None, start_ms: 10_000, ..feed };
    push(&mut packager, &sound.units());
    let window = packager.window();
    assert!(window.epoch().unwrap().video().is_none());
    assert_eq!((discontinuities(&window), count(&window, "#EXT-X-MAP")), (1, 2));
}

#[test]
fn a_late_audio_track_joins_at_a_keyframe() {
    let video = Feed { audio: None, ..Feed::default() };
    let mut packager = video.packager(config());
    push(&mut packager, &video.units());
    assert_eq!(packager.window().variant().unwrap().codecs.as_deref(), Some("avc1.64001f"));
    packager.set_tracks(&Feed::default().tracks());
    let both = Feed { start_ms: 10_000, ..Feed::default() };
    // A first frame of audio in the middle of a GOP.
    push(&mut packager, &both.units()[30..]);
    let window = packager.window();
    assert_eq!(discontinuities(&window), 1);
    let joined = window.listed().iter().find(|segment| segment.epoch().unwrap().number() == 1);
    assert!(joined.unwrap().is_independent());
    assert_eq!(window.variant().unwrap().codecs.as_deref(), Some("avc1.64001f,mp4a.40.2"));
}

#[test]
fn tracks_that_are_declared_one_by_one_start_together() {
    let feed = Feed::default();
    let mut packager = Packager::new(config());
    let (mut video, mut audio) = (false, false);
    let late = |unit: &&AccessUnit| unit.track == AUDIO || unit.dts > Ticks::from_ms(700);
    for unit in feed.units().iter().filter(late) {
        (video, audio) = (video || unit.track == VIDEO, audio || unit.track == AUDIO);
        let tracks = feed.tracks().into_iter();
        let told = |track: &Track| if track.id == VIDEO { video } else { audio };
        packager.set_tracks(&tracks.filter(told).collect::<Vec<_>>());
        let keyframe = unit.keyframe || (unit.track == VIDEO && packager.version() == 0);
        packager.push(&AccessUnit { keyframe, ..unit.clone() });
    }
    let window = packager.window();
    assert_eq!((discontinuities(&window), count(&window, "#EXT-X-MAP")), (0, 1));
    assert!(window.epoch().unwrap().video().is_some() && window.epoch().unwrap().audio().is_some());
}

#[test]
fn a_promised_track_that_never_sends_is_nowhere() {
    for silent in [true, false] {
        let feed = if silent {
            Feed { audio: None, ..Feed::default() }
        } else {
            Feed { rate: None, ..Feed::default() }
        };
        let mut packager = Packager::new(config());
        packager.set_tracks(&Feed::default().tracks());
        push(&mut packager, &feed.units());
        let window = packager.window();
        let epoch = window.epoch().unwrap();
        assert_eq!(epoch.audio().is_none(), silent);
        assert_eq!(epoch.video().is_none(), !silent);
        assert!(!window.variant().unwrap().codecs.unwrap().contains(','));
        assert_eq!((discontinuities(&window), count(&window, "#EXT-X-MAP")), (0, 1));
        assert!(window.listed().len() >= 4);
    }
}

#[test]
fn nothing_before_the_first_keyframe() {
    let feed = Feed { audio: None, ..Feed::default() };
    let mut packager = feed.packager(config());
    push(&mut packager, &feed.units()[7..]);
    let window = packager.window();
    assert!(window.listed().iter().all(|segment| segment.is_independent()));
    let total = window.listed().iter().fold(Ticks(0), |sum, s| sum + s.duration());
    assert_eq!(total, Ticks::from_ms(6000));
}

#[test]
fn a_publisher_that_comes_back_goes_on_in_the_same_playlist() {
    let feed = Feed { seconds: 5, ..Feed::default() };
    let mut packager = feed.packager(Config { first_msn: 1000, ..config() });
    push(&mut packager, &feed.units());
    packager.discontinuity();
    let left = packager.window();
    assert_eq!(left.listed().len(), 3, "the tail is there at once");
    assert!(text(&left).contains("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p/1003.0.m4s\""));
    packager.discontinuity();
    assert_eq!(packager.version(), left.version(), "leaving twice is leaving once");

    packager.set_tracks(&feed.tracks());
    push(&mut packager, &feed.units());
    packager.end();
    let window = packager.window();
    assert_eq!((discontinuities(&window), count(&window, "#EXT-X-MAP")), (1, 1));
    let numbers: Vec<u64> = window.listed().iter().map(|segment| segment.msn()).collect();
    assert_eq!(numbers, (1000..1006).collect::<Vec<_>>());
    assert!(text(&window).ends_with("#EXT-X-ENDLIST\n"));
    assert!(!text(&window).contains("PRELOAD"));

    let ended = packager.version();
    push(&mut packager, &feed.units());
    packager.end();
    assert_eq!(packager.version(), ended);
}

#[test]
fn a_stream_after_the_last_one_at_its_address_counts_on() {
    let feed = Feed { seconds: 5, ..Feed::default() };
    let mut packager = feed.packager(config());
    push(&mut packager, &feed.units());
    packager.discontinuity();
    push(&mut packager, &feed.units());
    packager.end();
    let last = packager.window();
    let first_discontinuity = last.next_discontinuity();
    assert_eq!(first_discontinuity, 2);
    let next = Config { first_msn: last.next_msn(), first_discontinuity, ..config() };
    let mut packager = feed.packager(next);
    push(&mut packager, &feed.units());
    let text = text(&packager.window());
    assert!(text.contains("#EXT-X-DISCONTINUITY-SEQUENCE:2\n"), "{text}");
}

#[test]
fn discontinuities_that_left_the_playlist_are_counted() {
    let feed = Feed { seconds: 5, ..Feed::default() };
    let mut packager = feed.packager(Config { window: 4, ..config() });
    for _ in 0..10 {
        push(&mut packager, &feed.units());
        packager.discontinuity();
    }
    let window = packager.window();
    let sequence: usize = text(&window)
        .lines()
        .find_map(|line| line.strip_prefix("#EXT-X-DISCONTINUITY-SEQUENCE:"))
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(sequence + discontinuities(&window), 9);
}

#[test]
fn what_a_transport_stream_cannot_carry_is_told() {
    let opus: Vec<Track> = vec![avc_track(31), opus_track()];
    let feed = Feed::default();
    let mut packager = Packager::new(config());
    packager.set_tracks(&opus);
    push(&mut packager, &feed.units());
    let window = packager.window();
    let missing = window.epoch().unwrap().missing_in_ts();
    assert_eq!(missing, [(opus[1].clone(), MissingInTs::Codec)]);
    assert!(window.is_playable(Format::Ts));

    let mut packager = Packager::new(config());
    packager.set_tracks(&opus[1..]);
    push(&mut packager, &Feed { rate: None, ..feed }.units());
    let window = packager.window();
    assert!(window.is_playable(Format::Fmp4) && !window.is_playable(Format::Ts));
}

#[test]
fn mp3_next_to_video_is_in_the_transport_stream_only() {
    let feed = Feed::default();
    let tracks = [avc_track(31), mp3_track()];
    let mut packager = Packager::new(config());
    packager.set_tracks(&tracks);
    push(&mut packager, &feed.units());
    let window = packager.window();
    let epoch = window.epoch().unwrap();
    assert_eq!(epoch.missing_in_fmp4(), Some(&tracks[1]));
    assert!(epoch.missing_in_ts().is_empty());
    assert_eq!(window.variant().unwrap().codecs.as_deref(), Some("avc1.64001f"));
    let part = &window.listed()[0].parts()[1];
    let mut pool = HeapPool::default();
    let len = part.fmp4(&mut pool).unwrap().iter().map(|bytes| bytes.len() as u64).sum::<u64>();
    assert_eq!(part.fmp4_len(), len);
    assert!(part.ts_len() > len);
}

#[test]
fn the_window_is_made_once_per_change() {
    let feed = Feed::default();
    let mut packager = feed.packager(config());
    let units = feed.units();
    push(&mut packager, &units[..200]);
    let before = packager.window();
    assert!(Arc::ptr_eq(&before, &packager.window()));
    push(&mut packager, &units[200..260]);
    assert!(packager.window().version() > before.version());
    let rendered = before.media_playlist(Format::Fmp4);
    assert_eq!(rendered.as_ptr(), before.media_playlist(Format::Fmp4).as_ptr());
}
