mod track;

use std::collections::VecDeque;

use bytes::Bytes;

use super::body::{self, Codec, CodedFrame, Message, Part};
use super::{ColorInfo, Metadata, SkipReason, Skipped, TagKind};
use crate::codec::aac;
use crate::media::normalise::{Arrival, Normaliser, Repairs};
use crate::media::{AccessUnit, Ticks, Track, TrackId, TrackKind};
use crate::pool::Pool;
use track::TrackState;

/// What a publisher's messages mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Metadata(Metadata),
    /// A new track, or a track's configuration really changed; before its first access unit, so
    /// every track told of has frames. For video that access unit is a keyframe.
    Track(Track),
    Unit(AccessUnit),
    /// How a video track is to be shown, from its next access unit on. The default takes it back.
    Color(TrackId, ColorInfo),
    /// The encoder started its clock again: a discontinuity for players, though the timeline and
    /// the tracks go on.
    NewTimeline,
    Skipped(Skipped),
}

/// Turns audio, video and script bodies of one publisher into access units on one timeline.
///
/// Push each body, then poll until there is nothing left. Payloads are slices of the bodies unless
/// their form has to change.
#[derive(Debug, Default)]
pub struct Demuxer {
    normaliser: Normaliser,
    tracks: Vec<TrackState>,
    events: VecDeque<Event>,
}

impl Demuxer {
    /// A demuxer whose timeline begins at `start`: zero, or where an earlier publisher's ended.
    #[must_use]
    pub fn starting_at(start: Ticks) -> Self {
        Self { normaliser: Normaliser::starting_at(start), ..Self::default() }
    }

    #[must_use]
    pub fn repairs(&self) -> Repairs {
        self.normaliser.repairs()
    }

    pub fn push(&mut self, kind: TagKind, timestamp_ms: u32, body: Bytes, pool: &mut impl Pool) {
        let kind = match kind {
            TagKind::Script => {
                self.events.extend(Metadata::parse(&body).map(Event::Metadata));
                return;
            }
            TagKind::Video => TrackKind::Video,
            TagKind::Audio => TrackKind::Audio,
        };
        body::parse(kind, body, &mut |message| {
            let of = message.as_ref().ok().map(|message| (message.index, message.codec));
            let done = message.and_then(|message| self.message(kind, message, timestamp_ms, pool));
            if let Err(reason) = done {
                let track = of.and_then(|(index, _)| body::track_id(kind, index).ok());
                let codec = of.map(|(_, codec)| codec.name());
                self.events.push_back(Event::Skipped(Skipped { kind, track, codec, reason }));
            }
        });
    }

    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn message(
        &mut self,
        kind: TrackKind,
        message: Message,
        timestamp_ms: u32,
        pool: &mut impl Pool,
    ) -> Result<(), SkipReason> {
        let id = body::track_id(kind, message.index)?;
        let track = self.track(id, message.codec).ok_or(SkipReason::TooManyTracks)?;
        match message.part {
            Part::Configuration(record) => track.configure(&record),
            Part::Metadata(body) => {
                let color = ColorInfo::parse(&body).ok_or(SkipReason::Unknown)?;
                self.events.push_back(Event::Color(id, color));
                Ok(())
            }
            Part::Frame(frame) if message.codec == Codec::Aac => {
                self.aac_frames(id, frame, timestamp_ms, pool)
            }
            Part::Frame(frame) => self.frame(id, frame, timestamp_ms, pool),
        }
    }

    /// One frame, or as many as ADTS headers tell apart, each behind the one before.
    fn aac_frames(
        &mut self,
        id: TrackId,
        frame: CodedFrame,
        timestamp_ms: u32,
        pool: &mut impl Pool,
    ) -> Result<(), SkipReason> {
        for part in aac::frames(frame.data) {
            let (later, data) = part.map_err(|_| SkipReason::Malformed)?;
            let ms = later.as_ms();
            let fraction = frame.fraction + later - Ticks::from_ms(ms);
            let frame = CodedFrame { fraction, data, ..frame };
            self.frame(id, frame, timestamp_ms.wrapping_add(ms as u32), pool)?;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        id: TrackId,
        coded: CodedFrame,
        timestamp_ms: u32,
        pool: &mut impl Pool,
    ) -> Result<(), SkipReason> {
        let track = self.tracks.iter_mut().find(|track| track.id() == id);
        let track = track.ok_or(SkipReason::TooManyTracks)?;
        let frame = track.frame(coded.data, coded.called_keyframe, pool)?;
        let announcement = track.announcement();
        let arrival = Arrival { timestamp_ms, fraction: coded.fraction, samples: frame.samples };
        let stamp = self.normaliser.stamp(id, arrival);
        if stamp.new_timeline {
            self.events.push_back(Event::NewTimeline);
        }
        self.events.extend(announcement.map(Event::Track));
        self.events.push_back(Event::Unit(AccessUnit {
            track: id,
            dts: stamp.dts,
            composition_offset: coded.composition_offset,
            keyframe: frame.keyframe,
            payload: frame.payload,
        }));
        Ok(())
    }

    /// The track, begun anew when its codec is another one than before.
    fn track(&mut self, id: TrackId, codec: Codec) -> Option<&mut TrackState> {
        if !self.tracks.iter().any(|track| track.id() == id) {
            self.tracks.push(TrackState::new(id, codec));
        }
        let track = self.tracks.iter_mut().find(|track| track.id() == id)?;
        track.use_codec(codec);
        Some(track)
    }
}
