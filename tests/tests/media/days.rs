//! Streams of more than a day, sent in moments: a picture in each second.

use weir_e2e::airing::{KEEP_ALL, Rendition};
use weir_e2e::clips;
use weir_e2e::playlist::Playlist;
use weir_e2e::replay::edit::{is_frame, is_key};
use weir_e2e::replay::flv::Sender;
use weir_e2e::{Backend, Gateway};
use weir_protocol::flv::{Tag, TagKind::Video};

/// Pictures between two looks at whether the gateway has read them.
const SLICE: u32 = 1000;
/// 90 kHz: what is listed reaches back no further.
const LAST_MINUTE: f64 = 60.0 * 90_000.0;
/// ISO 13818-1 §2.4.3.7: time stamps of 33 bits at 90 kHz.
const WRAP_SECONDS: f64 = (1_u64 << 33) as f64 / 90_000.0;

fn publish(gateway: &Gateway, key: &str, seconds: u32) {
    let mut sender = Sender::start(&gateway.replay_target(key)).expect("it may publish");
    let tags = &clips::pictures().tags;
    tags.iter().filter(|tag| !is_frame(tag)).for_each(|header| sender.send(header));
    let picture = tags.iter().find(|tag| is_key(tag)).expect("a keyframe");
    for second in 0..seconds {
        sender.send(&Tag { timestamp_ms: second * 1000, ..picture.clone() });
        if second % SLICE == 0 {
            sender.sync().unwrap_or_else(|error| panic!("at {second} s: {error}"));
        }
    }
    sender.sync().expect("the end of what was sent");
    let stream = gateway.stream(&format!("live/{key}")).expect("the stream");
    let repairs = stream["time_repairs"].as_object().expect("repairs");
    assert!(repairs.values().all(|count| *count == 0), "{stream}");
    sender.finish();
}

/// The stream has passed 2^32 and 2^33 ticks at 90 kHz when its last minute is fetched.
#[test]
fn ts_07_streams_go_on_where_stamps_wrap() {
    for (backend, bits) in [(Backend::Uring, 32), (Backend::Epoll, 33)] {
        let gateway = Gateway::start(backend, &KEEP_ALL);
        let key = format!("ts-07-{bits}");
        // The last minute has the wrap in its middle.
        let seconds = ((1_u64 << bits) / 90_000) as u32 + 20;
        publish(&gateway, &key, seconds);
        let multivariant = gateway.client().get(&gateway.http(&format!("live/{key}/index.m3u8")));
        let media = Playlist::parse(&multivariant.text()).variants.remove(0);
        let fmp4 = Rendition::fetch(&gateway, &format!("/live/{key}/{media}"));
        let ts = Rendition::fetch(&gateway, &format!("/live/{key}.m3u8"));
        for (name, rendition) in [("fMP4", &fmp4), ("TS", &ts)] {
            let playlist = &rendition.playlist;
            let breaks = playlist.discontinuity_sequence + playlist.discontinuities() as u64;
            assert_eq!(breaks, 0, "{name}: discontinuities");
            assert!(playlist.segments.iter().all(|segment| segment.duration == 1.0), "{name}");
            let pictures = rendition.of(Video);
            assert_eq!(pictures.len(), playlist.segments.len(), "{name}: a picture per segment");
            for pair in pictures.windows(2) {
                let step = pair[1].pts - pair[0].pts;
                assert!((step - 1.0).abs() < 0.001, "{name}: {step} s from {}", pair[0].pts);
            }
        }
        for (whole, wrapped) in fmp4.of(Video).iter().zip(ts.of(Video)) {
            assert!(whole.pts * 90_000.0 > (1_u64 << bits) as f64 - LAST_MINUTE, "{whole:?}");
            let turns = (whole.pts - wrapped.pts) / WRAP_SECONDS;
            assert!((turns - turns.round()).abs() < 1e-6, "{whole:?} and {wrapped:?}");
        }
    }
}
