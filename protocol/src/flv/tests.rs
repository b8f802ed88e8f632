use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::codec::tests::hex;
use crate::codec::{CodecConfig, aac, av1, avc, hevc, mp3, opus, vp9};
use crate::media::{AccessUnit, Ticks, Track, TrackId};
use crate::pool::{HeapPool, HeapRegion, Pool};

const AVCC: &str = "014d401fffe10017674d401fda014016ec0440000003004000000c83c60ca801000468ef3c80";
const HVCC: &str = "0101600000009000000000003cf000fcfdf8f800000f03200001001840010c01ffff0160000003
    0090000003000003003c959809210001002942010101600000030090000003000003003ca00a080f165959a4932bc0
    5a7080000003008000000c0422000100074401c172b46240";
const AV1C: &str = "81000c000a0b0200000561e7f66017c002";
const AV1_KEYFRAME: &str = "12000a0b0200000561e7f66017c00232021000";
const VP9_KEYFRAME: &str = "824983420013f00b360638241c184a00";
const SPS_PPS: &str = "00000017674d401fda014016ec0440000003004000000c83c60ca80000000468ef3c80";

fn describe(event: Event) -> String {
    match event {
        Event::Metadata(_) => "metadata".to_owned(),
        Event::Track(track) => format!("track {} {}", track.id.0, track.codec.rfc6381()),
        Event::Unit(unit) => {
            let key = if unit.keyframe { " key" } else { "" };
            let (dts, offset) = (unit.dts.as_ms(), unit.composition_offset.as_ms());
            let len = unit.payload.len();
            format!("unit {}{key} at {dts} {offset:+} of {len}", unit.track.0)
        }
        Event::NewTimeline => "new timeline".to_owned(),
        Event::Skipped(reason) => format!("skipped: {reason}"),
    }
}

/// Pushes bodies in hexadecimal, 40 ms apart: `v` video, `a` audio, `s` script.
fn demux(bodies: &[&str]) -> Vec<String> {
    let mut demuxer = Demuxer::default();
    let mut events = Vec::new();
    for (timestamp_ms, body) in (0..).step_by(40).zip(bodies) {
        let (kind, body) = body.split_at(1);
        let kind = match kind {
            "v" => TagKind::Video,
            "a" => TagKind::Audio,
            _ => TagKind::Script,
        };
        demuxer.push(kind, timestamp_ms, hex(body).into(), &mut HeapPool::default());
        events.extend(std::iter::from_fn(|| demuxer.poll()).map(describe));
    }
    events
}

fn check(bodies: &[&str], expected: &[&str]) {
    assert_eq!(demux(bodies), expected, "{bodies:?}");
}

#[test]
fn legacy_avc_and_aac_come_through() {
    check(
        &[
            &format!("v1700000000{AVCC}"),
            "aaf001210",
            "v1701000050 00000002 6588",
            "aaf0121aa",
            "v2701ffffde 00000002 4188",
            "v2702000000",
            "v5700",
        ],
        &[
            "track 0 avc1.4d401f",
            "unit 0 key at 0 +80 of 6",
            "track 1 mp4a.40.2",
            "unit 1 key at 40 +0 of 2",
            "unit 0 at 80 -34 of 6",
        ],
    );
}

#[test]
fn a_repeated_header_changes_nothing_and_a_new_one_waits_for_its_keyframe() {
    let header = format!("v1700000000{AVCC}");
    let sloppy = header.replace("1fffe1", "1f0361");
    let other = header.replace("674d401f", "67420028");
    check(
        &[
            &header,
            "v1701000000 00000002 6588",
            &header,
            &sloppy,
            "v2701000000 00000002 4188",
            &other,
            "v2701000000 00000002 4188",
            "v1701000000 00000002 6588",
        ],
        &[
            "track 0 avc1.4d401f",
            "unit 0 key at 0 +0 of 6",
            "unit 0 at 120 +0 of 6",
            "skipped: frame before the first keyframe",
            "track 0 avc1.420028",
            "unit 0 key at 240 +0 of 6",
        ],
    );
}

