//! Short clips that ffmpeg encodes and whose timestamps are exact, for tests that edit them.

use std::process::Command;
use std::sync::OnceLock;

use weir_protocol::flv::{Tag, TagKind};

use crate::replay::edit::is_frame;
use crate::replay::flv::Clip;
use crate::tools::{self, Scratch};

/// 256 pictures of 40 ms are 441 AAC frames at 44.1 kHz, and 480 at 48 kHz: clips can be sent again
/// and again as one stream without a seam.
pub const LENGTH_MS: u64 = 10_240;
pub const PICTURES: usize = 256;
pub const PICTURE_MS: u32 = 40;
/// A keyframe each second.
pub const GOP: usize = 25;

const PICTURE: &str = "testsrc2=s=192x108:r=25:d=11";

/// AVC without B-frames and AAC at 44.1 kHz.
#[must_use]
pub fn plain() -> &'static Clip {
    static CLIP: OnceLock<Clip> = OnceLock::new();
    CLIP.get_or_init(|| avc(0, "44100", &[]))
}

/// AVC with B-frames in four slices per picture, with access unit delimiters, and AAC at 48 kHz.
#[must_use]
pub fn reordered() -> &'static Clip {
    static CLIP: OnceLock<Clip> = OnceLock::new();
    CLIP.get_or_init(|| avc(2, "48000", &["-x264-params", "aud=1:slices=4:b-adapt=0"]))
}

/// AVC whose NAL units have fewer than 256 bytes.
#[must_use]
pub fn small_units() -> &'static Clip {
    static CLIP: OnceLock<Clip> = OnceLock::new();
    CLIP.get_or_init(|| avc(0, "44100", &["-crf", "40", "-x264-params", "slice-max-size=200"]))
}

/// HEVC (Enhanced RTMP) and AAC at 48 kHz.
#[must_use]
pub fn hevc() -> &'static Clip {
    static CLIP: OnceLock<Clip> = OnceLock::new();
    CLIP.get_or_init(|| {
        let parameters = "keyint=25:min-keyint=25:scenecut=0:bframes=2:log-level=error:pools=1";
        let video =
            ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", parameters, "-c:a", "aac"];
        let mut ffmpeg = Command::new(tools::ffmpeg9());
        encode(&mut ffmpeg, &["-i", PICTURE], "48000", &video)
    })
}

/// The sound of [`plain`].
#[must_use]
pub fn sound() -> &'static Clip {
    static CLIP: OnceLock<Clip> = OnceLock::new();
    CLIP.get_or_init(|| only(plain(), TagKind::Audio))
}

/// The pictures of [`plain`].
#[must_use]
pub fn pictures() -> &'static Clip {
    static CLIP: OnceLock<Clip> = OnceLock::new();
    CLIP.get_or_init(|| only(plain(), TagKind::Video))
}

fn only(clip: &Clip, kind: TagKind) -> Clip {
    Clip::of(clip.tags.iter().filter(|tag| tag.kind == kind).cloned().collect())
}

/// The pictures of [`plain`] with sound in another form.
#[must_use]
pub fn with_audio(arguments: &[&str]) -> Clip {
    let mut ffmpeg = Command::new("ffmpeg");
    let video = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-bf", "0"];
    encode(&mut ffmpeg, &["-i", PICTURE], "44100", &[&video[..], arguments].concat())
}

fn avc(b_frames: u8, rate: &str, more: &[&str]) -> Clip {
    let (b_frames, gop) = (b_frames.to_string(), GOP.to_string());
    let video = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", &b_frames, "-g", &gop];
    let fixed = ["-keyint_min", &gop, "-sc_threshold", "0", "-c:a", "aac"];
    let mut ffmpeg = Command::new("ffmpeg");
    encode(&mut ffmpeg, &["-i", PICTURE], rate, &[&video[..], &fixed, more].concat())
}

fn encode(ffmpeg: &mut Command, picture: &[&str], rate: &str, coding: &[&str]) -> Clip {
    let scratch = Scratch::new();
    let file = scratch.file("clip.flv");
    ffmpeg.args(["-nostdin", "-v", "error", "-f", "lavfi"]).args(picture);
    ffmpeg.args(["-f", "lavfi", "-i", &format!("sine=f=440:r={rate}:d=11")]);
    ffmpeg.args(coding).arg(&file);
    tools::run("ffmpeg", ffmpeg);
    exact(&Clip::read(&file).expect("what ffmpeg has written"))
}

/// Only what fits the length, stamped from zero: pictures each 40 ms, sounds by their samples
/// where they come in the frames of AAC.
fn exact(clip: &Clip) -> Clip {
    let rest = clip.tags.iter().filter(|tag| !is_frame(tag));
    let mut tags: Vec<Tag> = rest.cloned().map(|tag| Tag { timestamp_ms: 0, ..tag }).collect();
    let frames = |kind| clip.tags.iter().filter(move |tag| tag.kind == kind && is_frame(tag));
    let first = frames(TagKind::Audio).next().map_or(0, |tag| tag.timestamp_ms);
    let second = frames(TagKind::Audio).nth(400).map_or(first, |tag| tag.timestamp_ms);
    // 441 frames, or 480, in the length of the clip.
    let sounds = match second - first {
        9285..=9290 => Some(441),
        8530..=8535 => Some(480),
        _ => None,
    };
    let pictures = frames(TagKind::Video).take(PICTURES).zip(0..);
    let mut timed: Vec<Tag> = pictures
        .map(|(tag, number)| Tag { timestamp_ms: number * PICTURE_MS, ..tag.clone() })
        .collect();
    timed.extend(frames(TagKind::Audio).zip(0_u64..).filter_map(|(tag, number)| {
        let at = match sounds {
            Some(sounds) => (number * LENGTH_MS + sounds / 2) / sounds,
            None => u64::from(tag.timestamp_ms - first),
        };
        (at < LENGTH_MS).then(|| Tag { timestamp_ms: at as u32, ..tag.clone() })
    }));
    timed.sort_by_key(|tag| tag.timestamp_ms);
    tags.extend(timed);
    Clip { tags, length_ms: LENGTH_MS }
}
