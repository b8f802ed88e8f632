//! Sequences of calls that make no sense: nothing panics, and what comes out holds together.

use weir_hls::{Config, Format, Packager};
use weir_protocol::media::{AccessUnit, Ticks, Track, TrackId};
use weir_protocol::pool::HeapPool;

use crate::feed::{Random, aac_track, avc_track, mp3_track, opus_track};

fn ticks(random: &mut Random, now: i64) -> Ticks {
    Ticks(match random.below(200) {
        0 => random.next() as i64,
        1 => i64::MAX - random.below(3) as i64,
        2 => i64::MIN + random.below(3) as i64,
        3 => now.wrapping_sub(random.below(1_000_000) as i64),
        4 => now.wrapping_add(random.below(1_000_000) as i64),
        _ => now.wrapping_add(random.below(9000) as i64),
    })
}

fn tracks(random: &mut Random) -> Vec<Track> {
    let audio = match random.below(4) {
        0 => vec![],
        1 => vec![aac_track(48_000)],
        2 => vec![opus_track()],
        _ => vec![mp3_track()],
    };
    let video =
        if random.below(3) > 0 { vec![avc_track(random.below(2) as u8 + 30)] } else { vec![] };
    [video, audio].concat()
}

fn unit(random: &mut Random, now: &mut i64) -> AccessUnit {
    let dts = ticks(random, *now);
    *now = dts.0;
    let composition_offset = if random.below(3) == 0 { ticks(random, 0) } else { Ticks(0) };
    let len = random.below(60) as usize;
    let mut payload = random.bytes(len).to_vec();
    if random.below(3) > 0 {
        // NAL lengths that are sometimes right.
        payload.splice(0..0, (random.below(len as u64 + 2) as u32).to_be_bytes());
    }
    AccessUnit {
        track: TrackId(random.below(3) as u8),
        dts,
        composition_offset,
        keyframe: random.below(4) == 0,
        payload: payload.into(),
    }
}

/// How many parts there were to check.
fn check(packager: &mut Packager, random: &mut Random) -> usize {
    let window = packager.window();
    for format in [Format::Fmp4, Format::Ts] {
        let text = window.media_playlist(format);
        m3u8_rs::parse_media_playlist(&text).unwrap();
    }
    let _ = window.delta_playlist();
    let _ = window.multivariant("media.m3u8");
    let msn = if random.below(2) == 0 { random.next() } else { random.below(50) };
    let _ = window.resolve(msn, Some(random.next() as u32));
    let _ = window.resolve(msn, None);
    let mut pool = HeapPool::default();
    let parts = || window.listed().iter().flat_map(|segment| segment.parts());
    for part in parts() {
        let len = |slices: &[bytes::Bytes]| slices.iter().map(|b| b.len() as u64).sum::<u64>();
        assert_eq!(len(part.fmp4(&mut pool).unwrap()), part.fmp4_len());
        assert_eq!(len(part.ts(&mut pool).unwrap()), part.ts_len());
        assert!(part.duration() > Ticks(0));
    }
    for segment in window.listed() {
        let rounded = (segment.duration().as_ms() + 500) / 1000;
        assert!(rounded <= window.target_duration().as_secs() as i64, "{rounded}");
    }
    parts().count()
}

#[test]
fn any_sequence_of_calls() {
    let mut parts = 0;
    for seed in 1..200 {
        let mut random = Random(seed);
        let mut packager = Packager::new(Config::default());
        let mut now = 0_i64;
        for _ in 0..400 {
            match random.below(60) {
                0 | 1 => packager.set_tracks(&tracks(&mut random)),
                2 => packager.discontinuity(),
                3 if random.below(20) == 0 => packager.end(),
                4 => parts += check(&mut packager, &mut random),
                5 => now %= 1 << 40,
                _ => packager.push(&unit(&mut random, &mut now)),
            }
        }
        parts += check(&mut packager, &mut random);
    }
    assert!(parts > 10_000, "{parts}");
}