#[test]
fn frames_wait_for_configuration_and_keyframe() {
    check(
        &[
            "v2701000000 00000002 4188",
            "v1701000000 00000002 6588",
            "v1700000000",
            &format!("v1700000000{AVCC}"),
            "v2701000000 00000002 4188",
            "aaf00",
            "aaf01aa",
            "v1701000000 00000002 6588",
        ],
        &[
            "skipped: frame before its codec configuration",
            "skipped: frame before its codec configuration",
            "skipped: codec configuration is empty",
            "skipped: frame before the first keyframe",
            "skipped: codec configuration is empty",
            "skipped: frame before its codec configuration",
            "track 0 avc1.4d401f",
            "unit 0 key at 0 +0 of 6",
        ],
    );
}

#[test]
fn parameter_sets_in_band_supply_the_configuration() {
    let keyframe = format!("v1701000000{SPS_PPS} 00000002 6588");
    let changed = keyframe.replace("674d401f", "67420028");
    let header = format!("v1700000000{AVCC}");
    check(
        &[
            &keyframe,
            &keyframe,
            &changed,
            "v2701000000 00000002 4188",
            // Only now and then: the same header does not overrule what came in band later.
            &header,
            &changed,
            &header,
            "v2701000000 00000002 4188",
        ],
        &[
            "track 0 avc1.4d401f",
            "unit 0 key at 0 +0 of 41",
            "unit 0 key at 40 +0 of 41",
            "track 0 avc1.420028",
            "unit 0 key at 80 +0 of 41",
            "unit 0 at 120 +0 of 6",
            "unit 0 key at 200 +0 of 41",
            "unit 0 at 280 +0 of 6",
        ],
    );
    // Parameter sets in a message of their own.
    check(
        &[&format!("v2701000000{SPS_PPS}"), "v1701000000 00000002 6588"],
        &[
            "skipped: access unit without a picture",
            "track 0 avc1.4d401f",
            "unit 0 key at 0 +0 of 6",
        ],
    );
}

#[test]
fn odd_bodies_are_skipped_or_repaired() {
    let start = [&*format!("v1700000000{AVCC}"), "v1701000000 00000002 6588"];
    let table: &[(&str, &str)] = &[
        ("v", "skipped: message without content"),
        ("a", "skipped: message without content"),
        ("v27", "skipped: message is cut off"),
        ("v2701", "skipped: message is cut off"),
        ("v27010000", "skipped: message is cut off"),
        ("aaf", "skipped: message is cut off"),
        ("v2701000000", "skipped: message without content"),
        ("v2701000000 00000000", "skipped: message without content"),
        ("v2701000000 00000003 060500", "skipped: access unit without a picture"),
        ("v2709000000 00", "skipped: message of an unknown type"),
        ("v2701000000 00000000 00000002 4188", "unit 0 at 40 +0 of 6"),
        ("v2701000000 00000002 4188 000000", "unit 0 at 40 +0 of 6"),
        ("v2701000000 00000001 41", "unit 0 at 40 +0 of 5"),
        ("v2701000000 00000001 4188 00000001 4199", "unit 0 at 40 +0 of 12"),
        ("v22 00", "skipped: Sorenson H.263 video is not supported"),
        ("ab6 00", "skipped: Speex audio is not supported"),
        ("a7e 00", "skipped: G.711 audio is not supported"),
        ("a3e 00", "skipped: PCM audio is not supported"),
        ("v91 76766331 00", "skipped: codec 'vvc1' is not supported"),
        ("a91 664c6143 00", "skipped: codec 'fLaC' is not supported"),
        ("a91 61766331 00", "skipped: codec 'avc1' is not supported"),
        ("v91 617663", "skipped: message is cut off"),
        ("v9c 61766331 00", "skipped: message of an unknown type"),
        ("s020000", ""),
        ("sffff", ""),
    ];
    for (body, expected) in table {
        let events = demux(&[start[0], start[1], body]);
        assert_eq!(events[2..].join(", "), *expected, "{body}");
    }
}

