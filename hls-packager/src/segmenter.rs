//! Where parts and segments end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use weir_protocol::media::Ticks;

use crate::config::Shape;
use crate::epoch::Epoch;
use crate::history::History;
use crate::limits;
use crate::part::{Draft, Part, Sample};
use crate::segment::{OpenSegment, Segment};
use crate::target::TargetDuration;
use crate::ts;
use crate::waiting::Waiting;
use crate::window::{Window, WindowState};

/// Cuts samples into parts and segments.
///
/// The *frontier* is the time up to which everything is known: the newest picture's DTS, or the
/// newest audio frame's where there is no video or video is silent. A sample comes here once the
/// next one of its track has told its duration. Parts end at pictures; where pictures are further
/// apart than PART-TARGET, at audio frames, or within one where 85 % needs it.
#[derive(Debug)]
pub(crate) struct Segmenter {
    shape: Arc<Shape>,
    /// Chosen when the first segment is whole.
    target: Option<TargetDuration>,
    part_target: Ticks,
    /// Where a player could start last, and the longest that it was from one such place to the next.
    entry: Option<Ticks>,
    longest_gop: Option<Ticks>,
    epoch: Option<Arc<Epoch>>,
    waiting: Waiting,
    part_start: Ticks,
    frontier: Ticks,
    open: OpenSegment,
    history: History,
    /// Parts closed so far.
    sequence: u32,
    ts_state: ts::State,
    /// Segments that do not begin with a keyframe.
    cuts_without_keyframe: u64,
    version: u64,
}

/// Parts should reach this share of PART-TARGET (rfc8216bis §4.4.4.9).
const LEAST_PART_PERCENT: i64 = 85;

/// A keyframe may come so much before the segment is full, for stamps in milliseconds.
const EARLY_KEYFRAME: Ticks = Ticks::from_ms(100);

impl Segmenter {
    pub fn new(shape: Arc<Shape>, first_msn: u64, first_discontinuity: u64) -> Self {
        Self {
            part_target: shape.part_target(None),
            shape,
            target: None,
            entry: None,
            longest_gop: None,
            epoch: None,
            waiting: Waiting::default(),
            part_start: Ticks::ZERO,
            frontier: Ticks::ZERO,
            open: OpenSegment {
                discontinuities: first_discontinuity,
                ..OpenSegment::first(first_msn)
            },
            history: History::default(),
            sequence: 0,
            ts_state: ts::State::default(),
            cuts_without_keyframe: 0,
            version: 0,
        }
    }

    /// Fixed once, before the first part: it must not change in the life of a playlist.
    pub fn set_part_target(&mut self, part_target: Ticks) {
        self.part_target = part_target;
    }

    /// Starts a stretch of media at `start`, after [`Segmenter::finish`]: another epoch, or the
    /// same on another timeline. Without a wall clock it goes on from what was before.
    pub fn begin(&mut self, epoch: Arc<Epoch>, start: Ticks, wall_clock: Option<Duration>) {
        self.epoch = Some(epoch);
        self.part_start = start;
        self.frontier = start;
        self.open.start = start;
        self.open.wall_clock = wall_clock.or(self.open.wall_clock);
        self.entry = None;
        if self.sequence > 0 && !self.open.discontinuity {
            self.open.discontinuity = true;
            self.open.discontinuities = self.open.discontinuities.saturating_add(1);
        }
    }

    pub fn frontier(&self) -> Ticks {
        self.frontier
    }

