//! What a decoder must know before the first access unit, per codec.
//!
//! Each configuration keeps its `record` as the container formats carry it (avcC, hvcC, av1C, vpcC,
//! AudioSpecificConfig, dOps, dfLa,
//! dac3, dec3) next to the fields that Weir reads from it. Two configurations are
//! equal exactly when a decoder would treat them alike.

pub mod aac;
pub mod ac3;
pub mod av1;
pub mod avc;
mod bits;
pub mod flac;
pub mod hevc;
pub mod mp3;
pub mod nal;
pub mod opus;
mod sei;
#[cfg(test)]
pub(crate) mod tests;
pub mod vp9;

use crate::media::TrackKind;

/// Why a configuration can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("codec configuration is empty")]
    Empty,
    #[error("codec configuration is cut off")]
    Truncated,
    #[error("codec configuration lacks its {0}")]
    Missing(&'static str),
    #[error("codec configuration has an invalid {0}")]
    Invalid(&'static str),
    #[error("codec configuration has an unsupported {0}")]
    Unsupported(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodecConfig {
    Avc(avc::Config),
    Hevc(hevc::Config),
    Av1(av1::Config),
    Vp9(vp9::Config),
    Aac(aac::Config),
    Opus(opus::Config),
    Mp3(mp3::Config),
    Flac(flac::Config),
    /// AC-3 or E-AC-3.
    Ac3(ac3::Config),
}

impl CodecConfig {
    #[must_use]
    pub fn kind(&self) -> TrackKind {
        match self {
            Self::Avc(_) | Self::Hevc(_) | Self::Av1(_) | Self::Vp9(_) => TrackKind::Video,
            Self::Aac(_) | Self::Opus(_) | Self::Mp3(_) | Self::Flac(_) | Self::Ac3(_) => {
                TrackKind::Audio
            }
        }
    }

    /// The `codecs` parameter of RFC 6381 as HLS and MSE want it, for example `avc1.64001f`.
    #[must_use]
    pub fn rfc6381(&self) -> String {
        match self {
            Self::Avc(config) => config.rfc6381(),
            Self::Hevc(config) => config.rfc6381(),
            Self::Av1(config) => config.rfc6381(),
            Self::Vp9(config) => config.rfc6381(),
            Self::Aac(config) => config.rfc6381(),
            Self::Opus(_) => "opus".to_owned(),
            Self::Mp3(_) => "mp4a.40.34".to_owned(),
            Self::Flac(_) => "fLaC".to_owned(),
            Self::Ac3(config) => if config.is_enhanced { "ec-3" } else { "ac-3" }.to_owned(),
        }
    }

    /// Picture size in luma samples after cropping; `None` for audio.
    #[must_use]
    pub fn resolution(&self) -> Option<(u32, u32)> {
        match self {
            Self::Avc(config) => Some((config.width, config.height)),
            Self::Hevc(config) => Some((config.width, config.height)),
            Self::Av1(config) => Some((config.width, config.height)),
            Self::Vp9(config) => Some((config.width, config.height)),
            Self::Aac(_) | Self::Opus(_) | Self::Mp3(_) | Self::Flac(_) | Self::Ac3(_) => None,
        }
    }

    /// Samples per second on the audio track's own clock; `None` for video.
    #[must_use]
    pub fn sample_rate(&self) -> Option<u32> {
        match self {
            Self::Aac(config) => Some(config.sample_rate),
            Self::Opus(_) => Some(opus::SAMPLE_RATE),
            Self::Mp3(config) => Some(config.sample_rate),
            Self::Flac(config) => Some(config.sample_rate),
            Self::Ac3(config) => Some(config.sample_rate),
            Self::Avc(_) | Self::Hevc(_) | Self::Av1(_) | Self::Vp9(_) => None,
        }
    }

    /// Audio channels; `None` for video.
    #[must_use]
    pub fn channels(&self) -> Option<u8> {
        match self {
            Self::Aac(config) => Some(config.channels),
            Self::Opus(config) => Some(config.channels),
            Self::Mp3(config) => Some(config.channels),
            Self::Flac(config) => Some(config.channels),
            Self::Ac3(config) => Some(config.channels),
            Self::Avc(_) | Self::Hevc(_) | Self::Av1(_) | Self::Vp9(_) => None,
        }
    }

    /// A short name for people and labels: `h264`, `hevc`, `av1`, `vp9`, `aac`, `opus`, `mp3`, `flac`,
    /// `ac3`, `eac3`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Avc(_) => "h264",
            Self::Hevc(_) => "hevc",
            Self::Av1(_) => "av1",
            Self::Vp9(_) => "vp9",
            Self::Aac(_) => "aac",
            Self::Opus(_) => "opus",
            Self::Mp3(_) => "mp3",
            Self::Flac(_) => "flac",
            Self::Ac3(config) => {
                if config.is_enhanced {
                    "eac3"
                } else {
                    "ac3"
                }
            }
        }
    }

    /// Samples on the audio track's own clock in an access unit with this payload; `None` for
    /// video and for a payload that can't be read.
    #[must_use]
    pub fn frame_samples(&self, payload: &[u8]) -> Option<u32> {
        match self {
            Self::Aac(config) => Some(config.frame_samples),
            Self::Opus(_) => opus::packet_samples(payload),
            Self::Mp3(_) => mp3::samples(payload),
            Self::Flac(_) => flac::samples(payload),
            Self::Ac3(_) => ac3::samples(payload),
            Self::Avc(_) | Self::Hevc(_) | Self::Av1(_) | Self::Vp9(_) => None,
        }
    }
}

/// Decoders go no further, and sums of such sizes do not overflow.
const MAX_PICTURE_SIDE: u32 = 16_384;

fn picture_size(width: u32, height: u32) -> Result<(u32, u32), Error> {
    let sides = 1..=MAX_PICTURE_SIDE;
    if sides.contains(&width) && sides.contains(&height) {
        Ok((width, height))
    } else {
        Err(Error::Invalid("picture size"))
    }
}
