//! What a connection costs that does nothing.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::cpu;
use super::media::Media;
use super::publisher::Publisher;
use super::{Plan, Server, Table};

const HOW: &str = "growth of VmRSS per connection, after 20 to warm up";
const GOP: &str = "the same; of it 1 MiB is the GOP itself, kept for new players";
const WARM_UP: usize = 20;
/// For the gateway to have done what it was sent.
const SETTLE: Duration = Duration::from_millis(300);

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let media = Media::new();
    let url = server.gateway.rtmp("live/idle");
    let address = url["rtmp://".len()..].split('/').next().unwrap_or_default().to_owned();
    let connect = |_| TcpStream::connect(&address).expect("the gateway");
    let publish = |index| Publisher::connect(&format!("{url}{index}"), &media);

    let warm: Vec<TcpStream> = (0..WARM_UP).map(connect).collect();
    let (grown, connected) = growth(server, || sockets(plan, connect));
    table.add("memory, connected only", "KiB", HOW, grown / plan.idle_publishers as f64);
    drop((warm, connected));

    let mut warm: Vec<Publisher> = (0..WARM_UP).map(publish).collect();
    let accept = || (WARM_UP..WARM_UP + plan.idle_publishers).map(publish).collect();
    let (grown, mut publishers): (f64, Vec<Publisher>) = growth(server, accept);
    table.add("memory, idle publisher", "KiB", HOW, grown / plan.idle_publishers as f64);

    let one_gop = |publisher: &mut Publisher| {
        publisher.send_headers(&media);
        publisher.send_until(Duration::from_secs(2));
    };
    warm.iter_mut().for_each(one_gop);
    let (grown, ()) = growth(server, || publishers.iter_mut().for_each(one_gop));
    let each = grown / plan.idle_publishers as f64;
    table.add("memory, publisher after one GOP", "KiB", GOP, each);
}

fn sockets(plan: &Plan, connect: impl FnMut(usize) -> TcpStream) -> Vec<TcpStream> {
    (0..plan.idle_publishers).map(connect).collect()
}

/// By how many KiB the gateway grows, and what `work` gives.
fn growth<T>(server: &Server, work: impl FnOnce() -> T) -> (f64, T) {
    thread::sleep(SETTLE);
    let before = cpu::resident_kib(server.id);
    let result = work();
    thread::sleep(SETTLE);
    (cpu::resident_kib(server.id) - before, result)
}
