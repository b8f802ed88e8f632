//! What the bench publishes: the demo clip's codec configurations with pictures and sound of fixed
//! sizes, by default 4.2 Mbit/s, so that a segment of 2 s has about 1 MiB. Nobody decodes them.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use weir_protocol::flv::{FileReader, Tag, TagKind};

use crate::tools;

const FRAMES_PER_SECOND: u64 = 30;
const GOP_FRAMES: u64 = 60;
/// Of a keyframe, and of any other picture.
const FOUR_MEGABITS: [usize; 2] = [120 * 1024, 15 * 1024];
const TWO_MEGABITS: [usize; 2] = [57 * 1024, 7 * 1024];
const AUDIO_BYTES: usize = 340;
const SAMPLES_PER_AUDIO_FRAME: u64 = 1024;

/// FLV's own bytes, the length of the NAL unit and its header: the stamp comes next.
const STAMP_AT: usize = 5 + 4 + 1;
const STAMP_BYTES: usize = 8;

/// The bodies of all tags that are ever sent.
#[derive(Clone, Debug)]
pub struct Media {
    headers: [Tag; 3],
    audio_rate: u64,
    keyframe: Bytes,
    frame: Bytes,
    audio: Bytes,
}

impl Media {
    /// 4.2 Mbit/s.
    ///
    /// # Panics
    /// When the demo clip is not there.
    #[must_use]
    pub fn new() -> Self {
        Self::with_pictures(FOUR_MEGABITS)
    }

    /// 2.1 Mbit/s.
    ///
    /// # Panics
    /// When the demo clip is not there.
    #[must_use]
    pub fn two_megabits() -> Self {
        Self::with_pictures(TWO_MEGABITS)
    }

    fn with_pictures([keyframe, frame]: [usize; 2]) -> Self {
        let mut reader = FileReader::default();
        reader.push(&std::fs::read(tools::demo_clip()).expect("the demo clip"));
        let mut tags = std::iter::from_fn(|| reader.next().expect("an FLV file"));
        let mut first = |kind: TagKind| {
            let found = tags.find(|tag| tag.kind == kind);
            found.expect("metadata and both tracks, configurations first")
        };
        let headers = [TagKind::Script, TagKind::Video, TagKind::Audio].map(&mut first);
        Self {
            audio_rate: audio_rate(&headers[2].body),
            headers,
            keyframe: picture(0x17, 0x65, keyframe),
            frame: picture(0x27, 0x41, frame),
            audio: [&[0xaf, 1][..], &noise(AUDIO_BYTES)].concat().into(),
        }
    }

    /// Of pictures and sound, without the bytes around them.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        let gop = self.keyframe.len() + self.frame.len() * (GOP_FRAMES as usize - 1);
        let pictures = gop as f64 * FRAMES_PER_SECOND as f64 / GOP_FRAMES as f64;
        let frames = self.audio_rate as f64 / SAMPLES_PER_AUDIO_FRAME as f64;
        (pictures + self.audio.len() as f64 * frames) * 8.0
    }

    /// Metadata and codec configurations.
    #[must_use]
    pub fn headers(&self) -> &[Tag] {
        &self.headers
    }

    /// All access units of an endless stream, in order.
    #[must_use]
    pub fn units(&self) -> Units {
        Units { media: self.clone(), pictures: 0, sounds: 0 }
    }
}

/// The access units of one stream, from time zero on.
#[derive(Clone, Debug)]
pub struct Units {
    media: Media,
    pictures: u64,
    sounds: u64,
}

impl Units {
    /// When the next one is due, by its own timestamp.
    #[must_use]
    pub fn next_at(&self) -> Duration {
        Duration::from_millis(self.picture_ms().min(self.sound_ms()))
    }

    fn picture_ms(&self) -> u64 {
        self.pictures * 1000 / FRAMES_PER_SECOND
    }

    fn sound_ms(&self) -> u64 {
        self.sounds * SAMPLES_PER_AUDIO_FRAME * 1000 / self.media.audio_rate
    }

    /// The next one, the same bytes each time.
    pub fn next(&mut self) -> Tag {
        let (picture_ms, sound_ms) = (self.picture_ms(), self.sound_ms());
        let (kind, at_ms, body) = if picture_ms <= sound_ms {
            let key = self.pictures.is_multiple_of(GOP_FRAMES);
            self.pictures += 1;
            let body = if key { &self.media.keyframe } else { &self.media.frame };
            (TagKind::Video, picture_ms, body)
        } else {
            self.sounds += 1;
            (TagKind::Audio, sound_ms, &self.media.audio)
        };
        Tag { kind, timestamp_ms: at_ms as u32, body: body.clone() }
    }
}

/// Writes the time since `epoch` into a picture.
#[must_use]
pub fn stamped(picture: &[u8], epoch: Instant) -> Bytes {
    let mut body = BytesMut::from(picture);
    let nanoseconds = epoch.elapsed().as_nanos() as u64;
    body[STAMP_AT..STAMP_AT + STAMP_BYTES].copy_from_slice(&nanoseconds.to_be_bytes());
    body.freeze()
}

/// How long ago a picture was stamped; `None` for one that never was.
#[must_use]
pub fn age(picture: &[u8], epoch: Instant) -> Option<Duration> {
    let stamp = picture.get(STAMP_AT..STAMP_AT + STAMP_BYTES)?;
    let nanoseconds = u64::from_be_bytes(stamp.try_into().ok()?);
    epoch.elapsed().checked_sub(Duration::from_nanos(nanoseconds))
}

/// Whether this is a picture (not a configuration) that decoders can start with.
#[must_use]
pub fn is_keyframe(tag: &Tag) -> bool {
    tag.kind == TagKind::Video && tag.body.starts_with(&[0x17, 1])
}

/// Whether this is a picture.
#[must_use]
pub fn is_picture(tag: &Tag) -> bool {
    tag.kind == TagKind::Video && tag.body.get(1) == Some(&1)
}

/// A tag's body with one NAL unit.
fn picture(head: u8, nal_header: u8, len: usize) -> Bytes {
    let nal_len = u32::try_from(len + 1).expect("a small picture").to_be_bytes();
    [&[head, 1, 0, 0, 0][..], &nal_len, &[nal_header], &noise(len)].concat().into()
}

/// Bytes without zeros, so that no start code is among them.
fn noise(len: usize) -> Vec<u8> {
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((*state >> 24) as u8 | 1)
    };
    std::iter::repeat_n((), len).scan(1, |state, ()| step(state)).collect()
}

/// Of an AudioSpecificConfig behind two bytes of FLV (ISO 14496-3 §1.6.2.1).
fn audio_rate(body: &[u8]) -> u64 {
    let index = usize::from((body[2] & 7) << 1 | body[3] >> 7);
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050][index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_about_a_mebibyte_and_times_rise() {
        let mut units = Media::new().units();
        let (mut bytes, mut last) = (0, 0);
        while units.next_at() < Duration::from_secs(2) {
            let unit = units.next();
            assert!(unit.timestamp_ms >= last);
            last = unit.timestamp_ms;
            bytes += unit.body.len();
        }
        assert!((1 << 20) * 9 / 10 < bytes && bytes < (1 << 20) * 11 / 10, "{bytes}");
        assert!(is_keyframe(&units.next()));
    }

    #[test]
    fn a_stamp_is_read_back() {
        let epoch = Instant::now();
        let body = stamped(&Media::new().keyframe, epoch);
        assert!(age(&body, epoch).is_some_and(|age| age < Duration::from_secs(5)));
    }
}
