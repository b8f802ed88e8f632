//! Pushes to other gateways.

use std::collections::BTreeMap;

use weir_e2e::media::{self, GOP, Mark, frame, frames, marks, pictures};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::rtmp_server::RtmpServer;
use weir_e2e::script::{FlvPlayer, SOON, publish};
use weir_e2e::{Backend, Gateway, Reserved, wait_until};
use weir_protocol::flv::{Tag, TagKind};
use weir_protocol::rtmp::Event;

use crate::{
    Relays, beside, beside_at, is_live, kill, process_log, relay_when, relays, start,
    wait_for_no_publisher, wait_for_publisher,
};

fn player(gateway: &Gateway, stream: &str) -> FlvPlayer {
    FlvPlayer::start(gateway.http_connection(), &format!("/{stream}.flv"))
}

/// Whole tag bodies by the mark that they hold, up to this picture.
fn bodies(player: &mut FlvPlayer, publisher: u8, last: u32) -> BTreeMap<Mark, Vec<u8>> {
    let mut found = BTreeMap::new();
    let end = Mark { publisher, number: last, video: true };
    while !found.contains_key(&end) {
        let tag = player.next_tag().expect("the stream goes on");
        let body = tag.body.to_vec();
        found.extend(marks(&body).into_iter().map(|mark| (mark, body.clone())));
    }
    found
}

#[test]
fn frames_arrive_as_they_are_at_every_target_and_pushes_outlast_a_takeover() {
    for backend in Backend::ALL {
        let first = start(backend);
        let second = first.beside(backend, &crate::BASE);
        let rules = Relays::default()
            .push(
                "live/*",
                &format!("rtmp://{}/copy/{{name}}?key=secret", first.socket_addr("rtmp")),
            )
            .push("live/a", &format!("rtmp://{}/x/y", second.socket_addr("rtmp")))
            .push("*/a", &format!("rtmp://{}/x/y", second.socket_addr("rtmp")));
        let mut origin = beside(&first, backend, &rules, &[]);
        let mut publisher = origin.rtmp_on_core(0);
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        wait_for_publisher(&first, "copy/a");
        wait_for_publisher(&second, "x/y");
        let mut players =
            [player(&origin, "live/a"), player(&first, "copy/a"), player(&second, "x/y")];
        publisher.send(&frames(1, GOP, 3 * GOP));
        let [here, there, elsewhere] =
            players.each_mut().map(|player| bodies(player, 1, 3 * GOP - 1));
        let newest = Mark { publisher: 1, number: 2 * GOP, video: true };
        for copy in [there, elsewhere] {
            assert!(copy.contains_key(&newest));
            assert!(copy.iter().all(|(mark, body)| here.get(mark).is_none_or(|b| b == body)));
        }
        for address in [first.socket_addr("rtmp"), second.socket_addr("rtmp")] {
            let relay = relay_when(&origin, "a live push", address, is_live);
            assert_eq!((&relay["app"], &relay["name"]), (&"live".into(), &"a".into()), "{relay}");
            assert!(relay["bytes"].as_u64() > Some(10_000), "{relay}");
            assert_eq!((&relay["direction"], &relay["reconnects"]), (&"push".into(), &0.into()));
        }
        wait_until("two pushes in the metrics", SOON, || {
            (origin.metric("weir_pushes", "live") == 2.0).then_some(())
        });
        assert!(!origin.api("relays").to_string().contains("secret"));

        // On another core: the pushes stay as they are.
        let mut next = origin.rtmp_on_core(1);
        publish(&mut next, "a");
        next.send(&frames(2, 0, 2 * GOP));
        for player in &mut players {
            let seen = player.marks_to(2, 2 * GOP - 1);
            assert_eq!(pictures(&seen, 2), (0..2 * GOP).collect::<Vec<_>>());
        }
        assert!(relays(&origin).iter().all(|relay| relay["reconnects"] == 0 && is_live(relay)));

        next.finish();
        wait_for_no_publisher(&first, "copy/a");
        wait_for_no_publisher(&second, "x/y");
        wait_until("no relays", SOON, || relays(&origin).is_empty().then_some(()));
        assert!(!process_log(&mut origin).contains("secret"));
    }
}

