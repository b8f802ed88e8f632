//! What operators see over days: stops and starts, and peers that come and go.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use socket2::SockRef;
use weir_e2e::http_connection::HttpConnection;
use weir_e2e::media::{GOP, frames};
use weir_e2e::reserved::ReservedListeners;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, playlist, publish};
use weir_e2e::{Backend, Gateway, tools, wait_until};

const MEDIA: &str = "/live/a/media.m3u8";
const ROUNDS: usize = 10;
/// Of each way to come and go.
const CYCLES: usize = 400;

/// OP-01: round after round on the same addresses, with everybody there at the end of each.
#[test]
fn op_01_stops_and_starts_on_the_same_addresses() {
    for backend in Backend::ALL {
        let reserved = ReservedListeners::take();
        let arguments = [&QUICK[..], &["--cores", "2"]].concat();
        for round in 0..ROUNDS {
            let mut gateway = Gateway::start_on(backend, &reserved, &arguments);
            let audience = audience(&gateway);
            let status = gateway.stop(SOON);
            assert!(status.success(), "round {round}: {status}");
            drop(audience);
        }
    }
}

/// Publishers, players, held reloads and half handshakes.
fn audience(gateway: &Gateway) -> impl Sized + use<> {
    let publishers = ["a", "b", "c"].map(|name| {
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, name);
        publisher.send(&frames(1, 0, 3 * GOP));
        publisher
    });
    let players: Vec<FlvPlayer> = (0..20).map(|_| flv(gateway)).collect();
    let mut held: Vec<HttpConnection> = (0..20).map(|_| gateway.http_connection()).collect();
    let (msn, _) = playlist(&mut held[0], MEDIA).next_part();
    for connection in &mut held {
        connection.ask("GET", &format!("{MEDIA}?_HLS_msn={}", msn + 1), "");
    }
    let half: Vec<TcpStream> =
        (0..10).map(|_| sent(gateway.socket_addr("rtmp"), &[3; 700])).collect();
    (publishers, players, held, half)
}

fn flv(gateway: &Gateway) -> FlvPlayer {
    FlvPlayer::start(gateway.http_connection(), "/live/a.flv")
}

fn sent(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("it listens");
    socket.write_all(bytes).expect("bytes are taken");
    socket
}

/// The peer's machine has failed: no end, but a reset.
fn reset(socket: &TcpStream) {
    SockRef::from(socket).set_linger(Some(Duration::ZERO)).expect("a socket option");
}

/// OP-02: connections of every kind come and go, and leave nothing.
#[test]
fn op_02_counts_return_to_base() {
    for backend in Backend::ALL {
        let mut gateway = Gateway::start(backend, &[&QUICK[..], &["--cores", "2"]].concat());
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, 3 * GOP));
        let mut player = flv(&gateway);
        let (rtmp, http) = (gateway.socket_addr("rtmp"), gateway.socket_addr("http"));
        let (msn, _) = playlist(&mut gateway.http_connection(), MEDIA).next_part();
        // What is made once and kept, such as buffers, is there after the first cycles.
        for cycles in [CYCLES / 4, CYCLES] {
            let before = base(&mut gateway);
            for cycle in 0..cycles {
                drop(TcpStream::connect(rtmp).expect("it listens"));
                reset(&sent(rtmp, &[3; 700]));
                reset(&sent(http, b"GET /live/a/media.m3u8?_HLS_msn=99"));
                reset(flv(&gateway).connection().socket());
                let mut held = gateway.http_connection();
                held.ask("GET", &format!("{MEDIA}?_HLS_msn={}", msn + 1), "");
                if cycle % 4 == 0 {
                    let mut other = gateway.rtmp_client();
                    publish(&mut other, &format!("x{}", cycle % 16));
                    other.send(&frames(2, 0, GOP));
                    // In the middle of a chunk.
                    other.socket().write_all(&[6, 0, 0, 0, 0, 9, 0, 9, 1, 0]).expect("taken");
                    other.reset();
                }
            }
            let after = wait_until("all of them gone", SOON, || {
                let after = base(&mut gateway);
                (after.descriptors <= before.descriptors + 4 && after.streams == 1).then_some(after)
            });
            let grown = after.resident_kib.saturating_sub(before.resident_kib);
            assert!(cycles < CYCLES || grown < 16 * 1024, "{before:?} to {after:?}");
        }
        publisher.send(&frames(1, 3 * GOP, 4 * GOP));
        player.marks_to(1, 4 * GOP - 1);
    }
}

