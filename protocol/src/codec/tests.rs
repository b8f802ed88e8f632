//! Records as real encoders send them: x264, x265, SVT-AV1, libvpx, ffmpeg's AAC and libopus.

use super::nal::LengthSize;
use super::*;

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Main, 1280x720.
pub(crate) const AVCC: &str =
    "014d401fffe10017674d401fda014016ec0440000003004000000c83c60ca801000468ef3c80";
/// High, 322x182: cropped, with chroma tail.
const AVCC_HIGH: &str = "0164000dffe1001a6764000dacd941519e226c0440000003004000000c83c50a6580
    01000668ebe3cb22c0fdf8f800";
/// Main, 320x240.
pub(crate) const HVCC: &str = "0101600000009000000000003cf000fcfdf8f800000f03200001001840010c01ffff01600000030090000003000003003c959809210001002942010101600000030090000003000003003ca00a080f165959a4932bc05a7080000003008000000c0422000100074401c172b46240";

/// Of a mono tone at 48 kHz, as ffmpeg sends it.
pub(crate) const STREAMINFO: &str =
    "040000000000000008150bb800f00000000000000000000000000000000000000000";
/// Frames of the same tone.
pub(crate) const AC3: &str = "0b77480d0c402f842bc1c77a";
pub(crate) const EAC3: &str = "0b7700bf3287c00021064060";

#[test]
fn avc_records_come_out_as_they_went_in() {
    let table = [(AVCC, "avc1.4d401f", (1280, 720)), (AVCC_HIGH, "avc1.64000d", (322, 182))];
    for (record, rfc6381, size) in table {
        let (config, length_size) = avc::Config::parse(&hex(record)).unwrap();
        assert_eq!(config.record, hex(record));
        assert_eq!((config.rfc6381(), length_size), (rfc6381.to_owned(), LengthSize::Four));
        assert_eq!((config.width, config.height), size);
        assert_eq!((config.sps.len(), config.pps.len()), (1, 1));
    }
}

#[test]
fn odd_avc_records_mean_the_same() {
    let expected = avc::Config::parse(&hex(AVCC)).unwrap().0;
    let sets = "17674d401fda014016ec0440000003004000000c83c60ca801000468ef3c80";
    let annex_b = "00000001674d401fda014016ec0440000003004000000c83c60ca800000168ef3c80";
    let table = [
        // Reserved bits not set; shorter lengths; fields that belie the SPS; trailing junk.
        (format!("014d401f030100{sets}"), LengthSize::Four),
        (format!("014d401ffde100{sets}"), LengthSize::Two),
        (format!("014d401f0001 00{sets}"), LengthSize::One),
        (format!("01420000ffe100{sets}"), LengthSize::Four),
        (format!("014d401fffe100{sets}ffff"), LengthSize::Four),
        (annex_b.to_owned(), LengthSize::Four),
        // Start codes behind the lengths.
        (format!("014d401fffe1001b00000001{}01000700000168ef3c80", &sets[2..48]), LengthSize::Four),
    ];
    for (record, length_size) in table {
        let parsed = avc::Config::parse(&hex(&record));
        assert_eq!(parsed, Ok((expected.clone(), length_size)), "{record}");
    }
}

#[test]
fn a_missing_high_tail_is_put_in() {
    let short = hex(AVCC_HIGH);
    let short = &short[..short.len() - 4];
    assert_eq!(avc::Config::parse(short).unwrap().0.record, hex(AVCC_HIGH));
}

#[test]
fn several_parameter_sets_are_kept() {
    let sps = "0017674d401fda014016ec0440000003004000000c83c60ca8";
    let sps_2 = sps.replace("c83c60ca8", "c83c60ca9");
    let record = format!("014d401fffe2{sps}{sps_2}02000468ef3c80000468ef3c81");
    let (config, _) = avc::Config::parse(&hex(&record)).unwrap();
    assert_eq!((config.sps.len(), config.pps.len()), (2, 2));
    assert_eq!(config.record, hex(&record));
}

#[test]
fn bad_avc_records_have_their_error() {
    let table = [
        ("", Error::Empty),
        ("01", Error::Truncated),
        ("014d401fffe1", Error::Truncated),
        ("014d401fffe10017674d", Error::Truncated),
        ("014d401fffe000", Error::Missing("SPS")),
        ("014d401fffe10001670100016800", Error::Truncated),
        ("014d401fffe10003674d4001000168", Error::Truncated),
        ("014d401fffe10017674d401fda014016ec0440000003004000000c83c60ca800", Error::Missing("PPS")),
        ("014d401ffee10001670100016800", Error::Invalid("NAL length size")),
        ("024d401fffe10001670100016800", Error::Invalid("avcC version")),
        (HVCC, Error::Truncated),
    ];
    for (record, error) in table {
        assert_eq!(avc::Config::parse(&hex(record)), Err(error), "{record}");
    }
}

