//! OBS, its stop and start buttons, and its media source as a player.

use std::time::{Duration, Instant};

use weir_e2e::obs::{Obs, Scene};
use weir_e2e::playlist::Playlist;
use weir_e2e::publisher::Publisher;
use weir_e2e::recorder::record;
use weir_e2e::script::FlvPlayer;
use weir_e2e::sync::Marks;
use weir_e2e::{Backend, Gateway, validate, wait_until};
use weir_protocol::flv::TagKind;

on_both_backends!(its_stream_stops_and_goes_on, it_plays_rtmp_itself);

/// Time for OBS on a software renderer to get going.
const OBS_TAKES: Duration = Duration::from_secs(40);

fn its_stream_stops_and_goes_on(backend: Backend) {
    let mut gateway = Gateway::start(backend, &["--resume-window", "60s"]);
    let obs = Obs::start(&gateway.rtmp("live"), "show?token=abc", &Scene::Clip, gateway.scratch());
    gateway.wait_for("live/show/index.m3u8");
    let mut player = FlvPlayer::start(gateway.http_connection(), "/live/show.flv");
    pictures_for(&mut player, 1.0);
    for _ in 0..2 {
        let before = playlist(&gateway);
        let earlier = session(&gateway);
        obs.stop_streaming();
        wait_for_state(&gateway, "resuming");
        assert!(!playlist(&gateway).ended, "players are kept for the resume window");
        obs.start_streaming();
        wait_for_state(&gateway, "live");
        pictures_for(&mut player, 3.0);
        let after = wait_until("a segment of the new session", OBS_TAKES, || {
            let playlist = playlist(&gateway);
            (playlist.discontinuities() >= 1 && last_msn(&playlist) > last_msn(&before) + 1)
                .then_some(playlist)
        });
        assert!(after.media_sequence >= before.media_sequence && !after.ended);
        assert!(earlier.is_some() && session(&gateway) != earlier);
    }
}

/// OBS plays one stream and publishes it as another: what is seen is what was played.
fn it_plays_rtmp_itself(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    let _clip = Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip", gateway.scratch());
    gateway.wait_for("live/clip/index.m3u8");
    let scene = Scene::Stream(gateway.rtmp("live/clip"));
    let _obs = Obs::start(&gateway.rtmp("live"), "again", &scene, gateway.scratch());
    gateway.wait_for("live/again/index.m3u8");
    let playing = wait_until("OBS among the players", OBS_TAKES, || {
        let clip = gateway.stream("live/clip")?;
        (clip["players"]["rtmp"].as_u64()? == 1).then_some(clip)
    });
    assert_eq!(playing["state"], "live");
    let directory = gateway.scratch().directory("again");
    let recording = record(&gateway.http("live/again/index.m3u8"), 10.0, &directory);
    validate::recording(&recording);
    // OBS plays sound and picture of a media source up to a few frames apart.
    Marks::of(&recording.joined()).assert_in_sync(4, 0.15);
}

fn playlist(gateway: &Gateway) -> Playlist {
    let client = gateway.client();
    let master = client.get(&gateway.http("live/show/index.m3u8"));
    assert_eq!(master.status, 200);
    let media = client.get(&gateway.http("live/show/media.m3u8"));
    assert_eq!(media.status, 200);
    Playlist::parse(&media.text())
}

fn last_msn(playlist: &Playlist) -> u64 {
    playlist.media_sequence + playlist.segments.len() as u64
}

/// The id of the connection that publishes.
fn session(gateway: &Gateway) -> Option<u64> {
    gateway.stream("live/show")?["publisher"]["id"].as_u64()
}

fn wait_for_state(gateway: &Gateway, state: &str) {
    wait_until(&format!("the stream is {state}"), OBS_TAKES, || {
        (gateway.stream("live/show")?["state"] == state).then_some(())
    });
}

/// Reads on until so many seconds of pictures have come.
fn pictures_for(player: &mut FlvPlayer, seconds: f64) {
    let began = Instant::now();
    let mut first = None;
    while began.elapsed() < OBS_TAKES {
        let tag = player.next_tag().expect("the player is kept");
        if tag.kind == TagKind::Video {
            let at = f64::from(tag.timestamp_ms) / 1000.0;
            if at - *first.get_or_insert(at) >= seconds {
                return;
            }
        }
    }
    panic!("pictures stopped");
}