#[test]
fn shorter_lengths_and_start_codes_become_four_byte_lengths() {
    let avcc_2 = AVCC.replacen("1fffe1", "1ffde1", 1);
    let annex_b = "00000001674d401fda014016ec0440000003004000000c83c60ca80000000168ef3c80";
    let expected = ["track 0 avc1.4d401f", "unit 0 key at 0 +0 of 12"];
    check(&[&format!("v1700000000{avcc_2}"), "v1701000000 0002 6588 0002 6599"], &expected);
    check(&[&format!("v1700000000{annex_b}"), "v1701000000 00000001 6588 000001 6599"], &expected);
    check(
        &[&format!("v1701000000 {annex_b} 00000001 6588")],
        &["track 0 avc1.4d401f", "unit 0 key at 0 +0 of 41"],
    );
}

#[test]
fn hevc_is_understood_under_three_names() {
    let frames = ["00000003 260188", "00000003 020188"];
    let expected = ["track 0 hvc1.1.6.L60.90", "unit 0 key at 0 -1 of 7", "unit 0 at 40 +0 of 7"];
    for (start, key, inter) in [
        ("1c00000000", "1c01ffffff", "2c01000000"),
        ("1700000000", "1701ffffff", "2701000000"),
        ("90 68766331", "91 68766331 ffffff", "a3 68766331"),
    ] {
        check(
            &[
                &format!("v{start}{HVCC}"),
                &format!("v{key}{}", frames[0]),
                &format!("v{inter}{}", frames[1]),
                &format!("v{start}{HVCC}"),
            ],
            &expected,
        );
    }
}

#[test]
fn av1_and_vp9_take_from_keyframes_what_headers_lack() {
    let av1_frame = "320140";
    for start in [AV1C, "81000c00"] {
        check(
            &[
                &format!("v90 61763031 {start}"),
                &format!("va1 61763031 {av1_frame}"),
                &format!("v91 61763031 {AV1_KEYFRAME}"),
                &format!("va1 61763031 {av1_frame}"),
            ],
            &[
                if start == AV1C {
                    "skipped: frame before the first keyframe"
                } else {
                    "skipped: frame before its codec configuration"
                },
                "track 0 av01.0.00M.08",
                "unit 0 key at 0 +0 of 17",
                "unit 0 at 40 +0 of 3",
            ],
        );
    }
    let wider = VP9_KEYFRAME.replace("13f", "27f");
    check(
        &[
            "v90 76703039 01000000 000b820202020000",
            &format!("v91 76703039 {VP9_KEYFRAME}"),
            "va1 76703039 8600",
            &format!("v91 76703039 {VP9_KEYFRAME}"),
            &format!("v91 76703039 {wider}"),
        ],
        &[
            "track 0 vp09.00.11.08",
            "unit 0 key at 0 +0 of 16",
            "unit 0 at 40 +0 of 2",
            "unit 0 key at 80 +0 of 16",
            "track 0 vp09.00.11.08",
            "unit 0 key at 120 +0 of 16",
        ],
    );
}

#[test]
fn opus_and_mp3_need_no_header() {
    check(
        &[
            "a91 4f707573 f801",
            "a90 4f707573 4f707573486561640102380180bb0000000000",
            "a91 4f707573 f801",
        ],
        &["track 1 opus", "unit 1 key at 0 +0 of 2", "unit 1 key at 20 +0 of 2"],
    );
    check(&["a2f fffb5044"], &["track 1 mp4a.40.34", "unit 1 key at 0 +0 of 4"]);
    check(&["a91 2e6d7033 fffb5044"], &["track 1 mp4a.40.34", "unit 1 key at 0 +0 of 4"]);
    check(&["a2f 00000000"], &["skipped: frame before its codec configuration"]);
}