#[test]
fn a_target_may_come_late_and_come_back() {
    for backend in Backend::ALL {
        let holder = start(backend);
        let reserved = Reserved::take();
        let rtmp = reserved.address;
        let url = format!("rtmp://{rtmp}/live/a");
        let origin = beside(&holder, backend, &Relays::default().push("live/a", &url), &[]);
        let mut publisher = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let refused = |relay: &serde_json::Value| {
            relay["state"] == "waiting" && relay["last_error"].is_string()
        };
        let relay = relay_when(&origin, "a push that waits", rtmp, refused);
        assert!(relay["retry_in_ms"].is_u64(), "{relay}");
        assert!(origin.metric("weir_relay_failures_total", "connect") >= 1.0);

        let mut sent = GOP;
        for round in 0..2 {
            let mut target = beside_at(&holder, backend, rtmp);
            let relay = relay_when(&origin, "a live push", rtmp, is_live);
            assert!(relay["reconnects"].as_u64() > Some(round), "{relay}");
            wait_for_publisher(&target, "live/a");
            let mut player = player(&target, "live/a");
            publisher.send(&frames(1, sent, sent + GOP));
            sent += GOP;
            let seen = pictures(&player.marks_to(1, sent - 1), 1);
            assert!(seen[0].is_multiple_of(GOP), "{seen:?}");
            assert_eq!(seen, (seen[0]..sent).collect::<Vec<_>>());
            kill(&mut target);
            relay_when(&origin, "a push that waits", rtmp, refused);
        }
    }
}

#[test]
fn a_refused_key_is_not_tried_often_and_never_told() {
    for backend in Backend::ALL {
        let server = RtmpServer::listen();
        let holder = start(backend);
        let url = format!("rtmp://{}/app/stream-key?token=sesame", server.address());
        let rules = Relays::default().push("live/a", &url);
        let mut origin = beside(&holder, backend, &rules, &[]);
        let mut publisher = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let mut client = server.accept();
        client.reject_publish("NetStream.Publish.BadName", "stream-key?token=sesame is wrong");
        let refused = |relay: &serde_json::Value| relay["retry_in_ms"].as_u64() > Some(20_000);
        let relay = relay_when(&origin, "a patient push", server.address(), refused);
        let error = relay["last_error"].as_str().expect("an error");
        assert!(error.contains("NetStream.Publish.BadName"), "{relay}");
        assert_eq!(origin.metric("weir_relay_failures_total", "refused"), 1.0);
        let log = process_log(&mut origin);
        for text in [&relay.to_string(), &log] {
            assert!(!text.contains("stream-key") && !text.contains("sesame"), "{text}");
        }
        assert_eq!(log.lines().filter(|line| line.contains("BadName")).count(), 1, "{log}");
    }
}

/// What a server that speaks Enhanced RTMP or not is told, and that the end is said as encoders do.
#[test]
fn a_target_is_told_the_end() {
    for backend in Backend::ALL {
        let server = RtmpServer::listen();
        let holder = start(backend);
        let url = format!("rtmp://{}/app/key", server.address());
        let origin = beside(&holder, backend, &Relays::default().push("live/a", &url), &[]);
        let mut publisher = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let mut client = server.accept();
        assert_eq!(client.accept_publish(), "app/key");
        let connect = client.session.connect().expect("connected").clone();
        assert!(connect.enhanced && connect.tc_url.ends_with("/app"));
        assert_eq!(origin.client().delete(&origin.admin("api/v1/streams/live/a")).status, 204);
        let events: Vec<_> = std::iter::from_fn(|| client.next_event()).collect();
        let media = |event: &Event| matches!(event, Event::Media { .. });
        let rest: Vec<_> = events.iter().filter(|event| !media(event)).collect();
        let [Event::Unpublish { .. }] = rest[..] else { panic!("{rest:?}") };
        assert!(events.iter().any(media));
    }
}

