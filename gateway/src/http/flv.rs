//! HTTP-FLV: a player that is a cursor on the stream's log.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, BytesMut};
use tokio::sync::futures::OwnedNotified;
use weir_protocol::flv::{self, TagKind};
use weir_protocol::media::{Ticks, TrackKind};

use super::slices::Slices;
use crate::core::Core;
use crate::core::connection::{Connection, Role};
use crate::limits;
use crate::stream::log::{Cursor, Entry};
use crate::stream::track_set::SharedTracks;
use crate::stream::{Stream, TrackSet};

/// The body of one HTTP-FLV response.
pub struct FlvBody {
    core: Rc<Core>,
    connection: Rc<Connection>,
    stream: Rc<Stream>,
    cursor: Cursor,
    /// The tracks that this player was last told of.
    told: Option<SharedTracks>,
    news: Pin<Box<OwnedNotified>>,
}

impl FlvBody {
    pub fn new(core: Rc<Core>, connection: Rc<Connection>, stream: Rc<Stream>) -> Self {
        connection.take_role(Role::FlvPlayer, &stream.name);
        stream.players.flv.set(stream.players.flv.get() + 1);
        let news = Box::pin(stream.log_news.clone().notified_owned());
        Self { core, connection, cursor: stream.join(), stream, told: None, news }
    }

    /// The next run of whole tags; `None` when the stream has ended.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Slices>> {
        loop {
            // Asked for before looking, so that news in between isn't missed.
            let news = self.stream.log_news.clone().notified_owned();
            let tags = self.collect();
            if !tags.is_empty() {
                self.stream.bytes_out.set(self.stream.bytes_out.get() + tags.len() as u64);
                return Poll::Ready(Some(tags));
            }
            if self.stream.is_ended() {
                return Poll::Ready(None);
            }
            self.news.set(news);
            ready!(self.news.as_mut().poll(cx));
        }
    }

    fn collect(&mut self) -> Slices {
        let mut tags = Slices::default();
        let Self { core, stream, cursor, told, .. } = self;
        let jumps = cursor.jumps;
        stream.with_log(|log| {
            while tags.len() < limits::PLAYER_BATCH_BYTES {
                let Some(entry) = log.next(cursor) else { return };
                if told.as_ref().is_none_or(|told| !Arc::ptr_eq(told, &entry.tracks)) {
                    push_headers(&mut tags, &entry.tracks, told.as_deref(), entry.unit.dts);
                    *told = Some(entry.tracks.clone());
                }
                push_unit(&mut tags, core, entry);
            }
        });
        core.counters.player_jumps.add(cursor.jumps - jumps);
        tags
    }
}

impl Drop for FlvBody {
    fn drop(&mut self) {
        self.stream.players.flv.set(self.stream.players.flv.get() - 1);
        self.connection.leave_role(Role::Http);
    }
}

/// File header (for a new player), metadata and sequence headers. A change of tracks repeats the
/// latter; the flags of the file header can't be taken back.
fn push_headers(tags: &mut Slices, tracks: &TrackSet, told: Option<&TrackSet>, dts: Ticks) {
    let mut head = BytesMut::new();
    if told.is_none() {
        let flags = (tracks.has(TrackKind::Video), tracks.has(TrackKind::Audio));
        head.put_slice(&flv::file_header(flags.0, flags.1));
    }
    for (kind, at, body) in tracks.announced_after(told, dts) {
        put_tag(&mut head, kind, flv::timestamp_ms(at), body);
    }
    tags.push(head.freeze());
}

fn put_tag(out: &mut BytesMut, kind: TagKind, timestamp_ms: u32, body: &[u8]) {
    out.put_slice(&flv::tag_header(kind, body.len(), timestamp_ms));
    out.put_slice(body);
    out.put_slice(&flv::tag_trailer(body.len()));
}

fn push_unit(tags: &mut Slices, core: &Core, entry: &Entry) {
    let Some(track) = entry.tracks.flv_track(entry.unit.track) else { return };
    if let Some(frame) = entry.frame(track, &mut *core.pool.borrow_mut()) {
        tags.push(frame.head.clone());
        tags.push(entry.unit.payload.clone());
        tags.push(frame.trailer.clone());
    }
}
