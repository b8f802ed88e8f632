//! Peers that are slow, silent, or hostile, next to peers that are none of it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use weir_e2e::http_connection::{HttpConnection, Piece};
use weir_e2e::media::{GOP, Mark, frame, frames, pictures};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, publish};
use weir_e2e::{Backend, Gateway, wait_until};
use weir_protocol::rtmp::chunk::Writer;
use weir_protocol::rtmp::command::Command;
use weir_protocol::rtmp::message::MessageHeader;

/// Large pictures: more than any socket buffer holds, after some.
const PICTURE_BYTES: usize = 60_000;
const PICTURES: u32 = 600;

fn start(backend: Backend, arguments: &[&str]) -> Gateway {
    Gateway::start(backend, &[&QUICK[..], &["--cores", "2"], arguments].concat())
}

fn send_large(publisher: &mut RtmpClient, from: u32, to: u32) {
    for number in from..to {
        publisher.send(&frame(1, number, PICTURE_BYTES));
    }
}

fn flv_on(gateway: &Gateway, core: u64) -> FlvPlayer {
    let connection = HttpConnection::over(gateway.connect_on_core("http", core));
    FlvPlayer::start(connection, "/live/a.flv")
}

/// Waits until the gateway has closed this connection.
fn closed(mut socket: &TcpStream) {
    socket.set_read_timeout(Some(SOON)).expect("a socket option");
    let mut buffer = [0; 64 * 1024];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("still open: {error}"),
        }
    }
}

#[test]
fn a_player_that_takes_nothing_is_dropped_and_nobody_notices() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--timeouts-send-stall", "1s"]);
        let mut publisher = gateway.rtmp_on_core(0);
        publish(&mut publisher, "a");
        send_large(&mut publisher, 0, GOP);
        let mut fast = flv_on(&gateway, 0);
        let mut fast_elsewhere = flv_on(&gateway, 1);
        let mut stalled = [0, 1].map(|core| flv_on(&gateway, core));
        let mut stalled_rtmp = gateway.rtmp_on_core(0);
        assert_eq!(stalled_rtmp.ask_to_play("a"), "NetStream.Play.Start");
        let rss = || gateway.api("server")["memory"]["rss"].as_u64().expect("a number");
        let before = rss();
        // In steps that the fast players read, so that they never lag by the log's whole length.
        for step in 1..PICTURES / GOP {
            send_large(&mut publisher, step * GOP, (step + 1) * GOP);
            for player in [&mut fast, &mut fast_elsewhere] {
                let seen = pictures(&player.marks_to(1, (step + 1) * GOP - 1), 1);
                let from = if step == 1 { 0 } else { step * GOP };
                assert_eq!(seen, (from..(step + 1) * GOP).collect::<Vec<_>>());
            }
        }
        for player in &mut stalled {
            let address = player.connection().local_addr();
            wait_until("the stalled player's end", SOON, || {
                gateway.client_at("http", address).is_none().then_some(())
            });
        }
        let address = stalled_rtmp.local_addr();
        wait_until("the stalled RTMP player's end", SOON, || {
            gateway.client_at("rtmp", address).is_none().then_some(())
        });
        assert_eq!(gateway.metric("weir_closed_total", "send_stall"), 3.0);
        let grown = rss().saturating_sub(before);
        assert!(grown < 64 << 20, "{grown} bytes more");
        assert!(gateway.client_at("rtmp", publisher.local_addr()).is_some());
    }
}

#[test]
fn a_player_that_was_slow_goes_on_at_the_newest_keyframe() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--timeouts-send-stall", "1m"]);
        let mut publisher = gateway.rtmp_on_core(0);
        publish(&mut publisher, "a");
        send_large(&mut publisher, 0, GOP);
        let mut slow = [0, 1].map(|core| flv_on(&gateway, core));
        send_large(&mut publisher, GOP, PICTURES);
        wait_until("all media", SOON, || {
            let media = u64::from(PICTURES) * PICTURE_BYTES as u64;
            (gateway.stream("live/a")?["bytes_in"].as_u64()? > media).then_some(())
        });
        for player in &mut slow {
            let seen = pictures(&player.marks_to(1, PICTURES - 1), 1);
            let steps = seen.windows(2).filter(|pair| pair[1] != pair[0] + 1);
            let jumps: Vec<u32> = steps.map(|pair| pair[1]).collect();
            assert!(!jumps.is_empty(), "this player was not slow enough: {} pictures", seen.len());
            assert!(jumps.iter().all(|number| number.is_multiple_of(GOP)), "{jumps:?}");
        }
        assert!(gateway.metric("weir_player_jumps_total", "") >= 2.0);
    }
}

/// CM-10, in part: createStream and then nothing is no reason to stay.
#[test]
fn half_handshakes_and_idle_clients_are_closed_in_time() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--timeouts-handshake", "1s"]);
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        let half: Vec<TcpStream> = (0..200)
            .map(|number| {
                let mut socket =
                    TcpStream::connect(gateway.socket_addr("rtmp")).expect("it listens");
                socket.write_all(&vec![3; number * 8]).expect("it takes bytes");
                socket
            })
            .collect();
        // The whole handshake, even `connect`, is nothing yet.
        let silent = RtmpClient::connect(gateway.socket_addr("rtmp"));
        let connected = gateway.rtmp_client();
        // What it played has ended.
        let mut short = gateway.rtmp_client();
        publish(&mut short, "short");
        short.send(&frames(2, 0, GOP));
        let mut player = gateway.rtmp_client();
        assert_eq!(player.ask_to_play("short"), "NetStream.Play.Start");
        drop(short);
        let idle = [silent.socket(), connected.socket(), player.socket()];
        half.iter().chain(idle).for_each(closed);
        wait_until("only the publisher", SOON, || {
            let clients = gateway.api("clients");
            (clients["clients"].as_array()?.len() == 1).then_some(())
        });
        publisher.send(&frames(1, 0, GOP));
        FlvPlayer::start(gateway.http_connection(), "/live/a.flv").marks_to(1, GOP - 1);
    }
}

