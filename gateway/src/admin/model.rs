//! What the API tells, as plain data. Field names are the API's.

mod counts;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

use serde::{Serialize, Serializer};
use weir_protocol::flv::{ColorInfo, MASTERING};
use weir_protocol::media::{Track, TrackKind};
use weir_protocol::stream_name::StreamName;

use crate::stream::left_out::LeftOut;
use crate::stream::owner::PublisherRole;

pub use counts::{HlsDropped, TimeRepairs};

/// What one core knows: the streams it owns, its players of all streams, its connections.
#[derive(Clone, Debug, Default)]
pub struct CoreReport {
    pub core: usize,
    pub streams: Vec<StreamInfo>,
    /// Players on this core of other cores' streams. Those of its own stand in [`StreamInfo`].
    pub audiences: Vec<Audience>,
    pub clients: Vec<ClientInfo>,
    pub relays: Vec<RelayInfo>,
}

#[derive(Clone, Debug)]
pub struct Audience {
    pub name: StreamName,
    pub players: Players,
    pub bytes_out: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct StreamInfo {
    #[serde(flatten, serialize_with = "app_and_name")]
    pub name: StreamName,
    pub state: StreamState,
    /// The core that owns it.
    pub core: usize,
    /// `None` while the stream waits for its publisher to come back.
    pub publisher: Option<PublisherInfo>,
    pub tracks: Vec<TrackInfo>,
    /// Between the two newest video keyframes.
    pub gop_ms: Option<u64>,
    /// Bits per second, all tracks together.
    pub bitrate: u64,
    pub players: Players,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub time_repairs: TimeRepairs,
    /// HLS segments that had to begin without a keyframe, because the publisher's come too late.
    pub cuts_without_keyframe: u64,
    pub hls_dropped: HlsDropped,
    /// What the publisher sends and players do not get.
    pub left_out: Vec<LeftOut>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamState {
    Live,
    /// The publisher has left; players keep the stream for the resume window.
    Resuming,
    /// The last playlist can still be fetched.
    Ended,
}

#[derive(Clone, Debug, Serialize)]
pub struct PublisherInfo {
    /// The id of its connection.
    pub id: u64,
    pub role: PublisherRole,
    pub address: SocketAddr,
    pub protocol: &'static str,
    /// What the encoder calls itself (`flashVer`), if it does.
    pub encoder: Option<String>,
    #[serde(serialize_with = "rfc3339")]
    pub since: SystemTime,
}

#[derive(Clone, Debug, Serialize)]
pub struct TrackInfo {
    pub id: u8,
    pub kind: &'static str,
    pub codec: &'static str,
    pub rfc6381: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Measured frames per second of a video track.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<u8>,
    /// Measured bits per second.
    pub bitrate: u64,
    /// As the encoder tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<Color>,
}

/// How a video track is to be shown ([`ColorInfo`]).
#[derive(Clone, Debug, Serialize)]
pub struct Color {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_depth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primaries: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fall: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cll: Option<f64>,
    /// The mastering display's figures by their names in Enhanced RTMP.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mastering: BTreeMap<&'static str, f64>,
}

impl From<&ColorInfo> for Color {
    fn from(color: &ColorInfo) -> Self {
        let mastering = MASTERING.iter().zip(color.mastering);
        Self {
            bit_depth: color.bit_depth,
            primaries: color.primaries,
            transfer: color.transfer,
            matrix: color.matrix,
            max_fall: color.max_fall,
            max_cll: color.max_cll,
            mastering: mastering.filter_map(|((name, _), it)| Some((*name, it?))).collect(),
        }
    }
}

impl TrackInfo {
    /// `bitrate` and `units_per_second` as measured over the last second or so.
    #[must_use]
    pub fn new(track: &Track, bitrate: u64, units_per_second: f64) -> Self {
        let codec = &track.codec;
        let (kind, fps) = match track.kind() {
            TrackKind::Video => ("video", Some((units_per_second * 100.0).round() / 100.0)),
            TrackKind::Audio => ("audio", None),
        };
        Self {
            id: track.id.0,
            kind,
            codec: codec.name(),
            rfc6381: codec.rfc6381(),
            width: codec.resolution().map(|(width, _)| width),
            height: codec.resolution().map(|(_, height)| height),
            fps,
            sample_rate: codec.sample_rate(),
            channels: codec.channels(),
            bitrate,
            color: None,
        }
    }

    #[must_use]
    pub fn with_color(self, color: Option<&ColorInfo>) -> Self {
        let said = color.filter(|color| **color != ColorInfo::default());
        Self { color: said.map(Color::from), ..self }
    }
}

/// Players by protocol. HLS players are those seen lately, told apart by address and user agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Players {
    pub hls: usize,
    pub ll_hls: usize,
    pub flv: usize,
    pub rtmp: usize,
}

impl AddAssign for Players {
    fn add_assign(&mut self, other: Self) {
        self.hls += other.hls;
        self.ll_hls += other.ll_hls;
        self.flv += other.flv;
        self.rtmp += other.rtmp;
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct ClientInfo {
    pub id: u64,
    pub core: usize,
    pub kind: ClientKind,
    pub protocol: &'static str,
    pub address: SocketAddr,
    /// `app/name` of the stream it publishes or plays.
    #[serde(serialize_with = "name_or_null")]
    pub stream: Option<StreamName>,
    #[serde(serialize_with = "rfc3339")]
    pub since: SystemTime,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// `User-Agent` or `flashVer`.
    pub user_agent: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    Publisher,
    Player,
    /// A server that the gateway sends a stream to.
    Push,
    /// A server that the gateway has a stream from.
    Pull,
    /// Connected, but neither publishing nor playing (yet), or fetching HLS by plain requests.
    Connection,
}

/// A stream on its way to another server, or from it.
#[derive(Clone, Debug, Serialize)]
pub struct RelayInfo {
    #[serde(flatten, serialize_with = "app_and_name")]
    pub stream: StreamName,
    pub direction: RelayDirection,
    /// Of the other server, without the key.
    pub url: String,
    pub state: RelayState,
    pub core: usize,
    /// The id of its connection, while there is one.
    pub client: Option<u64>,
    /// Of the state.
    #[serde(serialize_with = "rfc3339")]
    pub since: SystemTime,
    /// Until the next attempt.
    pub retry_in_ms: Option<u64>,
    /// Sent or received, over all connections.
    pub bytes: u64,
    pub reconnects: u64,
    pub last_error: Option<String>,
    /// Codecs of the stream that the server does not take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayDirection {
    Push,
    Pull,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RelayState {
    Connecting,
    Live,
    /// For the next attempt, or for media to send.
    Waiting,
    /// A pull that stands back for somebody who publishes the stream here.
    Standby,
}

#[derive(Clone, Debug, Serialize)]
pub struct ServerInfo {
    pub version: &'static str,
    pub uptime_seconds: u64,
    /// `uring` or `epoll`.
    pub io_backend: &'static str,
    /// Why it is not the one that was asked for or would be best, and the remedy.
    pub io_note: Option<String>,
    pub cores: usize,
    /// The CPU that each core's thread is pinned to.
    pub cpus: Vec<usize>,
    pub memory: MemoryInfo,
    /// What RTMPS shows, if it is spoken.
    pub certificate: Option<CertificateInfo>,
    pub fd_limit: Option<u64>,
    pub open_fds: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CertificateInfo {
    /// Host names and addresses that it is for.
    pub names: Vec<String>,
    #[serde(serialize_with = "rfc3339")]
    pub expires: SystemTime,
    /// Times that a new one was no good, so that the old one stayed.
    pub failures: u64,
}

/// Bytes.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryInfo {
    pub rss: Option<u64>,
    /// Blocks that hold media.
    pub arena_in_use: u64,
    pub budget: u64,
}

/// All cores' streams by name, with the players of every core.
#[must_use]
pub fn merge_streams(reports: Vec<CoreReport>) -> Vec<StreamInfo> {
    let mut streams = Vec::new();
    let mut audiences = Vec::new();
    for report in reports {
        streams.extend(report.streams);
        audiences.extend(report.audiences);
    }
    // While a name moves to a new owner, the old one may still list it as ended.
    streams.sort_by(|a: &StreamInfo, b| {
        a.name.cmp(&b.name).then((a.state as u8).cmp(&(b.state as u8)))
    });
    streams.dedup_by(|later, first| later.name == first.name);
    for audience in audiences {
        if let Ok(index) = streams.binary_search_by(|stream| stream.name.cmp(&audience.name))
            && let Some(stream) = streams.get_mut(index)
        {
            stream.players += audience.players;
            stream.bytes_out += audience.bytes_out;
        }
    }
    streams
}

/// All cores' connections, oldest first.
#[must_use]
pub fn merge_clients(reports: Vec<CoreReport>) -> Vec<ClientInfo> {
    let mut clients: Vec<_> = reports.into_iter().flat_map(|report| report.clients).collect();
    clients.sort_by_key(|client| (client.since, client.id));
    clients
}

/// All cores' relays by the names of their streams.
#[must_use]
pub fn merge_relays(reports: Vec<CoreReport>) -> Vec<RelayInfo> {
    let mut relays: Vec<_> = reports.into_iter().flat_map(|report| report.relays).collect();
    relays.sort_by(|a, b| (&a.stream, &a.url).cmp(&(&b.stream, &b.url)));
    relays
}

/// The wall clock at `at`. The same for every call with the same `at`, so that what the API tells
/// of a session's start never wavers.
#[must_use]
pub fn wall_clock(at: Instant) -> SystemTime {
    static ANCHOR: OnceLock<(Instant, SystemTime)> = OnceLock::new();
    let (instant, time) = *ANCHOR.get_or_init(|| (crate::clock::now(), crate::clock::wall()));
    match at.checked_duration_since(instant) {
        Some(after) => time + after,
        None => time - instant.duration_since(at),
    }
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*time))
}

fn name_or_null<S: Serializer>(
    name: &Option<StreamName>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    name.as_ref().map(StreamName::as_str).serialize(serializer)
}

fn app_and_name<S: Serializer>(name: &StreamName, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Name<'a> {
        app: &'a str,
        name: &'a str,
    }
    Name { app: name.app(), name: name.name() }.serialize(serializer)
}
