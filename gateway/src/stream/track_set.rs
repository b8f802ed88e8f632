//! The tracks of a stream at one moment, and what players are told about them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use weir_protocol::flv::{self, ColorInfo, Metadata, TagKind};
use weir_protocol::media::{Ticks, Track, TrackId, TrackKind};

/// Tracks with their configuration and the publisher's metadata: one epoch. Immutable and shared by
/// all cores; a change makes a new set, and players see the change by its address.
#[derive(Debug, Default)]
pub struct TrackSet {
    pub tracks: Vec<Track>,
    pub metadata: Metadata,
    /// Of those video tracks whose encoder tells it.
    pub colors: Colors,
    /// What FLV and RTMP players get: the first track of each kind and its number here.
    flv: Vec<(TrackId, Track)>,
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
        let of_kind = |kind| tracks.iter().find(|track| track.kind() == kind);
        let first = [TrackKind::Video, TrackKind::Audio].into_iter().filter_map(of_kind);
        // As the first track it has the form that every player knows, whatever number it came with.
        let as_first = |track: &Track| Track { id: TrackId::first(track.kind()), ..track.clone() };
        let flv = first.map(|track| (track.id, as_first(track))).collect();
        Self { tracks, metadata, flv, ..Self::default() }
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

    /// The tracks an FLV or RTMP player gets, as it gets them: one of each kind, as the format knows
    /// no more.
    pub fn flv_tracks(&self) -> impl Iterator<Item = &Track> {
        self.flv.iter().map(|(_, track)| track)
    }

    /// What the track of this unit is to an FLV or RTMP player, if it gets it.
    pub fn flv_track(&self, id: TrackId) -> Option<&Track> {
        self.flv.iter().find(|(known, _)| *known == id).map(|(_, track)| track)
    }

    pub fn color(&self, id: TrackId) -> Option<&ColorInfo> {
        self.colors.iter().find(|(track, _)| *track == id).map(|(_, color)| color)
    }

    /// The tag bodies that a player gets before the first unit of this set, when it was told another
    /// one before, and their times: sequence headers only where a track is another one. Metadata is of no
    /// moment; ffmpeg takes it for subtitles where it has another time than zero.
    pub fn announced_after(
        &self,
        told: Option<&Self>,
        dts: Ticks,
    ) -> impl Iterator<Item = (TagKind, Ticks, &Bytes)> {
        let headers = self.headers();
        let is_new = told.is_none_or(|told| told.flv != self.flv);
        let sequence = headers.sequence.iter().filter(move |_| is_new);
        let color = headers.color.iter().map(move |body| (TagKind::Video, dts, body));
        std::iter::once((TagKind::Script, Ticks::ZERO, &headers.metadata))
            .chain(sequence.map(move |(kind, body)| (*kind, dts, body)))
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
                color: self.flv.iter().find_map(|(id, track)| self.color(*id)?.body(track)),
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

    /// A player that knows no multitrack gets the second track as it would the first.
    #[test]
    fn players_get_any_track_in_the_form_of_the_first() {
        let tracks = |number: u8| {
            let [video, audio] = [video_track(), audio_track()]
                .map(|track| Track { id: TrackId(track.id.0 + 2 * number), ..track });
            TrackSet::new(vec![video, audio], Metadata::default())
        };
        let announced = |set: &TrackSet| {
            set.announced_after(None, Ticks::ZERO)
                .map(|(kind, _, body)| (kind, body.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(announced(&tracks(1)), announced(&tracks(0)));
        assert_eq!(tracks(1).flv_track(TrackId(2)), Some(&video_track()));
        assert_eq!(tracks(1).flv_track(VIDEO), None);
    }

    pub fn audio_video() -> TrackSet {
        TrackSet::new(vec![video_track(), audio_track()], Metadata::default())
    }

    pub fn audio_only() -> TrackSet {
        TrackSet::new(vec![audio_track()], Metadata::default())
    }
}
