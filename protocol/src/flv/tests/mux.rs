use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::codec::{CodecConfig, aac, ac3, av1, avc, flac, hevc, mp3, opus, vp9};
use crate::media::{AccessUnit, Ticks, Track, TrackId};

pub(super) fn configurations() -> Vec<CodecConfig> {
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
        CodecConfig::Flac(flac::Config::parse(&hex(STREAMINFO)).unwrap()),
        CodecConfig::Ac3(ac3::Config::from_access_unit(&hex(AC3)).unwrap()),
        CodecConfig::Ac3(ac3::Config::from_access_unit(&hex(EAC3)).unwrap()),
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
            CodecConfig::Flac(_) => "fff8aa0800ed4c",
            CodecConfig::Ac3(config) => {
                if config.is_enhanced {
                    EAC3
                } else {
                    AC3
                }
            }
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
        "91 664c6143",
        "91 61632d33",
        "91 65632d33",
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
