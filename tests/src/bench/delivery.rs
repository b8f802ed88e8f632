//! What handing out segments costs, next to nginx with the same bytes.

use std::process::Command;
use std::time::Duration;

use super::cpu;
use super::media::Media;
use super::nginx::Nginx;
use super::publisher::Publisher;
use super::{Plan, Server, Table};
use crate::http::Client;
use crate::playlist::{Playlist, resolve};
use crate::tools;

const GIB: f64 = (1_u64 << 30) as f64;
const CONNECTIONS: &str = "-c32";
const WEIR: &str = "one segment of about 1 MiB, again and again, by wrk on 32 \
    keep-alive connections";
const NGINX: &str = "the same bytes from tmpfs, same client, runs in turn; one worker on the same \
    CPU, sendfile on, tcp_nopush off, no access log";
const RATIO: &str = "CPU time of Weir by that of nginx, below 1 is cheaper";

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let media = Media::new();
    let mut publisher = Publisher::connect(&server.gateway.rtmp("live/hls"), &media);
    publisher.send_headers(&media);
    // Seven GOPs: a full window. The publisher then stays and is silent, so that nothing moves.
    publisher.send_until(Duration::from_secs(14) + Duration::from_millis(100));
    for (name, playlist) in [("fMP4", "live/hls/media.m3u8"), ("TS", "live/hls.m3u8")] {
        server.gateway.wait_for(playlist);
        let url = server.gateway.http(playlist);
        let segments = Playlist::parse(&Client::default().get(&url).text()).segments;
        let segment = resolve(&url, &segments.last().expect("a segment").uri);
        let bytes = Client::default().get(&segment).body;
        assert!(bytes.len() > 1 << 19, "{segment} has only {} bytes", bytes.len());
        let nginx = Nginx::serve(&bytes);
        assert!(Client::default().get(&nginx.url()).body == bytes, "nginx serves other bytes");

        let seconds = plan.segment_seconds;
        let weir = cost_of_gib(server.id, &segment, seconds, bytes.len());
        let other = cost_of_gib(nginx.worker(), &nginx.url(), seconds, bytes.len());
        table.add(&format!("out, {name} segments"), "CPU-s/GiB", WEIR, weir);
        table.add(&format!("out, {name}, nginx"), "CPU-s/GiB", NGINX, other);
        table.add(&format!("out, {name}, Weir : nginx"), "ratio", RATIO, weir / other);
    }
}

/// CPU time that a process takes for each GiB that it serves, in seconds.
///
/// The load is wrk's. How a client reads decides how the server's sends are cut, and so what they
/// cost, two times as much and more; a client that others have as well can be compared with.
fn cost_of_gib(process: u32, url: &str, seconds: u32, len: usize) -> f64 {
    let before = cpu::seconds(process);
    let mut wrk = Command::new("wrk");
    let report = tools::run("wrk", wrk.args(["-t1", CONNECTIONS, &format!("-d{seconds}s"), url]));
    let cost = cpu::seconds(process) - before;
    assert!(!report.contains("errors") && !report.contains("Non-2xx"), "wrk: {report}");
    // "  5490 requests in 3.01s, 5.36GB read"
    let line = report.lines().find(|line| line.contains(" requests in "));
    let requests = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    cost * GIB / (requests.expect("a number of requests from wrk") * len as f64)
}
