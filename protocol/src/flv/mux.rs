use std::ops::Deref;

use bytes::Bytes;

use super::Metadata;
use super::body::{
    Codec, FRAME_TYPE_INTER, FRAME_TYPE_KEY, LEGACY_AVC, SOUND_AAC, SOUND_EX_HEADER, SOUND_MP3,
    VIDEO_EX_HEADER, body_type, track_index,
};
use crate::amf0::{self, Value};
use crate::codec::CodecConfig;
use crate::media::{AccessUnit, Ticks, Track, TrackKind};

/// The timestamp of a tag or message: the low 32 bits of the timeline, in milliseconds. What lies
/// before the timeline's start counts as its start.
#[must_use]
pub fn timestamp_ms(dts: Ticks) -> u32 {
    dts.as_ms().max(0) as u32
}

/// The body that tells players how to decode a track; `None` when its codec needs none.
///
/// The first track of a kind is sent in the form that every player knows, AVC and AAC so in that
/// of FLV v10.1, further ones as tracks of Enhanced RTMP v2.
#[must_use]
pub fn sequence_header(track: &Track) -> Option<Bytes> {
    let record = match &*track.codec {
        CodecConfig::Avc(config) => config.record.clone(),
        CodecConfig::Hevc(config) => config.record.clone(),
        CodecConfig::Av1(config) => config.record.clone(),
        // As ffmpeg has it, with the header of the box.
        CodecConfig::Vp9(config) => [&[1, 0, 0, 0], &config.record[..]].concat().into(),
        CodecConfig::Aac(config) => config.record.clone(),
        CodecConfig::Opus(config) => config.identification_header().into(),
        CodecConfig::Flac(config) => config.sequence_header().into(),
        CodecConfig::Mp3(_) | CodecConfig::Ac3(_) => return None,
    };
    let header = header(track, body_type::SEQUENCE_START, true, Ticks::ZERO);
    Some([&header[..], &record[..]].concat().into())
}

/// The bytes between the tag or message header and an access unit's payload.
#[must_use]
pub fn unit_header(track: &Track, unit: &AccessUnit) -> UnitHeader {
    header(track, body_type::CODED_FRAMES, unit.keyframe, unit.composition_offset)
}

/// A few bytes, without allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitHeader {
    bytes: [u8; Self::MAX_BYTES],
    len: u8,
}

impl UnitHeader {
    /// First byte, multitrack type, FourCC, track number and composition time.
    pub const MAX_BYTES: usize = 1 + 1 + 4 + 1 + 3;

    fn put(&mut self, bytes: &[u8]) {
        let free = self.bytes.iter_mut().skip(self.len.into());
        for (to, from) in free.zip(bytes) {
            *to = *from;
            self.len = self.len.saturating_add(1);
        }
    }
}

impl Deref for UnitHeader {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}

fn header(track: &Track, body_type: u8, keyframe: bool, offset: Ticks) -> UnitHeader {
    let codec = Codec::from(&*track.codec);
    let index = track_index(track.id);
    let frame_type = if keyframe { FRAME_TYPE_KEY } else { FRAME_TYPE_INTER };
    let mut header = UnitHeader::default();
    match (codec, index) {
        (Codec::Avc, 0) => {
            header.put(&[frame_type << 4 | LEGACY_AVC, body_type]);
            header.put(&composition_time(offset));
            return header;
        }
        (Codec::Aac, 0) => {
            // The rate and channel bits have fixed values for AAC (FLV v10.1 §E.4.2.1).
            header.put(&[SOUND_AAC << 4 | 0xf, body_type]);
            return header;
        }
        (Codec::Mp3, 0) => {
            header.put(&[SOUND_MP3 << 4 | sound_bits(&track.codec)]);
            return header;
        }
        _ => {}
    }
    let (first, multitrack) = match codec.kind() {
        TrackKind::Video => (VIDEO_EX_HEADER | frame_type << 4, body_type::VIDEO_MULTITRACK),
        TrackKind::Audio => (SOUND_EX_HEADER << 4, body_type::AUDIO_MULTITRACK),
    };
    let timed = codec.has_composition_time() && body_type == body_type::CODED_FRAMES;
    let body_type =
        if timed && offset == Ticks::ZERO { body_type::CODED_FRAMES_X } else { body_type };
    if index == 0 {
        header.put(&[first | body_type]);
        header.put(&codec.four_cc());
    } else {
        // One track, whose body goes to the end of the message.
        header.put(&[first | multitrack, body_type]);
        header.put(&codec.four_cc());
        header.put(&[index]);
    }
    if body_type == body_type::CODED_FRAMES && timed {
        header.put(&composition_time(offset));
    }
    header
}

/// SI24 milliseconds.
fn composition_time(offset: Ticks) -> [u8; 3] {
    let ms = offset.as_ms().clamp(-0x80_0000, 0x7f_ffff) as i32;
    let [_, time @ ..] = ms.to_be_bytes();
    time
}

/// Rate, sample size and channels in the lower half of an audio body's first byte.
fn sound_bits(config: &CodecConfig) -> u8 {
    let rate = match config.sample_rate() {
        Some(0..=8_000) => 0,
        Some(..=12_000) => 1,
        Some(..=24_000) => 2,
        _ => 3,
    };
    rate << 2 | 2 | u8::from(config.channels() != Some(1))
}

/// The body of an onMetaData script tag or data message, for these tracks. What the encoder said
/// is passed on where tracks do not tell it better.
#[must_use]
pub fn metadata(tracks: &[Track], metadata: &Metadata) -> Bytes {
    let mut properties = amf0::Properties::new();
    let mut put = |name: &str, value: Option<Value>| {
        properties.extend(value.map(|value| (name.to_owned(), value)));
    };
    let of_kind = |kind| tracks.iter().find(|track| track.kind() == kind);
    let (video, audio) = (of_kind(TrackKind::Video), of_kind(TrackKind::Audio));
    put("hasVideo", Some(video.is_some().into()));
    put("hasAudio", Some(audio.is_some().into()));
    if let Some(track) = video {
        let size = track.codec.resolution().unzip();
        put("width", size.0.map(number));
        put("height", size.1.map(number));
        put("videocodecid", Some(codec_number(track)));
        put("framerate", metadata.frame_rate.map(Value::Number));
        put("videodatarate", metadata.video_kbps.map(Value::Number));
    }
    if let Some(track) = audio {
        let channels = track.codec.channels();
        put("audiocodecid", Some(codec_number(track)));
        put("audiosamplerate", track.codec.sample_rate().map(number));
        put("audiosamplesize", Some(Value::Number(16.0)));
        put("audiochannels", channels.map(|channels| number(channels.into())));
        put("stereo", channels.map(|channels| Value::Boolean(channels > 1)));
        put("audiodatarate", metadata.audio_kbps.map(Value::Number));
    }
    put("encoder", metadata.encoder.as_deref().map(Value::from));
    amf0::encode_all(&[Value::from("onMetaData"), Value::EcmaArray(properties)]).into()
}

fn number(value: u32) -> Value {
    Value::Number(value.into())
}

/// The number of FLV, or the FourCC as a number (Enhanced RTMP).
fn codec_number(track: &Track) -> Value {
    match Codec::from(&*track.codec) {
        Codec::Avc => number(LEGACY_AVC.into()),
        Codec::Aac => number(SOUND_AAC.into()),
        Codec::Mp3 => number(SOUND_MP3.into()),
        codec => number(u32::from_be_bytes(codec.four_cc())),
    }
}
