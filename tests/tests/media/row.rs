//! A row of the tables: edits, and what must come of them.

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use weir_e2e::airing::{Airing, KEEP_ALL, Rendition, Sample};
use weir_e2e::replay::edit::is_frame;
use weir_e2e::replay::flv::Clip;
use weir_e2e::{Backend, Gateway, validate};
use weir_protocol::flv::Tag;
use weir_protocol::flv::TagKind::{self, Audio, Video};

const REPAIRS: [&str; 6] = ["wrap", "jitter", "outlier", "new_timeline", "aligned", "resync"];

pub struct Row {
    id: &'static str,
    clip: Clip,
    edits: String,
    turns: u64,
    tracks: &'static str,
    seconds: f64,
    discontinuities: RangeInclusive<usize>,
    repairs: Vec<(&'static str, RangeInclusive<u64>)>,
    lost: [RangeInclusive<usize>; 2],
    drift: Option<f64>,
    gap: f64,
    without_keyframe: u64,
    decodes: bool,
    more: Option<fn(&Airing)>,
}

/// By default everything comes out as it was in the clip before the edits.
impl Row {
    pub fn new(id: &'static str, clip: &Clip, edits: &str) -> Self {
        let has = |kind| clip.tags.iter().any(|tag| tag.kind == kind && is_frame(tag));
        let tracks = match (has(Video), has(Audio)) {
            (true, true) => "va",
            (true, false) => "v",
            _ => "a",
        };
        Self {
            id,
            clip: clip.clone(),
            edits: edits.to_owned(),
            turns: 1,
            tracks,
            seconds: clip.length_ms as f64 / 1000.0,
            discontinuities: 0..=0,
            repairs: Vec::new(),
            lost: [0..=0, 0..=0],
            drift: Some(0.045),
            gap: 0.13,
            without_keyframe: 0,
            decodes: false,
            more: None,
        }
    }

    /// So many repairs of this kind; kinds that are not named must not be.
    pub fn repairs(mut self, kind: &'static str, count: RangeInclusive<u64>) -> Self {
        self.repairs.push((kind, count));
        self
    }

    /// Only these come out: `v`, `a` or both.
    pub fn tracks(self, tracks: &'static str) -> Self {
        Self { tracks, ..self }
    }

    /// So many pictures are missing, those before the first at which a player can start.
    pub fn lost_pictures(mut self, count: usize) -> Self {
        self.lost[0] = count..=count;
        self
    }

    /// So many audio frames are missing.
    pub fn lost_sounds(mut self, count: RangeInclusive<usize>) -> Self {
        self.lost[1] = count;
        self
    }

    /// The clip so many times in a row.
    pub fn turns(self, turns: u64) -> Self {
        Self { turns, seconds: self.seconds * turns as f64, ..self }
    }

    pub fn discontinuities(self, count: usize) -> Self {
        Self { discontinuities: count..=count, ..self }
    }

    /// Frames are missing in the middle, so that those behind them are others than the clip's.
    pub fn elsewhere(self) -> Self {
        Self { drift: None, ..self }
    }

    /// What else must be true of all that came out.
    pub fn also(self, more: fn(&Airing)) -> Self {
        Self { more: Some(more), ..self }
    }

    /// How much of it comes out.
    pub fn seconds(self, seconds: f64) -> Self {
        Self { seconds, ..self }
    }

    /// The longest time between two frames in seconds.
    pub fn gap(self, gap: f64) -> Self {
        Self { gap, ..self }
    }

    /// So many segments begin without a keyframe, as the API says.
    pub fn without_keyframe(self, count: u64) -> Self {
        Self { without_keyframe: count, ..self }
    }

    /// ffmpeg has nothing to say of what comes out.
    pub fn decodes(self) -> Self {
        Self { decodes: true, ..self }
    }

    fn check(&self, airing: &Airing) {
        for (kind, count) in REPAIRS.map(|kind| (kind, airing.repairs(kind))) {
            let wanted = self.repairs.iter().find(|(wanted, _)| *wanted == kind);
            let wanted = wanted.map_or(0..=0, |(_, wanted)| wanted.clone());
            assert!(wanted.contains(&count), "{count} repairs {kind}: {}", airing.stream);
        }
        let cuts = airing.stream["cuts_without_keyframe"].as_u64().expect("a count");
        assert_eq!(cuts, self.without_keyframe, "cuts without a keyframe");
        let dropped = airing.stream["hls_dropped"].as_object().expect("counts by reason");
        let dropped: u64 = dropped.values().filter_map(|count| count.as_u64()).sum();
        let lost: usize = self.lost.iter().map(|lost| *lost.end()).sum();
        assert!(dropped <= lost as u64, "{}", airing.stream);
        for (name, rendition) in airing.renditions() {
            let check = || self.rendition(rendition);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(check)) {
                panic!("{name}: {}", message(&panic));
            }
        }
        self.flv(airing);
        if let Some(more) = self.more {
            more(airing);
        }
    }

