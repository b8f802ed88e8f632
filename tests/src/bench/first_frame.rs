//! How long a new player of a running stream waits.

use std::io::Read;
use std::thread;
use std::time::{Duration, Instant};

use weir_protocol::flv::{FileReader, Tag};

use super::media;
use super::publisher::Live;
use super::table::{median, percentile};
use super::{Plan, Server, Table};
use crate::gateway::Gateway;
use crate::http::{Answer, Client};
use crate::playlist::{Playlist, resolve};

const FLV: &str = "one stream of 4.2 Mbit/s, 2 s GOP, joined at any time: from connect to the last \
    byte of the first keyframe";
const HLS: &str = "from GET index.m3u8 through media playlist and init segment, one connection, to \
    the last byte of the newest part that begins with a keyframe";
/// Two GOPs and a half at hand, so that the playlists are there at once.
const AHEAD: Duration = Duration::from_secs(5);
/// Joins come this far apart: no divisor of the GOP, so that they meet it at any phase.
const BETWEEN: Duration = Duration::from_millis(37);

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let live = Live::one(&server.gateway.rtmp("live/join"), AHEAD);
    server.gateway.wait_for("live/join/index.m3u8");
    let (mut flv, mut hls) = (Vec::new(), Vec::new());
    for _ in 0..plan.joins {
        thread::sleep(BETWEEN);
        flv.push(join_flv(&server.gateway.http("live/join.flv")).as_secs_f64() * 1000.0);
        hls.push(join_hls(&server.gateway).as_secs_f64() * 1000.0);
    }
    let _ = live.finish();
    for (name, how, values) in [("FLV", FLV, &flv), ("LL-HLS", HLS, &hls)] {
        let worst = percentile(values, 1.0).unwrap_or(f64::NAN);
        let typical = median(values).unwrap_or(f64::NAN);
        table.add(&format!("first frame, {name}, median"), "ms", how, typical);
        table.add(&format!("first frame, {name}, worst"), "ms", "as above", worst);
    }
}

fn join_flv(url: &str) -> Duration {
    let began = Instant::now();
    let (status, body) = Client::new(Duration::from_secs(10)).stream(url);
    assert_eq!(status, 200, "GET {url}");
    let mut found = None;
    read_tags(body, |tag| {
        found = media::is_keyframe(&tag).then(|| began.elapsed());
        found.is_none()
    });
    found.expect("a keyframe before the stream ends")
}

/// Hands on every tag of an FLV stream as it arrives, until it ends or `take` wants no more.
///
/// # Panics
/// When it is no FLV stream.
pub fn read_tags(mut stream: impl Read, mut take: impl FnMut(Tag) -> bool) {
    let mut reader = FileReader::default();
    let mut bytes = vec![0; 64 * 1024];
    loop {
        while let Some(tag) = reader.next().expect("an FLV stream") {
            if !take(tag) {
                return;
            }
        }
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => reader.push(&bytes[..count]),
        }
    }
}

fn join_hls(gateway: &Gateway) -> Duration {
    let client = Client::new(Duration::from_secs(10));
    let get = |url: &str| {
        let answer: Answer = client.get(url);
        assert_eq!(answer.status, 200, "GET {url}");
        answer
    };
    let began = Instant::now();
    let multivariant = gateway.http("live/join/index.m3u8");
    let variants = Playlist::parse(&get(&multivariant).text()).variants;
    let media = resolve(&multivariant, variants.first().expect("a variant"));
    let playlist = Playlist::parse(&get(&media).text());
    let segment = playlist.segments.last().expect("a whole segment");
    get(&resolve(&media, segment.map.as_deref().expect("an init segment")));
    let closed = playlist.segments.iter().flat_map(|segment| &segment.parts);
    let mut parts = closed.chain(&playlist.open_parts).filter(|part| part.independent);
    let start = parts.next_back().expect("a part that begins with a keyframe");
    get(&resolve(&media, &start.uri));
    began.elapsed()
}
