//! Decides which declared tracks really exist before anything is told to players.

use std::collections::VecDeque;

use weir_protocol::media::{AccessUnit, Ticks, Track, TrackId, TrackKind};

use crate::limits;

/// What leaves the gate, in order.
#[derive(Debug, PartialEq)]
pub enum Flow {
    /// From here on these are the tracks.
    Tracks(Vec<Track>),
    Unit(AccessUnit),
}

/// Holds the first access units until every declared track has had a frame, or for a bounded while.
///
/// Encoders announce tracks that never come and bring tracks late; a player told of a track that
/// stays silent waits for ever. So tracks come from frames. A track that comes late enters at the
/// next video keyframe, because every output can only take it up there.
#[derive(Default)]
pub struct Gate {
    declared: Vec<Track>,
    live: Vec<Track>,
    seen: Vec<TrackId>,
    held: VecDeque<AccessUnit>,
    held_bytes: usize,
    settled: bool,
    out: VecDeque<Flow>,
}

impl Gate {
    /// A track was declared, or its configuration changed.
    pub fn declare(&mut self, track: Track) {
        match self.declared.iter_mut().find(|known| known.id == track.id) {
            Some(known) => *known = track.clone(),
            None => {
                // By id: pictures before sound, the first of each kind first.
                let place = self.declared.partition_point(|known| known.id < track.id);
                self.declared.insert(place, track.clone());
            }
        }
        let changed = |live: &&mut Track| live.id == track.id && **live != track;
        if let Some(live) = self.live.iter_mut().find(changed) {
            *live = track;
            self.announce();
        }
    }

    pub fn push(&mut self, unit: AccessUnit) {
        if !self.declared.iter().any(|track| track.id == unit.track) {
            return;
        }
        if !self.seen.contains(&unit.track) {
            self.seen.push(unit.track);
        }
        if self.settled {
            return self.pass(unit);
        }
        self.held_bytes += unit.payload.len();
        self.held.push_back(unit);
        if self.complete() || self.waited_enough() {
            self.settle();
        }
    }

    pub fn poll(&mut self) -> Option<Flow> {
        self.out.pop_front()
    }

    /// A publisher ended: what was held is all there will be.
    pub fn finish(&mut self) {
        if !self.settled && !self.held.is_empty() {
            self.settle();
        }
    }

    fn complete(&self) -> bool {
        let seen = |kind| {
            let mut of_kind = self.declared.iter().filter(|track| track.kind() == kind).peekable();
            of_kind.peek().is_some() && of_kind.all(|track| self.seen.contains(&track.id))
        };
        seen(TrackKind::Video) && seen(TrackKind::Audio)
    }

    fn waited_enough(&self) -> bool {
        let span = match (self.held.front(), self.held.back()) {
            (Some(front), Some(back)) => back.dts - front.dts,
            _ => Ticks::ZERO,
        };
        span >= limits::TRACK_DETECTION_SPAN || self.held_bytes >= limits::TRACK_DETECTION_BYTES
    }

    fn settle(&mut self) {
        self.settled = true;
        let seen = &self.seen;
        self.live = self.declared.iter().filter(|t| seen.contains(&t.id)).cloned().collect();
        self.announce();
        self.held_bytes = 0;
        self.out.extend(self.held.drain(..).map(Flow::Unit));
    }

    fn pass(&mut self, unit: AccessUnit) {
        if !self.is_live(unit.track) {
            // Without video any moment is as good as another.
            let video = self.live.iter().any(|track| track.kind() == TrackKind::Video);
            if video {
                return;
            }
            self.admit_seen();
        } else if self.live.len() < self.seen.len() && self.is_leading(unit.track) && unit.keyframe
        {
            self.admit_seen();
        }
        self.out.push_back(Flow::Unit(unit));
    }

    fn admit_seen(&mut self) {
        let seen = &self.seen;
        self.live = self.declared.iter().filter(|t| seen.contains(&t.id)).cloned().collect();
        self.announce();
    }