#[test]
fn hevc_record_is_understood() {
    let (config, length_size) = hevc::Config::parse(&hex(HVCC)).unwrap();
    assert_eq!((config.width, config.height), (320, 240));
    assert_eq!(config.rfc6381(), "hvc1.1.6.L60.90");
    assert_eq!(length_size, LengthSize::Four);
    assert_eq!((config.vps.len(), config.sps.len(), config.pps.len()), (1, 1, 1));
    let (again, _) = hevc::Config::parse(&config.record).unwrap();
    assert_eq!(again, config);
    assert_eq!(hevc::Config::parse(&[]), Err(Error::Empty));
    assert_eq!(hevc::Config::parse(&hex(AVCC)), Err(Error::Missing("SPS")));
}

#[test]
fn hevc_codecs_leave_out_trailing_zeros() {
    let mut config = hevc::Config::parse(&hex(HVCC)).unwrap().0;
    let head = hex("01 01 60000000 b00000000000 5d");
    config.record = head.into();
    assert_eq!(config.rfc6381(), "hvc1.1.6.L93.B0");
    config.record = hex("01 62 20000000 000000000000 99").into();
    assert_eq!(config.rfc6381(), "hvc1.A2.4.H153");
}

#[test]
fn av1_record_is_that_of_its_sequence_header() {
    let record = hex("81000c000a0b0200000561e7f66017c002");
    let config = av1::Config::parse(&record).unwrap();
    assert_eq!((config.width, config.height), (320, 180));
    assert_eq!(config.rfc6381(), "av01.0.00M.08");
    assert_eq!(config.record, record);
    let keyframe = hex("12000a0b0200000561e7f66017c00232021000");
    assert_eq!(av1::Config::from_access_unit(&keyframe), Ok(config.clone()));
    assert!(config.covers(&keyframe) && av1::is_keyframe(&keyframe));
    assert!(!config.covers(&hex("0a0b0200000561e7f66357cc02")));
    let payload = av1::without_temporal_delimiter(keyframe.clone().into());
    assert_eq!(payload, keyframe[2..]);
    assert_eq!(av1::Config::parse(&record[..4]), Err(Error::Missing("sequence header")));
    assert_eq!(av1::Config::parse(&[]), Err(Error::Empty));
    assert_eq!(av1::Config::parse(&[0x82, 0, 0, 0]), Err(Error::Invalid("av1C version")));
}

#[test]
fn av1_level_4_0_main_has_the_usual_name() {
    let record = hex("81080c00").into();
    let config = av1::Config { record, width: 1920, height: 1080 };
    assert_eq!(config.rfc6381(), "av01.0.08M.08");
}

#[test]
fn vp9_takes_its_size_from_the_keyframe() {
    let record = hex("000b820202020000");
    let keyframe = hex("824983420013f00b360638241c184a00");
    let boxed = vp9::Record::parse(&[&[1, 0, 0, 0], &record[..]].concat()).unwrap();
    assert_eq!(vp9::Record::parse(&record), Ok(boxed));
    let config = vp9::Config::from_access_unit(&keyframe, Some(boxed)).unwrap();
    assert_eq!((config.width, config.height), (320, 180));
    assert_eq!(config.record, record);
    assert_eq!(config.rfc6381(), "vp09.00.11.08");
    let rebuilt = vp9::Config::from_access_unit(&keyframe, None).unwrap();
    assert_eq!(rebuilt.record, record);
    assert!(vp9::is_keyframe(&keyframe));
    assert!(!vp9::is_keyframe(&hex("86004092f121400000")));
}

