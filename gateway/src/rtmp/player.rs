//! An RTMP player: a cursor on the stream's log.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::futures::OwnedNotified;
use weir_protocol::flv::{TagKind, timestamp_ms};
use weir_protocol::media::{Ticks, TrackKind};
use weir_protocol::rtmp::PeerCodecs;
use weir_protocol::rtmp::chunk::Writer;
use weir_protocol::rtmp::message::{MessageHeader, SET_DATA_FRAME};
use weir_protocol::stream_name::StreamName;

use crate::core::Core;
use crate::io::Batch;
use crate::limits;
use crate::stream::log::{Cursor, Entry};
use crate::stream::track_set::{SharedTracks, tag_kind};
use crate::stream::{Stream, TrackSet};

pub struct Player {
    pub message_stream: u32,
    audience: Audience,
    stream: Rc<Stream>,
    writer: Writer,
    cursor: Cursor,
    /// The tracks that this player was last told of.
    told: Option<SharedTracks>,
    paused: bool,
    wants_audio: bool,
    wants_video: bool,
}

/// Who is sent the stream.
enum Audience {
    Viewer,
    /// A server to which it is published.
    Server(PeerCodecs),
}

impl Player {
    pub fn new(stream: Rc<Stream>, message_stream: u32, writer: Writer) -> Self {
        stream.players.rtmp.set(stream.players.rtmp.get() + 1);
        Self::with(Audience::Viewer, stream, message_stream, writer)
    }

    /// Sends the stream as its publisher would, as far as the server takes its codecs.
    pub fn for_server(
        stream: Rc<Stream>,
        message_stream: u32,
        writer: Writer,
        takes: PeerCodecs,
    ) -> Self {
        Self::with(Audience::Server(takes), stream, message_stream, writer)
    }

    fn with(audience: Audience, stream: Rc<Stream>, message_stream: u32, writer: Writer) -> Self {
        Self {
            message_stream,
            audience,
            cursor: stream.join(),
            stream,
            writer,
            told: None,
            paused: false,
            wants_audio: true,
            wants_video: true,
        }
    }

    /// Ready when the log has grown or the stream has ended. Ask before [`Player::fill`].
    pub fn news(&self) -> OwnedNotified {
        self.stream.log_news.clone().notified_owned()
    }

    /// Live media goes on while a player pauses; afterwards it joins anew.
    pub fn pause(&mut self, paused: bool) {
        self.paused = paused;
        if !paused {
            self.rejoin();
        }
    }

    /// Goes on at the newest keyframe.
    pub fn rejoin(&mut self) {
        self.cursor = self.stream.join();
    }

    pub fn stream_name(&self) -> &StreamName {
        &self.stream.name
    }

    pub fn receive(&mut self, kind: TagKind, wanted: bool) {
        match kind {
            TagKind::Audio => self.wants_audio = wanted,
            TagKind::Video => self.wants_video = wanted,
            TagKind::Script => {}
        }
    }

    /// Appends what this player is due. `false` once the stream has ended and nothing is left.
    pub fn fill(&mut self, core: &Core, batch: &mut Batch) -> bool {
        if self.paused {
            return !self.stream.is_ended();
        }
        let (jumps, before) = (self.cursor.jumps, batch.len());
        let stream = self.stream.clone();
        stream.with_log(|log| {
            while batch.len() < limits::PLAYER_BATCH_BYTES {
                let Some(entry) = log.next(&mut self.cursor) else { return };
                if self.told.as_ref().is_none_or(|told| !Arc::ptr_eq(told, &entry.tracks)) {
                    self.choose(&entry.tracks);
                    self.write_headers(&entry.tracks, entry.unit.dts, batch);
                    self.told = Some(entry.tracks.clone());
                }
                self.write_unit(core, entry, batch);
            }
        });
        core.counters.player_jumps.add(self.cursor.jumps - jumps);
        let added = batch.len() - before;
        stream.bytes_out.set(stream.bytes_out.get() + added as u64);
        added > 0 || !stream.is_ended()
    }

    /// A server gets the kinds of which it takes every track.
    fn choose(&mut self, tracks: &TrackSet) {
        let Audience::Server(codecs) = &self.audience else { return };
        let takes =
            |kind| tracks.flv_tracks().filter(|t| t.kind() == kind).all(|t| codecs.take(&t.codec));
        (self.wants_audio, self.wants_video) = (takes(TrackKind::Audio), takes(TrackKind::Video));
    }

    /// The codecs that the server does not take.
    pub fn left_out(&self) -> Vec<&'static str> {
        let tracks = self.told.iter().flat_map(|told| told.flv_tracks());
        tracks.filter(|track| !self.wants(track.kind())).map(|track| track.codec.name()).collect()
    }

    fn wants(&self, kind: TrackKind) -> bool {
        match kind {
            TrackKind::Audio => self.wants_audio,
            TrackKind::Video => self.wants_video,
        }
    }

    fn write_headers(&self, tracks: &TrackSet, dts: Ticks, batch: &mut Batch) {
        for (kind, at, body) in tracks.announced_after(self.told.as_deref(), dts) {
            match (&self.audience, kind) {
                (Audience::Server(_), TagKind::Script) => {
                    self.write(kind, at, SET_DATA_FRAME, body, batch);
                }
                (Audience::Server(_), TagKind::Audio) if !self.wants_audio => {}
                (Audience::Server(_), TagKind::Video) if !self.wants_video => {}
                // A viewer may want later what it does not want now.
                _ => self.write(kind, at, &[], body, batch),
            }
        }
    }

    fn write_unit(&self, core: &Core, entry: &Entry, batch: &mut Batch) {
        let Some(track) = entry.tracks.flv_track(entry.unit.track) else { return };
        if self.wants(track.kind())
            && let Some(frame) = entry.frame(track, &mut *core.pool.borrow_mut())
        {
            let (dts, payload) = (entry.unit.dts, &entry.unit.payload);
            self.write(tag_kind(track), dts, frame.codec_head(), payload, batch);
        }
    }

    fn write(&self, kind: TagKind, dts: Ticks, head: &[u8], payload: &Bytes, batch: &mut Batch) {
        let header = MessageHeader::media(self.message_stream, kind, timestamp_ms(dts));
        self.writer.write(header, head, payload, batch);
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        if let Audience::Viewer = self.audience {
            self.stream.players.rtmp.set(self.stream.players.rtmp.get() - 1);
        }
    }
}