/// OP-02: without descriptors the gateway waits for some, and serves those who have one.
#[test]
fn op_02_descriptors_run_out_and_come_back() {
    for backend in Backend::ALL {
        let mut gateway = Gateway::start(backend, &[&QUICK[..], &["--cores", "2"]].concat());
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, 3 * GOP));
        let mut player = flv(&gateway);
        let id = gateway.process().id().to_string();
        let mut prlimit = Command::new("prlimit");
        tools::run("prlimit", prlimit.args(["--nofile=256:256", "--pid", &id]));
        let crowd: Vec<TcpStream> =
            (0..400).map(|_| sent(gateway.socket_addr("rtmp"), &[3])).collect();
        publisher.send(&frames(1, 3 * GOP, 4 * GOP));
        player.marks_to(1, 4 * GOP - 1);
        wait_until("a word of the descriptors", SOON, || {
            gateway.process().log().contains("connections cannot be accepted").then_some(())
        });
        drop(crowd);
        let mut late = gateway.rtmp_client();
        publish(&mut late, "late");
        gateway.process().assert_running();
        let log = gateway.process().log();
        assert!(log.lines().count() < 2000, "the log is flooded: {} lines", log.lines().count());
    }
}

/// CH-01, CH-11: what peers declare takes no memory, before a publish or after it.
#[test]
fn ch_01_ch_11_memory_follows_bytes_not_declarations() {
    const CONNECTIONS: u64 = 200;
    for backend in Backend::ALL {
        let mut gateway = Gateway::start(backend, &[&QUICK[..], &["--cores", "2"]].concat());
        let publishers: Vec<_> = (0..CONNECTIONS / 4)
            .map(|number| {
                let mut publisher = gateway.rtmp_client();
                publish(&mut publisher, &format!("x{number}"));
                publisher
            })
            .collect();
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| gateway.rtmp_client()).collect();
        let before = base(&mut gateway).resident_kib;
        let (peers, bytes_before) = heard(&gateway);
        let mut sent = 0;
        for client in clients.iter().chain(&publishers) {
            // Pictures of 5 MiB, of which 64 bytes come, on some chunk streams; then the greatest chunk
            // size, and one more.
            let small = [2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 64];
            let greatest = [2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff];
            let picture = |chunk_stream: u8| {
                let header = [chunk_stream, 0, 0, 0, 0x50, 0, 0, 9, 1, 0, 0, 0];
                [&header[..], &[0x17; 64]].concat()
            };
            let all = [&small[..], &picture(6), &picture(7), &greatest, &picture(8)].concat();
            client.socket().write_all(&all).expect("taken");
            sent += all.len() as u64;
        }
        let mut good = gateway.rtmp_client();
        publish(&mut good, "a");
        good.send(&frames(1, 0, 3 * GOP));
        flv(&gateway).marks_to(1, 3 * GOP - 1);
        // None was sent away for it, and all of it was read.
        wait_until("all that was sent", SOON, || {
            let (connected, bytes) = heard(&gateway);
            (connected > peers && bytes >= bytes_before + sent).then_some(())
        });
        let grown = base(&mut gateway).resident_kib.saturating_sub(before);
        assert!(grown < 20 * (CONNECTIONS + CONNECTIONS / 4), "{grown} KiB for {CONNECTIONS}");
        drop((clients, publishers));
    }
}

/// RTMP connections, and the bytes that they have sent.
fn heard(gateway: &Gateway) -> (usize, u64) {
    let clients = gateway.api("clients");
    let clients = clients["clients"].as_array().expect("a list");
    let rtmp = || clients.iter().filter(|client| client["protocol"] == "rtmp");
    (rtmp().count(), rtmp().filter_map(|client| client["bytes_in"].as_u64()).sum())
}

#[derive(Debug)]
struct Base {
    descriptors: usize,
    streams: usize,
    resident_kib: u64,
}

fn base(gateway: &mut Gateway) -> Base {
    let process = format!("/proc/{}", gateway.process().id());
    let status = std::fs::read_to_string(format!("{process}/status")).expect("a process");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Base {
        descriptors: std::fs::read_dir(format!("{process}/fd")).expect("a process").count(),
        streams: gateway.api("streams")["streams"].as_array().expect("streams").len(),
        resident_kib: kib.expect("VmRSS"),
    }
}
