//! Bodies in hexadecimal, with parameter sets as x264, x265, SVT-AV1 and libvpx make them.

mod adts;
mod demux;
mod enhanced;
mod mux;

use super::*;
use crate::codec::tests::{AC3, EAC3, STREAMINFO, hex};
use crate::pool::HeapPool;

const AVCC: &str = "014d401fffe10017674d401fda014016ec0440000003004000000c83c60ca801000468ef3c80";
const HVCC: &str = "0101600000009000000000003cf000fcfdf8f800000f03200001001840010c01ffff0160000003
    0090000003000003003c959809210001002942010101600000030090000003000003003ca00a080f165959a4932bc0
    5a7080000003008000000c0422000100074401c172b46240";
const AV1C: &str = "81000c000a0b0200000561e7f66017c002";
const AV1_KEYFRAME: &str = "12000a0b0200000561e7f66017c00232021000";
const VP9_KEYFRAME: &str = "824983420013f00b360638241c184a00";
const SPS_PPS: &str = "00000017674d401fda014016ec0440000003004000000c83c60ca80000000468ef3c80";

fn describe(event: Event) -> String {
    match event {
        Event::Metadata(_) => "metadata".to_owned(),
        Event::Track(track) => format!("track {} {}", track.id.0, track.codec.rfc6381()),
        Event::Unit(unit) => {
            let key = if unit.keyframe { " key" } else { "" };
            let (dts, offset) = (unit.dts.as_ms(), unit.composition_offset.as_ms());
            let len = unit.payload.len();
            format!("unit {}{key} at {dts} {offset:+} of {len}", unit.track.0)
        }
        Event::Color(track, color) => format!("color {} {:?}", track.0, color.primaries),
        Event::NewTimeline => "new timeline".to_owned(),
        Event::Skipped(skipped) => format!("skipped: {}", skipped.reason),
    }
}

/// Pushes bodies in hexadecimal, 40 ms apart: `v` video, `a` audio, `s` script.
fn demux(bodies: &[&str]) -> Vec<String> {
    let mut demuxer = Demuxer::default();
    let mut events = Vec::new();
    for (timestamp_ms, body) in (0..).step_by(40).zip(bodies) {
        let (kind, body) = body.split_at(1);
        let kind = match kind {
            "v" => TagKind::Video,
            "a" => TagKind::Audio,
            _ => TagKind::Script,
        };
        demuxer.push(kind, timestamp_ms, hex(body).into(), &mut HeapPool::default());
        events.extend(std::iter::from_fn(|| demuxer.poll()).map(describe));
    }
    events
}

fn check(bodies: &[&str], expected: &[&str]) {
    assert_eq!(demux(bodies), expected, "{bodies:?}");
}
