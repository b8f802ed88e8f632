//! Who gets a stream that somebody publishes already, under either policy.

use std::time::{Duration, Instant};

use weir_e2e::http_connection::HttpConnection;
use weir_e2e::media::{self, GOP, frames, marks, pictures};
use weir_e2e::playlist::Playlist;
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, fetch, playlist, publish};
use weir_e2e::{Backend, Gateway, wait_until};

const MEDIA: &str = "/live/a/media.m3u8";
const BAD_NAME: &str = "NetStream.Publish.BadName";
const POLICIES: [&str; 2] = ["takeover", "refuse"];

/// The gateway takes a publisher for silent after 2 s; what a test does within this counts as
/// having been done while it sent.
const SENDS: Duration = Duration::from_secs(1);

fn start(backend: Backend, policy: &str) -> Gateway {
    let ours = ["--cores", "2", "--publish-conflict", policy];
    Gateway::start(backend, &[&QUICK[..], &ours].concat())
}

/// What `other` is told when it asks for the stream of a publisher that has just sent frames
/// `from..from + 2`; anew, and with later frames, where this machine was too slow for that.
fn ask_while_it_sends(sender: &mut RtmpClient, from: &mut u32, other: &mut RtmpClient) -> String {
    for _ in 0..20 {
        sender.send(&frames(1, *from, *from + 2));
        *from += 2;
        let began = Instant::now();
        let answer = other.ask_to_publish("a");
        if began.elapsed() < SENDS {
            return answer;
        }
    }
    panic!("this machine is too slow");
}

fn reload(gateway: &Gateway) -> Playlist {
    playlist(&mut gateway.http_connection(), MEDIA)
}

/// SE-01: a session that has gone silent without a word never keeps its encoder out.
#[test]
fn se_01_a_silent_session_is_taken_over_under_both_policies() {
    for backend in Backend::ALL {
        for policy in POLICIES {
            for new_core in [0, 1] {
                let gateway = start(backend, policy);
                let mut silent = gateway.rtmp_on_core(0);
                publish(&mut silent, "a");
                silent.send(&frames(1, 0, 3 * GOP));
                let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
                player.marks_to(1, 3 * GOP - 1);
                let before = reload(&gateway);
                // The old connection stays open, and nobody reads from it or writes to it.
                let mut new = wait_until("the name", SOON, || {
                    let mut new = gateway.rtmp_on_core(new_core);
                    let answer = new.ask_to_publish("a");
                    assert!(answer == "NetStream.Publish.Start" || policy == "refuse", "{answer}");
                    (answer == "NetStream.Publish.Start").then_some(new)
                });
                new.send(&media::headers());
                new.send(&frames(2, 0, 3 * GOP));
                let seen = player.marks_to(2, 3 * GOP - 1);
                assert_eq!(pictures(&seen, 2), (0..3 * GOP).collect::<Vec<_>>());
                let after = reload(&gateway);
                assert_eq!(after.discontinuities(), 1, "{after:#?}");
                assert!(after.next_part().0 > before.next_part().0, "the MSN rises");
                assert!(after.media_sequence >= before.media_sequence);
                assert_eq!(silent.codes_to_the_end(), [BAD_NAME]);
            }
        }
    }
}

/// SE-02: the one that comes second is told so, and the first does not notice.
#[test]
fn se_02_a_publisher_that_sends_keeps_its_stream_where_the_operator_wants_it() {
    for backend in Backend::ALL {
        let gateway = start(backend, "refuse");
        let mut first = gateway.rtmp_on_core(0);
        publish(&mut first, "a");
        first.send(&frames(1, 0, GOP));
        let mut sent = GOP;
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
        let mut second = gateway.rtmp_on_core(1);
        assert_eq!(ask_while_it_sends(&mut first, &mut sent, &mut second), BAD_NAME);
        // Asking again and again, also from its own core, and leaving in any way does no harm.
        let mut third = gateway.rtmp_on_core(0);
        for _ in 0..3 {
            assert_eq!(ask_while_it_sends(&mut first, &mut sent, &mut second), BAD_NAME);
            assert_eq!(ask_while_it_sends(&mut first, &mut sent, &mut third), BAD_NAME);
        }
        assert!(second.try_send(&media::frame(2, 0, 500)[0]).is_ok());
        second.reset();
        third.finish();
        assert!(gateway.metric("weir_refused_total", "in_use") >= 7.0);
        first.send(&frames(1, sent, sent + GOP));
        sent += GOP;
        let seen = player.marks_to(1, sent - 1);
        assert!(seen.iter().all(|mark| mark.publisher == 1));
        assert_eq!(reload(&gateway).discontinuities(), 0);
        // Once it has left, the stream is anybody's.
        first.finish();
        wait_until("the first one's end", SOON, || {
            gateway.stream("live/a").filter(|stream| stream["publisher"].is_null())
        });
        let mut next = gateway.rtmp_on_core(1);
        publish(&mut next, "a");
        next.send(&frames(3, 0, GOP));
        player.marks_to(3, GOP - 1);
    }
}

