//! SIGTERM under load: a quick, clean end, and the ports are free at once.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use weir_e2e::publisher::Publisher;
use weir_e2e::reserved::ReservedListeners;
use weir_e2e::{Backend, Gateway};

on_both_backends!(sigterm_ends_within_a_second_and_frees_the_ports);

fn sigterm_ends_within_a_second_and_frees_the_ports(backend: Backend) {
    let reserved = ReservedListeners::take();
    let mut gateway = Gateway::start_on(backend, &reserved, &[]);
    let _publisher = Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip", gateway.scratch());
    gateway.wait_for("live/clip/index.m3u8");
    let players: Vec<_> = (0..4)
        .map(|_| {
            let (status, mut body) = gateway.client().stream(&gateway.http("live/clip.flv"));
            assert_eq!(status, 200);
            thread::spawn(move || io::copy(&mut body, &mut io::sink()))
        })
        .collect();
    let asked = Instant::now();
    let status = gateway.stop(Duration::from_secs(5));
    assert!(asked.elapsed() < Duration::from_secs(1), "the end took {:?}", asked.elapsed());
    assert!(status.success(), "{status}");
    for player in players {
        let received = player.join().unwrap();
        assert!(received.as_ref().is_ok_and(|bytes| *bytes > 0), "no clean end: {received:?}");
    }
    drop(gateway);
    let _again = Gateway::start_on(backend, &reserved, &[]);
}
