//! What scripted tests do over and over: publish and play on a chosen core, and ask what the
//! gateway thinks of it.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use weir_protocol::flv::{FileReader, Tag};

use crate::gateway::Gateway;
use crate::http_connection::{HttpConnection, Piece};
use crate::media::{self, Mark};
use crate::playlist::{Playlist, resolve};
use crate::process::wait_until;
use crate::rtmp_client::RtmpClient;

/// Generous: what takes so long has gone wrong.
pub const SOON: Duration = Duration::from_secs(15);

/// Settings that make streams quick to play, to leave and to forget.
pub const QUICK: [&str; 6] =
    ["--hls-segment", "500ms", "--hls-part", "100ms", "--resume-window", "2s"];

impl Gateway {
    /// The socket address of `rtmp`, `http` or `admin`.
    ///
    /// # Panics
    /// When the gateway has not told it.
    #[must_use]
    pub fn socket_addr(&self, listener: &str) -> SocketAddr {
        let found = self.listeners().into_iter().find(|(name, _)| name == listener);
        found.expect("a listener").1.parse().expect("its address")
    }

    /// The admin API's answer to a GET.
    ///
    /// # Panics
    /// When it is not 200.
    #[must_use]
    pub fn api(&self, path: &str) -> Value {
        let answer = self.client().get(&self.admin(&format!("api/v1/{path}")));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// What the API tells of the client of `rtmp` or `http` at this address; none when it is not
    /// connected. The kernel may give one port to a connection to each listener.
    ///
    /// # Panics
    /// When the API does not answer.
    #[must_use]
    pub fn client_at(&self, listener: &str, address: SocketAddr) -> Option<Value> {
        let clients = self.api("clients");
        let here = |client: &&Value| client["address"] == address.to_string();
        let its = |client: &&Value| (client["protocol"] == "rtmp") == (listener == "rtmp");
        let mut clients = clients["clients"].as_array().expect("clients").iter();
        clients.find(|client| here(client) && its(client)).cloned()
    }

    /// What the API tells of a stream.
    #[must_use]
    pub fn stream(&self, name: &str) -> Option<Value> {
        let answer = self.client().get(&self.admin(&format!("api/v1/streams/{name}")));
        (answer.status == 200).then(|| answer.json())
    }

    /// A new connection to a listener that the kernel has given to this core.
    ///
    /// # Panics
    /// When none comes to the core in a hundred tries.
    #[must_use]
    pub fn connect_on_core(&self, listener: &str, core: u64) -> TcpStream {
        for _ in 0..100 {
            let socket = TcpStream::connect(self.socket_addr(listener)).expect("it listens");
            let address = socket.local_addr().expect("an address");
            let client =
                wait_until("the connection in the API", SOON, || self.client_at(listener, address));
            if client["core"] == core {
                return socket;
            }
        }
        panic!("no connection came to core {core}");
    }

    /// A client of the application `live`, on this core.
    #[must_use]
    pub fn rtmp_on_core(&self, core: u64) -> RtmpClient {
        let mut client = RtmpClient::over(self.connect_on_core("rtmp", core));
        client.open("live", &self.rtmp("live"));
        client
    }

    /// A client of the application `live`, on any core.
    #[must_use]
    pub fn rtmp_client(&self) -> RtmpClient {
        let mut client = RtmpClient::connect(self.socket_addr("rtmp"));
        client.open("live", &self.rtmp("live"));
        client
    }

    /// An HTTP connection on any core.
    #[must_use]
    pub fn http_connection(&self) -> HttpConnection {
        HttpConnection::connect(self.socket_addr("http"))
    }

    /// The value of a metric, summed over its labels that contain `label`.
    ///
    /// # Panics
    /// When there are no metrics.
    #[must_use]
    pub fn metric(&self, name: &str, label: &str) -> f64 {
        let text = self.client().get(&self.admin("metrics")).text();
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
        let values: Vec<f64> =
            lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        assert!(!values.is_empty(), "no metric {name} with {label} in\n{text}");
        values.iter().sum()
    }
}

/// Begins to publish `key` with the sequence headers sent.
///
/// # Panics
/// When the gateway refuses.
pub fn publish(client: &mut RtmpClient, key: &str) {
    assert_eq!(client.ask_to_publish(key), "NetStream.Publish.Start");
    client.send(&media::headers());
}

/// A player of `/live/NAME.flv`.
pub struct FlvPlayer {
    connection: HttpConnection,
    head: crate::http::Answer,
    reader: FileReader,
    /// How the body ended.
    pub end: Option<Piece>,
}

impl FlvPlayer {
    /// # Panics
    /// When the answer is not 200.
    #[must_use]
    pub fn start(connection: HttpConnection, path: &str) -> Self {
        Self::try_start(connection, path).unwrap_or_else(|status| panic!("{path}: {status}"))
    }

    /// # Errors
    /// The status where it is not 200.
    pub fn try_start(mut connection: HttpConnection, path: &str) -> Result<Self, u16> {
        connection.ask("GET", path, "");
        let head = connection.head();
        if head.status != 200 {
            return Err(head.status);
        }
        Ok(Self { connection, head, reader: FileReader::default(), end: None })
    }

    /// # Panics
    /// When what comes is not FLV.
    pub fn next_tag(&mut self) -> Option<Tag> {
        loop {
            if let Some(tag) = self.reader.next().expect("FLV") {
                return Some(tag);
            }
            match self.connection.piece(&self.head) {
                Piece::Bytes(bytes) => self.reader.push(&bytes),
                end => {
                    self.end = Some(end);
                    return None;
                }
            }
        }
    }

    /// Reads up to this picture, and gives all marks on the way.
    ///
    /// # Panics
    /// When the stream ends before.
    pub fn marks_to(&mut self, publisher: u8, number: u32) -> Vec<Mark> {
        marks_to(publisher, number, || self.next_tag())
    }

    /// Reads to the end, and gives all marks on the way.
    pub fn marks_to_end(&mut self) -> Vec<Mark> {
        std::iter::from_fn(|| self.next_tag()).flat_map(|tag| media::marks(&tag.body)).collect()
    }

    #[must_use]
    pub fn connection(&mut self) -> &mut HttpConnection {
        &mut self.connection
    }
}

/// Takes tags up to this picture, and gives all marks on the way.
///
/// # Panics
/// When the stream ends before.
pub fn marks_to(publisher: u8, number: u32, mut next: impl FnMut() -> Option<Tag>) -> Vec<Mark> {
    let last = Mark { publisher, number, video: true };
    let mut found = Vec::new();
    while !found.contains(&last) {
        let tag = next().unwrap_or_else(|| panic!("the stream ended before {last:?}: {found:?}"));
        found.extend(media::marks(&tag.body));
    }
    found
}

/// The fMP4 or TS media playlist at `path`, over this connection.
///
/// # Panics
/// When the answer is not a playlist.
pub fn playlist(connection: &mut HttpConnection, path: &str) -> Playlist {
    let answer = connection.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    Playlist::parse(&answer.text())
}

/// Fetches a piece of the playlist at `path`.
///
/// # Panics
/// When it is not there.
pub fn fetch(connection: &mut HttpConnection, path: &str, uri: &str) -> Vec<u8> {
    let answer = connection.get(&target(path, uri));
    assert_eq!(answer.status, 200, "{uri}: {}", answer.text());
    answer.body
}

/// The request target of `uri` as it stands in the playlist at `path`.
#[must_use]
pub fn target(path: &str, uri: &str) -> String {
    resolve(&format!("http://h{path}"), uri).trim_start_matches("http://h").to_owned()
}