#[test]
fn a_target_that_takes_nothing_hurts_nobody() {
    for backend in Backend::ALL {
        let server = RtmpServer::listen();
        let holder = start(backend);
        let url = format!("rtmp://{}/app/key", server.address());
        let rules = Relays::default().push("live/a", &url);
        let origin = beside(&holder, backend, &rules, &["--timeouts-send-stall", "1s"]);
        let mut publisher = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let mut silent = server.accept();
        silent.accept_publish();
        let mut player = player(&origin, "live/a");
        player.marks_to(1, 0);
        // More than the kernel's buffers and the log together.
        let mut seen = vec![0];
        let mut number = GOP;
        let stalled = || origin.metric("weir_relay_failures_total", "stalled") > 0.0;
        wait_until("a stall", SOON, || {
            publisher.send(&frame(1, number, 400_000));
            seen.extend(pictures(&player.marks_to(1, number), 1));
            number += 1;
            stalled().then_some(())
        });
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..number).collect::<Vec<_>>(), "the player has had every picture");
        // The next connection begins at a keyframe.
        publisher.send(&frames(1, number, number.next_multiple_of(GOP) + 1));
        let mut awake = server.accept();
        awake.accept_publish();
        let first = std::iter::from_fn(|| awake.next_event()).find_map(|event| match event {
            Event::Media { body, .. } => marks(&body).into_iter().find(|mark| mark.video),
            _ => None,
        });
        assert!(first.is_some_and(|mark| mark.number.is_multiple_of(GOP)), "{first:?}");
    }
}

#[test]
fn a_push_to_itself_is_refused() {
    for backend in Backend::ALL {
        let holder = start(backend);
        let reserved = Reserved::take();
        let rtmp = reserved.address.to_string();
        let rules = Relays::default()
            .push("live/*", &format!("rtmp://{rtmp}/live/{{name}}"))
            .push("live/*", &format!("rtmp://{rtmp}/other/{{name}}"));
        let origin = beside(&holder, backend, &rules, &["--rtmp", &rtmp]);
        let mut publisher: RtmpClient = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        // Under another name it is a copy.
        wait_for_publisher(&origin, "other/a");
        let relay = wait_until("a refusal", SOON, || {
            let of = |relay: &serde_json::Value| {
                relay["url"].as_str().is_some_and(|url| url.contains("/live/"))
            };
            relays(&origin).into_iter().find(|relay| of(relay) && relay["last_error"].is_string())
        });
        let error = relay["last_error"].as_str().expect("an error");
        assert!(error.contains("back to this gateway"), "{relay}");
        let local = publisher.local_addr().to_string();
        let stream = origin.stream("live/a").expect("the stream");
        assert_eq!(stream["publisher"]["address"], local, "{stream}");
    }
}

/// Two gateways that push to each other: the second one's push is refused, and the publisher stays.
#[test]
fn pushes_in_a_circle_are_refused() {
    for backend in Backend::ALL {
        let holder = start(backend);
        let reserved = Reserved::take();
        let rtmp = reserved.address.to_string();
        let back = Relays::default().push("live/*", &format!("rtmp://{rtmp}/live/{{name}}"));
        let second = beside(&holder, backend, &back, &[]);
        let there = second.socket_addr("rtmp");
        let forth = Relays::default().push("live/*", &format!("rtmp://{there}/live/{{name}}"));
        let first = beside(&holder, backend, &forth, &["--rtmp", &rtmp]);
        let mut publisher = first.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let refused = |relay: &serde_json::Value| relay["retry_in_ms"].as_u64() > Some(20_000);
        let relay = relay_when(&second, "a refused push", reserved.address, refused);
        assert!(relay["last_error"].as_str().expect("an error").contains("come through"));
        assert_eq!(first.metric("weir_refused_total", "loop"), 1.0);
        relay_when(&first, "a live push", there, is_live);
        let local = publisher.local_addr().to_string();
        let stream = first.stream("live/a").expect("the stream");
        assert_eq!(stream["publisher"]["address"], local, "{stream}");
    }
}

