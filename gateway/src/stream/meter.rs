//! Rates of a stream's tracks, for the API: bitrate, frame rate, GOP length.

use std::time::Instant;

use weir_protocol::media::{AccessUnit, Ticks, TrackId, TrackKind};

use super::track_set::TrackSet;

#[derive(Default)]
pub struct Meters {
    /// Media as the publishers sent it, whatever becomes of it.
    pub bytes_in: u64,
    tracks: Vec<Meter>,
    /// Decoding time of the newest video keyframe and the distance to the one before.
    keyframe: Option<Ticks>,
    gop: Option<Ticks>,
    sampled_at: Option<Instant>,
}

struct Meter {
    id: TrackId,
    bytes: u64,
    units: u64,
    at_last_sample: (u64, u64),
    rate: Rate,
}

/// What one track carries, measured over the last sampling interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    pub bits_per_second: u64,
    pub units_per_second: f64,
}

impl Meters {
    pub fn count(&mut self, unit: &AccessUnit, tracks: &TrackSet) {
        let bytes = unit.payload.len() as u64;
        let meter = match self.tracks.iter_mut().position(|meter| meter.id == unit.track) {
            Some(index) => &mut self.tracks[index],
            None => {
                self.tracks.push(Meter::new(unit.track));
                let last = self.tracks.len() - 1;
                &mut self.tracks[last]
            }
        };
        meter.bytes += bytes;
        meter.units += 1;
        if unit.keyframe && tracks.kind_of(unit.track) == Some(TrackKind::Video) {
            self.gop = self.keyframe.map(|before| unit.dts - before);
            self.keyframe = Some(unit.dts);
        }
    }

    /// Called about once a second.
    pub fn sample(&mut self, now: Instant) {
        let seconds = self.sampled_at.map(|at| now.duration_since(at).as_secs_f64());
        self.sampled_at = Some(now);
        let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) else { return };
        for meter in &mut self.tracks {
            let (bytes, units) = meter.at_last_sample;
            meter.rate = Rate {
                bits_per_second: ((meter.bytes - bytes) as f64 * 8.0 / seconds) as u64,
                units_per_second: (meter.units - units) as f64 / seconds,
            };
            meter.at_last_sample = (meter.bytes, meter.units);
        }
    }

    pub fn rate(&self, id: TrackId) -> Rate {
        self.tracks.iter().find(|meter| meter.id == id).map_or(Rate::default(), |meter| meter.rate)
    }

    pub fn gop(&self) -> Option<Ticks> {
        self.gop
    }
}

impl Meter {
    fn new(id: TrackId) -> Self {
        Self { id, bytes: 0, units: 0, at_last_sample: (0, 0), rate: Rate::default() }
    }
}