#[test]
fn aac_records_tell_rate_channels_and_frame_length() {
    let table = [
        // LC 48 kHz 5.1; LC 44.1 kHz stereo; LC 44.1 kHz mono with 960 samples.
        ("11b0", ("mp4a.40.2", 48_000, 6, 1024)),
        ("1210", ("mp4a.40.2", 44_100, 2, 1024)),
        ("120c", ("mp4a.40.2", 44_100, 1, 960)),
        // HE-AAC, signalled hierarchically and backward compatibly; HE-AAC v2 both ways.
        ("2b118800", ("mp4a.40.5", 24_000, 2, 1024)),
        ("131056e598", ("mp4a.40.5", 24_000, 2, 1024)),
        ("eb098800", ("mp4a.40.29", 24_000, 2, 1024)),
        ("130856e59d4880", ("mp4a.40.29", 24_000, 2, 1024)),
        // An explicit rate; program_config_element of 5.0(side), as ffmpeg writes it.
        ("17802ee008", ("mp4a.40.2", 24_000, 1, 1024)),
        ("11800 4c840002008800d4c61766335392e33372e31303056e500", ("mp4a.40.2", 48_000, 5, 1024)),
    ];
    for (record, expected) in table {
        let config = aac::Config::parse(&hex(record)).unwrap();
        let aac::Config { sample_rate, channels, frame_samples, .. } = config;
        let read = (&*config.rfc6381(), sample_rate, channels, frame_samples);
        assert_eq!(read, expected, "{record}");
        assert_eq!(config.record, hex(record));
    }
}

#[test]
fn bad_aac_records_have_their_error() {
    let table = [
        ("", Error::Empty),
        ("12", Error::Truncated),
        ("0210", Error::Invalid("audio object type")),
        ("1790", Error::Truncated),
        ("1690", Error::Invalid("sampling rate")),
        ("1248", Error::Invalid("channel configuration")),
        ("f9001010", Error::Unsupported("audio object type")),
        ("1180", Error::Truncated),
    ];
    for (record, error) in table {
        assert_eq!(aac::Config::parse(&hex(record)), Err(error), "{record}");
    }
}

#[test]
fn adts_headers_match_the_configuration() {
    let header = |record, len| aac::Config::parse(&hex(record)).unwrap().adts_header(len);
    assert_eq!(header("1210", 100), Some([0xff, 0xf1, 0x50, 0x80, 0x0d, 0x7f, 0xfc]));
    assert_eq!(header("2b118800", 0), Some([0xff, 0xf1, 0x58, 0x80, 0x00, 0xff, 0xfc]));
    assert_eq!(header("1210", 8185), None);
    assert_eq!(header("11800 4c840002008800d4c61766335392e33372e31303056e500", 1), None);
    let framed = [&header("1210", 3).unwrap()[..], b"abc"].concat();
    assert_eq!(aac::without_adts(framed.into()), "abc");
    assert_eq!(aac::without_adts(hex("fff15080").into()), hex("fff15080"));
}

#[test]
fn opus_headers_become_dops() {
    let table = [
        ("4f707573486561640101380180bb0000000000", "00010138 0000bb80 0000 00", 1, 312),
        ("0102380180bb0000000000", "00020138 0000bb80 0000 00", 2, 312),
        ("000200010000bb80000000", "00020001 0000bb80 0000 00", 2, 1),
        ("4f7075734865616401023c", "00020138 0000bb80 0000 00", 2, 312),
        (
            "01060000 80bb0000 0000 01 0402 000401020305",
            "00060000 0000bb80 0000 01 0402 000401020305",
            6,
            0,
        ),
    ];
    for (header, record, channels, pre_skip) in table {
        let config = opus::Config::parse(&hex(header)).unwrap();
        assert_eq!(config, opus::Config { record: hex(record).into(), channels, pre_skip });
    }
    assert_eq!(opus::Config::parse(b"OpusHead"), Err(Error::Empty));
    assert_eq!(opus::Config::parse(b"OpusHead\x01"), Err(Error::Truncated));
    assert_eq!(opus::Config::parse(&[16, 2]), Err(Error::Unsupported("OpusHead version")));
    assert_eq!(opus::Config::parse(&[1, 3]), Err(Error::Invalid("Opus channel count")));
    assert_eq!(opus::Config::stereo().channels, 2);
}

#[test]
fn opus_durations_follow_the_toc() {
    let table: [(&[u8], Option<u32>); 11] = [
        (&[], None),
        (&[0x00], Some(480)),
        (&[0x10], Some(1920)),
        (&[0x18], Some(2880)),
        (&[0x68], Some(960)),
        (&[0x80], Some(120)),
        (&[0xf8], Some(960)),
        (&[0xf9], Some(1920)),
        (&[0xfb], None),
        (&[0xfb, 0x83], Some(2880)),
        (&[0xfb, 0x07], None),
    ];
    for (packet, samples) in table {
        assert_eq!(opus::packet_samples(packet), samples, "{packet:02x?}");
    }
}

