use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use http_body_util::Empty;
use hyper::{Request, StatusCode};
use serde_json::{Value, json};
use weir_protocol::codec::{CodecConfig, aac, avc};
use weir_protocol::media::{Track, TrackId};

use super::api::Api;
use super::model::*;
use super::*;
use crate::metrics::Counters;
use crate::stream::owner::PublisherRole;

/// Two cores with one stream on the first and players on both.
#[derive(Clone, Default)]
struct Cores {
    silent: bool,
    not_ready: bool,
    kicked: Arc<Mutex<Vec<String>>>,
}

impl Cores {
    fn kicked(&self) -> Vec<String> {
        self.kicked.lock().unwrap().clone()
    }

    async fn answer<T>(&self, answer: T) -> Result<T, Unanswered> {
        if self.silent {
            std::future::pending::<()>().await;
        }
        Ok(answer)
    }
}

impl Control for Cores {
    async fn reports(&self) -> Result<Vec<CoreReport>, Unanswered> {
        let audience = Audience {
            name: name("live/deep/camé"),
            players: Players { flv: 2, ..Players::default() },
            bytes_out: 50,
        };
        let absent = Audience { name: name("live/gone"), ..audience.clone() };
        let first = CoreReport { core: 0, streams: vec![stream()], ..CoreReport::default() };
        let second = CoreReport {
            core: 1,
            audiences: vec![absent, audience],
            clients: vec![client()],
            ..CoreReport::default()
        };
        self.answer(vec![first, second]).await
    }

    async fn kick_client(&self, id: u64) -> Result<bool, Unanswered> {
        self.kicked.lock().unwrap().push(id.to_string());
        self.answer(id == 1025).await
    }

    async fn kick_stream(&self, stream: StreamName) -> Result<bool, Unanswered> {
        self.kicked.lock().unwrap().push(stream.to_string());
        self.answer(stream == name("live/deep/camé")).await
    }

    fn ready(&self) -> bool {
        !self.not_ready
    }
}

fn name(text: &str) -> StreamName {
    StreamName::from_path(text).unwrap()
}

fn peer() -> SocketAddr {
    "192.0.2.7:5000".parse().unwrap()
}

fn stream() -> StreamInfo {
    let video = avc::Config {
        record: bytes::Bytes::new(),
        profile: 0x64,
        compatibility: 0,
        level: 0x1f,
        sps: vec![],
        pps: vec![],
        width: 1280,
        height: 720,
    };
    let audio = aac::Config {
        record: bytes::Bytes::new(),
        object_type: 2,
        sample_rate: 48_000,
        channels: 2,
        frame_samples: 1024,
    };
    let track = |id, codec| Track { id: TrackId(id), codec: Arc::new(codec) };
    StreamInfo {
        name: name("live/deep/camé"),
        state: StreamState::Live,
        core: 0,
        publisher: Some(PublisherInfo {
            id: 1024,
            role: PublisherRole::Publisher,
            address: peer(),
            protocol: "rtmp",
            encoder: Some("FMLE/3.0".to_owned()),
            since: SystemTime::UNIX_EPOCH,
        }),
        tracks: vec![
            TrackInfo::new(&track(0, CodecConfig::Avc(video)), 2_000_000, 29.97003),
            TrackInfo::new(&track(1, CodecConfig::Aac(audio)), 128_000, 46.875),
        ],
        gop_ms: Some(2000),
        bitrate: 2_128_000,
        players: Players { hls: 1, flv: 1, ..Players::default() },
        bytes_in: 1000,
        bytes_out: 100,
        time_repairs: TimeRepairs::default(),
        cuts_without_keyframe: 0,
        hls_dropped: HlsDropped::default(),
        left_out: Vec::new(),
    }
}

fn client() -> ClientInfo {
    ClientInfo {
        id: 1025,
        core: 1,
        kind: ClientKind::Player,
        protocol: "flv",
        address: peer(),
        stream: Some(name("live/deep/camé")),
        since: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
        bytes_in: 200,
        bytes_out: 50,
        user_agent: Some("<script>".to_owned()),
    }
}

fn admin(cores: &Cores) -> Admin<Cores> {
    let process = Arc::new(crate::process::Process {
        started: Instant::now(),
        started_at: SystemTime::now(),
        io_backend: "epoll",
        io_note: Some("io_uring is forbidden here".to_owned()),
        cpus: vec![0, 1],
        arena: crate::io::Arena::reserve(1 << 30).unwrap(),
        certificates: None,
    });
    let counters = Arc::new(Counters::default());
    let exporter = Exporter::new(vec![counters], process.clone());
    Admin { control: cores.clone(), process, exporter }
}