#[test]
fn tracks_and_extensions_of_enhanced_rtmp_v2_are_read() {
    let record_len = format!("{:06x}", hex(AVCC).len());
    let record = format!("{record_len}{AVCC}");
    check(
        &[
            // Many tracks of one codec, then one track, then many codecs, one unknown among them.
            &format!("v96 10 61766331 00 {record} 02 {record}"),
            "v96 01 61766331 02 000000 00000002 6588",
            "v96 23 61766331 00 000006 00000002 6588 76766331 01 000000 61766331 09 000000",
            // 999 999 ns further on.
            "va7 02 0f423f 03 61766331 00000002 4188",
            "va7 ff 00ff 00 03 61766331 00000002 4188",
            "va6 33 00",
            "va6 13 61766331 00 0000ff 00",
        ],
        &[
            "track 4 avc1.4d401f",
            "unit 4 key at 0 +0 of 6",
            "track 0 avc1.4d401f",
            "unit 0 key at 40 +0 of 6",
            "skipped: codec 'vvc1' is not supported",
            "skipped: more tracks than supported",
            "unit 0 at 81 +0 of 6",
            "skipped: message is cut off",
            "skipped: message of an unknown type",
            "skipped: message is cut off",
        ],
    );
}

#[test]
fn a_codec_change_begins_the_track_anew() {
    check(
        &["aaf001210", "aaf01aa", "a2f fffb5044", "aaf01aa", "aaf001208", "aaf01aa"],
        &[
            "track 1 mp4a.40.2",
            "unit 1 key at 0 +0 of 1",
            "track 1 mp4a.40.34",
            "unit 1 key at 23 +0 of 4",
            "skipped: frame before its codec configuration",
            "track 1 mp4a.40.2",
            "unit 1 key at 160 +0 of 1",
        ],
    );
}

#[test]
fn payloads_are_slices_of_their_bodies() {
    let mut demuxer = Demuxer::default();
    let mut pool = HeapPool::default();
    let header = hex(&format!("1700000000{AVCC}")).into();
    demuxer.push(TagKind::Video, 0, header, &mut pool);
    let body = Bytes::from(hex("1701000000 00000002 6588"));
    demuxer.push(TagKind::Video, 0, body.clone(), &mut pool);
    let unit = std::iter::from_fn(|| demuxer.poll()).find_map(|event| match event {
        Event::Unit(unit) => Some(unit),
        _ => None,
    });
    assert_eq!(unit.unwrap().payload.as_ptr(), body[5..].as_ptr());
}

#[test]
fn a_full_pool_costs_the_frame_only() {
    struct Full;
    impl Pool for Full {
        type Region = HeapRegion;
        fn reserve(&mut self, _: usize) -> Option<HeapRegion> {
            None
        }
    }
    let mut demuxer = Demuxer::default();
    let annex_b = format!("1701000000 {} 000001 6588", SPS_PPS.replace("00000017", "00000001"));
    demuxer.push(TagKind::Video, 0, hex(&annex_b).into(), &mut Full);
    assert_eq!(demuxer.poll(), Some(Event::Skipped(SkipReason::PoolExhausted)));
}

