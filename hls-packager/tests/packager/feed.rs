//! A seeded encoder: access units of one video and one audio track, interleaved by DTS.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use weir_hls::{Config, Packager};
use weir_protocol::codec::{CodecConfig, aac, avc, mp3, opus};
use weir_protocol::media::{AccessUnit, TIMESCALE, Ticks, Track, TrackId};

pub const VIDEO: TrackId = TrackId(0);
pub const AUDIO: TrackId = TrackId(1);

const SPS: [u8; 4] = [0x67, 0x64, 0, 0x1f];
const PPS: [u8; 4] = [0x68, 0xeb, 0xe3, 0xcb];

#[derive(Clone, Debug)]
pub struct Feed {
    /// Pictures a second, as a fraction; none: audio only.
    pub rate: Option<(i64, i64)>,
    /// Pictures from keyframe to keyframe.
    pub gop: i64,
    /// With B-frames: every third picture is shown after the next two.
    pub reorder: bool,
    /// PTS without the encoder's delay, so that B-frames have them below DTS.
    pub negative_offsets: bool,
    /// Hertz; none: video only.
    pub audio: Option<u32>,
    pub start_ms: i64,
    pub seconds: i64,
    pub jitter_ms: i64,
    pub seed: u64,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            rate: Some((25, 1)),
            gop: 50,
            reorder: false,
            negative_offsets: false,
            audio: Some(48_000),
            start_ms: 0,
            seconds: 10,
            jitter_ms: 0,
            seed: 1,
        }
    }
}

impl Feed {
    pub fn units(&self) -> Vec<AccessUnit> {
        let mut random = Random(self.seed);
        let mut units = self.pictures(&mut random);
        units.extend(self.sounds(&mut random));
        units.sort_by_key(|unit| unit.dts);
        units
    }

    fn pictures(&self, random: &mut Random) -> Vec<AccessUnit> {
        let Some((count, per)) = self.rate else { return Vec::new() };
        let mut last = Ticks(i64::MIN);
        let pictures = (0..self.seconds * count / per).map(|n| {
            let jitter = if self.jitter_ms > 0 { random.below(self.jitter_ms as u64) } else { 0 };
            let ms = self.start_ms + n * 1000 * per / count + jitter as i64;
            let dts = Ticks::from_ms(ms).max(last + Ticks(1));
            last = dts;
            let keyframe = n % self.gop == 0;
            let step = 1000 * per / count;
            let composition = match (self.reorder, n % self.gop % 3) {
                (false, _) => 0,
                (true, 1) => 3 * step,
                (true, _) if self.negative_offsets && !keyframe => -step,
                (true, _) => 0,
            };
            AccessUnit {
                track: VIDEO,
                dts,
                composition_offset: Ticks::from_ms(composition),
                keyframe,
                payload: picture(keyframe, random.below(900) as usize + 20, random),
            }
        });
        pictures.collect()
    }

    fn sounds(&self, random: &mut Random) -> Vec<AccessUnit> {
        let Some(rate) = self.audio else { return Vec::new() };
        let sounds = (0..self.seconds * i64::from(rate) / 1024).map(|n| {
            let len = random.below(200) as usize + 8;
            AccessUnit {
                track: AUDIO,
                dts: Ticks::from_ms(self.start_ms + n * 1024 * 1000 / i64::from(rate)),
                composition_offset: Ticks::ZERO,
                keyframe: true,
                payload: random.bytes(len),
            }
        });
        sounds.collect()
    }

    pub fn tracks(&self) -> Vec<Track> {
        let video = self.rate.map(|_| avc_track(31));
        video.into_iter().chain(self.audio.map(aac_track)).collect()
    }

    /// A packager that has these tracks and a wall clock, and nothing else yet.
    pub fn packager(&self, config: Config) -> Packager {
        let mut packager = Packager::new(config);
        packager.set_wall_clock(Duration::from_secs(1_700_000_000));
        packager.set_tracks(&self.tracks());
        packager
    }

    /// All of it pushed.
    pub fn packaged(&self, config: Config) -> Packager {
        let mut packager = self.packager(config);
        self.units().iter().for_each(|unit| packager.push(unit));
        packager
    }
}

/// An IDR or other slice with `len` bytes of noise.
pub fn picture(keyframe: bool, len: usize, random: &mut Random) -> Bytes {
    nals(&[&[&[if keyframe { 0x65 } else { 0x41 }][..], &random.bytes(len)].concat()])
}

/// NAL units behind 4-byte lengths.
pub fn nals(nals: &[&[u8]]) -> Bytes {
    let mut out = Vec::new();
    for nal in nals {
        out.extend((nal.len() as u32).to_be_bytes());
        out.extend_from_slice(nal);
    }
    out.into()
}

pub fn avc_track(level: u8) -> Track {
    let record = [
        &[1, 0x64, 0, level, 0xff, 0xe1, 0, SPS.len() as u8][..],
        &SPS,
        &[1, 0, PPS.len() as u8],
        &PPS,
    ];
    let config = avc::Config {
        record: record.concat().into(),
        profile: 0x64,
        compatibility: 0,
        level,
        sps: vec![Bytes::from_static(&SPS)],
        pps: vec![Bytes::from_static(&PPS)],
        width: 1280,
        height: 720,
    };
    Track { id: VIDEO, codec: Arc::new(CodecConfig::Avc(config)) }
}

pub fn aac_track(rate: u32) -> Track {
    let record: [u8; 2] = match rate {
        48_000 => [0x11, 0x90],
        44_100 => [0x12, 0x10],
        22_050 => [0x13, 0x90],
        _ => panic!("no configuration for {rate} Hz"),
    };
    let config = aac::Config::parse(&record).unwrap();
    Track { id: AUDIO, codec: Arc::new(CodecConfig::Aac(config)) }
}

pub fn opus_track() -> Track {
    Track { id: AUDIO, codec: Arc::new(CodecConfig::Opus(opus::Config::stereo())) }
}

pub fn mp3_track() -> Track {
    let config = mp3::Config { sample_rate: 48_000, channels: 2, frame_samples: 1152 };
    Track { id: AUDIO, codec: Arc::new(CodecConfig::Mp3(config)) }
}

/// xorshift64*: the same numbers everywhere for the same seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn bytes(&mut self, len: usize) -> Bytes {
        (0..len).map(|_| (self.next() >> 56) as u8).collect()
    }
}

pub fn seconds(ticks: Ticks) -> f64 {
    ticks.0 as f64 / f64::from(TIMESCALE)
}