/// A served admin listener on a port of its own.
struct Server {
    address: SocketAddr,
    running: Running,
}

fn serve(cores: &Cores) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    Server { address, running: start(listener, admin(cores)).unwrap() }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        assert!(self.head.contains("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Server {
    fn send(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut socket = TcpStream::connect(self.address).unwrap();
        let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
        write!(socket, "{method} {path} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "")
    }
}

#[test]
fn health_readiness_and_metrics() {
    let server = serve(&Cores::default());
    assert_eq!(server.get("/healthz").body, "ok\n");
    assert_eq!(server.get("/readyz").status, 200);
    let metrics = server.get("/metrics");
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{}", metrics.head);
    assert!(metrics.body.contains("weir_io_backend_info{backend=\"epoll\"} 1"), "{}", metrics.body);
    let index = server.get("/");
    for link in ["/metrics", "/healthz", "/readyz", "/api/v1/server", "/api/v1/streams"] {
        assert!(index.body.contains(&format!("href=\"{link}\"")), "{link}");
        assert_eq!(server.get(link).status, 200);
    }
    let stopping = serve(&Cores { not_ready: true, ..Cores::default() });
    assert_eq!(stopping.get("/readyz").status, 503);
    assert_eq!(stopping.get("/healthz").status, 200);
}

#[test]
fn server_tells_backend_and_memory() {
    let told = serve(&Cores::default()).get("/api/v1/server").json();
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told["io_backend"], "epoll");
    assert_eq!(told["io_note"], "io_uring is forbidden here");
    assert_eq!(told["cores"], 2);
    assert_eq!(told["memory"]["arena_in_use"], 0);
    assert_eq!(told["memory"]["budget"], 1 << 30);
    assert!(told["memory"]["rss"].as_u64().unwrap() > 0);
}

#[test]
fn streams_count_the_players_of_all_cores() {
    let server = serve(&Cores::default());
    let told = server.get("/api/v1/streams").json();
    let expected = json!({
        "app": "live/deep", "name": "camé", "state": "live", "core": 0,
        "publisher": {
            "id": 1024, "role": "publisher", "address": "192.0.2.7:5000", "protocol": "rtmp",
            "encoder": "FMLE/3.0",
            "since": "1970-01-01T00:00:00.000Z",
        },
        "tracks": [
            {"id": 0, "kind": "video", "codec": "h264", "rfc6381": "avc1.64001f", "width": 1280,
             "height": 720, "fps": 29.97, "bitrate": 2_000_000},
            {"id": 1, "kind": "audio", "codec": "aac", "rfc6381": "mp4a.40.2",
             "sample_rate": 48_000, "channels": 2, "bitrate": 128_000},
        ],
        "gop_ms": 2000, "bitrate": 2_128_000,
        "players": {"hls": 1, "ll_hls": 0, "flv": 3, "rtmp": 0},
        "bytes_in": 1000, "bytes_out": 150,
        "time_repairs": {
            "wrap": 0, "jitter": 0, "outlier": 0, "new_timeline": 0, "aligned": 0, "resync": 0,
        },
        "cuts_without_keyframe": 0,
        "hls_dropped": { "not_in_epoch": 0, "before_keyframe": 0, "out_of_time": 0, "empty": 0 },
        "left_out": [],
    });
    assert_eq!(told, json!({ "streams": [expected] }));
    assert_eq!(server.get("/api/v1/streams/live/deep/cam%C3%A9").json(), expected);
    for absent in ["live/other", "live", "", "..%2f..%2fetc/passwd", "%zz/a"] {
        let answer = server.get(&format!("/api/v1/streams/{absent}"));
        assert_eq!(answer.status, 404, "{absent}");
        assert_eq!(answer.json()["error"]["code"], "not_found");
    }
}

#[test]
fn clients() {
    let server = serve(&Cores::default());
    let expected = json!({
        "id": 1025, "core": 1, "kind": "player", "protocol": "flv", "address": "192.0.2.7:5000",
        "stream": "live/deep/camé", "since": "1970-01-01T00:00:01.500Z", "bytes_in": 200,
        "bytes_out": 50, "user_agent": "<script>",
    });
    assert_eq!(server.get("/api/v1/clients").json(), json!({ "clients": [expected] }));
    assert_eq!(server.get("/api/v1/clients/1025").json(), expected);
    for absent in ["7", "-1", "abc", "99999999999999999999999"] {
        assert_eq!(server.get(&format!("/api/v1/clients/{absent}")).status, 404, "{absent}");
    }
}

#[test]
fn delete_ends_streams_and_clients() {
    let cores = Cores::default();
    let server = serve(&cores);
    for (path, status) in [
        ("/api/v1/streams/live/deep/cam%C3%A9", 204),
        ("/api/v1/streams/live/other", 404),
        ("/api/v1/clients/1025", 204),
        ("/api/v1/clients/7", 404),
    ] {
        assert_eq!(server.send("DELETE", path, "").status, status, "{path}");
    }
    assert_eq!(cores.kicked(), ["live/deep/camé", "live/other", "1025", "7"]);
}

#[test]
fn other_methods_and_addresses() {
    let server = serve(&Cores::default());
    for (method, path, allow) in [
        ("POST", "/api/v1/streams", "allow: get, head\r\n"),
        ("DELETE", "/metrics", "allow: get, head\r\n"),
        ("PUT", "/api/v1/clients/7", "allow: get, head, delete\r\n"),
        ("OPTIONS", "/", "allow: get, head\r\n"),
    ] {
        let answer = server.send(method, path, "");
        assert_eq!(answer.status, 405, "{method} {path}");
        assert!(answer.head.contains(allow), "{}", answer.head);
        assert_eq!(answer.json()["error"]["code"], "method_not_allowed");
    }
    for path in ["/api", "/api/v2/streams", "/healthz/x", "//evil.example/", "/%2e%2e/"] {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.json()["error"]["code"], "not_found");
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{}", answer.head);
    }
}

