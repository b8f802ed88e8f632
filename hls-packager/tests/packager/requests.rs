//! Blocking reloads, resources, delta updates, and how long things can be fetched.

use std::sync::Arc;

use weir_hls::{Config, Format, Reload, Resource, Window};
use weir_protocol::media::Ticks;

use crate::feed::Feed;

fn config() -> Config {
    Config { prefix: "p".into(), first_msn: 100, ..Config::default() }
}

/// Segments 100 to 103, and two parts of 104.
fn window() -> Arc<Window> {
    let feed = Feed { seconds: 20, ..Feed::default() };
    let mut packager = feed.packager(config());
    for unit in feed.units().iter().take_while(|unit| unit.dts < Ticks::from_ms(8450)) {
        packager.push(unit);
    }
    packager.window()
}

#[test]
fn reloads_wait_for_exactly_what_they_name() {
    use Reload::{BadRequest, Ready, Wait};
    let window = window();
    assert_eq!(window.listed().last().unwrap().msn(), 103);
    let table = [
        (0, None, Ready),
        (0, Some(7), Ready),
        (99, None, Ready),
        (103, None, Ready),
        (103, Some(9), Ready),
        (103, Some(10), Ready), // past its end: 104.0
        (103, Some(u32::MAX), Ready),
        (104, None, Wait),
        (104, Some(0), Ready),
        (104, Some(1), Ready),
        (104, Some(2), Wait),
        (104, Some(16), Wait),
        (104, Some(17), BadRequest), // more than three seconds ahead
        (105, None, Wait),
        (105, Some(0), Wait),
        (105, Some(100), BadRequest),
        (106, None, BadRequest),
        (u64::MAX, None, BadRequest),
        (u64::MAX, Some(u32::MAX), BadRequest),
    ];
    for (msn, part, expected) in table {
        assert_eq!(window.resolve(msn, part), expected, "{msn} {part:?}");
    }
}

#[test]
fn a_part_past_the_end_waits_for_the_next_segments_first() {
    let feed = Feed { seconds: 5, ..Feed::default() };
    let mut packager = feed.packaged(config());
    packager.discontinuity();
    let window = packager.window();
    assert_eq!(window.listed().last().unwrap().msn(), 102);
    assert_eq!(window.resolve(102, Some(4)), Reload::Ready);
    assert_eq!(window.resolve(102, Some(5)), Reload::Wait);
    assert_eq!(window.resolve(101, Some(50)), Reload::Ready);
    packager.end();
    assert_eq!(packager.window().resolve(1000, None), Reload::Ready);
}

#[test]
fn before_any_media_everything_waits() {
    let window = Feed::default().packager(config()).window();
    assert_eq!(window.resolve(100, None), Reload::Wait);
    assert_eq!(window.resolve(100, Some(0)), Reload::Wait);
    assert_eq!(window.resolve(102, None), Reload::BadRequest);
    assert!(!window.is_playable(Format::Fmp4) && !window.is_playable(Format::Ts));
    assert!(window.multivariant("media.m3u8").is_none());
    assert!(matches!(window.find("p/100.0.m4s"), Resource::NotYet));
}

#[test]
fn addresses_stand_for_one_thing() {
    let window = window();
    let kind = |tail: &str| match window.find(tail) {
        Resource::Init(bytes) => format!("init {}", bytes.len() > 500),
        Resource::Segment(segment, format) => format!("{format:?} {}", segment.msn()),
        Resource::Part(part) => format!("part {}.{}", part.msn(), part.index()),
        Resource::NotYet => "not yet".into(),
        Resource::Gone => "gone".into(),
        Resource::Unknown => "unknown".into(),
    };
    for (tail, expected) in [
        ("p/init-0.mp4", "init true"),
        ("p/init-1.mp4", "unknown"),
        ("p/103.m4s", "Fmp4 103"),
        ("p/100.ts", "Ts 100"),
        ("p/103.9.m4s", "part 103.9"),
        ("p/103.10.m4s", "gone"),
        ("p/104.1.m4s", "part 104.1"),
        ("p/104.2.m4s", "not yet"),
        ("p/104.3.m4s", "unknown"),
        ("p/104.m4s", "unknown"),
        ("p/105.0.m4s", "unknown"),
        ("p/99.m4s", "gone"),
        ("p/0099.m4s", "unknown"),
        ("q/103.m4s", "unknown"),
        ("p/../p/103.m4s", "unknown"),
        ("", "unknown"),
    ] {
        assert_eq!(kind(tail), expected, "{tail}");
    }
}

#[test]
fn what_left_the_playlist_can_be_fetched_for_its_duration() {
    let feed = Feed { seconds: 120, ..Feed::default() };
    let mut packager = feed.packager(config());
    let mut most = 0;
    for unit in feed.units() {
        packager.push(&unit);
        let window = packager.window();
        let Some(first) = window.listed().first() else { continue };
        let fetchable =
            |msn: &u64| matches!(window.find(&format!("p/{msn}.m4s")), Resource::Segment(..));
        let retired = (100..first.msn()).filter(fetchable).count();
        most = most.max(retired);
        if first.msn() > 110 {
            assert!(retired >= 7, "{retired}");
        }
    }
    assert!(most <= 9, "{most}");
}

#[test]
fn the_playlist_stays_three_target_durations_long() {
    let feed = Feed { gop: 25, seconds: 60, ..Feed::default() };
    let config = Config { segment: std::time::Duration::from_secs(1), window: 3, ..config() };
    let window = feed.packaged(config).window();
    let total = window.listed().iter().fold(Ticks(0), |sum, s| sum + s.duration());
    assert!((6000..=7000).contains(&total.as_ms()), "{total:?}");
}

/// The merge of rfc8216bis §6.2.5.1 by lines: what was skipped is taken from the old playlist.
fn merge(old: &str, delta: &str) -> String {
    let skip = "#EXT-X-SKIP:SKIPPED-SEGMENTS=";
    let Some(line) = delta.lines().find(|line| line.starts_with(skip)) else {
        return delta.to_owned();
    };
    let skipped: usize = line[skip.len()..].parse().unwrap();
    let body = |text: &str| text.find("#EXT-X-MAP").unwrap_or(0);
    let mut kept = String::new();
    let mut segments = 0;
    for line in old[body(old)..].lines() {
        if segments == skipped {
            break;
        }
        kept.push_str(line);
        kept.push('\n');
        segments += usize::from(!line.starts_with('#'));
    }
    delta.replace(&format!("{line}\n"), &kept)
}

#[test]
fn a_delta_update_merges_to_the_full_playlist() {
    let feed = Feed { seconds: 100, ..Feed::default() };
    let mut packager = feed.packager(Config { window: 60, ..config() });
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let mut skipped_some = false;
    for unit in feed.units() {
        let before = packager.version();
        packager.push(&unit);
        if packager.version() != before {
            let window = packager.window();
            let full = text(window.media_playlist(Format::Fmp4));
            let delta = text(window.delta_playlist());
            skipped_some |= delta.contains("SKIP:");
            assert_eq!(merge(&full, &delta), full);
            assert!(delta.len() <= full.len());
        }
    }
    assert!(skipped_some);
    // Ten segments of two seconds are listed in 24 s, and not skipped.
    let delta = text(packager.window().delta_playlist());
    assert_eq!(delta.matches("#EXTINF").count(), 12);
}
