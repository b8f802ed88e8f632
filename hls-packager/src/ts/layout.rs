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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audio {
    /// AAC, each frame behind an ADTS header.
    Adts(aac::Config),
    /// MPEG-1 audio or, at half the rate, MPEG-2.
    Mp3 { half_rate: bool },
    /// AC-3 or E-AC-3, as ATSC A/52 annex A and G carry it.
    Ac3 { is_enhanced: bool },
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
            CodecConfig::Aac(c) => {
                c.adts_header(0).ok_or(Missing::NotInAdts)?;
                self.audio = Some(Audio::Adts(c.clone()));
            }
            CodecConfig::Mp3(c) => self.audio = Some(Audio::Mp3 { half_rate: is_mpeg2(c) }),
            CodecConfig::Ac3(c) => self.audio = Some(Audio::Ac3 { is_enhanced: c.is_enhanced }),
            CodecConfig::Av1(_)
            | CodecConfig::Vp9(_)
            | CodecConfig::Opus(_)
            | CodecConfig::Flac(_) => return Err(Missing::Codec),
        }
        Ok(())
    }

    pub fn version(&self) -> u8 {
        self.version
    }

    pub fn video(&self) -> Option<&Video> {
        self.video.as_ref()
    }

    pub fn audio(&self) -> Option<&Audio> {
        self.audio.as_ref()
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

/// MPEG-2 audio, below 32 kHz, has a stream type of its own (ISO 13818-1 table 2-34).
fn is_mpeg2(config: &mp3::Config) -> bool {
    config.sample_rate < 32_000
}
