use std::sync::Arc;
use std::time::Duration;

use weir_protocol::media::TrackKind::{Audio, Video};
use weir_protocol::media::{AccessUnit, TIMESCALE, Ticks, Track, TrackKind};

use crate::config::{Config, Shape};
use crate::dropped::{Dropped, bump};
use crate::epoch::Epoch;
use crate::lead_in::{LeadIn, leading_step};
use crate::limits;
use crate::part::Sample;
use crate::segmenter::Segmenter;
use crate::timeline::{AudioClock, DecodeShift, frame_samples, is_far, on_timeline};
use crate::tracks::{Presence, Tracks};
use crate::window::Window;

/// Cuts one stream into segments and parts. See the crate's documentation for what to call when.
#[derive(Debug)]
pub struct Packager {
    shape: Arc<Shape>,
    segmenter: Segmenter,
    tracks: Tracks,
    lead_in: Option<LeadIn>,
    /// PART-TARGET was chosen.
    measured: bool,
    epoch: Option<Arc<Epoch>>,
    /// There is to be another stretch as soon as one can begin.
    restarted: bool,
    /// Where the running stretch began.
    begin: Ticks,
    /// The newest sample of each track, whose duration the next one tells.
    last_picture: Option<Sample>,
    last_sound: Option<Sample>,
    picture_step: Ticks,
    audio_clock: AudioClock,
    decode_shift: DecodeShift,
    wall_clock: Option<Duration>,
    window: Option<Arc<Window>>,
    ended: bool,
    dropped: Dropped,
}

/// The last picture before a break is thought to last as long as the one before it, but no longer
/// than this.
const LONGEST_GUESS: Ticks = Ticks::from_ms(1000);

const USUAL_PICTURE_STEP: Ticks = Ticks(TIMESCALE as i64 / 30);

impl Packager {
    #[must_use]
    pub fn new(config: Config) -> Self {
        let (first_msn, first_discontinuity) = (config.first_msn, config.first_discontinuity);
        let shape = Arc::new(Shape::new(config));
        Self {
            segmenter: Segmenter::new(shape.clone(), first_msn, first_discontinuity),
            shape,
            tracks: Tracks::default(),
            lead_in: Some(LeadIn::default()),
            measured: false,
            epoch: None,
            restarted: false,
            begin: Ticks::ZERO,
            last_picture: None,
            last_sound: None,
            picture_step: USUAL_PICTURE_STEP,
            audio_clock: AudioClock::new(1),
            decode_shift: DecodeShift::default(),
            wall_clock: None,
            window: None,
            ended: false,
            dropped: Dropped::default(),
        }
    }

    /// Declares the stream's tracks, all of them each time. The first of each kind is packaged.
    /// Equal tracks change nothing; others start a new epoch at the next keyframe.
    pub fn set_tracks(&mut self, tracks: &[Track]) {
        self.tracks.declare(tracks);
    }

    /// The wall-clock time, since the Unix epoch, of the first access unit of the stretch that
    /// comes next: the first one of all, or after [`Packager::discontinuity`]. Without it there is
    /// no EXT-X-PROGRAM-DATE-TIME at first, and later it goes on from the media before.
    pub fn set_wall_clock(&mut self, since_unix_epoch: Duration) {
        self.wall_clock = Some(since_unix_epoch);
    }

    /// Takes the next access unit; those of one track in decoding order.
    pub fn push(&mut self, unit: &AccessUnit) {
        let Some(kind) = self.tracks.kind_of(unit.track).filter(|_| !self.ended) else {
            return bump(&mut self.dropped.not_in_epoch);
        };
        if unit.payload.is_empty() {
            return bump(&mut self.dropped.empty);
        }
        match (&mut self.lead_in, kind) {
            (None, Video) => return self.place_picture(unit),
            (None, Audio) => return self.place_sound(unit),
            (Some(lead_in), Video) => lead_in.hold_picture(unit),
            (Some(lead_in), Audio) => lead_in.hold_sound(unit),
        }
        if self.lead_in_is_over() {
            self.settle();
        }
    }

    /// The publisher has begun anew on the same timeline: from the next keyframe on, there is another
    /// stretch behind a discontinuity. Nothing is lost by it.
    pub fn restarted(&mut self) {
        self.restarted = true;
    }

    /// The next access unit does not follow on the one before: the publisher left (call it at
    /// once, so that players get the tail), or its timeline broke. MSN and playlist go on.
    pub fn discontinuity(&mut self) {
        self.settle();
        self.flush();
        self.start_lead_in();
    }

    /// The stream is over: closes everything and ends the playlists. Nothing is taken after it.
    pub fn end(&mut self) {
        if !self.ended {
            self.settle();
            self.flush();
            self.ended = true;
            self.segmenter.touch();
        }
    }

