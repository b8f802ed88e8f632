//! What live HTTP-FLV players cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::load::{self, Connection};
use super::publisher::Live;
use super::{Plan, Server, Table};

const GIB: f64 = (1_u64 << 30) as f64;
const PLAYERS: u64 = 200;
const HOW: &str = "200 HTTP-FLV players of one stream of 4.2 Mbit/s at its own speed, ingest \
    included; by bytes that the players received";

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let live = Live::one(&server.gateway.rtmp("live/many"), Duration::from_secs(3));
    server.gateway.wait_for("live/many/index.m3u8");
    let url = server.gateway.http("");
    let address = url["http://".len()..].trim_end_matches('/').to_owned();
    let received = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let players = {
        let (received, stop) = (received.clone(), stop.clone());
        let watch = move |_| watch(address.clone(), received.clone(), stop.clone());
        thread::spawn(move || load::run(PLAYERS, watch))
    };
    // All have joined and caught up.
    thread::sleep(Duration::from_millis(1500));
    let before = received.load(Ordering::Relaxed);
    let (seconds, ()) = server.cost(|| thread::sleep(Duration::from_secs_f64(plan.player_seconds)));
    let bytes = (received.load(Ordering::Relaxed) - before) as f64;
    stop.store(true, Ordering::Relaxed);
    players.join().expect("the players");
    let _ = live.finish();
    let wanted = PLAYERS as f64 * plan.player_seconds * 4.0e6 / 8.0;
    assert!(bytes > 0.9 * wanted, "the players were too slow for real time");
    table.add("out, 200 FLV players", "CPU-s/GiB", HOW, seconds * GIB / bytes);
}

async fn watch(address: String, received: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    let mut connection = Connection::open(&address).await;
    connection.request(&address, "live/many.flv").await;
    connection.head().await;
    while !stop.load(Ordering::Relaxed) {
        let count = connection.read().await;
        received.fetch_add(count as u64, Ordering::Relaxed);
    }
}
