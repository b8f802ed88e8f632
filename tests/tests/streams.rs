//! Streams over their whole life, with scripted publishers and players on chosen cores.

use std::time::Duration;

use weir_e2e::http_connection::{HttpConnection, Piece};
use weir_e2e::media::{self, GOP, Mark, frames, marks, pictures};
use weir_e2e::playlist::Playlist;
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, fetch, marks_to, playlist, publish};
use weir_e2e::{Backend, Gateway, wait_until};
use weir_protocol::flv::TagKind;

const MEDIA: &str = "/live/a/media.m3u8";

fn start(backend: Backend) -> Gateway {
    Gateway::start(backend, &[&QUICK[..], &["--cores", "2"]].concat())
}

/// All marks of `tags`, video and audio.
fn sent(publisher: u8, from: u32, to: u32) -> Vec<Mark> {
    frames(publisher, from, to).iter().flat_map(|tag| marks(&tag.body)).collect()
}

#[test]
fn what_is_published_comes_out_on_every_core_in_every_format() {
    for backend in Backend::ALL {
        let gateway = start(backend);
        for (name, owner) in [("first", 0), ("second", 1)] {
            let mut publisher = gateway.rtmp_on_core(owner);
            publish(&mut publisher, name);
            let last = 5 * GOP + 3;
            publisher.send(&frames(1, 0, last));
            wait_until("the owner in the API", SOON, || {
                let stream = gateway.stream(&format!("live/{name}"))?;
                (stream["core"] == owner && stream["bytes_in"].as_u64()? > 50_000).then_some(())
            });
            for core in [0, 1] {
                let next = last + u32::try_from(core).expect("few");
                live_players_on(&gateway, name, core, &mut publisher, next);
                hls_on(&gateway, name, core, 5 * GOP);
            }
        }
    }
}

/// New FLV and RTMP players begin at the newest keyframe at once, while nothing more is published.
fn live_players_on(
    gateway: &Gateway,
    name: &str,
    core: u64,
    publisher: &mut RtmpClient,
    last: u32,
) {
    let begin = last / GOP * GOP;
    let expected = sent(1, begin, last);
    let connection = HttpConnection::over(gateway.connect_on_core("http", core));
    let mut flv = FlvPlayer::start(connection, &format!("/live/{name}.flv"));
    let first = std::iter::from_fn(|| flv.next_tag()).find(|tag| tag.kind == TagKind::Video);
    assert_eq!(first.expect("a tag").body[1], 0, "the sequence header goes before pictures");
    let seen = flv.marks_to(1, last - 1);
    assert_eq!(pictures(&seen, 1), pictures(&expected, 1), "core {core}");

    let mut rtmp = gateway.rtmp_on_core(core);
    assert_eq!(rtmp.ask_to_play(name), "NetStream.Play.Start");
    let seen = marks_to(1, last - 1, || rtmp.next_media());
    assert_eq!(pictures(&seen, 1), pictures(&expected, 1), "core {core}");
    // Whole bodies, byte for byte.
    let next = frames(1, last, last + 1);
    publisher.send(&next);
    for sent in &next {
        let mut same =
            || std::iter::from_fn(|| rtmp.next_media()).find(|tag| tag.kind == sent.kind);
        let mut got = same().expect("a tag");
        while marks(&got.body) < marks(&sent.body) {
            got = same().expect("a tag");
        }
        assert_eq!(got.body, sent.body, "core {core}");
    }
    flv.marks_to(1, last);
    let players = gateway.stream(&format!("live/{name}")).expect("the stream")["players"].clone();
    assert!(players["flv"].as_u64() >= Some(1) && players["rtmp"].as_u64() >= Some(1), "{players}");
}

/// Every access unit of the whole segments is there once, in order, in both formats.
fn hls_on(gateway: &Gateway, name: &str, core: u64, to: u32) {
    let (media, ts_path) = (format!("/live/{name}/media.m3u8"), format!("/live/{name}.m3u8"));
    let mut http = HttpConnection::over(gateway.connect_on_core("http", core));
    let fmp4 = playlist(&mut http, &media);
    let bytes: Vec<u8> =
        fmp4.segments.iter().flat_map(|segment| fetch(&mut http, &media, &segment.uri)).collect();
    let first = pictures(&marks(&bytes), 1)[0];
    assert!(first.is_multiple_of(GOP));
    assert_eq!(pictures(&marks(&bytes), 1), (first..to).collect::<Vec<_>>(), "core {core}");
    for part in fmp4.segments.iter().flat_map(|segment| &segment.parts) {
        assert!(!marks(&fetch(&mut http, &media, &part.uri)).is_empty(), "core {core}");
    }
    let ts = playlist(&mut http, &ts_path);
    let bytes: Vec<u8> =
        ts.segments.iter().flat_map(|segment| fetch(&mut http, &ts_path, &segment.uri)).collect();
    let payloads = media::ts_payloads(&bytes);
    let video = payloads.values().find(|bytes| !pictures(&marks(bytes), 1).is_empty());
    let video = video.expect("a video PID");
    assert_eq!(pictures(&marks(video), 1), (first..to).collect::<Vec<_>>(), "core {core}");
    let whole = media::picture(1, first, 9000);
    assert!(video.windows(whole.len()).any(|bytes| bytes == whole), "a keyframe in TS");
}

