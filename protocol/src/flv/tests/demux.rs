use bytes::Bytes;

use super::*;
use crate::media::{Ticks, TrackId, TrackKind};
use crate::pool::{HeapRegion, Pool};

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

/// Gradual decoder refresh: no IDR picture, only points from which a picture is whole in the end.
#[test]
fn a_stream_of_recovery_points_starts() {
    let refresh = "v1701000000 0000000a 06 010411223344 060184 00000002 4188";
    check(
        &[&format!("v1700000000{AVCC}"), "v2701000000 00000002 4188", refresh],
        &[
            "skipped: frame before the first keyframe",
            "track 0 avc1.4d401f",
            "unit 0 key at 0 +0 of 20",
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
        ("a91 664c6143 00", "skipped: frame before its codec configuration"),
        ("a91 61632d33 00", "skipped: frame before its codec configuration"),
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
    let skipped = Skipped {
        kind: TrackKind::Video,
        track: Some(TrackId(0)),
        codec: Some("h264"),
        reason: SkipReason::PoolExhausted,
    };
    assert_eq!(demuxer.poll(), Some(Event::Skipped(skipped)));
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

/// AM-01, AM-02: AMF3 within metadata is read as far as it goes, and can do no harm.
#[test]
fn am_01_metadata_in_amf3() {
    let name = b"\x02\0\x0aonMetaData";
    let parse = |value: &[u8]| Metadata::parse(&[&name[..], value].concat());
    let wide = Some(Metadata { width: Some(5), ..Metadata::default() });
    assert_eq!(parse(b"\x11\x0a\x0b\x01\x0bwidth\x04\x05\x01"), wide);
    assert_eq!(parse(b"\x11\x09\x01\x0bwidth\x04\x05\x01"), wide);
    let hostile = [
        b"\x09\x03\x01".repeat(70_000),
        b"\x0a\x0b\x01\x03a".repeat(70_000),
        b"\x10\xff\xff\xff\xff\0\x01".to_vec(),
        b"\x0a\xff\xff\xff\xf3\x01".to_vec(),
        b"\x0a\x07\x03C\x01".to_vec(),
        b"\xff".to_vec(),
    ];
    for body in hostile {
        assert_eq!(parse(&[b"\x11", &body[..]].concat()), None);
        // What came before it counts.
        let beside = [&b"\x03\0\x05width\0\x40\x14\0\0\0\0\0\0\0\x01x\x11"[..], &body];
        assert_eq!(parse(&beside.concat()), wide);
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
        "af01fff14c80013ffc2110fff14c80013ffc2110".to_owned(),
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
