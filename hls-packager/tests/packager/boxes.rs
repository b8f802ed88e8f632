//! fMP4 as a reader sees it.

use std::fmt::Write;

use bytes::Bytes;
use weir_hls::{Config, Part};
use weir_protocol::media::Ticks;
use weir_protocol::pool::HeapPool;

use crate::feed::Feed;
use crate::goldens::check;

const CONTAINERS: [&[u8; 4]; 10] =
    [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"mvex", b"moof", b"traf", b"dinf", b"edts"];

/// Boxes one after the other: kind and body.
fn boxes(mut bytes: &[u8]) -> Vec<(&[u8; 4], &[u8])> {
    let mut out = Vec::new();
    while let Some((head, _)) = bytes.split_first_chunk::<8>() {
        let size = u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
        let (this, rest) = bytes.split_at(size);
        out.push((this[4..8].try_into().unwrap(), &this[8..]));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "boxes fill the file");
    out
}

/// The box tree, one line each, with the bodies of the small boxes in hex.
fn tree(bytes: &[u8], depth: usize, out: &mut String) {
    for (kind, body) in boxes(bytes) {
        let name = String::from_utf8_lossy(kind);
        write!(out, "{:indent$}{name} {}", "", body.len() + 8, indent = depth * 2).unwrap();
        if CONTAINERS.contains(&kind) {
            out.push('\n');
            tree(body, depth + 1, out);
        } else {
            let hex: String = body.iter().take(96).map(|byte| format!("{byte:02x}")).collect();
            writeln!(out, " {hex}").unwrap();
        }
    }
}

fn find<'a>(bytes: &'a [u8], path: &[&[u8; 4]]) -> Vec<&'a [u8]> {
    let Some((first, rest)) = path.split_first() else { return vec![bytes] };
    let children = boxes(bytes).into_iter().filter(|(kind, _)| kind == first);
    children.flat_map(|(_, body)| find(body, rest)).collect()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn parts(feed: &Feed) -> (Bytes, Vec<std::sync::Arc<Part>>) {
    let mut packager = feed.packaged(Config { window: 1000, ..Config::default() });
    packager.end();
    let window = packager.window();
    let parts = window.listed().iter().flat_map(|segment| segment.parts().to_vec());
    (window.epoch().unwrap().init().clone(), parts.collect())
}

fn bytes(part: &Part) -> Vec<u8> {
    part.fmp4(&mut HeapPool::default()).unwrap().concat()
}

/// One `trun` with its `tfdt`: track, decoding time, and (duration, size, composition) each.
struct Run {
    track: u32,
    decode: u64,
    offset: usize,
    samples: Vec<(u32, u32, i32)>,
}

fn runs(part: &[u8]) -> Vec<Run> {
    let moof = boxes(part)[0].1;
    let trafs = find(moof, &[b"traf"]);
    let run = |traf: &&[u8]| {
        let (tfhd, tfdt, trun) =
            (find(traf, &[b"tfhd"])[0], find(traf, &[b"tfdt"])[0], find(traf, &[b"trun"])[0]);
        assert_eq!(tfhd[1..4], [2, 0, 0x20], "default base is moof");
        assert_eq!((tfdt[0], trun[0]), (1, 1), "64-bit times, signed offsets");
        let with_composition = u32_at(trun, 0) & 0x800 != 0;
        let step = if with_composition { 16 } else { 8 };
        let samples = trun[12..].chunks(step).map(|sample| {
            let composition = if with_composition { u32_at(sample, 12) as i32 } else { 0 };
            (u32_at(sample, 0), u32_at(sample, 4), composition)
        });
        Run {
            track: u32_at(tfhd, 4),
            decode: u64_at(tfdt, 4),
            offset: u32_at(trun, 8) as usize,
            samples: samples.collect(),
        }
    };
    trafs.iter().map(run).collect()
}

#[test]
fn box_trees() {
    let (init, parts) = parts(&Feed { seconds: 3, ..Feed::default() });
    let mut out = String::new();
    tree(&init, 0, &mut out);
    tree(&bytes(&parts[0]), 0, &mut out);
    check("av.boxes", &out);
    let (init, _) = self::parts(&Feed { rate: None, audio: Some(44_100), ..Feed::default() });
    out.clear();
    tree(&init, 0, &mut out);
    check("audio.boxes", &out);
}

#[test]
fn samples_follow_on_each_other_and_lie_where_the_runs_say() {
    let feed = Feed { reorder: true, audio: Some(44_100), seconds: 20, ..Feed::default() };
    let (_, parts) = parts(&feed);
    let mut next = [None, None];
    let mut sequence = 0;
    for part in &parts {
        let file = bytes(part);
        let [(moof, body), (mdat, payload)] = boxes(&file)[..] else { panic!("moof and mdat") };
        assert_eq!((moof, mdat), (b"moof", b"mdat"));
        let number = u32_at(find(body, &[b"mfhd"])[0], 4);
        assert_eq!(number, sequence + 1);
        sequence = number;
        let mut at = file.len() - payload.len();
        for run in runs(&file) {
            assert_eq!(run.offset, at, "runs lie one after the other");
            at += run.samples.iter().map(|sample| sample.1 as usize).sum::<usize>();
            let expected = &mut next[run.track as usize - 1];
            assert_eq!(*expected.get_or_insert(run.decode), run.decode);
            let lasting: u64 = run.samples.iter().map(|sample| u64::from(sample.0)).sum();
            *expected = Some(run.decode + lasting);
            if run.track == 2 {
                assert!(run.samples.iter().all(|sample| sample.0 == 1024));
            }
        }
        assert_eq!(at, file.len());
    }
}

#[test]
fn payloads_are_shared_and_not_copied() {
    let feed = Feed::default();
    let units = feed.units();
    let mut packager = feed.packager(Config::default());
    units.iter().for_each(|unit| packager.push(unit));
    let window = packager.window();
    let part = &window.listed()[0].parts()[0];
    let mut pool = HeapPool::default();
    let slices = part.fmp4(&mut pool).unwrap();
    for slice in &slices[1..] {
        assert!(units.iter().any(|unit| unit.payload.as_ptr() == slice.as_ptr()));
    }
    let again = part.fmp4(&mut pool).unwrap();
    assert_eq!(again[0].as_ptr(), slices[0].as_ptr(), "made once");
}

#[test]
fn negative_composition_offsets_stay_small() {
    let feed = Feed { reorder: true, negative_offsets: true, ..Feed::default() };
    let (_, parts) = parts(&feed);
    let offsets: Vec<i32> = parts
        .iter()
        .flat_map(|part| runs(&bytes(part)))
        .flat_map(|run| run.samples.into_iter().map(|sample| sample.2))
        .collect();
    assert_eq!(offsets.iter().min(), Some(&-3600));
    assert_eq!(offsets.iter().max(), Some(&10_800));
}

#[test]
fn decoding_times_pass_32_bits() {
    let feed = Feed { start_ms: 47_718_000, ..Feed::default() };
    let (_, parts) = parts(&feed);
    let decode = runs(&bytes(parts.last().unwrap()))[0].decode;
    assert!(decode > u64::from(u32::MAX));
    let total = parts.iter().fold(Ticks(0), |sum, part| sum + part.duration());
    assert!((9.9..10.1).contains(&crate::feed::seconds(total)));
}
