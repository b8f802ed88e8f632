//! The end of the process, with everybody still there.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weir_e2e::http_connection::{HttpConnection, Piece};
use weir_e2e::media::{GOP, frames, marks, pictures};
use weir_e2e::reserved::ReservedListeners;
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, playlist, publish};
use weir_e2e::{Backend, Gateway, wait_until};

const MEDIA: &str = "/live/a/media.m3u8";
const LAST: u32 = 3 * GOP - 1;

/// What a stop must take at most; a debug build on a busy machine included.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

struct Audience {
    publisher: RtmpClient,
    flv: Vec<FlvPlayer>,
    rtmp: Vec<RtmpClient>,
    held: Vec<HttpConnection>,
    _half: Vec<TcpStream>,
    _idle: Vec<HttpConnection>,
}

fn gather(gateway: &Gateway) -> Audience {
    let mut publisher = gateway.rtmp_on_core(0);
    publish(&mut publisher, "a");
    publisher.send(&frames(1, 0, LAST + 1));
    let on_both = |listener: &str| [0, 1].map(|core| gateway.connect_on_core(listener, core));
    let flv = on_both("http").map(|socket| {
        let mut player = FlvPlayer::start(HttpConnection::over(socket), "/live/a.flv");
        player.marks_to(1, LAST);
        player
    });
    let rtmp = [0, 1].map(|core| {
        let mut player = gateway.rtmp_on_core(core);
        assert_eq!(player.ask_to_play("a"), "NetStream.Play.Start");
        player
    });
    let mut held: Vec<HttpConnection> = (0..50).map(|_| gateway.http_connection()).collect();
    let (msn, _) = playlist(&mut held[0], MEDIA).next_part();
    for connection in &mut held {
        connection.ask("GET", &format!("{MEDIA}?_HLS_msn={}", msn + 1), "");
    }
    let half: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut socket = TcpStream::connect(gateway.socket_addr("rtmp")).expect("it listens");
            socket.write_all(&[3; 700]).expect("it takes a part of a handshake");
            socket
        })
        .collect();
    let idle: Vec<HttpConnection> = (0..5).map(|_| gateway.http_connection()).collect();
    wait_until("everybody in the API", SOON, || {
        let clients = gateway.api("clients");
        let clients = clients["clients"].as_array()?;
        let asked = |client: &&serde_json::Value| {
            client["protocol"] == "http" && client["bytes_in"].as_u64() > Some(0)
        };
        let sent = |client: &&serde_json::Value| {
            client["protocol"] == "rtmp" && client["bytes_in"].as_u64() >= Some(700)
        };
        let all =
            clients.iter().filter(asked).count() >= 50 && clients.iter().filter(sent).count() >= 23;
        all.then_some(())
    });
    Audience { publisher, flv: flv.into(), rtmp: rtmp.into(), held, _half: half, _idle: idle }
}

#[test]
fn everybody_gets_a_clean_end_within_a_second() {
    for backend in Backend::ALL {
        let reserved = ReservedListeners::take();
        let arguments = [&QUICK[..], &["--cores", "2"]].concat();
        let mut gateway = Gateway::start_on(backend, &reserved, &arguments);
        let mut audience = gather(&gateway);
        let addresses = ["rtmp", "http", "admin"].map(|name| gateway.socket_addr(name));
        let began = Instant::now();
        let status = gateway.stop(SOON);
        let took = began.elapsed();
        assert!(status.success(), "{status}");
        assert!(took < STOPS_WITHIN, "{took:?}");
        // The next process gets the addresses, whatever connections of this one linger.
        for address in addresses {
            bind_again(address);
        }

        let codes = audience.publisher.codes_to_the_end();
        assert_eq!(codes, ["NetStream.Publish.Rejected"]);
        for player in &mut audience.flv {
            assert_eq!(pictures(&player.marks_to_end(), 1), [0; 0]);
            assert_eq!(player.end, Some(Piece::End));
        }
        for player in &mut audience.rtmp {
            let seen: Vec<_> = std::iter::from_fn(|| player.next_media())
                .flat_map(|tag| marks(&tag.body))
                .collect();
            assert_eq!(pictures(&seen, 1).last(), Some(&LAST));
            assert_eq!(player.next_message(), None, "nothing after UnpublishNotify");
        }
        for connection in &mut audience.held {
            let text = connection.answer("GET").text();
            assert!(text.contains("#EXT-X-ENDLIST"), "{text}");
        }
    }
}

/// As the gateway binds: with `SO_REUSEADDR`, which std sets, too.
fn bind_again(address: std::net::SocketAddr) {
    drop(TcpListener::bind(address).expect("the address is free at once"));
}

#[test]
fn a_second_signal_ends_the_wait_for_slow_players() {
    for backend in Backend::ALL {
        let mut gateway = Gateway::start(backend, &QUICK);
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let began = Instant::now();
        gateway.process().signal("TERM");
        let status = gateway.stop(SOON);
        assert!(status.success() && began.elapsed() < STOPS_WITHIN, "{status}");
    }
}

#[test]
fn a_gateway_starts_on_the_addresses_of_the_last_one_at_once() {
    for backend in Backend::ALL {
        let reserved = ReservedListeners::take();
        let mut first = Gateway::start_on(backend, &reserved, &QUICK);
        let mut publisher = first.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, 3 * GOP));
        let mut http = first.http_connection();
        let before = playlist(&mut http, MEDIA);
        let status = first.stop(SOON);
        assert!(status.success(), "{status}");
        drop(first);
        let second = Gateway::start_on(backend, &reserved, &QUICK);
        let mut publisher = second.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(2, 0, 3 * GOP));
        let after = playlist(&mut second.http_connection(), MEDIA);
        assert!(after.media_sequence >= before.media_sequence, "MSN never goes back");
        assert_ne!(after.segments[0].uri, before.segments[0].uri, "URIs are never used again");
    }
}