    fn rendition(&self, rendition: &Rendition) {
        let playlist = &rendition.playlist;
        let found = playlist.discontinuities();
        assert!(self.discontinuities.contains(&found), "{found} discontinuities");
        let seconds = rendition.seconds();
        assert!((seconds - self.seconds).abs() < 0.25, "{seconds} s listed, not {}", self.seconds);
        for segment in &playlist.segments {
            let duration = segment.duration;
            assert!(duration > 0.0 && duration.round() <= playlist.target_duration, "{duration} s");
        }
        for (kind, letter, lost) in [(Video, 'v', &self.lost[0]), (Audio, 'a', &self.lost[1])] {
            let packets = rendition.of(kind);
            if !self.tracks.contains(letter) {
                assert!(packets.is_empty(), "{} packets of {kind:?}", packets.len());
                continue;
            }
            let sent = frames(&self.clip, kind).len() * self.turns as usize;
            let missing = sent.saturating_sub(packets.len());
            assert!(lost.contains(&missing), "{} of {sent} packets of {kind:?}", packets.len());
            self.times(kind, &packets);
            // A decoder of transport streams shows nothing before it is decoded (ISO 13818-1 §2.4.3.7).
            let mut early = packets.iter().filter(|packet| packet.pts < packet.dts);
            let early = early.next().filter(|_| is_ts(rendition));
            assert!(early.is_none(), "{kind:?}: shown before it is decoded: {early:?}");
        }
        if self.tracks.contains('v') && self.without_keyframe == 0 {
            starts_with_keyframes(rendition);
        }
        if self.tracks == "va" {
            self.compare(rendition);
        }
        // A picture goes out when the next one tells how long it lasts; sound may have gone on.
        if self.tracks == "va" && self.without_keyframe == 0 {
            stay_together(rendition);
        }
        if self.decodes {
            decode(rendition);
        }
    }

    fn times(&self, kind: TagKind, packets: &[&Sample]) {
        assert!(!packets.is_empty(), "no packet of {kind:?}");
        for pair in packets.windows(2) {
            let step = pair[1].dts - pair[0].dts;
            assert!(step > 0.0 && step <= self.gap, "{kind:?}: {step} s from {}", pair[0].dts);
        }
        for packet in packets {
            assert!(packet.pts - packet.dts < 2.0, "{kind:?}: {packet:?}");
            let allowed = if kind == Video { -1.0 } else { 0.0 };
            assert!(packet.pts - packet.dts >= allowed, "{kind:?}: {packet:?}");
        }
    }

    /// Each packet where the clip has it, both tracks by the same distance.
    fn compare(&self, rendition: &Rendition) {
        let Some(drift) = self.drift else { return };
        let mut distances = Vec::new();
        for kind in [Video, Audio] {
            let mut times = Vec::new();
            for turn in 0..self.turns {
                let begin = (turn * self.clip.length_ms) as f64 / 1000.0;
                times.extend(frames(&self.clip, kind).iter().map(|time| begin + time));
            }
            let packets = rendition.of(kind);
            let moved =
                if is_ts(rendition) || kind == Audio { 0.0 } else { self.moved_by_ffmpeg() };
            let both = packets.iter().zip(times);
            distances.extend(both.map(|(packet, time)| packet.pts - moved - time));
        }
        let (least, most) = distances
            .iter()
            .fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(*at), most.max(*at)));
        assert!(most - least <= drift, "times are between {least} and {most} s from the clip's");
    }

    /// ffmpeg moves a fragmented track by its most negative offset, which is but to be added
    /// (ISO 14496-12 §8.8.8).
    fn moved_by_ffmpeg(&self) -> f64 {
        let pictures = self.clip.tags.iter().filter(|tag| tag.kind == Video && is_frame(tag));
        -f64::from(pictures.map(composition_time_ms).min().unwrap_or(0).min(0)) / 1000.0
    }

    fn flv(&self, airing: &Airing) {
        let keyframe = airing.flv_frames(Video).first().is_none_or(|tag| tag.body[0] >> 4 & 7 == 1);
        assert!(keyframe, "FLV begins in the middle of a GOP");
        for (kind, letter) in [(Video, 'v'), (Audio, 'a')] {
            let tags = airing.flv_frames(kind);
            assert_eq!(tags.is_empty(), !self.tracks.contains(letter), "FLV: {kind:?}");
            for pair in tags.windows(2) {
                let step = i64::from(pair[1].timestamp_ms) - i64::from(pair[0].timestamp_ms);
                let longest = (self.gap * 1000.0) as i64 + 45;
                assert!((0..=longest).contains(&step), "FLV: {kind:?}: {step} ms");
            }
        }
    }
}

