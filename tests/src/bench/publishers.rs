//! What connections and publishers cost, from one to thousands: memory and CPU time of each, with
//! nobody watching.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::cpu;
use super::media::Media;
use super::publisher::{Live, Publisher};
use super::{Plan, Server, Table};

const CONNECTED: &str = "growth of VmRSS per connection that has sent nothing";
const IDLE: &str = "growth of VmRSS per accepted publisher that has sent nothing, after 20 to warm \
    up";
const LIVE: &str = "the same while each sends 2.0 Mbit/s at its own speed; of it 0.5 MiB is the GOP \
    itself, kept for new players, and as much or more the HLS window";
const CPU: &str = "user and system time of the gateway, of one core, by publishers, at 2.0 Mbit/s, \
    one write a frame";
const RATE: &str = "sent of what 2.0 Mbit/s each would be: less than 100 means that a core was full, \
    the gateway's or the load's";
const BUSY: &str = "of the gateway's core, at that rate";

const WARM_UP: usize = 20;
const CONNECTIONS: usize = 500;
/// For the gateway to have done what it was sent.
const SETTLE: Duration = Duration::from_millis(300);

pub fn connections(server: &mut Server, _plan: &Plan, table: &mut Table) {
    let address = server.gateway.socket_addr("rtmp");
    let empty = settled(server);
    let connect = |_| TcpStream::connect(address).expect("the gateway");
    let sockets: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
    let each = (settled(server) - empty) / CONNECTIONS as f64;
    table.add("connected only, memory", "KiB", CONNECTED, each);
    drop(sockets);
}

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let media = Media::two_megabits();
    let url = server.gateway.rtmp("live/warm");
    let warm: Vec<Publisher> =
        (0..WARM_UP).map(|index| Publisher::connect(&format!("{url}{index}"), &media)).collect();
    for &count in plan.publishers {
        measure_so_many(server, plan, table, &media, count);
    }
    drop(warm);
}

fn measure_so_many(
    server: &Server,
    plan: &Plan,
    table: &mut Table,
    media: &Media,
    publishers: usize,
) {
    let count = publishers as f64;
    let url = server.gateway.rtmp(&format!("live/of{publishers}-"));
    let empty = settled(server);
    let connect = |index| Publisher::connect(&format!("{url}{index}"), media);
    let mut all: Vec<Publisher> = (0..publishers).map(connect).collect();
    let name = |what: &str| format!("{publishers} publishers, {what}");
    table.add(&name("memory idle"), "KiB", IDLE, (settled(server) - empty) / count);

    all.iter_mut().for_each(|publisher| publisher.send_headers(media));
    let (cost, (seconds, sent)) = server.cost(|| {
        let begun = Instant::now();
        let live = Live::start(all);
        thread::sleep(Duration::from_secs_f64(plan.paced_seconds));
        table.add(&name("memory live"), "KiB", LIVE, (settled(server) - empty) / count);
        let sent = live.finish();
        (begun.elapsed().as_secs_f64(), sent)
    });
    let wanted = count * seconds * media.bits_per_second() / 8.0;
    table.add(&name("CPU each"), "% of core", CPU, cost / seconds / count * 100.0);
    table.add(&name("CPU of all"), "% of core", BUSY, cost / seconds * 100.0);
    table.add(&name("rate"), "%", RATE, (sent as f64 / wanted * 100.0).min(100.0));
}

/// The gateway's memory in KiB, once it has done what it was sent.
fn settled(server: &Server) -> f64 {
    thread::sleep(SETTLE);
    cpu::resident_kib(server.id)
}
