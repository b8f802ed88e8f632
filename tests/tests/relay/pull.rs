//! Pulls from other gateways.

use weir_e2e::media::{GOP, frames, pictures};
use weir_e2e::playlist::Playlist;
use weir_e2e::script::{FlvPlayer, SOON, publish};
use weir_e2e::{Backend, Gateway, Reserved, wait_until};

use crate::{
    Relays, beside, beside_at, is_live, kill, relay_when, relays, start, wait_for_no_publisher,
    wait_for_publisher,
};

fn player(gateway: &Gateway, stream: &str) -> FlvPlayer {
    FlvPlayer::start(gateway.http_connection(), &format!("/{stream}.flv"))
}

#[test]
fn what_is_always_pulled_comes_back_with_its_server() {
    for backend in Backend::ALL {
        let holder = start(backend);
        let reserved = Reserved::take();
        let rtmp = reserved.address;
        let mut upstream = beside_at(&holder, backend, rtmp);
        let rules = Relays::default().pull("in/a", &format!("rtmp://{rtmp}/live/a"), "always");
        let edge = beside(&holder, backend, &rules, &["--resume-window", "60s"]);
        // The server does not have it yet.
        let absent = |relay: &serde_json::Value| relay["last_error"].is_string();
        relay_when(&edge, "a pull of nothing", rtmp, absent);
        assert!(edge.stream("in/a").is_none());
        let mut publisher = upstream.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let stream = wait_for_publisher(&edge, "in/a");
        assert_eq!(stream["publisher"]["role"], "pull", "{stream}");
        assert_eq!(stream["publisher"]["address"], rtmp.to_string(), "{stream}");
        relay_when(&edge, "a live pull", rtmp, is_live);
        let mut watching = player(&edge, "in/a");
        publisher.send(&frames(1, GOP, 2 * GOP));
        let seen = pictures(&watching.marks_to(1, 2 * GOP - 1), 1);
        assert_eq!(seen, (seen[0]..2 * GOP).collect::<Vec<_>>());

        kill(&mut upstream);
        wait_for_no_publisher(&edge, "in/a");
        let upstream = beside_at(&holder, backend, rtmp);
        let mut publisher = upstream.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(2, 0, GOP));
        assert_eq!(pictures(&watching.marks_to(2, GOP - 1), 2), (0..GOP).collect::<Vec<_>>());
        let relay = relay_when(&edge, "a live pull", rtmp, is_live);
        assert!(relay["reconnects"].as_u64() > Some(0), "{relay}");
    }
}

#[test]
fn a_publisher_wins_over_a_pull_and_the_pull_comes_back_after_it() {
    for backend in Backend::ALL {
        let upstream = start(backend);
        let rtmp = upstream.socket_addr("rtmp");
        let mut publisher = upstream.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let rules = Relays::default().pull("live/a", &format!("rtmp://{rtmp}/live/a"), "always");
        let edge = beside(&upstream, backend, &rules, &["--resume-window", "60s"]);
        wait_for_publisher(&edge, "live/a");
        let mut watching = player(&edge, "live/a");
        watching.marks_to(1, GOP - 1);
        for core in [0, 1] {
            let mut local = edge.rtmp_on_core(core);
            publish(&mut local, "a");
            local.send(&frames(2, 0, GOP));
            watching.marks_to(2, GOP - 1);
            let standby = |relay: &serde_json::Value| relay["state"] == "standby";
            relay_when(&edge, "a pull that stands back", rtmp, standby);
            let stream = edge.stream("live/a").expect("the stream");
            assert_eq!(stream["publisher"]["role"], "publisher", "{stream}");
            local.finish();
            relay_when(&edge, "a live pull", rtmp, is_live);
            watching.marks_to(1, GOP - 1);
        }
    }
}

