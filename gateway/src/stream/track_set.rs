//! The tracks of a stream at one moment, and what players are told about them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use weir_protocol::flv::{self, ColorInfo, Metadata, TagKind};
use weir_protocol::media::{Track, TrackId, TrackKind};

/// Tracks with their configuration and the publisher's metadata: one epoch. Immutable and shared by
/// all cores; a change makes a new set, and players see the change by its address.
#[derive(Debug, Default)]
pub struct TrackSet {
    pub tracks: Vec<Track>,
    pub metadata: Metadata,
    /// Of those video tracks whose encoder tells it.
    pub colors: Colors,
    headers: OnceLock<Headers>,
}

pub type Colors = Vec<(TrackId, ColorInfo)>;

/// FLV tag bodies that a player must have before the first access unit.
#[derive(Debug)]
struct Headers {
    metadata: Bytes,
    sequence: Vec<(TagKind, Bytes)>,
    color: Option<Bytes>,
}

impl TrackSet {
    pub fn new(tracks: Vec<Track>, metadata: Metadata) -> Self {
        Self { tracks, metadata, ..Self::default() }
    }

    pub fn with_colors(self, colors: Colors) -> Self {
        Self { colors, ..self }
    }

    pub fn has(&self, kind: TrackKind) -> bool {
        self.tracks.iter().any(|track| track.kind() == kind)
    }

    pub fn track(&self, id: TrackId) -> Option<&Track> {
        self.tracks.iter().find(|track| track.id == id)
    }

    pub fn kind_of(&self, id: TrackId) -> Option<TrackKind> {
        self.track(id).map(Track::kind)
    }

    /// The tracks an FLV or RTMP player gets: one of each kind, as the format knows no more.
    pub fn flv_tracks(&self) -> impl Iterator<Item = &Track> {
        [TrackKind::Video, TrackKind::Audio]
            .into_iter()
            .filter_map(|kind| self.tracks.iter().find(|track| track.kind() == kind))
    }

    /// The track of this unit, if an FLV or RTMP player gets it.
    pub fn flv_track(&self, id: TrackId) -> Option<&Track> {
        self.flv_tracks().find(|track| track.id == id)
    }

    pub fn color(&self, id: TrackId) -> Option<&ColorInfo> {
        self.colors.iter().find(|(track, _)| *track == id).map(|(_, color)| color)
    }

    /// The tag bodies that a player gets before the first unit of this set, when it was told another
    /// one before: sequence headers only where a track is another one.
    pub fn announced_after(&self, told: Option<&Self>) -> impl Iterator<Item = (TagKind, &Bytes)> {
        let headers = self.headers();
        let is_new = told.is_none_or(|told| told.tracks != self.tracks);
        let sequence = headers.sequence.iter().filter(move |_| is_new);
        let color = headers.color.iter().map(|body| (TagKind::Video, body));
        std::iter::once((TagKind::Script, &headers.metadata))
            .chain(sequence.map(|(kind, body)| (*kind, body)))
            .chain(color)
    }

    /// Made once per set, by the first player that needs them.
    fn headers(&self) -> &Headers {
        self.headers.get_or_init(|| {
            let tracks: Vec<Track> = self.flv_tracks().cloned().collect();
            Headers {
                metadata: flv::metadata(&tracks, &self.metadata),
                sequence: tracks
                    .iter()
                    .filter_map(|track| Some((tag_kind(track), flv::sequence_header(track)?)))
                    .collect(),
                color: tracks.iter().find_map(|track| self.color(track.id)?.body(track)),
            }
        })
    }
}

pub fn tag_kind(track: &Track) -> TagKind {
    match track.kind() {
        TrackKind::Video => TagKind::Video,
        TrackKind::Audio => TagKind::Audio,
    }
}

/// Same configuration, metadata and colour: nothing to tell the players.
impl PartialEq for TrackSet {
    fn eq(&self, other: &Self) -> bool {
        self.tracks == other.tracks
            && self.metadata == other.metadata
            && self.colors == other.colors
    }
}

pub type SharedTracks = Arc<TrackSet>;

#[cfg(test)]
pub mod tests {
    use super::*;
    use weir_protocol::codec::{CodecConfig, aac, avc};

    pub const VIDEO: TrackId = TrackId(0);
    pub const AUDIO: TrackId = TrackId(1);

    pub fn video_track() -> Track {
        let config = avc::Config {
            record: Bytes::from_static(b"\x01\x42\xc0\x1e\xff\xe0\x00"),
            profile: 0x42,
            compatibility: 0xc0,
            level: 0x1e,
            sps: Vec::new(),
            pps: Vec::new(),
            width: 640,
            height: 360,
        };
        Track { id: VIDEO, codec: Arc::new(CodecConfig::Avc(config)) }
    }

    pub fn audio_track() -> Track {
        let config = aac::Config {
            record: Bytes::from_static(&[0x11, 0x90]),
            object_type: 2,
            sample_rate: 48_000,
            channels: 2,
            frame_samples: 1024,
        };
        Track { id: AUDIO, codec: Arc::new(CodecConfig::Aac(config)) }
    }

    pub fn audio_video() -> TrackSet {
        TrackSet::new(vec![video_track(), audio_track()], Metadata::default())
    }

    pub fn audio_only() -> TrackSet {
        TrackSet::new(vec![audio_track()], Metadata::default())
    }
}