/// A codec that the server has not named in its answer to connect is not sent to it.
#[test]
fn a_target_gets_the_codecs_that_it_takes() {
    for backend in Backend::ALL {
        let server = RtmpServer::listen();
        let holder = start(backend);
        let url = format!("rtmp://{}/app/key", server.address());
        let origin = beside(&holder, backend, &Relays::default().push("live/a", &url), &[]);
        let mut publisher = origin.rtmp_client();
        assert_eq!(publisher.ask_to_publish("a"), "NetStream.Publish.Start");
        let sound = |tag: &Tag| tag.kind == TagKind::Audio;
        publisher.send(&media::headers().into_iter().filter(sound).collect::<Vec<_>>());
        publisher.send(&[hevc(0, SEQUENCE_START, HVCC)]);
        let mut send = |from, to| {
            for (number, tag) in frames(1, from, to).into_iter().filter(sound).enumerate() {
                let picture = hevc(tag.timestamp_ms, CODED_FRAMES_X, &keyframe(number));
                publisher.send(&[picture, tag]);
            }
        };
        send(0, GOP);
        let mut client = server.accept();
        client.unknown = Some((b"hvc1", b"hvcX"));
        client.accept_publish();
        relay_when(&origin, "a live push", server.address(), is_live);
        send(GOP, 2 * GOP);
        let mut kinds = Vec::new();
        while kinds.iter().filter(|kind| **kind == TagKind::Audio).count() < 2 {
            match client.next_event() {
                Some(Event::Media { kind, .. }) => kinds.push(kind),
                other => panic!("{other:?}"),
            }
        }
        assert!(!kinds.contains(&TagKind::Video), "{kinds:?}");
        let left_out = |relay: &serde_json::Value| relay["left_out"].is_array();
        let relay = relay_when(&origin, "what is left out", server.address(), left_out);
        assert_eq!(relay["left_out"], serde_json::json!(["hevc"]), "{relay}");
    }
}

const SEQUENCE_START: u8 = 0;
const CODED_FRAMES_X: u8 = 3;

/// Main, 320x240.
const HVCC: &[u8] = b"\x01\x01\x60\0\0\0\x90\0\0\0\0\0\x3c\xf0\0\xfc\xfd\xf8\xf8\0\0\x0f\x03\x20\0\x01\
    \0\x18\x40\x01\x0c\x01\xff\xff\x01\x60\0\0\x03\0\x90\0\0\x03\0\0\x03\0\x3c\x95\x98\x09\x21\0\x01\0\x29\
    \x42\x01\x01\x01\x60\0\0\x03\0\x90\0\0\x03\0\0\x03\0\x3c\xa0\x0a\x08\x0f\x16\x59\x59\xa4\x93\x2b\xc0\x5a\
    \x70\x80\0\0\x03\0\x80\0\0\x0c\x04\x22\0\x01\0\x07\x44\x01\xc1\x72\xb4\x62\x40";

fn hevc(timestamp_ms: u32, body_type: u8, data: &[u8]) -> Tag {
    let body = [&[0x90 | body_type], &b"hvc1"[..], data].concat();
    Tag { kind: TagKind::Video, timestamp_ms, body: body.into() }
}

/// An IDR picture's NAL unit behind its length.
fn keyframe(number: usize) -> Vec<u8> {
    [&[0, 0, 0, 40, 0x26, 1], &[number as u8 | 1; 38][..]].concat()
}