#[test]
fn players_fetch_a_stream_and_it_goes_with_the_last_of_them() {
    for backend in Backend::ALL {
        let upstream = start(backend);
        let rtmp = upstream.socket_addr("rtmp");
        let url = format!("rtmp://{rtmp}/{{app}}/{{name}}?token=secret");
        let rules = Relays::default().pull("live/*", &url, "demand").with("linger", "1s");
        let edge = beside(&upstream, backend, &rules, &[]);
        let mut publishers = ["flv", "rtmp", "hls"].map(|name| {
            let mut publisher = upstream.rtmp_client();
            publish(&mut publisher, name);
            publisher.send(&frames(1, 0, 3 * GOP));
            publisher
        });
        assert_eq!(relays(&edge).len(), 0);
        // Players on both cores share one pull.
        let mut flv = [0, 1].map(|core| {
            let http =
                weir_e2e::http_connection::HttpConnection::over(edge.connect_on_core("http", core));
            FlvPlayer::start(http, "/live/flv.flv")
        });
        flv.iter_mut().for_each(|player| drop(player.marks_to(1, 3 * GOP - 1)));
        let mut rtmp_player = edge.rtmp_client();
        assert_eq!(rtmp_player.ask_to_play("rtmp"), "NetStream.Play.Start");
        weir_e2e::script::marks_to(1, 3 * GOP - 1, || rtmp_player.next_media());
        let mut http = edge.http_connection();
        http.ask("GET", "/live/hls/media.m3u8", "");
        wait_for_publisher(&edge, "live/hls");
        assert_eq!(relays(&edge).len(), 3, "{:?}", relays(&edge));
        assert!(!edge.api("relays").to_string().contains("secret"));
        for publisher in &mut publishers {
            publisher.send(&frames(1, 3 * GOP, 4 * GOP));
        }
        flv.iter_mut().for_each(|player| drop(player.marks_to(1, 4 * GOP - 1)));

        publishers[2].send(&frames(1, 4 * GOP, 6 * GOP));
        let list = Playlist::parse(&http.answer("GET").text());
        assert!(!list.segments.is_empty());

        drop((flv, rtmp_player, http));
        let patience = SOON * 3;
        wait_until("the end of all pulls", patience, || relays(&edge).is_empty().then_some(()));
        let players =
            |name: &str| upstream.stream(&format!("live/{name}")).expect("it")["players"].clone();
        for name in ["flv", "rtmp", "hls"] {
            wait_until("no player upstream", SOON, || (players(name)["rtmp"] == 0).then_some(()));
        }
        // And again: what has ended begins anew.
        let mut flv = player(&edge, "live/flv");
        flv.marks_to(1, 4 * GOP - 1);
    }
}

#[test]
fn a_flood_of_absent_names_is_bounded_and_leaves_nothing() {
    for backend in Backend::ALL {
        let upstream = start(backend);
        let url = format!("rtmp://{}/live/{{name}}", upstream.socket_addr("rtmp"));
        let rules = Relays::default().pull("live/*", &url, "demand");
        let edge = beside(&upstream, backend, &rules, &[]);
        let accepted = || upstream.metric("weir_connections_total", "rtmp");
        let before = accepted();
        let began = std::time::Instant::now();
        let mut http = edge.http_connection();
        for round in 0..2 {
            for number in 0..400 {
                let path = format!("/live/absent-{number}.flv");
                assert_eq!(http.get(&path).status, 404, "{path} {round}");
            }
        }
        // One attempt per name at most in three seconds, and twenty in each second.
        let most = 20.0 * (began.elapsed().as_secs_f64() + 2.0);
        let attempts = accepted() - before;
        assert!(attempts >= 1.0 && attempts <= most, "{attempts} attempts, at most {most}");
        assert!(edge.metric("weir_pulls_refused_total", "") > 0.0);
        wait_until("no relays", SOON, || relays(&edge).is_empty().then_some(()));
        assert_eq!(edge.api("streams")["streams"], serde_json::json!([]));
        // What is there can still be had.
        let mut publisher = upstream.rtmp_client();
        publish(&mut publisher, "here");
        publisher.send(&frames(1, 0, GOP));
        wait_until("the stream", SOON, || {
            (edge.http_connection().exchange("HEAD", "/live/here.flv", "").status == 200)
                .then_some(())
        });
        player(&edge, "live/here").marks_to(1, GOP - 1);
    }
}
