//! Decides which declared tracks really exist before anything is told to players.

use std::collections::VecDeque;

use weir_protocol::media::{AccessUnit, Ticks, Track, TrackId, TrackKind};

use crate::limits;

/// What leaves the gate, in order.
#[derive(Debug, PartialEq)]
pub enum Flow {
    /// The session begins: the earliest time of what was held.
    Begin(Ticks),
    /// From here on these are the tracks.
    Tracks(Vec<Track>),
    Unit(AccessUnit),
}

/// Holds the first access units until every declared track has had a frame, or for a bounded while.
///
/// Encoders announce tracks that never come and bring tracks late; a player told of a track that
/// stays silent waits for ever. So tracks come from frames. A track that comes late enters at the
/// next video keyframe, because every output can only take it up there. One that falls silent makes
/// room for others of its kind, since outputs carry the first of each.
#[derive(Default)]
pub struct Gate {
    declared: Vec<Track>,
    live: Vec<Track>,
    seen: Vec<Seen>,
    held: VecDeque<AccessUnit>,
    held_bytes: usize,
    settled: bool,
    out: VecDeque<Flow>,
}

/// A track that has sent, and when it last did.
struct Seen {
    id: TrackId,
    last: Ticks,
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
        match self.seen.iter_mut().find(|seen| seen.id == unit.track) {
            Some(seen) => seen.last = unit.dts,
            None => self.seen.push(Seen { id: unit.track, last: unit.dts }),
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
            of_kind.peek().is_some() && of_kind.all(|track| self.has_sent(track))
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
        self.live = self.declared.iter().filter(|track| self.has_sent(track)).cloned().collect();
        let earliest = self.held.iter().map(|unit| unit.dts).min();
        self.out.extend(earliest.map(Flow::Begin));
        self.announce();
        self.held_bytes = 0;
        self.out.extend(self.held.drain(..).map(Flow::Unit));
    }

    fn pass(&mut self, unit: AccessUnit) {
        if self.is_turning_point(&unit) {
            self.live = self.sending(unit.dts).cloned().collect();
            self.announce();
        }
        if self.live.iter().any(|track| track.id == unit.track) {
            self.out.push_back(Flow::Unit(unit));
        }
    }

    /// Whether other tracks than before begin with this unit. Players can take them up at a keyframe
    /// of what is then the first video track; without video any moment is as good as another.
    fn is_turning_point(&self, unit: &AccessUnit) -> bool {
        if !unit.keyframe {
            return false;
        }
        let leading = self.sending(unit.dts).find(|track| track.kind() == TrackKind::Video);
        let live = self.live.iter().map(|track| track.id);
        leading.is_none_or(|track| track.id == unit.track)
            && !self.sending(unit.dts).map(|track| track.id).eq(live)
    }

    /// Tracks that have sent, without those that fell silent while others of their kind go on.
    fn sending(&self, now: Ticks) -> impl Iterator<Item = &Track> {
        let sends = move |track: &Track| {
            let seen = self.seen.iter().find(|seen| seen.id == track.id);
            seen.is_some_and(|seen| now - seen.last < limits::TRACK_SILENCE)
        };
        let others_send = move |silent: &Track| {
            self.declared.iter().any(|track| track.kind() == silent.kind() && sends(track))
        };
        let is_sending = move |track: &&Track| sends(track) || !others_send(track);
        self.declared.iter().filter(|track| self.has_sent(track)).filter(is_sending)
    }

    fn has_sent(&self, track: &Track) -> bool {
        self.seen.iter().any(|seen| seen.id == track.id)
    }

    fn announce(&mut self) {
        self.out.push_back(Flow::Tracks(self.live.clone()));
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

    /// `v`, `a`: a frame of that kind, `V`, `A` of its second track; `[va]`: the tracks from here on.
    fn drain(gate: &mut Gate) -> String {
        let letter = |id: TrackId| ['v', 'a', 'V', 'A'][usize::from(id.0)];
        let mut text = String::new();
        while let Some(flow) = gate.poll() {
            match flow {
                Flow::Begin(_) => {}
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

    const SECOND_VIDEO: TrackId = TrackId(2);
    const SECOND_AUDIO: TrackId = TrackId(3);

    fn two_of_each(beside: &[TrackId]) -> Gate {
        let mut gate = Gate::default();
        for (track, id) in [
            (video_track(), VIDEO),
            (audio_track(), AUDIO),
            (video_track(), SECOND_VIDEO),
            (audio_track(), SECOND_AUDIO),
        ] {
            if beside.contains(&id) {
                gate.declare(Track { id, ..track });
            }
        }
        for id in beside {
            gate.push(unit(*id, 0, true));
        }
        gate
    }

    #[test]
    fn a_track_that_falls_silent_makes_room_for_another() {
        let mut gate = two_of_each(&[VIDEO, AUDIO, SECOND_VIDEO, SECOND_AUDIO]);
        assert_eq!(drain(&mut gate), "[vaVA]vaVA");
        let silence = limits::TRACK_SILENCE.as_ms();
        gate.push(unit(SECOND_VIDEO, silence - 1, true));
        gate.push(unit(AUDIO, silence, true));
        gate.push(unit(SECOND_VIDEO, silence, false));
        assert_eq!(drain(&mut gate), "VaV", "only a keyframe begins another first track");
        gate.push(unit(SECOND_VIDEO, silence + 1, true));
        assert_eq!(drain(&mut gate), "[aV]V");
        // It comes back with a keyframe of its own.
        gate.push(unit(VIDEO, silence + 2, false));
        gate.push(unit(SECOND_VIDEO, silence + 3, true));
        gate.push(unit(SECOND_AUDIO, silence + 4, true));
        assert_eq!(drain(&mut gate), "V");
        gate.push(unit(VIDEO, silence + 5, true));
        gate.push(unit(SECOND_AUDIO, silence + 6, true));
        assert_eq!(drain(&mut gate), "[vaVA]vA");
    }

    #[test]
    fn the_last_of_its_kind_stays_however_long_it_is_silent() {
        let mut gate = two_of_each(&[VIDEO, AUDIO]);
        drain(&mut gate);
        gate.push(unit(AUDIO, 10 * limits::TRACK_SILENCE.as_ms(), true));
        gate.push(unit(VIDEO, 10 * limits::TRACK_SILENCE.as_ms(), true));
        assert_eq!(drain(&mut gate), "av");
        let mut gate = two_of_each(&[AUDIO, SECOND_AUDIO]);
        gate.finish();
        assert_eq!(drain(&mut gate), "[aA]aA");
        gate.push(unit(SECOND_AUDIO, limits::TRACK_SILENCE.as_ms(), true));
        assert_eq!(drain(&mut gate), "[A]A", "sound alone turns anywhere");
    }

    #[test]
    fn an_earlier_track_that_comes_late_leads_from_its_own_keyframe() {
        let mut gate = two_of_each(&[AUDIO, SECOND_VIDEO]);
        gate.declare(video_track());
        assert_eq!(drain(&mut gate), "[aV]aV");
        gate.push(unit(VIDEO, 40, true));
        gate.push(unit(SECOND_VIDEO, 40, true));
        assert_eq!(drain(&mut gate), "[vaV]vV");
    }
}
