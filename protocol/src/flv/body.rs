//! The first bytes of audio and video bodies, as typed messages (FLV v10.1 §E.4.2 and §E.4.3,
//! Enhanced RTMP v2).

use bytes::{Buf, Bytes};

use super::{CodecId, SkipReason};
use crate::codec::CodecConfig;
use crate::media::{Ticks, TrackId, TrackKind};

/// Enhanced RTMP numbers 256 tracks of each kind; nobody sends so many.
const MAX_TRACKS_PER_KIND: u8 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Avc,
    Hevc,
    Av1,
    Vp9,
    Aac,
    Mp3,
    Opus,
    Flac,
    Ac3,
    Eac3,
}

impl Codec {
    const ALL: [Self; 10] = [
        Self::Avc,
        Self::Hevc,
        Self::Av1,
        Self::Vp9,
        Self::Aac,
        Self::Mp3,
        Self::Opus,
        Self::Flac,
        Self::Ac3,
        Self::Eac3,
    ];

    pub(super) fn four_cc(self) -> [u8; 4] {
        *match self {
            Self::Avc => b"avc1",
            Self::Hevc => b"hvc1",
            Self::Av1 => b"av01",
            Self::Vp9 => b"vp09",
            Self::Aac => b"mp4a",
            Self::Mp3 => b".mp3",
            Self::Opus => b"Opus",
            Self::Flac => b"fLaC",
            Self::Ac3 => b"ac-3",
            Self::Eac3 => b"ec-3",
        }
    }

    pub(super) fn kind(self) -> TrackKind {
        match self {
            Self::Avc | Self::Hevc | Self::Av1 | Self::Vp9 => TrackKind::Video,
            Self::Aac | Self::Mp3 | Self::Opus | Self::Flac | Self::Ac3 | Self::Eac3 => {
                TrackKind::Audio
            }
        }
    }

    /// Whether coded frames carry a composition time of their own.
    pub(super) fn has_composition_time(self) -> bool {
        matches!(self, Self::Avc | Self::Hevc)
    }
}

impl From<&CodecConfig> for Codec {
    fn from(config: &CodecConfig) -> Self {
        match config {
            CodecConfig::Avc(_) => Self::Avc,
            CodecConfig::Hevc(_) => Self::Hevc,
            CodecConfig::Av1(_) => Self::Av1,
            CodecConfig::Vp9(_) => Self::Vp9,
            CodecConfig::Aac(_) => Self::Aac,
            CodecConfig::Mp3(_) => Self::Mp3,
            CodecConfig::Opus(_) => Self::Opus,
            CodecConfig::Flac(_) => Self::Flac,
            CodecConfig::Ac3(config) => {
                if config.is_enhanced {
                    Self::Eac3
                } else {
                    Self::Ac3
                }
            }
        }
    }
}

/// The FourCC by which Enhanced RTMP knows a codec.
#[must_use]
pub fn four_cc(config: &CodecConfig) -> [u8; 4] {
    Codec::from(config).four_cc()
}

/// What a body of the Enhanced form holds (its packet type), audio and video alike.
pub(super) mod body_type {
    pub(in crate::flv) const SEQUENCE_START: u8 = 0;
    pub(in crate::flv) const CODED_FRAMES: u8 = 1;
    pub(in crate::flv) const SEQUENCE_END: u8 = 2;
    pub(in crate::flv) const CODED_FRAMES_X: u8 = 3;
    /// Video metadata such as colour information, or the channel layout of audio.
    pub(in crate::flv) const METADATA: u8 = 4;
    pub(in crate::flv) const AUDIO_MULTITRACK: u8 = 5;
    pub(in crate::flv) const MPEG2TS_SEQUENCE_START: u8 = 5;
    pub(in crate::flv) const VIDEO_MULTITRACK: u8 = 6;
    pub(in crate::flv) const MOD_EX: u8 = 7;
}

/// Set in the first byte of an Enhanced video body.
pub(super) const VIDEO_EX_HEADER: u8 = 0x80;
pub(super) const FRAME_TYPE_KEY: u8 = 1;
pub(super) const FRAME_TYPE_INTER: u8 = 2;
pub(super) const FRAME_TYPE_COMMAND: u8 = 5;
pub(super) const LEGACY_AVC: u8 = 7;
/// What encoders agreed on before Enhanced RTMP.
const LEGACY_HEVC: u8 = 12;

/// The upper half of an audio body's first byte.
pub(super) const SOUND_MP3: u8 = 2;
pub(super) const SOUND_EX_HEADER: u8 = 9;
pub(super) const SOUND_AAC: u8 = 10;
const SOUND_MP3_8_KHZ: u8 = 14;

