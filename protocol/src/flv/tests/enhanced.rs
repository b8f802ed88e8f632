use std::sync::Arc;

use super::*;
use crate::amf0::{Value, encode_all};
use crate::codec::{CodecConfig, avc, hevc};
use crate::media::{Track, TrackId};

/// ER-01: HEVC in a body of its own FourCC, of number 12 or, as old OBS sends it, of AVC's.
#[test]
fn er_01_hevc_is_understood_under_three_names() {
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

/// ER-01: what is neither record under AVC's number is a clear reason, and later headers count.
#[test]
fn er_01_a_header_that_is_no_record_is_skipped() {
    check(
        &[
            "v1700000000 01ffffffff ffe1ffff",
            "v1701000000 00000003 260188",
            &format!("v1700000000{AVCC}"),
            "v1701000000 00000002 6588",
        ],
        &[
            "skipped: codec configuration is cut off",
            "skipped: access unit without a picture",
            "track 0 avc1.4d401f",
            "unit 0 key at 0 +0 of 6",
        ],
    );
}

/// ER-04: an av1C without OBUs, as SVT-AV1 gives it, is made whole from the first keyframe.
#[test]
fn er_04_av1_and_vp9_take_from_keyframes_what_headers_lack() {
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

/// What an encoder tells of colour comes out as it went in; a reset takes it back.
#[test]
fn color_is_read_and_written() {
    let object = |properties: &[(&str, Value)]| {
        Value::Object(properties.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect())
    };
    let said = object(&[
        (
            "colorConfig",
            object(&[
                ("bitDepth", 10.0.into()),
                ("colorPrimaries", 9.0.into()),
                ("transferCharacteristics", 16.0.into()),
                ("matrixCoefficients", 300.0.into()),
            ]),
        ),
        ("hdrCll", object(&[("maxFall", 400.0.into()), ("maxCLL", f64::NAN.into())])),
        ("hdrMdcv", object(&[("redX", 0.708.into()), ("redY", (-1.0).into())])),
        ("more", "x".into()),
    ]);
    let parse = |values: &[Value]| ColorInfo::parse(&encode_all(values));
    let color = parse(&["other".into(), Value::Null, "colorInfo".into(), said]).unwrap();
    let mut expected = ColorInfo {
        bit_depth: Some(10.0),
        primaries: Some(9.0),
        transfer: Some(16.0),
        max_fall: Some(400.0),
        ..ColorInfo::default()
    };
    expected.mastering[0] = Some(0.708);
    assert_eq!(color, expected);

    let (config, _) = hevc::Config::parse(&hex(HVCC)).unwrap();
    let track = Track { id: TrackId(0), codec: Arc::new(CodecConfig::Hevc(config)) };
    let mut demuxer = Demuxer::default();
    demuxer.push(TagKind::Video, 0, color.body(&track).unwrap(), &mut HeapPool::default());
    assert_eq!(demuxer.poll(), Some(Event::Color(TrackId(0), expected)));

    for reset in [Value::Undefined, Value::Object(vec![])] {
        let color = parse(&["colorInfo".into(), reset]).unwrap();
        assert_eq!(color, ColorInfo::default());
        assert_eq!(color.body(&track), None);
    }
    for nothing in [&["x".into(), Value::Null][..], &["colorInfo".into()], &[]] {
        assert_eq!(parse(nothing), None);
    }
    let (config, _) = avc::Config::parse(&hex(AVCC)).unwrap();
    let legacy = Track { id: TrackId(0), codec: Arc::new(CodecConfig::Avc(config)) };
    assert_eq!(color.body(&legacy), None, "its players know no metadata frames");
}

/// ER-04: Opus without a header is stereo at 48 kHz; one of 11 bytes takes the usual values.
#[test]
fn er_04_opus_and_mp3_need_no_header() {
    check(
        &["a90 4f707573 4f70757348656164010138", "a91 4f707573 0801"],
        &["track 1 opus", "unit 1 key at 0 +0 of 2"],
    );
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
            "skipped: track number 9 is higher than supported",
            "unit 0 at 81 +0 of 6",
            "skipped: message is cut off",
            "skipped: message of an unknown type",
            "skipped: message is cut off",
        ],
    );
}

/// Entries of four bytes, a million of them in a message: what they cost is bounded.
#[test]
fn tracks_of_a_body_are_bounded() {
    let told = demux(&[&format!("v96 13 68766331 {}", "c8000000".repeat(1000))]);
    let (last, entries) = told.split_last().expect("some are told");
    assert_eq!(entries, ["skipped: track number 200 is higher than supported"; 8]);
    assert_eq!(last, "skipped: more tracks than supported");
}

/// An offset is less than a millisecond, and several are not added up.
#[test]
fn extensions_move_frames_within_their_millisecond() {
    let offset = |nanoseconds: &str, next: u8| format!("02 {nanoseconds} 0{next}");
    let many = format!("{} {}", offset("0f423f", 7).repeat(50), offset("0f423f", 1));
    for (extensions, at) in [(many, 1), (offset("0f4240", 1), 0), (offset("ffffff", 1), 0)] {
        check(
            &[
                &format!("v90 61766331 {AVCC}"),
                &format!("v97 {extensions} 61766331 000000 00000002 6588"),
            ],
            &["track 0 avc1.4d401f", &format!("unit 0 key at {at} +0 of 6")],
        );
    }
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

/// What is skipped is told as the track that it would have been.
#[test]
fn what_is_skipped_has_a_name() {
    for config in mux::configurations() {
        assert_eq!(body::Codec::from(&config).name(), config.name());
    }
    let skipped = |kind, body: &str| {
        let mut demuxer = Demuxer::default();
        demuxer.push(kind, 0, hex(body).into(), &mut HeapPool::default());
        let Some(Event::Skipped(Skipped { kind, track, codec, reason })) = demuxer.poll() else {
            panic!("{body} is of use")
        };
        format!("{kind:?} {:?} {codec:?} {}", track.map(|track| track.0), reason.label())
    };
    for (kind, body, expected) in [
        (TagKind::Video, "96 00 68766331 09 00", "Video None Some(\"hevc\") too_many_tracks"),
        (TagKind::Video, "96 01 61766331 02 000000 00", "Video Some(4) Some(\"h264\") empty"),
        (TagKind::Audio, "af0121", "Audio Some(1) Some(\"aac\") no_configuration"),
        (TagKind::Audio, "af", "Audio None None malformed"),
        (TagKind::Audio, "b2", "Audio None None unsupported_codec"),
    ] {
        assert_eq!(skipped(kind, body), expected);
    }
}
