//! What HTTP clients may rely on, whatever they play.

use std::thread;
use std::time::{Duration, Instant};

use weir_e2e::http::Client;
use weir_e2e::playlist::{Playlist, resolve};
use weir_e2e::publisher::Publisher;
use weir_e2e::{Backend, Gateway, wait_until};

on_both_backends!(answers_have_their_headers, reloads_block, a_stream_ends_and_is_gone);

fn answers_have_their_headers(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    let _publisher = Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip", gateway.scratch());
    let url = gateway.http("live/clip.m3u8");
    let playlist = Playlist::parse(&gateway.wait_for("live/clip.m3u8"));
    let segment = resolve(&url, &playlist.segments[0].uri);
    let client = gateway.client();
    for (url, kind) in [
        (url.as_str(), "application/vnd.apple.mpegurl"),
        (segment.as_str(), "video/mp2t"),
        (&gateway.http("live/clip/index.m3u8"), "application/vnd.apple.mpegurl"),
        (&gateway.http("live/clip"), "text/html"),
        (&gateway.http("assets/player.js"), "text/javascript"),
    ] {
        let answer = client.get(url);
        assert_eq!(answer.status, 200, "{url}");
        assert!(answer.header("content-type").unwrap().starts_with(kind), "{url}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{url}");
        assert!(answer.header("cache-control").is_some(), "{url}");
        let head = client.head(url);
        assert_eq!(head.status, 200, "HEAD {url}");
        assert_eq!(head.header("content-type"), answer.header("content-type"), "HEAD {url}");
    }
    let cached = client.get(&segment);
    assert!(cached.header("cache-control").unwrap().contains("immutable"), "{cached:?}");
    assert_eq!(cached.header("content-length"), Some(cached.body.len().to_string().as_str()));
    for absent in
        ["live/absent.m3u8", "live/absent/index.m3u8", "live/absent.flv", "assets/none.js"]
    {
        let answer = client.get(&gateway.http(absent));
        assert_eq!(answer.status, 404, "{absent}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{absent}");
    }
}

fn reloads_block(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    let _publisher = Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip", gateway.scratch());
    let master = gateway.http("live/clip/index.m3u8");
    let variants = Playlist::parse(&gateway.wait_for("live/clip/index.m3u8")).variants;
    let url = resolve(&master, &variants[0]);
    let client = gateway.client();
    for _ in 0..10 {
        let now = Playlist::parse(&client.get(&url).text());
        assert!(now.can_block_reload);
        let (msn, part) = now.next_part();
        let asked = Instant::now();
        let answer = client.get(&format!("{url}?_HLS_msn={msn}&_HLS_part={part}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let next = Playlist::parse(&answer.text());
        assert!(next.next_part() > (msn, part), "{:?} after {:?}", next.next_part(), (msn, part));
        assert!(
            asked.elapsed() < Duration::from_secs(1),
            "a part of 200 ms took {:?}",
            asked.elapsed()
        );
    }
    // Far ahead is the client's mistake, RFC 8216bis §6.2.5.2.
    let (msn, _) = Playlist::parse(&client.get(&url).text()).next_part();
    assert_eq!(client.get(&format!("{url}?_HLS_msn={}", msn + 5)).status, 400);
    assert_eq!(client.get(&format!("{url}?_HLS_part=1")).status, 400);
}

fn a_stream_ends_and_is_gone(backend: Backend) {
    let mut gateway = Gateway::start(backend, &["--resume-window", "2s"]);
    let publisher = Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip", gateway.scratch());
    let url = gateway.http("live/clip.m3u8");
    gateway.wait_for("live/clip.m3u8");
    let client = Client::new(Duration::from_secs(60));
    // A player of FLV gets a clean end.
    let (_, mut body) = client.stream(&gateway.http("live/clip.flv"));
    let player = thread::spawn(move || std::io::copy(&mut body, &mut std::io::sink()));
    publisher.signal("KILL");
    wait_until("ENDLIST", Duration::from_secs(10), || {
        let answer = client.get(&url);
        answer.text().contains("#EXT-X-ENDLIST").then_some(())
    });
    assert!(player.join().unwrap().is_ok(), "the FLV response was cut off");
    wait_until("404", Duration::from_secs(60), || (client.get(&url).status == 404).then_some(()));
    let streams = client.get(&gateway.admin("api/v1/streams")).json();
    assert_eq!(streams["streams"].as_array().map(Vec::len), Some(0), "{streams}");
}
