//! Virtual players of every protocol.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{sleep, timeout};
use weir::core::serve::Protocol;
use weir_protocol::flv::Tag;
use weir_protocol::rtmp::ClientEvent;

use super::crowd::Crowd;
use super::http::HttpPeer;
use super::rtmp::{Gone, Purpose, RtmpPeer};
use super::watch::{PlaylistWatch, Watch};
use super::wire::{Net, Wire, ticks};
use crate::fuzz::Random;
use crate::media;
use crate::playlist::Playlist;

/// What a player speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rtmp,
    Flv,
    LowLatency,
    TransportStream,
}

const KINDS: [Kind; 4] = [Kind::Rtmp, Kind::Flv, Kind::LowLatency, Kind::TransportStream];

/// Plays one stream after the other, and breaks off without a word.
pub async fn wander(crowd: Rc<Crowd>, mut random: Random) {
    // What it has seen of a playlist holds when it comes back, on whatever core.
    let mut seen = vec![[PlaylistWatch::default(), PlaylistWatch::default()]; crowd.names.len()];
    while !crowd.is_over() {
        sleep(ticks(random.below(1000))).await;
        let stream = random.below(crowd.names.len());
        let kind = KINDS[random.below(KINDS.len())];
        let protocol = if kind == Kind::Rtmp { Protocol::Rtmp } else { Protocol::Http };
        let wire = crowd.connect(&mut random, protocol);
        let life = ticks(random.below(6000));
        let mut watch = Watch::new(stream as u8);
        let [low_latency, plain] = &mut seen[stream];
        let _ = timeout(life, async {
            match kind {
                Kind::Rtmp => play_rtmp(&crowd, wire, stream, &mut watch).await,
                Kind::Flv => play_flv(&crowd, wire, stream, &mut watch).await,
                Kind::LowLatency => follow(&crowd, wire, stream, low_latency).await,
                Kind::TransportStream => poll_plainly(&crowd, wire, stream, plain).await,
            }
        })
        .await;
    }
}

/// Plays a stream that nothing disturbs, and gives the number of its last picture.
pub async fn play_calmly(crowd: Rc<Crowd>, stream: usize, kind: Kind) -> Option<u32> {
    let mut watch = Watch::of_all(stream as u8);
    let protocol = if kind == Kind::Rtmp { Protocol::Rtmp } else { Protocol::Http };
    loop {
        // On the next core after its publisher's, and FLV on the one after that: of two cores, it is
        // the publisher's own.
        let wire = crowd.wire(stream + 1 + kind as usize, protocol.clone(), Net::Calm);
        let end = match kind {
            Kind::Rtmp => play_rtmp(&crowd, wire, stream, &mut watch).await,
            _ => play_flv(&crowd, wire, stream, &mut watch).await,
        };
        if watch.last_picture().is_some() {
            end.expect("nothing ends it before the stream does");
            return watch.last_picture();
        }
        // The publisher is not there yet.
        sleep(ticks(1)).await;
    }
}

async fn play_rtmp(
    crowd: &Crowd,
    wire: Wire,
    stream: usize,
    watch: &mut Watch,
) -> Result<(), Gone> {
    let mut peer = RtmpPeer::begin(wire, &crowd.names[stream], Purpose::Play).await?;
    loop {
        match peer.next().await? {
            ClientEvent::Media { kind, timestamp_ms, body } => {
                take(crowd, watch, &Tag { kind, timestamp_ms, body });
            }
            ClientEvent::Ended { .. } => return Ok(()),
            _ => {}
        }
    }
}

async fn play_flv(crowd: &Crowd, wire: Wire, stream: usize, watch: &mut Watch) -> Result<(), Gone> {
    let target = format!("/{}.flv", crowd.names[stream]);
    let mut peer = HttpPeer::new(wire).flv(&target).await?;
    while let Some(tag) = peer.next().await {
        take(crowd, watch, &tag);
    }
    Ok(())
}

fn take(crowd: &Crowd, watch: &mut Watch, tag: &Tag) {
    watch.tag(tag);
    crowd.note("tag", u64::from(tag.timestamp_ms) << 32 | tag.body.len() as u64);
}

/// Follows a playlist by blocking reloads and takes its parts.
async fn follow(
    crowd: &Crowd,
    wire: Wire,
    stream: usize,
    seen: &mut PlaylistWatch,
) -> Result<(), Gone> {
    let base = format!("/{}", crowd.names[stream]);
    let url = format!("{base}/media.m3u8");
    let mut peer = HttpPeer::new(wire);
    let mut viewer = Viewer::new(stream);
    let mut directives = String::new();
    loop {
        let answer = peer.get(&format!("{url}{directives}")).await?;
        crowd.note("playlist", u64::from(answer.status));
        if answer.status != 200 {
            return Ok(());
        }
        let text = String::from_utf8(answer.body).expect("a playlist is text");
        let playlist = seen.version(&crowd.shelf, &url, &text);
        let parts = playlist.segments.iter().flat_map(|segment| &segment.parts);
        let parts: Vec<_> = parts.chain(&playlist.open_parts).map(|part| &part.uri).collect();
        for uri in parts {
            viewer.fetch(crowd, &mut peer, &base, uri).await?;
        }
        if playlist.ended {
            return Ok(());
        }
        let (msn, part) = playlist.next_part();
        directives = format!("?_HLS_msn={msn}&_HLS_part={part}");
    }
}

/// Polls a playlist of transport streams, as players that know no better do.
async fn poll_plainly(
    crowd: &Crowd,
    wire: Wire,
    stream: usize,
    seen: &mut PlaylistWatch,
) -> Result<(), Gone> {
    let url = format!("/{}.m3u8", crowd.names[stream]);
    let mut peer = HttpPeer::new(wire);
    let mut viewer = Viewer::new(stream);
    loop {
        let answer = peer.get(&url).await?;
        crowd.note("ts playlist", u64::from(answer.status));
        if answer.status != 200 {
            return Ok(());
        }
        let text = String::from_utf8(answer.body).expect("a playlist is text");
        let Playlist { segments, ended, .. } = seen.version(&crowd.shelf, &url, &text);
        for segment in &segments {
            let base = url.rsplit_once('/').map_or("", |(base, _)| base);
            viewer.fetch(crowd, &mut peer, base, &segment.uri).await?;
        }
        if ended {
            return Ok(());
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// What one player of HLS has fetched.
struct Viewer {
    fetched: HashSet<String>,
    watch: Watch,
}

impl Viewer {
    fn new(stream: usize) -> Self {
        Self { fetched: HashSet::new(), watch: Watch::new(stream as u8) }
    }

    async fn fetch(
        &mut self,
        crowd: &Crowd,
        peer: &mut HttpPeer,
        base: &str,
        uri: &str,
    ) -> Result<(), Gone> {
        if !self.fetched.insert(uri.to_owned()) {
            return Ok(());
        }
        let target = format!("{base}/{uri}");
        let answer = peer.get(&target).await?;
        crowd.note("piece", u64::from(answer.status) << 32 | answer.body.len() as u64);
        if answer.status == 200 {
            crowd.shelf.piece(&target, &answer.body);
            self.look(&Bytes::from(answer.body), uri.ends_with(".ts"));
        }
        Ok(())
    }

    fn look(&mut self, bytes: &[u8], transport_stream: bool) {
        if !transport_stream {
            return self.watch.marks(&media::marks(bytes));
        }
        for payload in media::ts_payloads(bytes).values() {
            self.watch.marks(&media::marks(payload));
        }
    }
}