/// Presentation times of a track in seconds.
fn frames(clip: &Clip, kind: TagKind) -> Vec<f64> {
    let frames = clip.tags.iter().filter(|tag| tag.kind == kind && is_frame(tag));
    let time = |tag: &Tag| f64::from(tag.timestamp_ms) + f64::from(composition_time_ms(tag));
    frames.map(|tag| time(tag) / 1000.0).collect()
}

fn composition_time_ms(tag: &Tag) -> i32 {
    match &tag.body[..] {
        [first, 1, a, b, c, ..] if tag.kind == Video && first & 0x80 == 0 => {
            i32::from_be_bytes([*a, *b, *c, 0]) >> 8
        }
        [first, _, _, _, _, a, b, c, ..] if tag.kind == Video && first & 0x8f == 0x81 => {
            i32::from_be_bytes([*a, *b, *c, 0]) >> 8
        }
        _ => 0,
    }
}

/// A transport stream has no init segments.
fn is_ts(rendition: &Rendition) -> bool {
    rendition.inits.iter().all(Vec::is_empty)
}

fn starts_with_keyframes(rendition: &Rendition) {
    for segment in 0..rendition.segments.len() {
        let packets = rendition.samples.iter();
        let first =
            packets.clone().find(|packet| packet.segment == segment && packet.kind == Video);
        assert!(first.is_some_and(|first| first.key), "segment {segment} begins with {first:?}");
    }
}

/// Picture and sound of each segment begin within a second of each other.
fn stay_together(rendition: &Rendition) {
    for segment in 0..rendition.segments.len() {
        let first = |kind| {
            let mut packets = rendition.samples.iter();
            packets.find(|packet| packet.segment == segment && packet.kind == kind)
        };
        if let (Some(video), Some(audio)) = (first(Video), first(Audio)) {
            let apart = (video.pts - audio.pts).abs();
            assert!(apart < 1.0, "segment {segment}: {apart} s apart");
        }
    }
}

fn decode(rendition: &Rendition) {
    let scratch = weir_e2e::Scratch::new();
    for run in rendition.runs() {
        let name = if rendition.inits[0].is_empty() { "joined.ts" } else { "joined.mp4" };
        let file = scratch.file(name);
        std::fs::write(&file, rendition.joined(run)).expect("a file");
        validate::decodes(&file);
        if name == "joined.ts" {
            validate::transport_stream(&file);
        }
    }
}

/// Publishes a clip with each of the edits, of which none may leave a trace in HLS: the same bytes come
/// out as without.
pub fn same(backend: Backend, id: &str, variants: &[(&Clip, &str)]) {
    let gateway = Gateway::start(backend, &KEEP_ALL);
    let air = |(number, (clip, edits)): (usize, &(&Clip, &str))| {
        Airing::of(&gateway, &format!("{}-{number}", id.to_lowercase()), clip, edits)
    };
    let airings: Vec<Airing> = variants.iter().enumerate().map(air).collect();
    for (airing, (_, edits)) in airings.iter().zip(variants) {
        let pairs = airings[0].renditions().into_iter().zip(airing.renditions());
        for ((name, first), (_, other)) in pairs {
            assert!(first.samples.len() > 600, "{id}: {name} has {} samples", first.samples.len());
            assert_eq!(first.inits, other.inits, "{id} [{edits}]: {name}");
            for (number, (first, other)) in first.segments.iter().zip(&other.segments).enumerate() {
                assert!(first == other, "{id} [{edits}]: {name} segment {number} is another one");
            }
            assert_eq!(first.segments.len(), other.segments.len(), "{id} [{edits}]: {name}");
        }
    }
}

/// Publishes all rows, two at a time, and tells of all that failed.
pub fn run(backend: Backend, rows: &[Row]) {
    let mut gateway = Gateway::start(backend, &KEEP_ALL);
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((number, row)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, rows.get(n)?)))
        {
            let key = format!("{}-{number}", row.id.to_lowercase());
            let air = || {
                let airing = Airing::turns(&gateway, &key, &row.clip, &row.edits, row.turns);
                row.check(&airing);
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(air)) {
                let failure = format!("{} [{}]: {}", row.id, row.edits, message(&panic));
                failures.lock().expect("failures").push(failure);
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let failures = failures.into_inner().expect("failures");
    gateway.process().assert_running();
    let cuts: u64 = rows.iter().map(|row| row.without_keyframe).sum();
    assert_eq!(gateway.metric("weir_cuts_without_keyframe_total", ""), cuts as f64);
    let log = gateway.process().log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn message(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
