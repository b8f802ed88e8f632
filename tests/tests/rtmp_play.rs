//! RTMP players: of streams that are not there yet or not any more, that seek and pause, and that
//! are silent.

use std::thread;

use weir_e2e::media::{self, GOP, frames, pictures};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{QUICK, SOON, marks_to, publish};
use weir_e2e::{Backend, Gateway, wait_until};

const NOT_FOUND: &str = "NetStream.Play.StreamNotFound";

fn start(backend: Backend, arguments: &[&str]) -> Gateway {
    Gateway::start(backend, &[&QUICK[..], &["--cores", "2"], arguments].concat())
}

/// Asks to play, and awaits no answer.
fn ask(player: &mut RtmpClient, key: &str) {
    player.command(player.message_stream, "play", vec![key.into(), (-2.0).into()]);
}

/// Waits until the gateway keeps this player for `stream`.
fn waits_for(gateway: &Gateway, player: &RtmpClient, stream: &str) {
    wait_until("the player in the API", SOON, || {
        let client = gateway.client_at("rtmp", player.local_addr())?;
        (client["stream"] == stream).then_some(())
    });
}

/// The play that was asked for begins.
fn begins(player: &mut RtmpClient) {
    for code in ["NetStream.Play.Reset", "NetStream.Play.Start"] {
        assert_eq!(player.next_status().as_deref(), Some(code));
    }
}

/// All frames of the publisher up to this one come, from the first.
fn plays(player: &mut RtmpClient, publisher: u8, frames: u32) {
    let seen = marks_to(publisher, frames - 1, || player.next_media());
    assert_eq!(pictures(&seen, publisher), (0..frames).collect::<Vec<_>>());
}

#[test]
fn an_absent_stream_is_answered_at_once_or_awaited() {
    for backend in Backend::ALL {
        let gateway = start(backend, &[]);
        assert_eq!(gateway.rtmp_client().ask_to_play("a"), NOT_FOUND);
        drop(gateway);
        let gateway = start(backend, &["--rtmp-play-absent", "wait"]);
        let mut players = [0, 1].map(|core| gateway.rtmp_on_core(core));
        for player in &mut players {
            ask(player, "a");
            waits_for(&gateway, player, "live/a");
        }
        assert!(gateway.stream("live/a").is_none());
        assert_eq!(gateway.metric("weir_streams", ""), 0.0, "nothing is kept for a name");
        let mut publisher = gateway.rtmp_on_core(0);
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        for player in &mut players {
            begins(player);
            plays(player, 1, GOP);
        }
        // It ends for good, and comes back on the other core.
        publisher.finish();
        for player in &mut players {
            assert_eq!(player.next_status().as_deref(), Some("NetStream.Play.UnpublishNotify"));
            waits_for(&gateway, player, "live/a");
        }
        let mut publisher = gateway.rtmp_on_core(1);
        publish(&mut publisher, "a");
        publisher.send(&frames(2, 0, GOP));
        for player in &mut players {
            assert_eq!(player.next_status().as_deref(), Some("NetStream.Play.PublishNotify"));
            plays(player, 2, GOP);
        }
    }
}

#[test]
fn a_wait_is_bounded_in_time_and_in_number() {
    for backend in Backend::ALL {
        let arguments = ["--rtmp-play-absent", "wait", "--rtmp-play-wait", "5s", "--cores", "1"];
        let gateway = Gateway::start(backend, &[&QUICK[..], &arguments].concat());
        let mut players: Vec<RtmpClient> = (0..64).map(|_| gateway.rtmp_client()).collect();
        for (number, player) in players.iter_mut().enumerate() {
            ask(player, &format!("absent-{number}"));
        }
        for (number, player) in players.iter().enumerate() {
            waits_for(&gateway, player, &format!("live/absent-{number}"));
        }
        let mut further = gateway.rtmp_client();
        assert_eq!(further.ask_to_play("absent"), NOT_FOUND);
        for player in &mut players {
            assert_eq!(player.codes_to_the_end(), [NOT_FOUND]);
        }
        wait_until("everybody's end", SOON, || {
            let clients = gateway.api("clients");
            let rtmp = |client: &serde_json::Value| client["protocol"] == "rtmp";
            (!clients["clients"].as_array()?.iter().any(rtmp)).then_some(())
        });
        assert_eq!(gateway.metric("weir_refused_total", "no_stream"), 65.0);
    }
}

