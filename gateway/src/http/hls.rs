//! HLS: playlists, blocking reload and media, straight from the stream's window.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{self, HeaderMap};
use hyper::{Response, StatusCode};
use weir_hls::{Format, Part, Reload, Resource, Segment, Window};
use weir_protocol::stream_name::StreamName;

use super::body::Body;
use super::respond::{self, Cache};
use super::slices::Slices;
use crate::clock;
use crate::core::Core;
use crate::limits;
use crate::metrics::HlsResource;
use crate::relay;
use crate::stream::Stream;

const PLAYLIST: &str = "application/vnd.apple.mpegurl";
/// The fMP4 media playlist, as the multivariant playlist next to it names it.
const MEDIA_PLAYLIST: &str = "media.m3u8";
const FMP4: &str = "video/mp4";
const TS: &str = "video/mp2t";

/// Who asks, as far as HLS cares.
pub struct Viewer<'a> {
    pub address: IpAddr,
    pub headers: &'a HeaderMap,
    pub range: Option<&'a str>,
}

pub async fn multivariant(
    core: &Rc<Core>,
    name: &StreamName,
    viewer: &Viewer<'_>,
) -> Response<Body> {
    core.counters.hls_requests.of(HlsResource::Multivariant).increment();
    let Some(stream) = relay::find(core, name, clock::now()).await else {
        return respond::not_found();
    };
    let playable = |window: &Window| window.multivariant(MEDIA_PLAYLIST);
    match wait_for(&stream, start_wait(core), playable).await {
        Some((_, body)) => playlist(&stream, viewer, body, false),
        None => respond::not_found(),
    }
}

/// The LL-HLS playlist, blocking where `_HLS_msn` asks for it (RFC 8216bis §6.2.5.2).
pub async fn media(
    core: &Rc<Core>,
    name: &StreamName,
    query: &str,
    viewer: &Viewer<'_>,
) -> Response<Body> {
    core.counters.hls_requests.of(HlsResource::Playlist).increment();
    let Ok(directives) = Directives::parse(query) else { return bad_directives() };
    let Some(stream) = relay::find(core, name, clock::now()).await else {
        return respond::not_found();
    };
    let Some(window) = started(core, &stream).await else { return respond::not_found() };
    let low_latency = directives.msn.is_some();
    let window = match directives.msn {
        None => window,
        Some(msn) => {
            let wait = hold_time(&window);
            let ready = |window: &Window| match window.resolve(msn, directives.part) {
                Reload::Ready => Some(Ok(())),
                Reload::Wait => None,
                Reload::BadRequest => Some(Err(bad_directives())),
            };
            match wait_for(&stream, wait, ready).await {
                Some((window, Ok(()))) => window,
                Some((_, Err(refusal))) => return refusal,
                None => return too_late(),
            }
        }
    };
    let body =
        if directives.skip { window.delta_playlist() } else { window.media_playlist(Format::Fmp4) };
    playlist(&stream, viewer, body, low_latency)
}

pub async fn ts_media(
    core: &Rc<Core>,
    name: &StreamName,
    _query: &str,
    viewer: &Viewer<'_>,
) -> Response<Body> {
    let Some(stream) = relay::find(core, name, clock::now()).await else {
        return respond::not_found();
    };
    core.counters.hls_requests.of(HlsResource::Playlist).increment();
    let enough = |window: &Window| {
        let listed = window.listed().len() >= limits::TS_START_SEGMENTS;
        (fits_no_ts(window) || listed || window.is_ended()).then_some(())
    };
    let waited = wait_for(&stream, start_wait(core), enough).await;
    // Segments may be longer than the wait: then one has to do.
    let Some(window) = waited.map(|(window, ())| window).or_else(|| stream.window()) else {
        return respond::not_found();
    };
    if fits_no_ts(&window) {
        let sentence = "a transport stream cannot carry these codecs; play NAME/index.m3u8";
        return respond::error(StatusCode::NOT_FOUND, sentence);
    }
    if !window.is_playable(Format::Ts) {
        return respond::not_found();
    }
    playlist(&stream, viewer, window.media_playlist(Format::Ts), false)
}

/// None of the stream's tracks can go into a transport stream.
fn fits_no_ts(window: &Window) -> bool {
    window.epoch().is_some_and(|epoch| {
        let tracks = epoch.video().into_iter().chain(epoch.audio()).count();
        epoch.missing_in_ts().len() == tracks
    })
}

