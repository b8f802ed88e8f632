//! The media playlist.

use std::fmt::{self, Display};
use std::time::Duration;

use bytes::Bytes;
use weir_protocol::media::Ticks;

use super::tags::{Date, Seconds};
use crate::Format;
use crate::name::Name;
use crate::segment::Segment;
use crate::window::Window;

/// Parts are listed for so many target durations from the end (rfc8216bis §6.2.2), and for the
/// last whole segments only: a player further back takes whole segments.
const PART_TARGETS_LISTED: i64 = 3;
const SEGMENTS_WITH_PARTS: usize = 2;
/// HOLD-BACK and PART-HOLD-BACK in their targets (rfc8216bis §4.4.3.8 recommends three).
const HOLD_BACK_TARGETS: i64 = 3;
/// CAN-SKIP-UNTIL in target durations: the least allowed.
const SKIP_TARGETS: i64 = 6;

/// The playlist as players see it.
struct MediaPlaylist<'a> {
    version: u8,
    target_duration_s: u32,
    low_latency: Option<LowLatency<'a>>,
    media_sequence: u64,
    discontinuity_sequence: u64,
    independent_segments: bool,
    skipped: usize,
    segments: Vec<Entry<'a>>,
    ended: bool,
}

/// What a Low-Latency playlist has on top (rfc8216bis §4.4.3.7, §4.4.3.8, §4.4.5.3).
struct LowLatency<'a> {
    part_target: Ticks,
    part_hold_back: Ticks,
    hold_back: Ticks,
    can_skip_until: Ticks,
    preload_hint: Option<Uri<'a>>,
}

struct Entry<'a> {
    discontinuity: bool,
    map: Option<Uri<'a>>,
    program_date_time: Option<Duration>,
    parts: Vec<PartEntry<'a>>,
    /// None for the segment that is still open.
    whole: Option<(Ticks, Uri<'a>)>,
    gap: bool,
}

struct PartEntry<'a> {
    uri: Uri<'a>,
    duration: Ticks,
    independent: bool,
}

/// A relative address.
#[derive(Clone, Copy)]
struct Uri<'a> {
    base: &'a str,
    prefix: &'a str,
    name: Name,
}

impl Display for Uri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/{}", self.base, self.prefix, self.name)
    }
}

/// The fMP4 Low-Latency playlist; with `delta`, without the segments that a client may skip.
pub fn fmp4(window: &Window, delta: bool) -> Bytes {
    let (target, open) = (window.target().duration(), window.open());
    let can_skip_until = times(target, SKIP_TARGETS);
    let ages = ages(window);
    let skipped = match delta {
        true => ages.iter().skip(1).take_while(|age| **age >= can_skip_until).count(),
        false => 0,
    };
    let listed_parts = times(target, PART_TARGETS_LISTED);
    let open_entry = (!open.parts().is_empty()).then_some(open);
    let segments = window.listed().iter().map(AsRef::as_ref).chain(open_entry);
    let mut entries = entries(segments, window, Format::Fmp4);
    let old = ages.len().saturating_sub(SEGMENTS_WITH_PARTS);
    for (index, (entry, age)) in entries.iter_mut().zip(&ages).enumerate() {
        if index < old || *age > listed_parts {
            entry.parts.clear();
        }
    }
    // A client keeps what the skipped segments said: MAP, and the discontinuity count.
    entries.drain(..skipped.min(entries.len()));

    let index = u32::try_from(open.parts().len()).unwrap_or(u32::MAX);
    let hint = Uri::new(window, Format::Fmp4, Name::Part { msn: open.msn(), index });
    let low_latency = LowLatency {
        part_target: window.part_target(),
        part_hold_back: times(window.part_target(), HOLD_BACK_TARGETS),
        hold_back: times(target, HOLD_BACK_TARGETS),
        can_skip_until,
        preload_hint: (!window.is_ended()).then_some(hint),
    };
    let playlist = MediaPlaylist {
        version: 9,
        low_latency: Some(low_latency),
        skipped,
        ..MediaPlaylist::new(window, entries)
    };
    playlist.to_string().into()
}

/// The transport-stream playlist: whole segments, for players of any age.
pub fn ts(window: &Window) -> Bytes {
    let segments = window.listed().iter().map(AsRef::as_ref);
    let playlist = MediaPlaylist::new(window, entries(segments, window, Format::Ts));
    playlist.to_string().into()
}

fn times(ticks: Ticks, count: i64) -> Ticks {
    Ticks(ticks.0.saturating_mul(count))
}

/// For each listed segment, how far its start is from the end of the playlist.
fn ages(window: &Window) -> Vec<Ticks> {
    let mut after = window.open().duration();
    let newest_first = window.listed().iter().rev().map(|segment| {
        after += segment.duration();
        after
    });
    let mut ages: Vec<Ticks> = newest_first.collect();
    ages.reverse();
    ages
}

