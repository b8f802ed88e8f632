use std::fmt;

use weir_protocol::codec::{CodecConfig, aac, mp3};
use weir_protocol::media::Track;

/// Why a track is not in the transport stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// MPEG-2 systems has no stream type for it that players know.
    Codec,
    /// ADTS cannot say this profile, sampling rate, channel layout or frame length; a channel
    /// layout in a PCE is one (ISO 14496-3 §1.A.2.2).
    NotInAdts,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Codec => "its codec has no place in a transport stream",
            Self::NotInAdts => "its AAC configuration cannot be written as ADTS",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Video {
    /// Parameter sets with their start codes, to go before a keyframe that has none.
    Avc {
        parameter_sets: Vec<u8>,
    },
    Hevc {
        parameter_sets: Vec<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audio {
    Adts(Adts),
    /// Stream type 0x03 or, at half the rate, 0x04.
    Mp3 {
        half_rate: bool,
    },
}

/// The constant fields of an ADTS header (ISO 14496-3 §1.A.2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adts {
    /// Audio object type less one.
    profile: u8,
    frequency_index: u8,
    channel_configuration: u8,
}

/// Which elementary streams the transport stream of one epoch has.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// PMT version: the epoch's number, modulo 32.
    version: u8,
    video: Option<Video>,
    audio: Option<Audio>,
    missing: Vec<(Track, Missing)>,
}

impl Layout {
    pub fn new(number: u32, video: Option<&Track>, audio: Option<&Track>) -> Self {
        let mut layout = Self { version: (number & 0x1f) as u8, ..Self::default() };
        for track in [video, audio].into_iter().flatten() {
            if let Err(why) = layout.add(&track.codec) {
                layout.missing.push((track.clone(), why));
            }
        }
        layout
    }

    fn add(&mut self, codec: &CodecConfig) -> Result<(), Missing> {
        match codec {
            CodecConfig::Avc(c) => {
                let parameter_sets = annex_b(c.sps.iter().chain(&c.pps));
                self.video = Some(Video::Avc { parameter_sets });
            }
            CodecConfig::Hevc(c) => {
                let parameter_sets = annex_b(c.vps.iter().chain(&c.sps).chain(&c.pps));
                self.video = Some(Video::Hevc { parameter_sets });
            }
            CodecConfig::Aac(c) => self.audio = Some(Audio::Adts(Adts::new(c)?)),
            CodecConfig::Mp3(c) => self.audio = Some(Audio::Mp3 { half_rate: is_mpeg2(c) }),
            CodecConfig::Av1(_) | CodecConfig::Vp9(_) | CodecConfig::Opus(_) => {
                return Err(Missing::Codec);
            }
        }
        Ok(())
    }

    pub fn version(&self) -> u8 {
        self.version
    }

    pub fn video(&self) -> Option<&Video> {
        self.video.as_ref()
    }

    pub fn audio(&self) -> Option<Audio> {
        self.audio
    }

    pub fn missing(&self) -> &[(Track, Missing)] {
        &self.missing
    }

    pub fn is_empty(&self) -> bool {
        self.video.is_none() && self.audio.is_none()
    }
}

fn annex_b<'a>(nals: impl Iterator<Item = &'a bytes::Bytes>) -> Vec<u8> {
    let mut out = Vec::new();
    for nal in nals {
        out.extend_from_slice(&super::nal::START_CODE);
        out.extend_from_slice(nal);
    }
    out
}

fn is_mpeg2(config: &mp3::Config) -> bool {
    config.sample_rate < 32_000
}

const ADTS_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000,
    7350,
];

pub const ADTS_HEADER_BYTES: usize = 7;

/// The 13-bit frame length counts the header too.
pub const ADTS_FRAME_BYTES: usize = 0x1fff;

impl Adts {
    fn new(config: &aac::Config) -> Result<Self, Missing> {
        // SBR and PS are found in the stream by every decoder; ADTS names the core (§1.6.5.2).
        let object_type = match config.object_type {
            5 | 29 => 2,
            core @ 1..=4 => core,
            _ => return Err(Missing::NotInAdts),
        };
        let frequency_index = ADTS_RATES
            .iter()
            .position(|rate| *rate == config.sample_rate)
            .and_then(|index| u8::try_from(index).ok())
            .ok_or(Missing::NotInAdts)?;
        let channel_configuration = channel_configuration(&config.record)
            .filter(|configuration| (1..=7).contains(configuration))
            .ok_or(Missing::NotInAdts)?;
        if config.frame_samples != 1024 {
            return Err(Missing::NotInAdts);
        }
        let profile = u8::saturating_sub(object_type, 1);
        Ok(Self { profile, frequency_index, channel_configuration })
    }

    /// The header of a frame of `payload_len` bytes.
    pub fn header(self, payload_len: usize) -> [u8; ADTS_HEADER_BYTES] {
        let frame = payload_len.saturating_add(ADTS_HEADER_BYTES).min(ADTS_FRAME_BYTES);
        let len = u16::try_from(frame).unwrap_or(0);
        let [high, low] = len.to_be_bytes();
        let channels = self.channel_configuration;
        [
            0xff,
            0xf1, // MPEG-4, layer 0, no CRC
            self.profile << 6 | self.frequency_index << 2 | channels >> 2,
            channels << 6 | high >> 3,
            high << 5 | low >> 3,
            low << 5 | 0x1f, // buffer fullness 0x7ff: variable bit rate
            0xfc,
        ]
    }
}

/// channelConfiguration of an AudioSpecificConfig (ISO 14496-3 §1.6.2.1): the count of channels
/// does not tell a PCE from a layout with a number.
fn channel_configuration(record: &[u8]) -> Option<u8> {
    let bits = record.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let bits = bits << 8_u32.saturating_sub(record.len().min(8) as u32).saturating_mul(8);
    let field = |at: u32, width: u32| {
        let right = 64_u32.saturating_sub(at).saturating_sub(width);
        (bits >> right) as u8 & ((1_u16 << width).wrapping_sub(1) as u8)
    };
    let mut at = 5;
    if field(0, 5) == 31 {
        at = 11;
    }
    let explicit_rate = field(at, 4) == 15;
    at = at.saturating_add(if explicit_rate { 28 } else { 4 });
    (record.len() >= 2).then(|| field(at, 4))
}
