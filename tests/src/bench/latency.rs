//! From an encoder's write to the last byte of the same picture at a player.

use std::thread;
use std::time::{Duration, Instant};

use super::first_frame::read_tags;
use super::media;
use super::publisher::Live;
use super::table::percentile;
use super::{Plan, Server, Table};
use crate::http::Client;

const HOW: &str = "time stamped into each picture (15 KiB, keyframes 120 KiB) before its write, \
    read at the player; all players share the load's CPU";

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    for players in [1, 50] {
        let live = Live::one(&server.gateway.rtmp(&format!("live/{players}")), Duration::ZERO);
        server.gateway.wait_for(&format!("live/{players}/index.m3u8"));
        let url = server.gateway.http(&format!("live/{players}.flv"));
        let seconds = Duration::from_secs_f64(plan.latency_seconds);
        let watch = |_| {
            let (url, epoch) = (url.clone(), live.epoch);
            thread::spawn(move || watch(&url, epoch, seconds))
        };
        let threads: Vec<_> = (0..players).map(watch).collect();
        let ages = threads.into_iter().flat_map(|thread| thread.join().expect("a player"));
        let ages: Vec<f64> = ages.map(|age| age.as_secs_f64() * 1000.0).collect();
        let _ = live.finish();
        for (name, share) in [("P50", 0.5), ("P99", 0.99)] {
            let value = percentile(&ages, share).unwrap_or(f64::NAN);
            let figure = format!("publish to FLV, {players:>2} players, {name}");
            table.add(&figure, "ms", HOW, value);
        }
    }
}

/// The ages of all pictures of so many seconds, once the player has caught up with the live edge.
fn watch(url: &str, epoch: Instant, time: Duration) -> Vec<Duration> {
    /// A new player begins with old pictures; other new ones keep the CPUs busy for a moment.
    const SETTLE: Duration = Duration::from_millis(500);
    let (status, body) = Client::new(time + Duration::from_secs(10)).stream(url);
    assert_eq!(status, 200, "GET {url}");
    let began = Instant::now();
    let mut ages = Vec::new();
    read_tags(body, |tag| {
        let elapsed = began.elapsed();
        if elapsed > SETTLE && media::is_picture(&tag) {
            ages.extend(media::age(&tag.body, epoch));
        }
        elapsed < SETTLE + time
    });
    assert!(ages.len() as f64 > time.as_secs_f64() * 15.0, "the stream broke off");
    ages
}
