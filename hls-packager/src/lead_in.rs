use weir_protocol::media::TrackKind::{Audio, Video};
use weir_protocol::media::{AccessUnit, Ticks};

use crate::limits;
use crate::timeline::frame_samples;
use crate::tracks::Tracks;

/// The first moments of a stretch, held back until it is known what is in them.
#[derive(Debug, Default)]
pub(crate) struct LeadIn {
    units: Vec<AccessUnit>,
    bytes: usize,
    video: Seen,
    audio: Seen,
}

/// What came of one track.
#[derive(Debug, Default)]
struct Seen {
    units: usize,
    first: Option<Ticks>,
    span: Ticks,
}

impl Seen {
    fn add(&mut self, dts: Ticks) {
        let first = *self.first.get_or_insert(dts);
        // Times that go back break the timeline no less than those that go on.
        self.span = self.span.max(dts - first).max(first - dts);
        self.units = self.units.saturating_add(1);
    }
}

impl LeadIn {
    pub fn hold_picture(&mut self, unit: &AccessUnit) {
        // A stretch starts with a keyframe.
        if unit.keyframe || self.video.units > 0 {
            self.video.add(unit.dts);
            self.hold(unit);
        }
    }

    pub fn hold_sound(&mut self, unit: &AccessUnit) {
        self.audio.add(unit.dts);
        self.hold(unit);
    }

    fn hold(&mut self, unit: &AccessUnit) {
        self.bytes = self.bytes.saturating_add(unit.payload.len());
        self.units.push(unit.clone());
    }

    /// Enough is known: each expected track spoke, with enough `pictures` to measure their
    /// distance, or one had a whole [`limits::LEAD_IN`] to itself.
    pub fn is_over(&self, video: bool, audio: bool, pictures: usize) -> bool {
        let few = limits::LEAD_IN_FEW_PICTURES.min(pictures);
        let rare = (1..few).contains(&self.video.units);
        let long = Ticks::from(if rare { limits::LEAD_IN_RARE } else { limits::LEAD_IN });
        let complete = (!video || self.video.units >= pictures) && (!audio || self.audio.units > 0);
        complete
            || self.video.span >= long
            || self.audio.span >= long
            || self.units.len() >= limits::LEAD_IN_UNITS
            || self.bytes >= limits::LEAD_IN_BYTES
    }

    /// First DTS of the pictures, from a keyframe on.
    pub fn first_picture(&self) -> Option<Ticks> {
        self.video.first
    }

    pub fn first_sound(&self) -> Option<Ticks> {
        self.audio.first
    }

    pub fn into_units(self) -> Vec<AccessUnit> {
        self.units
    }

    pub fn units(&self) -> &[AccessUnit] {
        &self.units
    }
}

/// How far the access units are apart that parts are cut at: pictures or, without them, sounds.
pub(crate) fn leading_step(units: &[AccessUnit], tracks: &Tracks) -> Option<Ticks> {
    if tracks.heard(Video).is_some() {
        let pictures = units.iter().filter(|unit| tracks.kind_of(unit.track) == Some(Video));
        return median_step(pictures.map(|unit| unit.dts));
    }
    let audio = tracks.heard(Audio)?;
    let samples = frame_samples(&audio.codec, &units.first()?.payload);
    Some(Ticks::from_rate(samples.into(), audio.codec.sample_rate()?))
}

/// The median distance of rising times; of two in the middle the shorter.
fn median_step(times: impl Iterator<Item = Ticks>) -> Option<Ticks> {
    let times: Vec<Ticks> = times.collect();
    let mut steps: Vec<Ticks> =
        times.iter().zip(times.iter().skip(1)).map(|(a, b)| *b - *a).collect();
    steps.sort_unstable();
    steps.get(steps.len().saturating_sub(1) >> 1).copied()
}