/// What one track gets from a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// As the publisher numbers the tracks of one kind.
    pub(super) index: u8,
    pub(super) codec: Codec,
    pub(super) part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Configuration(Bytes),
    /// AMF of a video track: its colour.
    Metadata(Bytes),
    Frame(CodedFrame),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodedFrame {
    pub(super) called_keyframe: bool,
    pub(super) composition_offset: Ticks,
    /// Beyond the message's timestamp.
    pub(super) fraction: Ticks,
    pub(super) data: Bytes,
}

/// Hands each track's share of an audio or video body to `each`. Commands, ends of sequences and
/// channel information give nothing.
pub(super) fn parse(
    kind: TrackKind,
    body: Bytes,
    each: &mut impl FnMut(Result<Message, SkipReason>),
) {
    let read = match kind {
        TrackKind::Video => video(body, each),
        TrackKind::Audio => audio(body, each),
    };
    if let Err(reason) = read {
        each(Err(reason));
    }
}

fn video(
    mut body: Bytes,
    each: &mut impl FnMut(Result<Message, SkipReason>),
) -> Result<(), SkipReason> {
    let head = body.try_get_u8().map_err(|_| SkipReason::Empty)?;
    let frame_type = head >> 4 & 7;
    if head & VIDEO_EX_HEADER != 0 {
        return enhanced(TrackKind::Video, frame_type, head & 0xf, body, each);
    }
    if frame_type == FRAME_TYPE_COMMAND {
        return Ok(());
    }
    let codec = match head & 0xf {
        LEGACY_AVC => Codec::Avc,
        LEGACY_HEVC => Codec::Hevc,
        other => return Err(SkipReason::UnsupportedCodec(CodecId::Video(other))),
    };
    let body_type = body.try_get_u8()?;
    let composition_offset = composition_time(&mut body)?;
    let part = match body_type {
        body_type::SEQUENCE_START => Part::Configuration(body),
        body_type::CODED_FRAMES => Part::Frame(CodedFrame {
            called_keyframe: frame_type == FRAME_TYPE_KEY,
            composition_offset,
            fraction: Ticks::ZERO,
            data: body,
        }),
        body_type::SEQUENCE_END => return Ok(()),
        _ => return Err(SkipReason::Unknown),
    };
    each(Ok(Message { index: 0, codec, part }));
    Ok(())
}

fn audio(
    mut body: Bytes,
    each: &mut impl FnMut(Result<Message, SkipReason>),
) -> Result<(), SkipReason> {
    let head = body.try_get_u8().map_err(|_| SkipReason::Empty)?;
    let codec = match head >> 4 {
        SOUND_EX_HEADER => {
            return enhanced(TrackKind::Audio, FRAME_TYPE_KEY, head & 0xf, body, each);
        }
        SOUND_AAC => Codec::Aac,
        SOUND_MP3 | SOUND_MP3_8_KHZ => Codec::Mp3,
        other => return Err(SkipReason::UnsupportedCodec(CodecId::Audio(other))),
    };
    let is_configuration = codec == Codec::Aac && body.try_get_u8()? == 0;
    let part = if is_configuration {
        Part::Configuration(body)
    } else {
        Part::Frame(CodedFrame {
            called_keyframe: true,
            composition_offset: Ticks::ZERO,
            fraction: Ticks::ZERO,
            data: body,
        })
    };
    each(Ok(Message { index: 0, codec, part }));
    Ok(())
}

/// What the head of an Enhanced body says of all its tracks.
struct Enhanced {
    kind: TrackKind,
    called_keyframe: bool,
    fraction: Ticks,
}

impl Enhanced {
    /// One track's share; `None` when there is nothing in it for an access unit.
    fn message(
        &self,
        index: u8,
        codec: Codec,
        body_type: u8,
        mut data: Bytes,
    ) -> Result<Option<Message>, SkipReason> {
        let part = match (body_type, self.kind) {
            (body_type::SEQUENCE_START, _) => Part::Configuration(data),
            (body_type::CODED_FRAMES, _) | (body_type::CODED_FRAMES_X, TrackKind::Video) => {
                let timed = body_type == body_type::CODED_FRAMES && codec.has_composition_time();
                let composition_offset =
                    if timed { composition_time(&mut data)? } else { Ticks::ZERO };
                let Self { called_keyframe, fraction, .. } = *self;
                Part::Frame(CodedFrame { called_keyframe, composition_offset, fraction, data })
            }
            (body_type::METADATA, TrackKind::Video) => Part::Metadata(data),
            (body_type::SEQUENCE_END | body_type::METADATA, _)
            | (body_type::MPEG2TS_SEQUENCE_START, TrackKind::Video) => return Ok(None),
            _ => return Err(SkipReason::Unknown),
        };
        Ok(Some(Message { index, codec, part }))
    }
}

