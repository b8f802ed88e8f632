//! What operators see and do, with real connections behind it.

use serde_json::{Value, json};
use weir_e2e::http_connection::{HttpConnection, Piece};
use weir_e2e::media::{GOP, frames};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, playlist, publish};
use weir_e2e::{Backend, Gateway, wait_until};

const MEDIA: &str = "/live/a/media.m3u8";
const TS: &str = "/live/a.m3u8";
const LAST: u32 = 4 * GOP - 1;

fn start(backend: Backend) -> (Gateway, RtmpClient) {
    let gateway = Gateway::start(backend, &[&QUICK[..], &["--cores", "2"]].concat());
    let mut publisher = gateway.rtmp_on_core(1);
    publish(&mut publisher, "a");
    publisher.send(&frames(1, 0, LAST + 1));
    (gateway, publisher)
}

fn flv_on(gateway: &Gateway, core: u64) -> FlvPlayer {
    let connection = HttpConnection::over(gateway.connect_on_core("http", core));
    let mut player = FlvPlayer::start(connection, "/live/a.flv");
    player.marks_to(1, LAST);
    player
}

fn id_of(gateway: &Gateway, listener: &str, address: std::net::SocketAddr) -> Value {
    gateway.client_at(listener, address).expect("the client in the API")["id"].clone()
}

fn delete(gateway: &Gateway, path: &str) -> u16 {
    gateway.client().delete(&gateway.admin(&format!("api/v1/{path}"))).status
}

#[test]
fn streams_and_clients_are_told_as_they_are() {
    for backend in Backend::ALL {
        let (gateway, publisher) = start(backend);
        let mut flv = [0, 1, 1].map(|core| flv_on(&gateway, core));
        let mut rtmp = gateway.rtmp_on_core(0);
        assert_eq!(rtmp.ask_to_play("a"), "NetStream.Play.Start");
        for core in [0, 1] {
            // Another user agent is another player, wherever it asks.
            let mut http = HttpConnection::over(gateway.connect_on_core("http", core));
            assert_eq!(http.exchange("GET", TS, "User-Agent: plain\r\n").status, 200);
            let agent = format!("User-Agent: low-latency-{core}\r\n");
            let (msn, _) = playlist(&mut http, MEDIA).next_part();
            let reload = format!("{MEDIA}?_HLS_msn={}", msn - 1);
            assert_eq!(http.exchange("GET", &reload, &agent).status, 200);
        }
        let stream = gateway.stream("live/a").expect("the stream");
        assert_eq!((&stream["app"], &stream["name"]), (&json!("live"), &json!("a")));
        assert_eq!((&stream["state"], &stream["core"]), (&json!("live"), &json!(1)));
        assert_eq!(stream["gop_ms"], 500, "{stream}");
        assert_eq!(stream["publisher"]["address"], publisher.local_addr().to_string());
        assert_eq!(stream["publisher"]["encoder"], "weir-e2e");
        let kinds: Vec<&Value> =
            stream["tracks"].as_array().expect("tracks").iter().map(|t| &t["codec"]).collect();
        assert_eq!(kinds.len(), 2, "{stream}");
        assert_eq!((&stream["players"]["flv"], &stream["players"]["rtmp"]), (&json!(3), &json!(1)));
        assert_eq!(stream["players"]["ll_hls"], 2, "{stream}");
        assert!(stream["players"]["hls"].as_u64() >= Some(2), "{stream}");

        for player in &mut flv {
            let client =
                gateway.client_at("http", player.connection().local_addr()).expect("a client");
            let told = (&client["kind"], &client["protocol"], &client["stream"]);
            assert_eq!(told, (&json!("player"), &json!("flv"), &json!("live/a")), "{client}");
        }
        let client = gateway.client_at("rtmp", rtmp.local_addr()).expect("a client");
        assert_eq!((&client["kind"], &client["core"]), (&json!("player"), &json!(0)), "{client}");
        let client = gateway.client_at("rtmp", publisher.local_addr()).expect("a client");
        assert_eq!(
            (&client["kind"], &client["core"]),
            (&json!("publisher"), &json!(1)),
            "{client}"
        );
        assert_eq!(client["stream"], "live/a");

        drop(flv);
        rtmp.reset();
        wait_until("the players' leaving", SOON, || {
            let players = gateway.stream("live/a")?["players"].clone();
            (players["flv"] == 0 && players["rtmp"] == 0).then_some(())
        });
    }
}

/// A connection that publishes and plays at once is told as a publisher, then as what is left of it,
/// in whatever order it leaves off.
#[test]
fn a_publisher_that_plays_is_told_as_what_it_is() {
    for backend in Backend::ALL {
        let gateway = Gateway::start(backend, &QUICK);
        let mut other = gateway.rtmp_client();
        publish(&mut other, "a");
        other.send(&frames(1, 0, GOP));
        let mut both = gateway.rtmp_client();
        let publishes = both.message_stream;
        let plays = publishes + 1;
        let is = |both: &RtmpClient, kind: &str, stream: Value| {
            wait_until(kind, SOON, || {
                let client = gateway.client_at("rtmp", both.local_addr())?;
                (client["kind"] == kind && client["stream"] == stream).then_some(())
            });
        };
        publish(&mut both, "b");
        is(&both, "publisher", json!("live/b"));
        let play = |both: &mut RtmpClient| {
            both.message_stream = plays;
            assert_eq!(both.ask_to_play("a"), "NetStream.Play.Start");
            let client = gateway.client_at("rtmp", both.local_addr()).expect("the client");
            assert_eq!(client["kind"], "publisher", "{client}");
            assert_eq!(client["stream"], "live/b", "{client}");
        };
        play(&mut both);
        both.command(plays, "closeStream", Vec::new());
        assert_eq!(both.next_status().as_deref(), Some("NetStream.Play.Stop"));
        is(&both, "publisher", json!("live/b"));
        play(&mut both);
        both.command(publishes, "closeStream", Vec::new());
        is(&both, "player", json!("live/a"));
        both.command(plays, "closeStream", Vec::new());
        is(&both, "connection", Value::Null);
    }
}

