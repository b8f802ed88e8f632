use std::fmt;

use bytes::TryGetError;

use super::body::Codec;
use crate::codec;
use crate::codec::nal::Unusable;
use crate::media::{TrackId, TrackKind};

/// A message, or one track's share of it, that gave no access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub kind: TrackKind,
    /// `None` of a message that does not get so far as to name a track that can be taken in.
    pub track: Option<TrackId>,
    /// A short name as that of [`codec::CodecConfig::name`]; `None` where it could not be read.
    pub codec: Option<&'static str>,
    pub reason: SkipReason,
}

/// Why a message gave no access unit. None of these ends a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkipReason {
    #[error("message without content")]
    Empty,
    #[error("message is cut off")]
    Malformed,
    #[error("message of an unknown type")]
    Unknown,
    #[error("{0} is not supported")]
    UnsupportedCodec(CodecId),
    #[error("more tracks than supported")]
    TooManyTracks,
    #[error("track number {0} is higher than supported")]
    TrackNumber(u8),
    #[error(transparent)]
    BadConfiguration(#[from] codec::Error),
    #[error("frame before its codec configuration")]
    NoConfiguration,
    #[error("frame before the first keyframe")]
    NoKeyframe,
    #[error("access unit without a picture")]
    NoPicture,
    #[error("no memory left for the frame")]
    PoolExhausted,
}

impl SkipReason {
    /// A short name, of which there are few: for counters.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::UnsupportedCodec(_) => "unsupported_codec",
            Self::TooManyTracks | Self::TrackNumber(_) => "too_many_tracks",
            Self::BadConfiguration(_) => "bad_configuration",
            Self::NoConfiguration => "no_configuration",
            Self::NoKeyframe => "no_keyframe",
            Self::NoPicture => "no_picture",
            Self::PoolExhausted => "pool_exhausted",
        }
    }
}

impl From<TryGetError> for SkipReason {
    fn from(_: TryGetError) -> Self {
        Self::Malformed
    }
}

impl From<Unusable> for SkipReason {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Empty => Self::Empty,
            Unusable::PoolExhausted => Self::PoolExhausted,
        }
    }
}

/// How a body names its codec: by the number of FLV, or by the FourCC of Enhanced RTMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecId {
    Video(u8),
    Audio(u8),
    FourCc([u8; 4]),
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Video(2) => f.write_str("Sorenson H.263 video"),
            Self::Video(3 | 6) => f.write_str("screen video"),
            Self::Video(4 | 5) => f.write_str("VP6 video"),
            Self::Video(id) => write!(f, "video codec {id}"),
            Self::Audio(0 | 3) => f.write_str("PCM audio"),
            Self::Audio(1) => f.write_str("ADPCM audio"),
            Self::Audio(4..=6) => f.write_str("Nellymoser audio"),
            Self::Audio(7 | 8) => f.write_str("G.711 audio"),
            Self::Audio(11) => f.write_str("Speex audio"),
            Self::Audio(id) => write!(f, "audio codec {id}"),
            Self::FourCc(four_cc) => write!(f, "codec '{}'", four_cc.escape_ascii()),
        }
    }
}

impl Codec {
    /// As [`codec::CodecConfig::name`], which is not known before there is a configuration.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Avc => "h264",
            Self::Hevc => "hevc",
            Self::Av1 => "av1",
            Self::Vp9 => "vp9",
            Self::Aac => "aac",
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
            Self::Flac => "flac",
            Self::Ac3 => "ac3",
            Self::Eac3 => "eac3",
        }
    }
}