/// Segments, parts and init segments. A hinted part is held until it is there.
pub async fn resource(
    core: &Rc<Core>,
    name: &StreamName,
    uri: &str,
    viewer: &Viewer<'_>,
) -> Response<Body> {
    let Some(stream) = core.find(name, clock::now()).await else { return respond::not_found() };
    let Some(window) = stream.window() else { return respond::not_found() };
    let found = |window: &Window| match window.find(uri) {
        Resource::NotYet => None,
        other => Some(other),
    };
    let Some((_, resource)) = wait_for(&stream, hold_time(&window), found).await else {
        return too_late();
    };
    let kind = match &resource {
        Resource::Init(_) => HlsResource::Init,
        Resource::Part(_) => HlsResource::Part,
        _ => HlsResource::Segment,
    };
    core.counters.hls_requests.of(kind).increment();
    let pool = &mut *core.pool.borrow_mut();
    let (content_type, slices) = match &resource {
        Resource::Init(bytes) => (FMP4, Some(Slices::from(bytes.clone()))),
        Resource::Segment(segment, Format::Fmp4) => {
            (FMP4, whole_segment(segment, |part| part.fmp4(pool)))
        }
        Resource::Segment(segment, Format::Ts) => {
            (TS, whole_segment(segment, |part| part.ts(pool)))
        }
        Resource::Part(part) => {
            (FMP4, part.fmp4(pool).map(|slices| slices.iter().cloned().collect()))
        }
        Resource::NotYet | Resource::Gone | Resource::Unknown => return respond::not_found(),
    };
    let Some(slices) = slices else {
        return respond::error(StatusCode::SERVICE_UNAVAILABLE, "out of memory for packaging");
    };
    count(&stream, viewer, slices.len(), matches!(resource, Resource::Part(_)));
    respond::full(content_type, Cache::Immutable, slices, viewer.range)
}

fn playlist(
    stream: &Stream,
    viewer: &Viewer<'_>,
    body: Bytes,
    low_latency: bool,
) -> Response<Body> {
    count(stream, viewer, body.len(), low_latency);
    respond::full(PLAYLIST, Cache::Moment, Slices::from(body), viewer.range)
}

fn count(stream: &Stream, viewer: &Viewer<'_>, bytes: usize, low_latency: bool) {
    let agent = viewer.headers.get(header::USER_AGENT).map_or(&[][..], |value| value.as_bytes());
    stream.viewers.borrow_mut().saw(clock::now(), viewer.address, agent, low_latency);
    stream.bytes_out.set(stream.bytes_out.get() + bytes as u64);
}

/// A segment is its parts one after the other.
fn whole_segment<'a>(
    segment: &'a Segment,
    mut bytes: impl FnMut(&'a Part) -> Option<&'a [Bytes]>,
) -> Option<Slices> {
    let mut slices = Slices::default();
    for part in segment.parts() {
        bytes(part)?.iter().for_each(|piece| slices.push(piece.clone()));
    }
    Some(slices)
}

/// The window once it has something to play; a player that comes with the publisher waits for it.
async fn started(core: &Core, stream: &Stream) -> Option<Arc<Window>> {
    let begun = |window: &Window| window.is_playable(Format::Fmp4).then_some(());
    wait_for(stream, start_wait(core), begun).await.map(|(window, ())| window)
}

/// How long the first segment takes at most.
fn start_wait(core: &Core) -> Duration {
    core.config.hls.segment_max + limits::HLS_START_MARGIN
}

/// Looks at each window until `look` finds what it wants. `None` after `wait`, or when the stream
/// ends without it.
async fn wait_for<T>(
    stream: &Stream,
    wait: Duration,
    look: impl Fn(&Window) -> Option<T>,
) -> Option<(Arc<Window>, T)> {
    let found = async {
        loop {
            let news = stream.window_news.notified();
            let window = stream.window()?;
            if let Some(found) = look(&window) {
                return Some((window, found));
            }
            if stream.is_ended() {
                return None;
            }
            news.await;
        }
    };
    tokio::time::timeout(wait, found).await.ok().flatten()
}

/// RFC 8216bis §6.2.5.2: a request may be held for three target durations.
fn hold_time(window: &Window) -> Duration {
    window.target_duration() * 3
}

fn bad_directives() -> Response<Body> {
    respond::error(StatusCode::BAD_REQUEST, "bad _HLS_ directive")
}

fn too_late() -> Response<Body> {
    respond::error(StatusCode::SERVICE_UNAVAILABLE, "the stream has not got there in time")
}

/// Delivery directives (RFC 8216bis §6.2.5). Other parameters are none of our business here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Directives {
    msn: Option<u64>,
    part: Option<u32>,
    skip: bool,
}

struct BadDirective;

impl Directives {
    fn parse(query: &str) -> Result<Self, BadDirective> {
        let mut directives = Self::default();
        for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match key {
                "_HLS_msn" => directives.msn = Some(value.parse().map_err(|_| BadDirective)?),
                "_HLS_part" => directives.part = Some(value.parse().map_err(|_| BadDirective)?),
                // An unknown value asks for something newer; the full playlist is always right.
                "_HLS_skip" => directives.skip = matches!(value, "YES" | "v2"),
                _ => {}
            }
        }
        if directives.part.is_some() && directives.msn.is_none() {
            return Err(BadDirective);
        }
        Ok(directives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives() {
        let parse = |query| Directives::parse(query).ok();
        let of = |msn, part, skip| Some(Directives { msn, part, skip });
        let cases = [
            ("", of(None, None, false)),
            ("token=a&b", of(None, None, false)),
            ("_HLS_msn=0", of(Some(0), None, false)),
            ("token=a&_HLS_msn=7&_HLS_part=2&_HLS_skip=YES", of(Some(7), Some(2), true)),
            ("_HLS_skip=no", of(None, None, false)),
            ("_HLS_part=1", None),
            ("_HLS_msn=abc", None),
            ("_HLS_msn=-1", None),
            ("_HLS_msn=18446744073709551616", None),
        ];
        for (query, expected) in cases {
            assert_eq!(parse(query), expected, "{query}");
        }
    }
}
