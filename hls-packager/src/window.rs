use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use weir_protocol::media::Ticks;

use crate::config::Shape;
use crate::name::Name;
use crate::part::Part;
use crate::playlist::{self, Variant};
use crate::segment::{Segment, bit_rate};
use crate::target::TargetDuration;
use crate::{Epoch, Format};

/// What to do with a blocking playlist reload (rfc8216bis §6.2.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Answer with this window's playlist.
    Ready,
    /// Ask the next window again; give up with 503 after three target durations.
    Wait,
    /// 400: further ahead than a client may ask.
    BadRequest,
}

/// What an address under the stream's prefix stands for.
#[derive(Clone, Debug)]
pub enum Resource {
    Init(Bytes),
    Segment(Arc<Segment>, Format),
    Part(Arc<Part>),
    /// The hinted part, which is not there yet: ask the next window again. It may turn out `Gone`
    /// where the segment ended before it.
    NotYet,
    /// It was there and is no more, or will never be: 404.
    Gone,
    /// Never was an address of this stream: 404.
    Unknown,
}

/// What a window has besides complete segments.
pub(crate) struct WindowState {
    pub version: u64,
    pub shape: Arc<Shape>,
    pub target: TargetDuration,
    pub part_target: Ticks,
    pub independent_segments: bool,
    pub open: Segment,
    pub ended: bool,
}

/// A stream's HLS state at one moment: immutable, shared by all cores.
#[derive(Debug)]
pub struct Window {
    /// Complete segments; those before `first_listed` are off the playlist but not yet forgotten.
    segments: Box<[Arc<Segment>]>,
    first_listed: usize,
    peak_bits: u64,
    open: Segment,
    version: u64,
    shape: Arc<Shape>,
    target: TargetDuration,
    part_target: Ticks,
    independent_segments: bool,
    ended: bool,
    fmp4_playlist: OnceLock<Bytes>,
    fmp4_delta: OnceLock<Bytes>,
    ts_playlist: OnceLock<Bytes>,
}

impl Window {
    pub(crate) fn new(
        segments: Box<[Arc<Segment>]>,
        first_listed: usize,
        peak_bits: u64,
        state: WindowState,
    ) -> Self {
        Self {
            segments,
            first_listed,
            peak_bits,
            open: state.open,
            version: state.version,
            shape: state.shape,
            target: state.target,
            part_target: state.part_target,
            independent_segments: state.independent_segments,
            ended: state.ended,
            fmp4_playlist: OnceLock::new(),
            fmp4_delta: OnceLock::new(),
            ts_playlist: OnceLock::new(),
        }
    }

    /// Rises with every change of the stream's playlists.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Above every media sequence number that this stream has used.
    #[must_use]
    pub fn next_msn(&self) -> u64 {
        self.open.msn().saturating_add(1)
    }

    /// Above every discontinuity sequence number that this stream has used.
    #[must_use]
    pub fn next_discontinuity(&self) -> u64 {
        self.open.discontinuities().saturating_add(1)
    }

    /// The stream is over: playlists carry ENDLIST.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// There is a whole segment in this format to start with. Before that, a first playlist is
    /// better waited for: many players give up on an empty one.
    #[must_use]
    pub fn is_playable(&self, format: Format) -> bool {
        match format {
            Format::Fmp4 => !self.listed().is_empty(),
            Format::Ts => self.listed().last().is_some_and(|segment| segment.len(format) > 0),
        }
    }

    /// TARGETDURATION: how long a playlist answer may be cached and waited for. Until the first
    /// segment is whole it is what it can be at most.
    #[must_use]
    pub fn target_duration(&self) -> Duration {
        Duration::from_secs(self.target.seconds().into())
    }

