//! The tracks of a stream at one moment, and what players are told about them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use weir_protocol::flv::{self, Metadata, TagKind};
use weir_protocol::media::{Track, TrackId, TrackKind};

/// Tracks with their configuration and the publisher's metadata: one epoch. Immutable and shared by
/// all cores; a change makes a new set, and players see the change by its address.
#[derive(Debug, Default)]
pub struct TrackSet {
    pub tracks: Vec<Track>,
    pub metadata: Metadata,
    headers: OnceLock<Headers>,
}

/// FLV tag bodies that a player must have before the first access unit.
#[derive(Debug)]
pub struct Headers {
    pub metadata: Bytes,
    pub sequence: Vec<(TagKind, Bytes)>,
}

impl TrackSet {
    pub fn new(tracks: Vec<Track>, metadata: Metadata) -> Self {
        Self { tracks, metadata, headers: OnceLock::new() }
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

    /// Made once per set, by the first player that needs them.
    pub fn headers(&self) -> &Headers {
        self.headers.get_or_init(|| {
            let tracks: Vec<Track> = self.flv_tracks().cloned().collect();
            Headers {
                metadata: flv::metadata(&tracks, &self.metadata),
                sequence: tracks
                    .iter()
                    .filter_map(|track| Some((tag_kind(track), flv::sequence_header(track)?)))
                    .collect(),
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

/// Same configuration and metadata: nothing to tell the players.
impl PartialEq for TrackSet {
    fn eq(&self, other: &Self) -> bool {
        self.tracks == other.tracks && self.metadata == other.metadata
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