#[test]
fn mp3_headers_are_read() {
    let frame = |head: &str, len: usize| [hex(head), vec![0; len - 4]].concat();
    let table = [
        // MPEG-1 44.1 kHz mono 64 kbit/s; MPEG-2 22.05 kHz stereo; MPEG-2.5 8 kHz.
        (frame("fffb50c4", 208), (44_100, 1, 1152)),
        (frame("fff34044", 104), (22_050, 2, 576)),
        (frame("ffe348c4", 288), (8_000, 1, 576)),
    ];
    for (payload, (sample_rate, channels, frame_samples)) in table {
        let config = mp3::Config::from_access_unit(&payload).unwrap();
        assert_eq!(config, mp3::Config { sample_rate, channels, frame_samples });
        let two = [&payload[..], &payload[..]].concat();
        assert_eq!(mp3::samples(&two), Some(2 * frame_samples));
    }
    let bad = ["", "fffb50", "00fb50c4", "fffd50c4", "ffebf0c4", "fffbf0c4", "fffb5cc4"];
    for payload in bad {
        assert!(mp3::Config::from_access_unit(&hex(payload)).is_err(), "{payload}");
    }
}

#[test]
fn keyframes_are_idr_or_marked_recovery_points() {
    let table = [
        ("00000002 6588", false, true),
        ("00000002 4188", true, false),
        ("00000005 06060184 80 00000002 4188", true, true),
        ("00000005 06060184 80 00000002 4188", false, false),
    ];
    for (payload, called, expected) in table {
        assert_eq!(avc::is_keyframe(&hex(payload), called), expected, "{payload}");
    }
    let table = [
        ("00000003 260188", false, true),
        ("00000003 020188", true, false),
        ("00000006 4e01060184 80 00000003 020188", true, true),
        ("00000006 4e01060184 80 00000003 020188", false, false),
        // A suffix SEI message is another list.
        ("00000003 020188 00000006 5001060184 80", true, false),
    ];
    for (payload, called, expected) in table {
        assert_eq!(hevc::is_keyframe(&hex(payload), called), expected, "{payload}");
    }
}

#[test]
fn a_recovery_point_may_stand_anywhere_in_its_sei() {
    let table = [
        ("060184 80", true),
        // Behind a buffering period and a picture timing; behind one of 255 and more bytes.
        ("0003112233 0104aabbccdd 060184 80", true),
        (&*format!("05ff01{} 060184 80", "ab".repeat(256)), true),
        (&*format!("ff04ff00{} 060184 80", "06".repeat(255)), true),
        // Emulation prevention bytes are not counted in payloadSize.
        ("010500000300000301 060184 80", true),
        ("010700000300000301 060184 80", false),
        // Within another message; cut off; none at all; and more of them than anybody sends.
        ("0103060184 80", false),
        ("0109060184 80", false),
        ("06", false),
        ("", false),
        (&*format!("{} 060184 80", "0100".repeat(1000)), false),
    ];
    for (messages, expected) in table {
        for head in ["06", "4e01"] {
            let unit = hex(&format!("{head}{messages}"));
            let payload = [&(unit.len() as u32).to_be_bytes()[..], &unit].concat();
            let found = match head {
                "06" => avc::is_keyframe(&payload, true),
                _ => hevc::is_keyframe(&payload, true),
            };
            assert_eq!(found, expected, "{head} {messages}");
        }
    }
}

/// Not randomness: only many different bodies, the same on every run.
#[test]
fn no_bytes_make_a_parser_panic() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let seeds = [
        AVCC,
        AVCC_HIGH,
        HVCC,
        "81000c000a0b0200000561e7f66017c002",
        "eb098800",
        "824983420013f00b360638241c184a00",
        "11800 4c840002008800d4c61766335392e33372e31303056e500",
        "4f707573486561640101380180bb0000000000",
        "fffb50c4",
    ]
    .map(hex);
    for round in 0..20_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..next() % 4 {
            let at = next() as usize % bytes.len();
            bytes[at] = next() as u8;
        }
        bytes.truncate(next() as usize % (bytes.len() * 2));
        let _ = avc::Config::parse(&bytes);
        let _ = hevc::Config::parse(&bytes);
        let _ = av1::Config::parse(&bytes);
        let _ = vp9::Config::from_access_unit(&bytes, vp9::Record::parse(&bytes).ok());
        if let Ok(config) = aac::Config::parse(&bytes) {
            let _ = config.adts_header(bytes.len());
        }
        let _ = opus::Config::parse(&bytes);
        let _ = opus::packet_samples(&bytes);
        let _ = mp3::samples(&bytes);
        let _ = avc::is_keyframe(&bytes, true);
        let _ = hevc::is_keyframe(&bytes, true);
        let _ = av1::is_keyframe(&bytes);
        let _ = av1::without_temporal_delimiter(bytes.into());
    }
}