    /// Of all that is listed.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.listed_and_open().fold(Ticks::ZERO, |sum, one| sum + one.duration()).to_duration()
    }

    /// PART-TARGET.
    #[must_use]
    pub fn part_target(&self) -> Ticks {
        self.part_target
    }

    /// The newest epoch with media in it.
    #[must_use]
    pub fn epoch(&self) -> Option<&Arc<Epoch>> {
        self.open.epoch().or_else(|| self.segments.last().and_then(|segment| segment.epoch()))
    }

    /// The media playlist, rendered once. The transport-stream one lists whole segments only.
    pub fn media_playlist(&self, format: Format) -> Bytes {
        match format {
            Format::Fmp4 => self.fmp4_playlist.get_or_init(|| playlist::fmp4(self, false)).clone(),
            Format::Ts => self.ts_playlist.get_or_init(|| playlist::ts(self)).clone(),
        }
    }

    /// The answer to `_HLS_skip` (rfc8216bis §6.2.5.1); the whole playlist where nothing can be
    /// skipped.
    pub fn delta_playlist(&self) -> Bytes {
        self.fmp4_delta.get_or_init(|| playlist::fmp4(self, true)).clone()
    }

    /// The multivariant playlist with this stream's fMP4 media playlist, at `uri`, alone in it.
    /// `None` before there is media.
    #[must_use]
    pub fn multivariant(&self, uri: &str) -> Option<Bytes> {
        Some(playlist::multivariant(&[(uri, self.variant()?)]))
    }

    /// This stream as one variant of a multivariant playlist. `None` before there is media.
    #[must_use]
    pub fn variant(&self) -> Option<Variant> {
        let epoch = self.epoch()?;
        let all = || self.listed_and_open();
        let bytes = all().fold(0_u64, |sum, segment| sum.saturating_add(segment.len(Format::Fmp4)));
        let average = bit_rate(bytes, self.duration().into());
        let parts = all().flat_map(|segment| segment.parts().iter());
        let (pictures, lasting) =
            parts.map(|part| part.pictures()).fold((0_usize, Ticks::ZERO), |sum, part| {
                (sum.0.saturating_add(part.0), sum.1 + part.1)
            });
        let frame_rate = pictures as f64 / lasting.max(Ticks(1)).as_seconds();
        Some(Variant::measured(epoch, self.peak_bits.max(average), average, frame_rate))
    }

    /// What to do with a playlist request that names `_HLS_msn` and perhaps `_HLS_part`.
    #[must_use]
    pub fn resolve(&self, msn: u64, part: Option<u32>) -> Reload {
        let open = self.open.msn();
        if self.ended {
            return Reload::Ready;
        }
        // The last segment of the playlist is the one before the open one.
        if msn > open.saturating_add(1) {
            return Reload::BadRequest;
        }
        let Some(part) = part else {
            return if msn < open { Reload::Ready } else { Reload::Wait };
        };
        let parts = |segment: &Segment| u32::try_from(segment.parts().len()).unwrap_or(u32::MAX);
        if msn < open {
            let known = self.segment(msn).map_or(u32::MAX, |segment| parts(segment));
            // A part past its segment's end is the next segment's first.
            let ready = part < known || msn.saturating_add(1) < open || parts(&self.open) > 0;
            return if ready { Reload::Ready } else { Reload::Wait };
        }
        let known = if msn == open { parts(&self.open) } else { 0 };
        if part < known {
            Reload::Ready
        } else if part.saturating_sub(known) > self.advance_part_limit() {
            Reload::BadRequest
        } else {
            Reload::Wait
        }
    }

    /// Parts within three seconds, at least three (rfc8216bis §6.2.5.2).
    fn advance_part_limit(&self) -> u32 {
        let three_seconds = Ticks::from_ms(3000).0;
        let parts = three_seconds.checked_div(self.part_target.0.max(1)).unwrap_or(0);
        u32::try_from(parts).unwrap_or(0).saturating_add(1).max(3)
    }

    /// What `tail` is: an address relative to the fMP4 media playlist, `<prefix>/<file>`.
    #[must_use]
    pub fn find(&self, tail: &str) -> Resource {
        let name = tail.split_once('/').filter(|(prefix, _)| *prefix == self.shape.prefix);
        match name.and_then(|(_, name)| Name::parse(name)) {
            Some(Name::Init { epoch }) => self.find_init(epoch),
            Some(Name::Segment { msn, format }) => self.find_segment(msn, format),
            Some(Name::Part { msn, index }) => self.find_part(msn, index),
            None => Resource::Unknown,
        }
    }

    fn find_init(&self, number: u32) -> Resource {
        let newest_first = [&self.open].into_iter().chain(self.segments.iter().rev().map(|s| &**s));
        let mut epochs = newest_first.filter_map(Segment::epoch);
        match epochs.find(|epoch| epoch.number() <= number) {
            Some(epoch) if epoch.number() == number => Resource::Init(epoch.init().clone()),
            Some(_) => Resource::Unknown,
            None => Resource::Gone,
        }
    }

    fn find_segment(&self, msn: u64, format: Format) -> Resource {
        match self.segment(msn) {
            Some(segment) if segment.len(format) > 0 => Resource::Segment(segment.clone(), format),
            Some(_) => Resource::Gone,
            None if msn < self.open.msn() => Resource::Gone,
            None => Resource::Unknown,
        }
    }

    fn find_part(&self, msn: u64, index: u32) -> Resource {
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if msn == self.open.msn() {
            return match self.open.parts().get(at) {
                Some(part) => Resource::Part(part.clone()),
                None if at == self.open.parts().len() && !self.ended => Resource::NotYet,
                None => Resource::Unknown,
            };
        }
        match self.segment(msn).and_then(|segment| segment.parts().get(at)) {
            Some(part) => Resource::Part(part.clone()),
            None if msn < self.open.msn() => Resource::Gone,
            None => Resource::Unknown,
        }
    }

    fn segment(&self, msn: u64) -> Option<&Arc<Segment>> {
        let first = self.segments.first()?.msn();
        self.segments.get(usize::try_from(msn.checked_sub(first)?).ok()?)
    }

    /// The segments in the playlist, oldest first.
    #[must_use]
    pub fn listed(&self) -> &[Arc<Segment>] {
        self.segments.get(self.first_listed..).unwrap_or_default()
    }

    fn listed_and_open(&self) -> impl Iterator<Item = &Segment> {
        self.listed().iter().map(AsRef::as_ref).chain([&self.open])
    }

    pub(crate) fn open(&self) -> &Segment {
        &self.open
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn target(&self) -> TargetDuration {
        self.target
    }

    pub(crate) fn independent_segments(&self) -> bool {
        self.independent_segments
    }
}