#[test]
fn head_is_get_without_the_body() {
    let server = serve(&Cores::default());
    for path in ["/healthz", "/api/v1/streams", "/nowhere"] {
        let (get, head) = (server.get(path), server.send("HEAD", path, ""));
        assert_eq!((head.status, head.body.as_str()), (get.status, ""), "{path}");
        let length = format!("content-length: {}", get.body.len());
        assert!(head.head.contains(&length), "{length} in {}", head.head);
    }
}

#[test]
fn pages_of_other_sites_are_kept_out() {
    let cores = Cores::default();
    let server = serve(&cores);
    let rebound = server.send("GET", "/api/v1/clients", "Host: evil.example\r\n");
    assert_eq!(rebound.status, 403);
    assert_eq!(rebound.json()["error"]["code"], "forbidden_host");
    let forged = server.send("DELETE", "/api/v1/clients/1025", "Origin: http://evil.example\r\n");
    assert_eq!(forged.status, 403);
    assert_eq!(forged.json()["error"]["code"], "forbidden_origin");
    assert!(cores.kicked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_core_that_does_not_answer_costs_a_bounded_wait() {
    let cores = Cores { silent: true, ..Cores::default() };
    let api = Api { admin: admin(&cores), on_loopback: true };
    for (method, path) in [
        ("GET", "/api/v1/streams"),
        ("GET", "/api/v1/streams/live/a"),
        ("GET", "/api/v1/clients"),
        ("DELETE", "/api/v1/streams/live/a"),
        ("DELETE", "/api/v1/clients/1"),
    ] {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let began = tokio::time::Instant::now();
        let answer = api.answer(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{method} {path}");
        assert!(began.elapsed() < Duration::from_secs(3), "{method} {path}");
    }
    let request = Request::builder().uri("/metrics").header("host", "localhost");
    let answer = api.answer(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::OK, "a scrape waits for no core");
}

#[test]
fn stopping_ends_kept_connections_and_frees_the_port() {
    let server = serve(&Cores::default());
    let mut kept = TcpStream::connect(server.address).unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut byte = [0];
    kept.read_exact(&mut byte).unwrap();
    let mut silent = TcpStream::connect(server.address).unwrap();
    silent.write_all(b"GET /he").unwrap();
    assert_eq!(server.get("/healthz").status, 200, "a slow request holds up nobody");

    server.running.stop();
    let mut rest = Vec::new();
    kept.read_to_end(&mut rest).unwrap();
    assert!(String::from_utf8(rest).unwrap().ends_with("ok\n"));
    let again = TcpListener::bind(server.address).unwrap();
    start(again, admin(&Cores::default())).unwrap().stop();
}

#[test]
fn a_name_on_its_way_to_a_new_owner_is_listed_once() {
    let moved = |core, state| CoreReport {
        core,
        streams: vec![StreamInfo { core, state, ..stream() }],
        ..CoreReport::default()
    };
    let streams = merge_streams(vec![moved(0, StreamState::Ended), moved(1, StreamState::Live)]);
    assert_eq!(streams.iter().map(|stream| stream.core).collect::<Vec<_>>(), [1]);
}

#[test]
fn the_wall_clock_does_not_waver() {
    let at = Instant::now();
    let before = at.checked_sub(Duration::from_secs(1)).unwrap_or(at);
    assert_eq!(wall_clock(at), wall_clock(at));
    assert_eq!(wall_clock(at).duration_since(wall_clock(before)).unwrap(), at - before);
}