    fn announce(&mut self) {
        self.out.push_back(Flow::Tracks(self.live.clone()));
    }

    fn is_live(&self, id: TrackId) -> bool {
        self.live.iter().any(|track| track.id == id)
    }

    /// Of several video tracks the first one tells where players can take up others.
    fn is_leading(&self, id: TrackId) -> bool {
        let leading = self.live.iter().find(|track| track.kind() == TrackKind::Video);
        leading.is_some_and(|track| track.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::track_set::tests::{AUDIO, VIDEO, audio_track, video_track};

    fn unit(track: TrackId, ms: i64, keyframe: bool) -> AccessUnit {
        AccessUnit {
            track,
            dts: Ticks::from_ms(ms),
            composition_offset: Ticks::ZERO,
            keyframe,
            payload: bytes::Bytes::from_static(b"frame"),
        }
    }

    /// `v`, `a`: a frame of that kind; `[va]`: the tracks from here on.
    fn drain(gate: &mut Gate) -> String {
        let letter = |id| if id == VIDEO { 'v' } else { 'a' };
        let mut text = String::new();
        while let Some(flow) = gate.poll() {
            match flow {
                Flow::Unit(unit) => text.push(letter(unit.track)),
                Flow::Tracks(tracks) => {
                    let letters: String = tracks.iter().map(|track| letter(track.id)).collect();
                    text.push_str(&format!("[{letters}]"));
                }
            }
        }
        text
    }

    #[test]
    fn settles_as_soon_as_both_kinds_have_frames() {
        let mut gate = Gate::default();
        gate.declare(video_track());
        gate.push(unit(VIDEO, 0, true));
        gate.declare(audio_track());
        assert_eq!(drain(&mut gate), "");
        gate.push(unit(AUDIO, 5, true));
        assert_eq!(drain(&mut gate), "[va]va");
    }

    #[test]
    fn a_declared_track_without_frames_is_left_out() {
        let mut gate = Gate::default();
        gate.declare(video_track());
        gate.declare(audio_track());
        let span = limits::TRACK_DETECTION_SPAN.as_ms();
        gate.push(unit(VIDEO, 0, true));
        gate.push(unit(VIDEO, span - 1, false));
        assert_eq!(drain(&mut gate), "");
        gate.push(unit(VIDEO, span, false));
        assert_eq!(drain(&mut gate), "[v]vvv");
    }

    #[test]
    fn a_late_track_enters_at_the_next_keyframe() {
        let mut gate = Gate::default();
        gate.declare(video_track());
        let span = limits::TRACK_DETECTION_SPAN.as_ms();
        gate.push(unit(VIDEO, 0, true));
        gate.push(unit(VIDEO, span, false));
        gate.declare(audio_track());
        gate.push(unit(AUDIO, span + 1, true));
        gate.push(unit(VIDEO, span + 2, false));
        assert_eq!(drain(&mut gate), "[v]vvv");
        gate.push(unit(VIDEO, span + 3, true));
        gate.push(unit(AUDIO, span + 4, true));
        assert_eq!(drain(&mut gate), "[va]va");
    }

    #[test]
    fn an_unchanged_configuration_announces_nothing() {
        let mut gate = Gate::default();
        gate.declare(video_track());
        gate.declare(audio_track());
        gate.push(unit(VIDEO, 0, true));
        gate.push(unit(AUDIO, 0, true));
        gate.declare(video_track());
        gate.push(unit(VIDEO, 40, true));
        assert_eq!(drain(&mut gate), "[va]vav");
    }

    #[test]
    fn what_was_held_comes_out_when_the_publisher_ends() {
        let mut gate = Gate::default();
        gate.declare(video_track());
        gate.push(unit(VIDEO, 0, true));
        gate.finish();
        assert_eq!(drain(&mut gate), "[v]v");
    }
}