/// ExVideoTagHeader and ExAudioTagHeader behind their first byte, and the body.
fn enhanced(
    kind: TrackKind,
    frame_type: u8,
    mut body_type: u8,
    mut body: Bytes,
    each: &mut impl FnMut(Result<Message, SkipReason>),
) -> Result<(), SkipReason> {
    let mut fraction = Ticks::ZERO;
    while body_type == body_type::MOD_EX {
        let (next, nanoseconds) = mod_ex(&mut body)?;
        body_type = next;
        if let Some(nanoseconds) = nanoseconds {
            fraction = Ticks::from_rate(nanoseconds.into(), 1_000_000_000);
        }
    }
    if frame_type == FRAME_TYPE_COMMAND && body_type != body_type::METADATA {
        return Ok(());
    }
    let head = Enhanced { kind, called_keyframe: frame_type == FRAME_TYPE_KEY, fraction };
    let multitrack = match kind {
        TrackKind::Video => body_type::VIDEO_MULTITRACK,
        TrackKind::Audio => body_type::AUDIO_MULTITRACK,
    };
    if body_type == multitrack {
        return tracks(&head, body, each);
    }
    let codec = codec(&mut body, kind)?;
    if let Some(message) = head.message(0, codec, body_type, body)? {
        each(Ok(message));
    }
    Ok(())
}

/// The tracks of a multitrack body. What is wrong with one does not touch the others.
fn tracks(
    head: &Enhanced,
    mut body: Bytes,
    each: &mut impl FnMut(Result<Message, SkipReason>),
) -> Result<(), SkipReason> {
    const ONE_TRACK: u8 = 0;
    const MANY_TRACKS: u8 = 1;
    const MANY_TRACKS_MANY_CODECS: u8 = 2;

    let types = body.try_get_u8()?;
    let (multitrack_type, body_type) = (types >> 4, types & 0xf);
    let shared_codec = match multitrack_type {
        ONE_TRACK | MANY_TRACKS => Some(codec(&mut body, head.kind)?),
        MANY_TRACKS_MANY_CODECS => None,
        _ => return Err(SkipReason::Unknown),
    };
    let mut count = 0;
    while !body.is_empty() {
        // Entries can be of a few bytes and of the same track.
        if count == MAX_TRACKS_PER_KIND {
            return Err(SkipReason::TooManyTracks);
        }
        count = count.saturating_add(1);
        let codec = shared_codec.map_or_else(|| codec(&mut body, head.kind), Ok);
        let index = body.try_get_u8()?;
        let len = match multitrack_type {
            ONE_TRACK => body.len() as u64,
            _ => body.try_get_uint(3)?,
        };
        let data = take(&mut body, len)?;
        let message = codec.and_then(|codec| head.message(index, codec, body_type, data));
        if let Some(message) = message.transpose() {
            each(message);
        }
    }
    Ok(())
}

/// Extra bytes before the real type: that, and the nanoseconds if they tell some, less than a
/// millisecond (Enhanced RTMP v2, `TimestampOffsetNano`).
fn mod_ex(body: &mut Bytes) -> Result<(u8, Option<u32>), SkipReason> {
    const TIMESTAMP_OFFSET_NANO: u8 = 0;
    const MILLISECOND: u64 = 1_000_000;
    let len = match body.try_get_u8()? {
        u8::MAX => u64::from(body.try_get_u16()?),
        len => len.into(),
    };
    let mut data = take(body, len.saturating_add(1))?;
    let head = body.try_get_u8()?;
    let nanoseconds = match (head >> 4, data.try_get_uint(3)) {
        (TIMESTAMP_OFFSET_NANO, Ok(nanoseconds)) if nanoseconds < MILLISECOND => {
            u32::try_from(nanoseconds).ok()
        }
        _ => None,
    };
    Ok((head & 0xf, nanoseconds))
}

fn codec(body: &mut Bytes, kind: TrackKind) -> Result<Codec, SkipReason> {
    let four_cc = body.try_get_u32()?.to_be_bytes();
    Codec::ALL
        .into_iter()
        .find(|codec| codec.four_cc() == four_cc && codec.kind() == kind)
        .ok_or(SkipReason::UnsupportedCodec(CodecId::FourCc(four_cc)))
}

/// SI24 milliseconds: negative where the encoder presents a frame before its decoding time.
fn composition_time(body: &mut Bytes) -> Result<Ticks, SkipReason> {
    Ok(Ticks::from_ms(body.try_get_int(3)?))
}

fn take(body: &mut Bytes, len: u64) -> Result<Bytes, SkipReason> {
    match usize::try_from(len) {
        Ok(len) if len <= body.len() => Ok(body.split_to(len)),
        _ => Err(SkipReason::Malformed),
    }
}

/// Video tracks are even, audio tracks odd, so a track keeps its number whatever else comes.
pub(super) fn track_id(kind: TrackKind, index: u8) -> Result<TrackId, SkipReason> {
    if index >= MAX_TRACKS_PER_KIND {
        return Err(SkipReason::TrackNumber(index));
    }
    Ok(TrackId(index << 1 | u8::from(kind == TrackKind::Audio)))
}

/// The number of a track among those of its kind.
pub(super) fn track_index(track: TrackId) -> u8 {
    track.0 >> 1
}