#[test]
fn metadata_is_read_in_either_wrapping_and_never_needed() {
    let known = Metadata {
        width: Some(1280),
        height: Some(720),
        frame_rate: Some(29.97),
        video_kbps: Some(2500.0),
        audio_kbps: None,
        audio_sample_rate: Some(44_100),
        audio_channels: None,
        encoder: Some("obs".to_owned()),
    };
    use crate::amf0::{Properties, Value, encode_all};
    let properties: Properties = [
        ("width", Value::Number(1280.0)),
        ("height", Value::from("720")),
        ("framerate", Value::Number(29.97)),
        ("videodatarate", Value::Number(2500.0)),
        ("audiodatarate", Value::Number(f64::NAN)),
        ("audiosamplerate", Value::Number(44_100.0)),
        ("audiochannels", Value::Number(-2.0)),
        ("videocodecid", Value::from("avc1")),
        ("encoder", Value::from("obs")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let name = || Value::from("onMetaData");
    let set = Value::from("@setDataFrame");
    let whole = encode_all(&[name(), Value::EcmaArray(properties.clone())]);
    assert_eq!(Metadata::parse(&whole), Some(known.clone()));
    assert_eq!(Metadata::parse(&whole[..whole.len() - 3]), Some(known.clone()));
    let wrapped = encode_all(&[set, name(), Value::Object(properties)]);
    assert_eq!(Metadata::parse(&wrapped), Some(known));
    for other in [&[][..], &[Value::from("onTextData")], &[name()], &[name(), Value::Null]] {
        assert_eq!(Metadata::parse(&encode_all(other)), None);
    }
}

fn configurations() -> Vec<CodecConfig> {
    let av1_keyframe = hex(AV1_KEYFRAME);
    let vp9_keyframe = hex(VP9_KEYFRAME);
    vec![
        CodecConfig::Avc(avc::Config::parse(&hex(AVCC)).unwrap().0),
        CodecConfig::Hevc(hevc::Config::parse(&hex(HVCC)).unwrap().0),
        CodecConfig::Av1(av1::Config::from_access_unit(&av1_keyframe).unwrap()),
        CodecConfig::Vp9(vp9::Config::from_access_unit(&vp9_keyframe, None).unwrap()),
        CodecConfig::Aac(aac::Config::parse(&hex("1210")).unwrap()),
        CodecConfig::Opus(opus::Config::stereo()),
        CodecConfig::Mp3(mp3::Config::from_access_unit(&hex("fffb5044")).unwrap()),
    ]
}

#[test]
fn what_the_muxer_writes_the_demuxer_reads() {
    for (config, index) in configurations()
        .into_iter()
        .flat_map(|config| [0, 1, 7].map(|index| (config.clone(), index)))
    {
        let keyframe = match &config {
            CodecConfig::Avc(_) => "00000002 6588",
            CodecConfig::Hevc(_) => "00000003 260188",
            CodecConfig::Av1(_) => &AV1_KEYFRAME[4..],
            CodecConfig::Vp9(_) => VP9_KEYFRAME,
            CodecConfig::Aac(_) => "2110",
            CodecConfig::Opus(_) => "f801",
            CodecConfig::Mp3(_) => "fffb5044",
        };
        let audio = config.channels().is_some();
        let timed = matches!(config, CodecConfig::Avc(_) | CodecConfig::Hevc(_));
        let track = Track { id: TrackId(2 * index + u8::from(audio)), codec: Arc::new(config) };
        let kind = if audio { TagKind::Audio } else { TagKind::Video };
        let mut demuxer = Demuxer::default();
        let mut pool = HeapPool::default();
        if let Some(body) = sequence_header(&track) {
            demuxer.push(kind, 0, body, &mut pool);
        }
        for offset_ms in [-34, 0, 80].into_iter().filter(|offset| timed || *offset == 0) {
            let unit = AccessUnit {
                track: track.id,
                dts: Ticks::from_ms(if timed { offset_ms + 34 } else { 0 }),
                composition_offset: Ticks::from_ms(offset_ms),
                keyframe: true,
                payload: hex(keyframe).into(),
            };
            let header = unit_header(&track, &unit);
            let body = [&header[..], &unit.payload[..]].concat();
            demuxer.push(kind, timestamp_ms(unit.dts), body.into(), &mut pool);
            let mut events: Vec<_> = std::iter::from_fn(|| demuxer.poll()).collect();
            assert_eq!(events.pop(), Some(Event::Unit(unit)), "{track:?}");
            if let Some(event) = events.pop() {
                assert_eq!(event, Event::Track(track.clone()));
            }
            assert_eq!(events, []);
        }
    }
}

#[test]
fn well_known_forms_are_written_for_first_tracks() {
    let headers = configurations().into_iter().enumerate().map(|(id, config)| {
        let track = Track { id: TrackId(u8::from(id > 3)), codec: Arc::new(config) };
        let unit = AccessUnit {
            track: track.id,
            dts: Ticks::ZERO,
            composition_offset: Ticks::from_ms(if id < 2 { -1 } else { 0 }),
            keyframe: true,
            payload: Bytes::new(),
        };
        unit_header(&track, &unit).to_vec()
    });
    let expected = [
        "1701ffffff",
        "91 68766331 ffffff",
        "91 61763031",
        "91 76703039",
        "af01",
        "91 4f707573",
        "2f",
    ];
    assert_eq!(headers.collect::<Vec<_>>(), expected.map(hex));
}

#[test]
fn metadata_is_that_of_the_tracks() {
    let tracks: Vec<_> = [0, 4]
        .into_iter()
        .map(|index| configurations().swap_remove(index))
        .zip(0..)
        .map(|(config, id)| Track { id: TrackId(id), codec: Arc::new(config) })
        .collect();
    let said = Metadata { width: Some(1), frame_rate: Some(25.0), ..Metadata::default() };
    let read = Metadata::parse(&metadata(&tracks, &said)).unwrap();
    let expected = Metadata {
        width: Some(1280),
        height: Some(720),
        frame_rate: Some(25.0),
        audio_sample_rate: Some(44_100),
        audio_channels: Some(2),
        ..Metadata::default()
    };
    assert_eq!(read, expected);
    let silent = metadata(&tracks[..1], &said);
    assert!(!silent.windows(12).any(|window| window == b"audiocodecid"));
}

#[test]
fn times_before_the_start_are_the_start() {
    let table = [(0, 0), (-20, 0), (90, 90), (1 << 32, 0), ((1 << 32) + 7, 7)];
    for (ms, timestamp) in table {
        assert_eq!(timestamp_ms(Ticks::from_ms(ms)), timestamp);
    }
}

/// Not randomness: only many different bodies, the same on every run.
#[test]
fn no_bodies_make_the_demuxer_panic() {
    let bodies = [
        format!("1700000000{AVCC}"),
        format!("1701000000{SPS_PPS} 00000002 6588"),
        format!("9068766331{HVCC}"),
        format!("9061763031{AV1C}"),
        format!("9161763031{AV1_KEYFRAME}"),
        format!("9176703039{VP9_KEYFRAME}"),
        format!("9610617663310000002600{AVCC}"),
        "97020f423f0161766331000000".to_owned(),
        "af001210".to_owned(),
        "af01211004608c001c".to_owned(),
        "914f707573f801".to_owned(),
        "2ffffb5044".to_owned(),
        "02000a6f6e4d657461446174610800000001".to_owned(),
    ]
    .map(|body| hex(&body));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut demuxer, mut pool) = (Demuxer::default(), HeapPool::default());
    let mut last = [Ticks(i64::MIN); 16];
    for round in 0..30_000_u32 {
        let mut body = bodies[next() as usize % bodies.len()].clone();
        for _ in 0..next() % 3 {
            let at = next() as usize % body.len();
            body[at] = next() as u8;
        }
        if next() % 8 == 0 {
            body.truncate(next() as usize % body.len());
        }
        let kinds = [TagKind::Audio, TagKind::Video, TagKind::Script];
        let kind = kinds[next() as usize % 3];
        let timestamp_ms = if next() % 16 == 0 { next() as u32 } else { round * 20 };
        demuxer.push(kind, timestamp_ms, body.into(), &mut pool);
        while let Some(event) = demuxer.poll() {
            if let Event::Unit(unit) = event {
                let last = &mut last[usize::from(unit.track.0)];
                assert!(unit.dts > *last && !unit.payload.is_empty());
                *last = unit.dts;
            }
        }
    }
}