    /// Rises with every part, segment and end.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn cuts_without_keyframe(&self) -> u64 {
        self.cuts_without_keyframe
    }

    pub fn window(&self, ended: bool) -> Window {
        self.history.window(WindowState {
            version: self.version,
            shape: self.shape.clone(),
            target: self.target(),
            part_target: self.part_target,
            independent_segments: self.cuts_without_keyframe == 0,
            open: Segment::new(&self.open),
            ended,
        })
    }

    pub fn add_picture(&mut self, sample: Sample) {
        self.waiting.add_picture(sample);
    }

    pub fn add_sound(&mut self, sample: Sample) {
        self.waiting.add_sound(sample);
    }

    /// Everything before `frontier` is known: cuts the parts and segments that are due. At an
    /// `entry`, a player can start there. `sparse`: pictures are not waited for.
    pub fn advance(&mut self, frontier: Ticks, entry: bool, sparse: bool) {
        self.frontier = self.frontier.max(frontier);
        let frontier = self.frontier;
        if entry && let Some(last) = self.entry.replace(frontier) {
            self.longest_gop = self.longest_gop.max(Some(frontier - last));
        }
        while frontier - self.part_start > self.part_target {
            self.cut(self.boundary(sparse));
        }
        if entry && self.segment_is_full() {
            self.cut(frontier);
            self.close_segment();
        } else if self.part_is_full(sparse) {
            self.cut(frontier);
        }
        if self.is_used_up() {
            if self.waiting.first().is_some_and(|first| first < self.part_start) {
                // Pictures that come after their sound have no time of their own left.
                self.frontier = frontier.max(self.part_start + Ticks(1));
            }
            self.cut(self.frontier);
            self.close_segment();
        }
    }

    /// The open segment and what waits for its next part hold as much as a segment may.
    pub fn is_used_up(&self) -> bool {
        let bytes = self.open.bytes.saturating_add(self.waiting.bytes());
        let units = self.open.units.saturating_add(self.waiting.units());
        bytes >= limits::SEGMENT_BYTES || units >= limits::SEGMENT_UNITS
    }

    /// Closes the open part and segment with everything there is.
    pub fn finish(&mut self) {
        let video = self.waiting.video.back().map(Sample::end_at);
        let audio = self.waiting.audio.back().map(Sample::end_at);
        if let Some(end) = video.max(audio) {
            self.advance(end, false, true);
            self.cut(self.frontier);
        }
        self.close_segment();
    }

    /// Something that players must hear of happened outside of parts and segments.
    pub fn touch(&mut self) {
        self.version = self.version.saturating_add(1);
    }

    fn has_video(&self) -> bool {
        self.epoch.as_ref().is_some_and(|epoch| epoch.video().is_some())
    }

    fn segment_is_full(&self) -> bool {
        let slack = if self.has_video() { EARLY_KEYFRAME } else { Ticks::ZERO };
        self.frontier - self.open.start + slack >= self.shape.segment
    }

    /// The part is long enough, and the next sample would make it too long.
    fn part_is_full(&self, sparse: bool) -> bool {
        let duration = self.frontier - self.part_start;
        let leading =
            if sparse || !self.has_video() { &self.waiting.audio } else { &self.waiting.video };
        let spacing = leading.back().map_or(Ticks::ZERO, |sample| self.frontier - sample.at);
        duration >= self.least_part() && duration + spacing > self.part_target
    }

    /// What a part has to reach, unless it is the last of its segment.
    fn least_part(&self) -> Ticks {
        Ticks(self.part_target.0.saturating_mul(LEAST_PART_PERCENT) / 100)
    }

    /// The best end for the open part before the frontier.
    fn boundary(&self, sparse: bool) -> Ticks {
        let (start, latest) = (self.part_start, self.part_start + self.part_target);
        // No part is empty.
        let first = self.waiting.first().map_or(start, |first| first.max(start));
        let within = |at: &Ticks| *at > first && *at <= latest;
        let starts = |samples: &VecDeque<Sample>| {
            let ends = samples.back().map(Sample::end_at);
            samples.iter().map(|sample| sample.at).chain(ends).filter(within).max()
        };
        let (video, audio) = (starts(&self.waiting.video), starts(&self.waiting.audio));
        let is_long_enough = |at: &Ticks| *at - start >= self.least_part();
        let best = video.filter(|at| !sparse && is_long_enough(at)).or(video.max(audio));
        match best {
            Some(best) if is_long_enough(&best) || !self.waiting.sounds_across(latest) => best,
            // Sound may go on across the end of a part.
            Some(_) => latest,
            // One sample that is longer than PART-TARGET cannot be split.
            None => self.frontier,
        }
    }

    /// Ends the open part at `end`.
    fn cut(&mut self, end: Ticks) {
        if end <= self.part_start {
            return;
        }
        if end - self.open.start > self.target().longest_segment() {
            self.close_segment();
        }
        // The first segment has chosen the target when it was closed.
        let longest = self.target().longest_segment();
        let (video, audio) = self.waiting.take_before(end);
        let start = std::mem::replace(&mut self.part_start, end);
        let Some(epoch) = self.epoch.clone().filter(|_| !video.is_empty() || !audio.is_empty())
        else {
            // Nothing was sent for so long, which no segment lasts.
            self.close_segment();
            return self.open.start_later(end);
        };
        let index = u32::try_from(self.open.parts.len()).unwrap_or(u32::MAX);
        let draft = Draft {
            epoch,
            msn: self.open.msn,
            index,
            sequence: self.sequence.wrapping_add(1),
            start,
            // A picture that lasts longer than a segment may.
            duration: (end - start).min(longest),
            video,
            audio,
            discontinuity: self.open.discontinuity && index == 0,
        };
        self.open.add(Arc::new(Part::close(draft, &mut self.ts_state)));
        if index == 0 && !self.open.independent {
            self.cuts_without_keyframe = self.cuts_without_keyframe.saturating_add(1);
        }
        self.sequence = self.sequence.saturating_add(1);
        self.touch();
        // Where the next part would not fit any more, the hint must name the next segment's.
        if end + self.part_target - self.open.start > longest {
            self.close_segment();
        }
    }

    fn close_segment(&mut self) {
        if self.open.parts.is_empty() {
            return;
        }
        let next = self.open.next(self.part_start);
        let done = Segment::new(&std::mem::replace(&mut self.open, next));
        let target = self.shape.target(self.longest_gop, done.duration(), self.part_target);
        let target = *self.target.get_or_insert(target);
        self.history.add(Arc::new(done), &self.shape, target);
        self.touch();
    }

    fn target(&self) -> TargetDuration {
        self.target.unwrap_or(self.shape.greatest_target())
    }
}
