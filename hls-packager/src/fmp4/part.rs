//! One part: `moof` and the head of `mdat` made, payloads shared (ISO 14496-12 §8.8).

use bytes::Bytes;
use weir_protocol::pool::Pool;

use super::boxes::BoxWriter;
use super::{AUDIO_TRACK_ID, VIDEO_TRACK_ID};
use crate::part::Sample;

const MOOF_HEAD: usize = 8 + 16;
const TRAF_HEAD: usize = 8 + 20 + 20 + 20;
const MDAT_HEAD: usize = 8;
const VIDEO_SAMPLE: usize = 16;
const AUDIO_SAMPLE: usize = 8;

/// sample_depends_on = 2: others are not needed (§8.8.3.1).
const SYNC_SAMPLE: u32 = 0x0200_0000;
/// sample_depends_on = 1, sample_is_non_sync_sample = 1.
const NON_SYNC_SAMPLE: u32 = 0x0101_0000;

const TFHD_DEFAULT_FLAGS: u32 = 0x20;
const TFHD_BASE_IS_MOOF: u32 = 0x02_0000;
const TRUN_DATA_OFFSET: u32 = 0x1;
const TRUN_DURATION: u32 = 0x100;
const TRUN_SIZE: u32 = 0x200;
const TRUN_FLAGS: u32 = 0x400;
const TRUN_COMPOSITION: u32 = 0x800;

/// Bytes before the first payload.
pub fn head_len(video: &[Sample], audio: &[Sample]) -> usize {
    moof_len(video, audio).saturating_add(MDAT_HEAD)
}

fn moof_len(video: &[Sample], audio: &[Sample]) -> usize {
    let traf = |samples: &[Sample], each: usize| match samples.len() {
        0 => 0,
        count => count.saturating_mul(each).saturating_add(TRAF_HEAD),
    };
    MOOF_HEAD.saturating_add(traf(video, VIDEO_SAMPLE)).saturating_add(traf(audio, AUDIO_SAMPLE))
}

/// The part's bytes in order, or `None` when `pool` is used up.
pub fn write_part(
    sequence: u32,
    video: &[Sample],
    audio: &[Sample],
    pool: &mut impl Pool,
) -> Option<Vec<Bytes>> {
    let head_len = head_len(video, audio);
    let video_len = payload_len(video);
    let mut w = BoxWriter::with_capacity(head_len);
    w.plain(b"moof", |w| {
        w.full(b"mfhd", 0, 0, |w| w.u32(sequence));
        if let Some(first) = video.first() {
            w.plain(b"traf", |w| {
                track_head(w, VIDEO_TRACK_ID, NON_SYNC_SAMPLE, first);
                video_run(w, video, offset(head_len, 0));
            });
        }
        if let Some(first) = audio.first() {
            w.plain(b"traf", |w| {
                track_head(w, AUDIO_TRACK_ID, SYNC_SAMPLE, first);
                audio_run(w, audio, offset(head_len, video_len));
            });
        }
    });
    let mdat_len = MDAT_HEAD.saturating_add(video_len).saturating_add(payload_len(audio));
    w.u32(u32::try_from(mdat_len).unwrap_or(u32::MAX));
    w.bytes(b"mdat");

    let mut out = Vec::with_capacity(video.len().saturating_add(audio.len()).saturating_add(1));
    out.push(pool.copy(&w.into_bytes())?);
    out.extend(video.iter().chain(audio).map(|sample| sample.payload.clone()));
    Some(out)
}

fn payload_len(samples: &[Sample]) -> usize {
    samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.payload.len()))
}

fn offset(head_len: usize, before: usize) -> i32 {
    i32::try_from(head_len.saturating_add(before)).unwrap_or(i32::MAX)
}

fn track_head(w: &mut BoxWriter, id: u32, flags: u32, first: &Sample) {
    w.full(b"tfhd", 0, TFHD_BASE_IS_MOOF | TFHD_DEFAULT_FLAGS, |w| {
        w.u32(id);
        w.u32(flags);
    });
    w.full(b"tfdt", 1, 0, |w| w.u64(u64::try_from(first.position).unwrap_or(0)));
}

fn video_run(w: &mut BoxWriter, samples: &[Sample], data_offset: i32) {
    let flags = TRUN_DATA_OFFSET | TRUN_DURATION | TRUN_SIZE | TRUN_FLAGS | TRUN_COMPOSITION;
    // Version 1: composition offsets are signed (§8.8.8.1).
    w.full(b"trun", 1, flags, |w| {
        run_head(w, samples, data_offset);
        for sample in samples {
            w.u32(sample.duration);
            w.u32(size(sample));
            w.u32(if sample.keyframe { SYNC_SAMPLE } else { NON_SYNC_SAMPLE });
            w.i32(sample.composition_offset());
        }
    });
}

fn audio_run(w: &mut BoxWriter, samples: &[Sample], data_offset: i32) {
    w.full(b"trun", 1, TRUN_DATA_OFFSET | TRUN_DURATION | TRUN_SIZE, |w| {
        run_head(w, samples, data_offset);
        for sample in samples {
            w.u32(sample.duration);
            w.u32(size(sample));
        }
    });
}

fn run_head(w: &mut BoxWriter, samples: &[Sample], data_offset: i32) {
    w.u32(u32::try_from(samples.len()).unwrap_or(u32::MAX));
    w.i32(data_offset);
}

fn size(sample: &Sample) -> u32 {
    u32::try_from(sample.payload.len()).unwrap_or(u32::MAX)
}