/// Each way of leaving.
const WAYS: [&str; 5] = ["FIN", "RST", "deleteStream", "FCUnpublish", "closeStream"];

/// Gives the connection back where it stays open.
fn leave(mut client: RtmpClient, way: &str) -> Option<RtmpClient> {
    let stream = client.message_stream;
    match way {
        "FIN" => client.finish(),
        "RST" => {
            client.reset();
            return None;
        }
        "deleteStream" => client.command(0, way, vec![f64::from(stream).into()]),
        "FCUnpublish" => client.command(0, way, vec!["a".into()]),
        _ => client.command(stream, way, vec![]),
    }
    Some(client)
}

#[test]
fn a_publisher_may_come_back_however_it_left() {
    for backend in Backend::ALL {
        let gateway = start(backend);
        for way in WAYS {
            resume(&gateway, way);
        }
    }
}

fn resume(gateway: &Gateway, name: &str) {
    let path = format!("/live/{name}/media.m3u8");
    let mut first = gateway.rtmp_client();
    publish(&mut first, name);
    first.send(&frames(1, 0, 3 * GOP));
    let mut player = FlvPlayer::start(gateway.http_connection(), &format!("/live/{name}.flv"));
    player.marks_to(1, 3 * GOP - 1);
    let _kept = leave(first, name);
    wait_until("the publisher's absence", SOON, || {
        let stream = gateway.stream(&format!("live/{name}"))?;
        (stream["state"] == "resuming" && stream["publisher"].is_null()).then_some(())
    });
    let mut http = gateway.http_connection();
    let before = playlist(&mut http, &path);
    assert!(!before.ended, "{name}");

    let mut second = gateway.rtmp_client();
    publish(&mut second, name);
    second.send(&frames(2, 0, 3 * GOP));
    let seen = player.marks_to(2, 3 * GOP - 1);
    assert_eq!(pictures(&seen, 2), (0..3 * GOP).collect::<Vec<_>>(), "{name}");
    let after = wait_until("a segment after the pause", SOON, || {
        let after = playlist(&mut http, &path);
        (after.next_part().0 > before.next_part().0 + 1).then_some(after)
    });
    assert_eq!(after.discontinuities(), 1, "{name}: {after:#?}");
    let kept = |playlist: &Playlist| playlist.segments[0].uri.clone();
    assert_eq!(kept(&after), kept(&before), "{name}: the playlist goes on");
    second.finish();
}

#[test]
fn a_connection_may_publish_again_after_it_has_stopped() {
    for backend in Backend::ALL {
        let gateway = start(backend);
        for name in ["FCUnpublish", "closeStream"] {
            let mut client = gateway.rtmp_client();
            publish(&mut client, name);
            client.send(&frames(1, 0, GOP));
            let path = format!("/live/{name}.flv");
            let mut player = FlvPlayer::start(gateway.http_connection(), &path);
            player.marks_to(1, GOP - 1);
            let mut client = leave(client, name).expect("an open connection");
            assert_eq!(client.next_status().as_deref(), Some("NetStream.Unpublish.Success"));
            publish(&mut client, name);
            client.send(&frames(2, 0, GOP));
            player.marks_to(2, GOP - 1);
        }
    }
}

#[test]
fn without_a_resume_window_a_stream_ends_with_its_publisher() {
    for backend in Backend::ALL {
        let gateway = Gateway::start(backend, &["--resume-window", "0s", "--cores", "2"]);
        for round in 0..3 {
            let mut publisher = gateway.rtmp_on_core(u64::from(round) % 2);
            publish(&mut publisher, "a");
            publisher.send(&frames(round, 0, GOP + 1));
            let mut players = [0, 1]
                .map(|core| HttpConnection::over(gateway.connect_on_core("http", core)))
                .map(|connection| FlvPlayer::start(connection, "/live/a.flv"));
            players.iter_mut().for_each(|player| drop(player.marks_to(round, GOP)));
            publisher.finish();
            for player in &mut players {
                player.marks_to_end();
                assert_eq!(player.end, Some(Piece::End));
            }
        }
    }
}