fn entries<'a>(
    segments: impl Iterator<Item = &'a Segment>,
    window: &'a Window,
    format: Format,
) -> Vec<Entry<'a>> {
    let uri = |name| Uri::new(window, format, name);
    let mut map = None;
    segments
        .map(|segment| {
            let epoch = segment.epoch().map(|epoch| epoch.number());
            let changed = epoch.filter(|_| epoch != map);
            map = epoch.or(map);
            let mut entry = Entry {
                discontinuity: segment.discontinuity(),
                map: None,
                program_date_time: segment.wall_clock(),
                parts: Vec::new(),
                whole: None,
                gap: segment.len(format) == 0,
            };
            if segment.msn() != window.open().msn() {
                let name = Name::Segment { msn: segment.msn(), format };
                entry.whole = Some((segment.duration(), uri(name)));
            }
            if format == Format::Fmp4 {
                entry.map = changed.map(|epoch| uri(Name::Init { epoch }));
                entry.parts = part_entries(segment, window);
            }
            entry
        })
        .collect()
}

fn part_entries<'a>(segment: &'a Segment, window: &'a Window) -> Vec<PartEntry<'a>> {
    let parts = segment.parts().iter().map(|part| PartEntry {
        uri: Uri::new(window, Format::Fmp4, Name::Part { msn: part.msn(), index: part.index() }),
        // A picture that lasts longer than PART-TARGET makes its part longer than is allowed to
        // say (rfc8216bis §4.4.4.9); the segment's EXTINF is right.
        duration: part.duration().min(window.part_target()),
        independent: part.is_independent(),
    });
    parts.collect()
}

impl<'a> Uri<'a> {
    fn new(window: &'a Window, format: Format, name: Name) -> Self {
        let shape = window.shape();
        let base = match format {
            Format::Fmp4 => "",
            Format::Ts => shape.ts_base.as_str(),
        };
        Self { base, prefix: &shape.prefix, name }
    }
}

impl<'a> MediaPlaylist<'a> {
    fn new(window: &'a Window, segments: Vec<Entry<'a>>) -> Self {
        // A tag in front of the first listed segment is itself not counted (§4.3.3.3).
        let first = window.listed().first().map_or(window.open(), |segment| segment);
        let before = first.discontinuities().saturating_sub(first.discontinuity().into());
        Self {
            // 3 for decimal EXTINF; 8 for GAP (rfc8216bis §8).
            version: if segments.iter().any(|entry| entry.gap) { 8 } else { 3 },
            target_duration_s: window.target().seconds(),
            low_latency: None,
            media_sequence: first.msn(),
            discontinuity_sequence: before,
            independent_segments: window.independent_segments(),
            skipped: 0,
            segments,
            ended: window.is_ended(),
        }
    }
}

impl Display for MediaPlaylist<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "#EXTM3U")?;
        writeln!(f, "#EXT-X-VERSION:{}", self.version)?;
        writeln!(f, "#EXT-X-TARGETDURATION:{}", self.target_duration_s)?;
        if let Some(low_latency) = &self.low_latency {
            low_latency.fmt(f)?;
        }
        writeln!(f, "#EXT-X-MEDIA-SEQUENCE:{}", self.media_sequence)?;
        writeln!(f, "#EXT-X-DISCONTINUITY-SEQUENCE:{}", self.discontinuity_sequence)?;
        if self.independent_segments {
            writeln!(f, "#EXT-X-INDEPENDENT-SEGMENTS")?;
        }
        if self.skipped > 0 {
            writeln!(f, "#EXT-X-SKIP:SKIPPED-SEGMENTS={}", self.skipped)?;
        }
        for segment in &self.segments {
            segment.fmt(f)?;
        }
        if let Some(hint) = self.low_latency.as_ref().and_then(|ll| ll.preload_hint) {
            writeln!(f, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"{hint}\"")?;
        }
        if self.ended {
            writeln!(f, "#EXT-X-ENDLIST")?;
        }
        Ok(())
    }
}

impl Display for LowLatency<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL={},HOLD-BACK={},\
             PART-HOLD-BACK={}",
            Seconds(self.can_skip_until),
            Seconds(self.hold_back),
            Seconds(self.part_hold_back)
        )?;
        writeln!(f, "#EXT-X-PART-INF:PART-TARGET={}", Seconds(self.part_target))
    }
}

impl Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.discontinuity {
            writeln!(f, "#EXT-X-DISCONTINUITY")?;
        }
        if let Some(map) = self.map {
            writeln!(f, "#EXT-X-MAP:URI=\"{map}\"")?;
        }
        if let Some(since_epoch) = self.program_date_time {
            writeln!(f, "#EXT-X-PROGRAM-DATE-TIME:{}", Date(since_epoch))?;
        }
        for part in &self.parts {
            let duration = Seconds(part.duration);
            write!(f, "#EXT-X-PART:DURATION={duration},URI=\"{}\"", part.uri)?;
            f.write_str(if part.independent { ",INDEPENDENT=YES\n" } else { "\n" })?;
        }
        let Some((duration, uri)) = &self.whole else { return Ok(()) };
        if self.gap {
            writeln!(f, "#EXT-X-GAP")?;
        }
        writeln!(f, "#EXTINF:{},\n{uri}", Seconds(*duration))
    }
}