#[test]
fn metrics_move() {
    for backend in Backend::ALL {
        let (gateway, mut publisher) = start(backend);
        let video = wait_until("all media", SOON, || {
            let video = gateway.metric("weir_access_units_total", "video");
            let audio = gateway.metric("weir_access_units_total", "audio");
            (video == f64::from(LAST + 1) && audio == 2.0 * video).then_some(video)
        });
        let _player = flv_on(&gateway, 0);
        let playlists = gateway.metric("weir_hls_requests_total", "playlist");
        let ok = gateway.metric("weir_http_responses_total", "2xx");
        let absent = gateway.metric("weir_http_responses_total", "4xx");
        let mut http = gateway.http_connection();
        playlist(&mut http, MEDIA);
        assert_eq!(http.get("/live/none.flv").status, 404);
        assert_eq!(gateway.metric("weir_hls_requests_total", "playlist"), playlists + 1.0);
        assert_eq!(gateway.metric("weir_http_responses_total", "2xx"), ok + 1.0);
        assert_eq!(gateway.metric("weir_http_responses_total", "4xx"), absent + 1.0);
        // Gauges and byte counts are brought up to date once a second.
        wait_until("the gauges", SOON, || {
            let all = gateway.metric("weir_streams", "") == 1.0
                && gateway.metric("weir_publishers", "") == 1.0
                && gateway.metric("weir_players", "\"flv\"") == 1.0
                && gateway.metric("weir_connections{", "rtmp") == 1.0
                && gateway.metric("weir_bytes_in_total", "rtmp") > 20_000.0
                && gateway.metric("weir_bytes_out_total", "http") > 9_000.0;
            all.then_some(())
        });
        publisher.send(&frames(1, LAST + 1, LAST + 11));
        wait_until("ten more pictures", SOON, || {
            (gateway.metric("weir_access_units_total", "video") == video + 10.0).then_some(())
        });
    }
}

#[test]
fn a_client_that_is_disconnected_is_gone_and_nobody_else() {
    for backend in Backend::ALL {
        let (gateway, mut publisher) = start(backend);
        let mut kicked = flv_on(&gateway, 0);
        let mut other = flv_on(&gateway, 0);
        let mut rtmp = gateway.rtmp_on_core(0);
        assert_eq!(rtmp.ask_to_play("a"), "NetStream.Play.Start");

        let id = id_of(&gateway, "http", kicked.connection().local_addr());
        assert_eq!(delete(&gateway, &format!("clients/{id}")), 204);
        kicked.marks_to_end();
        assert_eq!(kicked.end, Some(Piece::Cut));
        let id = id_of(&gateway, "rtmp", rtmp.local_addr());
        assert_eq!(delete(&gateway, &format!("clients/{id}")), 204);
        while rtmp.next_message().is_some() {}
        wait_until("404 for one that is gone", SOON, || {
            (delete(&gateway, &format!("clients/{id}")) == 404).then_some(())
        });
        publisher.send(&frames(1, LAST + 1, LAST + 2));
        other.marks_to(1, LAST + 1);

        let id = id_of(&gateway, "rtmp", publisher.local_addr());
        assert_eq!(delete(&gateway, &format!("clients/{id}")), 204);
        assert_eq!(publisher.codes_to_the_end(), ["NetStream.Publish.Rejected"]);
        let mut again = gateway.rtmp_client();
        publish(&mut again, "a");
        again.send(&frames(2, 0, GOP));
        other.marks_to(2, GOP - 1);
        for wrong in ["clients/0", "clients/18446744073709551615", "clients/x", "streams/live/none"]
        {
            assert_eq!(delete(&gateway, wrong), 404, "{wrong}");
        }
    }
}

#[test]
fn a_stream_that_is_ended_ends_for_everybody() {
    for backend in Backend::ALL {
        let (gateway, mut publisher) = start(backend);
        let mut players = [0, 1].map(|core| flv_on(&gateway, core));
        let mut rtmp = gateway.rtmp_on_core(0);
        assert_eq!(rtmp.ask_to_play("a"), "NetStream.Play.Start");
        let mut held =
            [0, 1].map(|core| HttpConnection::over(gateway.connect_on_core("http", core)));
        let (msn, _) = playlist(&mut held[0], MEDIA).next_part();
        for connection in &mut held {
            connection.ask("GET", &format!("{MEDIA}?_HLS_msn={}", msn + 1), "");
        }
        assert_eq!(delete(&gateway, "streams/live/a"), 204);
        assert_eq!(publisher.codes_to_the_end(), ["NetStream.Publish.Rejected"]);
        for player in &mut players {
            player.marks_to_end();
            assert_eq!(player.end, Some(Piece::End));
        }
        while rtmp.next_media().is_some() {}
        for connection in &mut held {
            let text = connection.answer("GET").text();
            assert!(text.contains("#EXT-X-ENDLIST"), "{text}");
        }
        assert_eq!(gateway.stream("live/a").expect("its end")["state"], "ended");
        assert_eq!(delete(&gateway, "streams/live/a"), 404, "it has ended already");
    }
}