#[test]
fn a_stream_without_its_publisher_ends_cleanly_and_can_begin_again() {
    for backend in Backend::ALL {
        let gateway = start(backend);
        let mut publisher = gateway.rtmp_on_core(0);
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, 3 * GOP));
        let players = |core| {
            let http = HttpConnection::over(gateway.connect_on_core("http", core));
            let flv = FlvPlayer::start(http, "/live/a.flv");
            let mut rtmp = gateway.rtmp_on_core(core);
            assert_eq!(rtmp.ask_to_play("a"), "NetStream.Play.Start");
            (flv, rtmp)
        };
        let mut all = [players(0), players(1)];
        let mut http =
            [0, 1].map(|core| HttpConnection::over(gateway.connect_on_core("http", core)));
        let live = playlist(&mut http[0], MEDIA);
        let asked = format!("{MEDIA}?_HLS_msn={}", live.next_part().0 + 1);
        http.iter_mut().for_each(|connection| connection.ask("GET", &asked, ""));
        publisher.finish();

        for (flv, rtmp) in &mut all {
            assert_eq!(pictures(&flv.marks_to_end(), 1).last(), Some(&(3 * GOP - 1)));
            assert_eq!(flv.end, Some(Piece::End), "the body ends as HTTP says");
            let seen: Vec<Mark> =
                std::iter::from_fn(|| rtmp.next_media()).flat_map(|tag| marks(&tag.body)).collect();
            assert_eq!(pictures(&seen, 1).last(), Some(&(3 * GOP - 1)));
            // The connection of an FLV player takes the next request.
            assert_eq!(flv.connection().get("/live/a/nothing.m3u8").status, 404);
            let client =
                gateway.client_at("http", flv.connection().local_addr()).expect("connected");
            assert_eq!(client["kind"], "connection", "{client}");
        }
        for connection in &mut http {
            let text = connection.answer("GET").text();
            assert!(text.contains("#EXT-X-ENDLIST"), "{text}");
            let last = Playlist::parse(&text);
            let segment = last.segments.last().expect("a segment");
            assert!(!marks(&fetch(connection, MEDIA, &segment.uri)).is_empty());
            assert_eq!(connection.get("/live/a.flv").status, 404, "nobody can join any more");
        }
        let ended = playlist(&mut http[0], MEDIA);
        // A name can be had again while its end can still be fetched, on another core too.
        let mut again = gateway.rtmp_on_core(1);
        publish(&mut again, "a");
        again.send(&frames(2, 0, 3 * GOP));
        for connection in &mut http {
            let new = wait_until("the new stream", SOON, || {
                let new = playlist(connection, MEDIA);
                (!new.ended).then_some(new)
            });
            assert!(new.media_sequence >= ended.next_part().0, "MSN goes on");
        }
        again.finish();
        wait_until("404 after the stream", Duration::from_secs(40), || {
            let gone = |connection: &mut HttpConnection| connection.get(MEDIA).status == 404;
            // Both each time: an idle connection would be closed.
            (http.iter_mut().map(gone).filter(|gone| *gone).count() == 2).then_some(())
        });
        assert_eq!(gateway.api("streams")["streams"], serde_json::json!([]));
    }
}

#[test]
fn all_forms_of_an_address_are_one_stream() {
    for backend in Backend::ALL {
        let gateway = start(backend);
        let address = |app: &str| gateway.rtmp(app);
        let forms = [
            ("live", address("live"), "a"),
            ("live", address("live"), "a?token=x"),
            ("live/", address("live/"), "a"),
            ("live//", address("live//"), "/a/"),
            ("live/a", address("live/a"), ""),
            ("live/a?token=x", address("live/a?token=x"), ""),
            ("live?token=x", address("live?token=x"), "a"),
        ];
        for (number, (app, tc_url, key)) in forms.iter().enumerate() {
            let number = u8::try_from(number).expect("few");
            let mut client = RtmpClient::connect(gateway.socket_addr("rtmp"));
            client.open(app, tc_url);
            publish(&mut client, key);
            client.send(&frames(number, 0, GOP));
            let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
            player.marks_to(number, GOP - 1);
            let streams = gateway.api("streams");
            assert_eq!(streams["streams"].as_array().map(Vec::len), Some(1), "{app} {key}");
            assert!(!streams.to_string().contains("token"), "{streams}");
        }
        assert!(!gateway.api("clients").to_string().contains("token"));
    }
}
