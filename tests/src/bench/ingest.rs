//! What taking in costs: nobody watches.

use std::thread;
use std::time::Duration;

use super::media::Media;
use super::publisher::{Live, Publisher};
use super::{Plan, Server, Table};

const GIB: f64 = (1_u64 << 30) as f64;
const FAST_PUBLISHERS: usize = 8;
const PACED_PUBLISHERS: usize = 100;
const FAST: &str = "8 publishers push as fast as they can, no players: user and system time of \
    the gateway by bytes sent to it";
const PACED: &str = "100 publishers push 4.2 Mbit/s each at its own speed, one write a frame";

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let media = Media::new();
    let connect = |name: &str, count: usize| -> Vec<Publisher> {
        let url = |index| server.gateway.rtmp(&format!("live/{name}{index}"));
        let mut all: Vec<_> =
            (0..count).map(|index| Publisher::connect(&url(index), &media)).collect();
        all.iter_mut().for_each(|publisher| publisher.send_headers(&media));
        all
    };

    let publishers = connect("fast", FAST_PUBLISHERS);
    let each = plan.ingest_bytes / FAST_PUBLISHERS as u64;
    let (seconds, bytes) = server.cost(|| {
        let push = |publisher| thread::spawn(move || push(publisher, each));
        let threads: Vec<_> = publishers.into_iter().map(push).collect();
        threads.into_iter().map(|thread| thread.join().expect("a publisher")).sum::<u64>()
    });
    table.add("in, fast", "CPU-s/GiB", FAST, seconds * GIB / bytes as f64);

    let publishers = connect("paced", PACED_PUBLISHERS);
    let (seconds, bytes) = server.cost(|| {
        let live = Live::start(publishers);
        thread::sleep(Duration::from_secs_f64(plan.paced_seconds));
        live.finish()
    });
    let wanted = PACED_PUBLISHERS as f64 * plan.paced_seconds * 4.0e6 / 8.0;
    assert!(bytes as f64 > 0.9 * wanted, "the load was too slow for real time");
    table.add("in, 100 paced", "CPU-s/GiB", PACED, seconds * GIB / bytes as f64);
}

fn push(mut publisher: Publisher, bytes: u64) -> u64 {
    let mut time = Duration::ZERO;
    let before = publisher.sent;
    while publisher.sent - before < bytes {
        time += Duration::from_secs(2);
        publisher.send_until(time);
    }
    publisher.sent - before
}
