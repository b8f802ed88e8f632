//! What operators see and do.

use std::time::Duration;

use weir_e2e::publisher::Publisher;
use weir_e2e::{Backend, Gateway, wait_until};

on_both_backends!(operators_see_streams_and_end_them);

fn operators_see_streams_and_end_them(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    let mut publisher =
        Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip?token=secret", gateway.scratch());
    gateway.wait_for("live/clip/index.m3u8");
    let client = gateway.client().clone();
    for path in ["healthz", "readyz"] {
        assert_eq!(client.get(&gateway.admin(path)).status, 200, "{path}");
    }
    let server = client.get(&gateway.admin("api/v1/server")).json();
    assert_eq!(server["io_backend"], backend.name(), "{server}");
    assert!(server["memory"]["rss"].as_u64() > Some(1_000_000), "{server}");

    let (_, _player) = client.stream(&gateway.http("live/clip.flv"));
    let streams = gateway.admin("api/v1/streams");
    let stream = wait_until("the FLV player in the list", Duration::from_secs(5), || {
        let stream = client.get(&streams).json()["streams"][0].clone();
        (stream["players"]["flv"] == 1 && stream["gop_ms"].is_u64()).then_some(stream)
    });
    assert_eq!((stream["app"].as_str(), stream["name"].as_str()), (Some("live"), Some("clip")));
    assert_eq!(stream["state"], "live");
    assert_eq!(stream["gop_ms"].as_u64(), Some(2000), "{stream}");
    let track = |kind: &str| {
        let tracks = stream["tracks"].as_array().unwrap();
        tracks.iter().find(|track| track["kind"] == kind).unwrap().clone()
    };
    assert_eq!(
        (track("video")["width"].as_u64(), track("video")["height"].as_u64()),
        (Some(640), Some(360))
    );
    assert_eq!(track("audio")["sample_rate"].as_u64(), Some(48_000));
    assert!(stream["bytes_in"].as_u64() > Some(10_000), "{stream}");

    let metrics = client.get(&gateway.admin("metrics")).text();
    assert!(metrics.contains("# TYPE weir_"), "{metrics}");
    assert!(!metrics.contains("secret") && !stream.to_string().contains("secret"));

    let clients = client.get(&gateway.admin("api/v1/clients")).json();
    let kinds: Vec<&str> =
        clients["clients"].as_array().unwrap().iter().filter_map(|c| c["kind"].as_str()).collect();
    assert!(kinds.contains(&"publisher") && kinds.contains(&"player"), "{clients}");

    let gone = client.delete(&gateway.admin("api/v1/streams/live/clip"));
    assert!((200..300).contains(&gone.status), "{}", gone.text());
    publisher.wait(Duration::from_secs(10));
    let absent = client.delete(&gateway.admin("api/v1/streams/live/absent"));
    assert_eq!(absent.status, 404);
    assert!(absent.json()["error"]["message"].is_string());
    let log = gateway.process().log();
    assert!(!log.contains("secret"), "a token is in the log:\n{log}");
}