#[test]
fn slow_request_heads_are_closed_in_time() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--timeouts-http-header", "1s"]);
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
        player.marks_to(1, GOP - 1);
        let mut silent = gateway.http_connection();
        let mut kept = gateway.http_connection();
        assert_eq!(kept.get("/").status, 200);
        let mut halves: Vec<HttpConnection> = (0..20).map(|_| gateway.http_connection()).collect();
        halves.iter_mut().for_each(|half| half.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: "));
        halves.push(std::mem::replace(&mut silent, gateway.http_connection()));
        halves.push(kept);
        halves.iter().for_each(|half| closed(half.socket()));
        // A live body has no time limit of that kind.
        publisher.send(&frames(1, GOP, 2 * GOP));
        player.marks_to(1, 2 * GOP - 1);
    }
}

fn send_and_wait_for_end(address: SocketAddr, bytes: &[u8]) {
    let mut socket = TcpStream::connect(address).expect("it listens");
    // It may be closed in the middle.
    let _ = socket.write_all(bytes);
    let _ = socket.shutdown(std::net::Shutdown::Write);
    closed(&socket);
}

#[test]
fn garbage_ends_its_own_connection_only() {
    for backend in Backend::ALL {
        let mut gateway = start(backend, &[]);
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let mut players = [0, 1].map(|core| flv_on(&gateway, core));
        let rtmp = gateway.socket_addr("rtmp");
        let noise: Vec<u8> =
            (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for _ in 0..10 {
            send_and_wait_for_end(rtmp, b"GET / HTTP/1.1\r\nHost: weir\r\n\r\n");
            send_and_wait_for_end(rtmp, &noise);
            // A handshake with noise for what follows.
            send_and_wait_for_end(rtmp, &[&[3][..], &noise].concat());
            send_and_wait_for_end(gateway.socket_addr("http"), &noise);
            let after_handshake = RtmpClient::connect(rtmp);
            let _ = after_handshake.socket().write_all(&noise);
            let _ = after_handshake.socket().shutdown(std::net::Shutdown::Write);
            closed(after_handshake.socket());
            // A publisher that goes mad.
            let mut mad = gateway.rtmp_client();
            publish(&mut mad, "mad");
            mad.send(&frames(2, 0, 3));
            let _ = mad.socket().write_all(&noise);
            mad.finish();
            mad.codes_to_the_end();
        }
        publisher.send(&frames(1, GOP, 2 * GOP));
        for player in &mut players {
            player.marks_to(1, 2 * GOP - 1);
        }
        gateway.process().assert_running();
        let log = gateway.process().log();
        assert!(!log.contains("panicked"), "{log}");
        // Nobody but the publisher and its players is left.
        wait_until("the others' end", SOON, || {
            let clients = gateway.api("clients");
            (clients["clients"].as_array()?.len() == 3).then_some(())
        });
    }
}

#[test]
fn connections_over_the_bound_are_refused_and_places_come_back() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--limits-connections-per-address", "20"]);
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        for _ in 0..3 {
            let mut all: Vec<HttpConnection> = (0..19).map(|_| gateway.http_connection()).collect();
            for connection in &mut all {
                assert_eq!(connection.get("/").status, 200);
            }
            closed(gateway.http_connection().socket());
            drop(all);
            wait_until("the places", SOON, || {
                let clients = gateway.api("clients");
                (clients["clients"].as_array()?.len() == 1).then_some(())
            });
        }
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
        let seen: Vec<Mark> = player.marks_to(1, GOP - 1);
        assert_eq!(pictures(&seen, 1), (0..GOP).collect::<Vec<_>>());
    }
}

#[test]
fn a_cut_publish_leaves_only_whole_frames() {
    for backend in Backend::ALL {
        let gateway = start(backend, &[]);
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
        player.marks_to(1, GOP - 1);
        // The head of a video message of 60 kB, and a third of it.
        let mut cut = vec![0x06, 0, 2, 0, 0, 0xea, 0x60, 9, 1, 0, 0, 0];
        cut.extend_from_slice(&frame(1, GOP, 20_000)[0].body[..4000]);
        let _ = publisher.socket().write_all(&cut);
        publisher.reset();
        let seen = player.marks_to_end();
        assert!(!seen.iter().any(|mark| mark.number == GOP && mark.video), "{seen:?}");
        assert_eq!(player.end, Some(Piece::End));
    }
}

#[test]
fn a_publish_that_breaks_the_protocol_at_once_gives_its_name_back() {
    for backend in Backend::ALL {
        let gateway = start(backend, &[]);
        let hasty = gateway.rtmp_client();
        let arguments = vec!["a".into(), "live".into()];
        let publish = Command { transaction: 9.0, ..Command::new("publish", arguments) };
        let mut bytes = Vec::new();
        let header = MessageHeader::command(1);
        Writer::new(4096).write(header, &[], &publish.encode().into(), &mut bytes);
        // In the same write: a chunk that goes on with a message that never began.
        bytes.push(0xff);
        hasty.socket().write_all(&bytes).expect("a connection");
        closed(hasty.socket());
        wait_until("the end of the stream", SOON, || {
            let state = gateway.stream("live/a").map(|stream| stream["state"].clone());
            state.is_none_or(|state| state == "ended").then_some(())
        });
    }
}