    /// The version of [`Packager::window`], without making it.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.segmenter.version()
    }

    /// The stream as players see it now; the same `Arc` until something changes.
    pub fn window(&mut self) -> Arc<Window> {
        let current = self.window.take().filter(|window| window.version() == self.version());
        let window = current.unwrap_or_else(|| Arc::new(self.segmenter.window(self.ended)));
        self.window.insert(window).clone()
    }

    /// Segments that begin without a keyframe: it came too late for TARGETDURATION, or the segment
    /// before held too much. Players cannot start with these.
    #[must_use]
    pub fn cuts_without_keyframe(&self) -> u64 {
        self.segmenter.cuts_without_keyframe()
    }

    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Both tracks were heard, or those that the last epoch had; or nothing more is waited for.
    fn lead_in_is_over(&self) -> bool {
        let before = self.epoch.as_ref();
        let expect = |kind| {
            self.tracks.declared(kind).is_some() || before.is_none_or(|epoch| epoch.has(kind))
        };
        let pictures = if self.measured { 1 } else { limits::LEAD_IN_PICTURES };
        let over = |lead_in: &LeadIn| lead_in.is_over(expect(Video), expect(Audio), pictures);
        self.lead_in.as_ref().is_some_and(over)
    }

    fn start_lead_in(&mut self) {
        self.lead_in = Some(LeadIn::default());
        self.tracks.set(Video, Presence::New);
        self.tracks.set(Audio, Presence::New);
    }

    /// Ends the lead-in with what it has.
    fn settle(&mut self) {
        let Some(lead_in) = self.lead_in.take() else { return };
        let (picture, sound) = (lead_in.first_picture(), lead_in.first_sound());
        let Some(start) = picture.or(sound) else {
            self.lead_in = Some(lead_in);
            return;
        };
        // Audio that is hours off the pictures is not the same programme.
        let near = sound.is_some_and(|sound| !is_far(sound, start));
        let presence = |heard| if heard { Presence::Heard } else { Presence::Silent };
        self.tracks.set(Video, presence(picture.is_some()));
        self.tracks.set(Audio, presence(near));
        self.measure(lead_in.units());
        self.start_stretch(on_timeline(start));
        for unit in lead_in.into_units() {
            self.push(&unit);
        }
    }

    /// Chooses PART-TARGET, once.
    fn measure(&mut self, units: &[AccessUnit]) {
        for unit in units.iter().filter(|unit| self.tracks.kind_of(unit.track) == Some(Video)) {
            self.decode_shift.observe(unit.composition_offset);
        }
        let leading = leading_step(units, &self.tracks);
        if !self.measured {
            self.measured = true;
            self.segmenter.set_part_target(self.shape.part_target(leading));
        }
    }

    /// The stretch can go on: nothing has begun anew, and the epoch has exactly the tracks that should
    /// be packaged.
    fn stretch_is_current(&self) -> bool {
        !self.restarted && self.epoch_is_current()
    }

    fn epoch_is_current(&self) -> bool {
        let is_current = |epoch: &Arc<Epoch>| {
            [Video, Audio].iter().all(|kind| epoch.track(*kind) == self.tracks.heard(*kind))
        };
        self.epoch.as_ref().is_some_and(is_current)
    }

    fn start_stretch(&mut self, start: Ticks) {
        let epoch = match &self.epoch {
            Some(epoch) if self.epoch_is_current() => epoch.clone(),
            previous => {
                let number = previous.as_ref().map_or(0, |epoch| epoch.number().saturating_add(1));
                let heard = |kind| self.tracks.heard(kind).cloned();
                Arc::new(Epoch::new(number, heard(Video), heard(Audio)))
            }
        };
        let rate = epoch.audio().and_then(|track| track.codec.sample_rate()).unwrap_or(1);
        self.audio_clock = AudioClock::new(rate);
        self.decode_shift.restart();
        self.restarted = false;
        self.begin = start;
        self.epoch = Some(epoch.clone());
        self.segmenter.begin(epoch, start, self.wall_clock.take());
    }

    /// Hands everything held to the segmenter and closes the open part and segment.
    fn flush(&mut self) {
        if let Some(mut last) = self.last_picture.take() {
            last.duration = u32::try_from(self.picture_step.0).unwrap_or(1);
            self.segmenter.add_picture(last);
        }
        if let Some(last) = self.last_sound.take() {
            self.segmenter.add_sound(last);
        }
        self.segmenter.finish();
    }

    fn place_picture(&mut self, unit: &AccessUnit) {
        let at = on_timeline(unit.dts);
        if unit.keyframe {
            self.tracks.set(Video, Presence::Heard);
            if self.tracks.is_new(Audio) {
                self.flush_until(at);
                self.start_lead_in();
                return self.push(unit);
            }
            if !self.stretch_is_current() {
                self.flush_until(at);
                self.start_stretch(at);
            }
        }
        if !self.epoch_has(Video) {
            return bump(&mut self.dropped.not_in_epoch);
        }
        let last_at = self.last_picture.as_ref().map(|last| last.at);
        // Pictures that come long after their sound still follow on each other.
        let follows = last_at.is_some_and(|last| !is_far(at, last));
        if !follows && self.is_break(at) {
            self.discontinuity();
            return self.push(unit);
        }
        match last_at {
            None if at > self.begin && !unit.keyframe => {
                return bump(&mut self.dropped.before_keyframe);
            }
            Some(last) if at <= last => {
                return bump(&mut self.dropped.out_of_time);
            }
            _ => {}
        }
        self.end_last_picture(at);
        self.end_late_sound(at);
        self.segmenter.advance(at, unit.keyframe, false);
        let pts = at + unit.composition_offset;
        let (ts_dts, ts_pts) = self.decode_shift.place(at, pts);
        self.last_picture = Some(Sample {
            payload: unit.payload.clone(),
            keyframe: unit.keyframe,
            at,
            pts,
            ts_dts,
            ts_pts,
            position: at.0,
            duration: 0,
            rate: TIMESCALE,
        });
    }

    fn place_sound(&mut self, unit: &AccessUnit) {
        let stamp = on_timeline(unit.dts);
        let has_video = self.epoch.as_ref().is_some_and(|epoch| epoch.has(Video));
        if self.is_break(stamp) {
            if has_video {
                return bump(&mut self.dropped.out_of_time);
            }
            self.discontinuity();
            return self.push(unit);
        }
        self.tracks.set(Audio, Presence::Heard);
        // With pictures, all changes wait for a keyframe.
        let alone = self.tracks.heard(Video).is_none()
            && (!has_video || self.tracks.declared(Video).is_none());
        if alone && !self.stretch_is_current() {
            self.flush();
            self.start_stretch(stamp);
        }
        let epoch = self.epoch.clone().filter(|_| self.epoch_has(Audio));
        let Some(track) = epoch.as_ref().and_then(|epoch| epoch.audio()) else {
            return bump(&mut self.dropped.not_in_epoch);
        };
        let picture = self.last_picture.as_ref().map(|last| last.at);
        let samples = frame_samples(&track.codec, &unit.payload);
        let placed = self.audio_clock.place(stamp, samples);
        let Some(position) = placed.filter(|_| stamp >= self.begin) else {
            return bump(&mut self.dropped.out_of_time);
        };
        let rate = track.codec.sample_rate().unwrap_or(1);
        let at = Ticks::from_rate(position, rate);
        self.end_last_sound(position);
        match picture {
            None if !has_video => self.segmenter.advance(at, true, false),
            Some(picture) if self.is_late(picture, at) => self.segmenter.advance(at, false, true),
            _ => {}
        }
        self.last_sound = Some(Sample {
            payload: unit.payload.clone(),
            keyframe: true,
            at,
            pts: at,
            ts_dts: at,
            ts_pts: at,
            position,
            duration: samples,
            rate,
        });
    }

    /// The next picture is not waited for any more.
    fn is_late(&self, last_picture: Ticks, sound: Ticks) -> bool {
        sound - last_picture > limits::PICTURE_WAIT.into() || self.segmenter.is_used_up()
    }

    /// The epoch packages what is declared now for this kind.
    fn epoch_has(&self, kind: TrackKind) -> bool {
        let packaged = self.epoch.as_ref().and_then(|epoch| epoch.track(kind));
        packaged.is_some() && packaged == self.tracks.declared(kind)
    }

    fn is_break(&self, at: Ticks) -> bool {
        is_far(at, self.segmenter.frontier())
    }

    fn end_last_picture(&mut self, next: Ticks) {
        if let Some(mut last) = self.last_picture.take() {
            let step = (next - last.at).max(Ticks(1));
            last.duration = u32::try_from(step.0).unwrap_or(u32::MAX);
            self.picture_step = step.min(LONGEST_GUESS);
            self.segmenter.add_picture(last);
        }
    }

    /// A hole in the audio is filled by the frame before it: players stall at holes.
    fn end_last_sound(&mut self, next: i64) {
        if let Some(mut last) = self.last_sound.take() {
            last.duration =
                u32::try_from(next.saturating_sub(last.position)).unwrap_or(last.duration);
            self.segmenter.add_sound(last);
        }
    }

    /// Audio that stopped is not waited for: its last frame has the length that it says.
    fn end_late_sound(&mut self, picture: Ticks) {
        let wait = Ticks::from(limits::PICTURE_WAIT);
        if let Some(last) = self.last_sound.take_if(|last| picture - last.end_at() > wait) {
            self.segmenter.add_sound(last);
        }
    }

    /// [`Packager::flush`] where the next picture, at `next`, is known.
    fn flush_until(&mut self, next: Ticks) {
        if self.last_picture.as_ref().is_some_and(|last| !is_far(next, last.at)) {
            self.end_last_picture(next);
        }
        self.flush();
    }
}
