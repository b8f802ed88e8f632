//! Each encoder's stream arrives whole, and comes out as valid HLS with picture and sound in sync.

use std::thread;

use weir_e2e::publisher::Publisher;
use weir_e2e::recorder::record;
use weir_e2e::script::FlvPlayer;
use weir_e2e::sync::Marks;
use weir_e2e::{Backend, Gateway, validate};

on_both_backends!(
    clients_of_legacy_rtmp,
    obs,
    codecs_of_enhanced_rtmp,
    sound_of_enhanced_rtmp,
    tracks_of_enhanced_rtmp,
);

/// Seconds that each recording has at least: three segments of 2 s.
const ENOUGH: f64 = 6.0;

fn clients_of_legacy_rtmp(backend: Backend) {
    let encoders =
        [Publisher::Ffmpeg5, Publisher::Ffmpeg9, Publisher::GstRtmp2, Publisher::GstRtmp];
    let mut gateway = Gateway::start(backend, &[]);
    publish_and_check(&mut gateway, &encoders, &["fmp4", "ts"], 0.06);
}

fn obs(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    // OBS itself plays the sound of a clip 50 ms before the picture.
    publish_and_check(&mut gateway, &[Publisher::Obs], &["fmp4", "ts"], 0.11);
}

fn codecs_of_enhanced_rtmp(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    publish_and_check(&mut gateway, &Publisher::ENHANCED, &["fmp4"], 0.1);
    color_is_passed_on(&gateway);
    for (encoder, video, audio) in
        [("hevc", "hvc1", "mp4a"), ("av1", "av01", "opus"), ("vp9", "vp09", "opus")]
    {
        let master =
            gateway.client().get(&gateway.http(&format!("live/{encoder}/index.m3u8"))).text();
        assert!(master.contains(video) && master.contains(audio), "{encoder}: {master}");
    }
}

/// What the encoder of HEVC says of its colours is in the API, and reaches players.
fn color_is_passed_on(gateway: &Gateway) {
    let info = gateway.stream("live/hevc").expect("the stream");
    let color = &info["tracks"][0]["color"];
    let said = ["primaries", "transfer", "matrix"].map(|name| color[name].as_f64());
    assert_eq!(said, [Some(9.0), Some(16.0), Some(9.0)], "{info}");
    let mut player = FlvPlayer::start(gateway.http_connection(), "/live/hevc.flv");
    let mut told = std::iter::from_fn(|| player.next_tag()).take(8);
    assert!(told.any(|tag| tag.body.starts_with(b"\xd4hvc1\x02\0\x09colorInfo")));
}

fn sound_of_enhanced_rtmp(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    // A transport stream has no place for FLAC.
    let [flac, ac3, eac3] = Publisher::ENHANCED_AUDIO;
    publish_and_check(&mut gateway, &[ac3, eac3], &["fmp4", "ts"], 0.1);
    publish_and_check(&mut gateway, &[flac], &["fmp4"], 0.1);
    for (name, codec) in [("flac", "fLaC"), ("ac3", "ac-3"), ("eac3", "ec-3")] {
        let master = gateway.client().get(&gateway.http(&format!("live/{name}/index.m3u8"))).text();
        assert!(master.contains(&format!("avc1.4d401f,{codec}")), "{name}: {master}");
        let info = gateway.stream(&format!("live/{name}")).expect("the stream");
        assert_eq!(info["tracks"][1]["codec"], name, "{info}");
    }
}

/// All tracks are taken in and told of; players get the first of each kind.
fn tracks_of_enhanced_rtmp(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    publish_and_check(&mut gateway, &[Publisher::Multitrack], &["fmp4", "ts"], 0.06);
    let info = gateway.stream("live/multitrack").expect("the stream");
    let tracks = info["tracks"].as_array().expect("tracks");
    let codecs: Vec<_> = tracks.iter().map(|track| track["codec"].as_str().unwrap()).collect();
    assert_eq!(codecs, ["h264", "aac", "h264", "aac"], "{info}");
    let left_out = info["left_out"].as_array().expect("what players do not get");
    let left_out: Vec<_> = left_out.iter().map(|it| it["track"].as_u64().unwrap()).collect();
    assert_eq!(left_out, [2, 3], "{info}");
}

fn publish_and_check(
    gateway: &mut Gateway,
    encoders: &[Publisher],
    kinds: &[&str],
    tolerance: f64,
) {
    let application = gateway.rtmp("live");
    let publish = |encoder: &Publisher| {
        let key = format!("{}?token=secret", encoder.name());
        encoder.publish(&application, &key, gateway.scratch())
    };
    let _publishers: Vec<_> = encoders.iter().map(publish).collect();
    for encoder in encoders {
        gateway.wait_for(&format!("live/{}/index.m3u8", encoder.name()));
    }
    let gateway = &*gateway;
    thread::scope(|scope| {
        for encoder in encoders {
            for kind in kinds {
                scope.spawn(move || record_and_check(gateway, encoder.name(), kind, tolerance));
            }
        }
    });
}

fn record_and_check(gateway: &Gateway, name: &str, kind: &str, tolerance: f64) {
    let url = match kind {
        "ts" => gateway.http(&format!("live/{name}.m3u8")),
        _ => gateway.http(&format!("live/{name}/index.m3u8")),
    };
    let directory = gateway.scratch().directory(&format!("{name}-{kind}"));
    let recording = record(&url, ENOUGH, &directory);
    validate::recording(&recording);
    Marks::of(&recording.joined()).assert_in_sync(4, tolerance);
}