/// What came of one racer: whether it was told that it publishes.
type Racer = (u8, RtmpClient, String);

/// Fifty at once, and how long that took.
fn race(gateway: &Gateway, key: &str) -> (Vec<Racer>, Duration) {
    // Joined clients first, so that the publish commands meet as closely as they can.
    let clients: Vec<RtmpClient> = (0..50).map(|_| gateway.rtmp_client()).collect();
    let line = std::sync::Barrier::new(clients.len());
    let began = Instant::now();
    let racers = std::thread::scope(|scope| {
        let run = |(number, mut client): (usize, RtmpClient)| {
            let line = &line;
            scope.spawn(move || {
                line.wait();
                let answer = client.ask_to_publish(key);
                (u8::try_from(number).expect("few"), client, answer)
            })
        };
        let racers: Vec<_> = clients.into_iter().enumerate().map(run).collect();
        racers.into_iter().map(|racer| racer.join().expect("a racer")).collect()
    });
    (racers, began.elapsed())
}

/// SE-02: of fifty that race exactly one publishes, and the end of the others is nothing to it.
#[test]
fn se_02_of_fifty_racing_publishers_exactly_one_wins() {
    for backend in Backend::ALL {
        for policy in POLICIES {
            let gateway = start(backend, policy);
            let (racers, name) = (0..10)
                .find_map(|round| {
                    let name = format!("race-{round}");
                    let (racers, took) = race(&gateway, &name);
                    // A winner that has sent nothing for long could rightly be taken over.
                    (policy == "takeover" || took < SENDS).then_some((racers, name))
                })
                .expect("a race in time");
            check_race(&gateway, policy, racers, &name);
        }
    }
}

fn check_race(gateway: &Gateway, policy: &str, racers: Vec<Racer>, name: &str) {
    let begun = racers.iter().filter(|(_, _, answer)| answer == "NetStream.Publish.Start").count();
    let refused = racers.iter().filter(|(_, _, answer)| answer == BAD_NAME).count();
    assert_eq!(begun + refused, racers.len());
    assert!(begun == 1 || policy == "takeover", "{begun} were told that they publish");
    let stream = gateway.stream(&format!("live/{name}")).expect("a winner");
    let address = stream["publisher"]["address"].as_str().expect("its publisher").to_owned();
    let winner = racers.iter().position(|racer| racer.1.local_addr().to_string() == address);
    let winner = racers[winner.expect("one of the racers")].0;

    let mut winning = None;
    for (number, mut client, answer) in racers {
        if number == winner {
            assert_eq!(answer, "NetStream.Publish.Start", "the winner was told so");
            winning = Some(client);
        } else {
            // Media of one that has lost goes nowhere, whether it notices or not.
            for tag in media::headers().iter().chain(&frames(number, 0, GOP)) {
                let _ = client.try_send(tag);
            }
            match answer.as_str() {
                BAD_NAME => client.reset(),
                _ => drop(client.codes_to_the_end()),
            }
        }
    }
    let mut winning = winning.expect("the winner");
    winning.send(&media::headers());
    winning.send(&frames(winner, 0, 3 * GOP));
    let mut player = FlvPlayer::start(gateway.http_connection(), &format!("/live/{name}.flv"));
    player.marks_to(winner, 3 * GOP - 1);
    let mut http: HttpConnection = gateway.http_connection();
    let path = format!("/live/{name}/media.m3u8");
    let fmp4 = playlist(&mut http, &path);
    assert_eq!(fmp4.discontinuities(), 0);
    for segment in &fmp4.segments {
        let marks = marks(&fetch(&mut http, &path, &segment.uri));
        assert!(marks.iter().all(|mark| mark.publisher == winner), "{marks:?}");
    }
    let stream = gateway.stream(&format!("live/{name}")).expect("it");
    assert_eq!(stream["publisher"]["address"], address);
}