#[test]
fn who_waits_may_think_otherwise() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--rtmp-play-absent", "wait"]);
        let mut player = gateway.rtmp_on_core(0);
        ask(&mut player, "a");
        waits_for(&gateway, &player, "live/a");
        // Another stream, by the same message stream; then by closing that one first.
        ask(&mut player, "b");
        waits_for(&gateway, &player, "live/b");
        player.command(player.message_stream, "closeStream", vec![]);
        assert_eq!(player.next_status().as_deref(), Some("NetStream.Play.Stop"));
        ask(&mut player, "c");
        waits_for(&gateway, &player, "live/c");
        player.command(player.message_stream, "receiveAudio", vec![false.into()]);
        let mut publishers = ["a", "b", "c"].map(|name| {
            let mut publisher = gateway.rtmp_on_core(0);
            publish(&mut publisher, name);
            publisher
        });
        for (number, publisher) in (1..).zip(&mut publishers) {
            publisher.send(&frames(number, 0, GOP));
        }
        begins(&mut player);
        let seen = marks_to(3, GOP - 1, || player.next_media());
        let its = |mark: &media::Mark| mark.publisher == 3 && mark.video;
        assert!(seen.iter().all(its), "only c, and no sound: {seen:?}");
        // One that leaves while it waits leaves nothing.
        let mut leaver = gateway.rtmp_on_core(1);
        ask(&mut leaver, "d");
        waits_for(&gateway, &leaver, "live/d");
        let address = leaver.local_addr();
        leaver.reset();
        wait_until("its end", SOON, || gateway.client_at("rtmp", address).is_none().then_some(()));
    }
}

#[test]
fn seek_and_pause_are_answered_and_go_on_at_the_newest_keyframe() {
    for backend in Backend::ALL {
        let gateway = start(backend, &[]);
        let mut publisher = gateway.rtmp_on_core(0);
        publish(&mut publisher, "a");
        for core in [0, 1] {
            publisher.send(&frames(1, 0, 2 * GOP));
            let mut player = gateway.rtmp_on_core(core);
            let stream = player.message_stream;
            player.command(stream, "seek", vec![0.0.into()]);
            assert_eq!(player.next_status().as_deref(), Some("NetStream.Seek.Failed"));
            assert_eq!(player.ask_to_play("a"), "NetStream.Play.Start");
            marks_to(1, 2 * GOP - 1, || player.next_media());
            let mut witness = gateway.rtmp_on_core(core);
            assert_eq!(witness.ask_to_play("a"), "NetStream.Play.Start");
            player.command(stream, "seek", vec![5000.0.into()]);
            assert_eq!(player.next_status().as_deref(), Some("NetStream.Seek.Notify"));
            let seen = marks_to(1, 2 * GOP - 1, || player.next_media());
            assert_eq!(pictures(&seen, 1), (GOP..2 * GOP).collect::<Vec<_>>());
            player.command(stream, "pause", vec![true.into(), 0.0.into()]);
            assert_eq!(player.next_status().as_deref(), Some("NetStream.Pause.Notify"));
            publisher.send(&frames(1, 2 * GOP, 4 * GOP));
            // What another player of this core has got, this one could have had.
            marks_to(1, 4 * GOP - 1, || witness.next_media());
            player.command(stream, "pause", vec![false.into(), 0.0.into()]);
            assert_eq!(player.next_status().as_deref(), Some("NetStream.Unpause.Notify"));
            let seen = marks_to(1, 4 * GOP - 1, || player.next_media());
            assert_eq!(pictures(&seen, 1).last(), Some(&(4 * GOP - 1)));
            assert!(!pictures(&seen, 1).contains(&(2 * GOP)), "nothing of the pause: {seen:?}");
            drop(player);
            publisher.send(&media::headers());
        }
    }
}

/// A player that gets nothing must show that it is there; one that takes media has done so.
#[test]
fn players_that_say_nothing_are_pinged_and_dead_ones_found() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--timeouts-player-silence", "3s"]);
        let mut publisher = gateway.rtmp_on_core(0);
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let [mut dead, mut alive, mut viewer] = [0, 1, 1].map(|core| {
            let mut player = gateway.rtmp_on_core(core);
            assert_eq!(player.ask_to_play("a"), "NetStream.Play.Start");
            player
        });
        for player in [&mut dead, &mut alive] {
            player.command(player.message_stream, "pause", vec![true.into(), 0.0.into()]);
            assert_eq!(player.next_status().as_deref(), Some("NetStream.Pause.Notify"));
        }
        let (alive_at, viewer_at) = (alive.local_addr(), viewer.local_addr());
        let answering = thread::spawn(move || {
            let mut pings = 0;
            while let Some(timestamp) = alive.next_ping() {
                pings += 1;
                if alive.try_pong(timestamp).is_err() {
                    break;
                }
            }
            pings
        });
        let dead_at = dead.local_addr();
        let mut number = GOP;
        wait_until("the dead player's end", SOON, || {
            publisher.send(&frames(1, number, number + 1));
            marks_to(1, number, || viewer.next_media());
            number += 1;
            gateway.client_at("rtmp", dead_at).is_none().then_some(())
        });
        assert!(dead.next_ping().is_some(), "it was asked");
        assert_eq!(gateway.metric("weir_closed_total", "idle"), 1.0);
        assert!(gateway.client_at("rtmp", alive_at).is_some());
        assert!(gateway.client_at("rtmp", viewer_at).is_some());
        drop(gateway);
        assert!(answering.join().expect("a player") > 0);
    }
}
