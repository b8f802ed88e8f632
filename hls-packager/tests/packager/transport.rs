//! Transport streams as a demultiplexer sees them.

use std::collections::HashMap;
use std::fmt::Write;

use weir_hls::{Config, Format, Window};
use weir_protocol::media::{AccessUnit, Ticks};
use weir_protocol::pool::HeapPool;

use crate::feed::{Feed, VIDEO, aac_track, nals};
use crate::goldens::check;

const PAT: u16 = 0;
const PMT: u16 = 0x1000;
const VIDEO_PID: u16 = 0x100;
const AUDIO_PID: u16 = 0x101;
const WRAP: i64 = 1 << 33;

struct Pes {
    pid: u16,
    pts: i64,
    dts: i64,
    payload: Vec<u8>,
}

/// Follows a stream over segments and asserts what must hold at each packet.
#[derive(Default)]
struct Demuxer {
    counters: HashMap<u16, u8>,
    pcr: Option<i64>,
    dts: HashMap<u16, i64>,
    pes: Vec<Pes>,
    breaks: usize,
}

impl Demuxer {
    fn segment(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len() % 188, 0);
        let first: Vec<u16> = bytes.chunks(188).take(2).map(pid).collect();
        assert_eq!(first, [PAT, PMT]);
        bytes.chunks(188).for_each(|packet| self.packet(packet));
    }

    fn packet(&mut self, packet: &[u8]) {
        assert_eq!(packet[0], 0x47);
        let (pid, unit_start) = (pid(packet), packet[1] & 0x40 != 0);
        let (has_field, has_payload) = (packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        let mut at = 4;
        if has_field {
            self.adaptation(&packet[5..5 + usize::from(packet[4])]);
            at = 5 + usize::from(packet[4]);
        }
        let counter = packet[3] & 0x0f;
        if let Some(last) = self.counters.insert(pid, counter) {
            let expected = if has_payload { (last + 1) & 0x0f } else { last };
            assert_eq!(counter, expected, "continuity of {pid:#x}");
        }
        if !has_payload {
            return;
        }
        let payload = &packet[at..];
        match pid {
            PAT | PMT => assert_eq!(crc(&payload[1..4 + usize::from(payload[3])]), 0),
            _ if unit_start => self.start(pid, payload),
            _ => {
                let open = self.pes.iter_mut().rev().find(|pes| pes.pid == pid).unwrap();
                open.payload.extend_from_slice(payload);
            }
        }
    }

    fn adaptation(&mut self, field: &[u8]) {
        let Some(flags) = field.first() else { return };
        if flags & 0x80 != 0 {
            self.breaks += 1;
            self.pcr = None;
            self.dts.clear();
        }
        if flags & 0x10 != 0 {
            let bits = field[1..7].iter().fold(0_i64, |bits, byte| bits << 8 | i64::from(*byte));
            let pcr = bits >> 15;
            if let Some(last) = self.pcr {
                let step = (pcr - last).rem_euclid(WRAP);
                assert!((1..=9000).contains(&step), "PCR moves by {step}");
            }
            self.pcr = Some(pcr);
        }
    }

    fn start(&mut self, pid: u16, bytes: &[u8]) {
        assert_eq!(bytes[..3], [0, 0, 1]);
        let pts = stamp(&bytes[9..14]);
        let dts = if bytes[7] & 0x40 != 0 { stamp(&bytes[14..19]) } else { pts };
        assert!((pts - dts).rem_euclid(WRAP) < WRAP / 2, "PTS is not below DTS");
        if let Some(last) = self.dts.insert(pid, dts) {
            assert!((1..WRAP / 2).contains(&(dts - last).rem_euclid(WRAP)), "DTS rises");
        }
        let ahead = (dts - self.pcr.expect("PCR comes first")).rem_euclid(WRAP);
        assert!(ahead < WRAP / 2, "PCR is not above DTS");
        let payload = bytes[9 + usize::from(bytes[8])..].to_vec();
        self.pes.push(Pes { pid, pts, dts, payload });
    }
}

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1] & 0x1f, packet[2]])
}

fn stamp(bytes: &[u8]) -> i64 {
    assert!(bytes[0] & 1 == 1 && bytes[2] & 1 == 1 && bytes[4] & 1 == 1, "marker bits");
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|at| i64::from(bytes[at]));
    (a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1
}

fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            if crc >> 31 == 0 { crc << 1 } else { crc << 1 ^ 0x04c1_1db7 }
        })
    })
}

fn packaged(feed: &Feed) -> std::sync::Arc<Window> {
    let mut packager = feed.packaged(Config { window: 1000, ..Config::default() });
    packager.end();
    packager.window()
}

fn demux(window: &Window) -> Demuxer {
    let mut demuxer = Demuxer::default();
    let mut pool = HeapPool::default();
    for segment in window.listed() {
        let mut bytes = Vec::new();
        for part in segment.parts() {
            for region in part.ts(&mut pool).unwrap() {
                assert!(region.len() % 188 == 0 && region.len() <= 65_536);
                bytes.extend_from_slice(region);
            }
        }
        assert_eq!(bytes.len() as u64, segment.len(Format::Ts));
        demuxer.segment(&bytes);
    }
    demuxer
}

#[test]
fn streams_of_all_shapes_demultiplex() {
    let base = Feed { seconds: 12, ..Feed::default() };
    for feed in [
        base.clone(),
        Feed { reorder: true, ..base.clone() },
        Feed { reorder: true, negative_offsets: true, ..base.clone() },
        Feed { audio: None, rate: Some((1, 1)), gop: 3, ..base.clone() },
        Feed { rate: Some((1, 1)), gop: 3, ..base.clone() },
        Feed { rate: Some((60, 1)), gop: 250, audio: Some(22_050), ..base.clone() },
        Feed { rate: None, ..base.clone() },
        // Both wraps: 2^32 and 2^33 ticks.
        Feed { start_ms: 47_716_000, ..base.clone() },
        Feed { start_ms: 95_438_000, ..base.clone() },
    ] {
        let window = packaged(&feed);
        let demuxer = demux(&window);
        assert_eq!(demuxer.breaks, 0, "{feed:?}");
        let pictures = demuxer.pes.iter().filter(|pes| pes.pid == VIDEO_PID).count() as i64;
        let (count, per) = feed.rate.unwrap_or((0, 1));
        assert_eq!(pictures, feed.seconds * count / per);
        let sound: usize =
            demuxer.pes.iter().filter(|p| p.pid == AUDIO_PID).map(|p| p.payload.len()).sum();
        let sent: usize =
            feed.units().iter().filter(|u| u.track != VIDEO).map(|u| u.payload.len() + 7).sum();
        assert!(sent - sound <= 250 * 4, "{sent} {sound}");
        let text = String::from_utf8(window.media_playlist(Format::Ts).to_vec()).unwrap();
        assert!(!text.contains("DISCONTINUITY\n"));
    }
}

#[test]
fn counters_go_on_over_a_break_that_is_flagged() {
    let feed = Feed { seconds: 5, ..Feed::default() };
    let mut packager = feed.packaged(Config { window: 1000, ..Config::default() });
    packager.discontinuity();
    feed.units().iter().for_each(|unit| packager.push(unit));
    packager.end();
    assert_eq!(demux(&packager.window()).breaks, 1);
}

#[test]
fn sound_and_picture_keep_their_distance() {
    let demuxer =
        demux(&packaged(&Feed { reorder: true, negative_offsets: true, ..Feed::default() }));
    let first = |pid| demuxer.pes.iter().find(|pes| pes.pid == pid).unwrap();
    assert_eq!(first(VIDEO_PID).pts, first(AUDIO_PID).pts);
    assert_eq!(first(VIDEO_PID).pts - first(VIDEO_PID).dts, 3600, "shifted by one picture");
}

/// The NAL unit types of a picture in Annex B.
fn types(annex_b: &[u8]) -> Vec<u8> {
    let start = [0, 0, 0, 1];
    let starts = annex_b.windows(5).filter(|window| window[..4] == start);
    starts.map(|window| window[4] & 0x1f).collect()
}

#[test]
fn one_delimiter_first_and_parameter_sets_once() {
    let (delimiter, sei, slice) = ([9, 0x10], [6, 5, 1, 0x80], [0x41, 1, 2, 3]);
    let (sps, pps, idr) = ([0x67, 1, 2], [0x68, 3], [0x65, 4, 5]);
    let pictures: [&[&[u8]]; 6] = [
        &[&idr, &idr],
        &[&slice, &slice, &slice, &slice],
        &[&delimiter, &sei, &sps, &pps, &idr],
        &[&sei, &delimiter, &slice],
        &[&[], &slice, &[]],
        &[&delimiter],
    ];
    let expected: [&[u8]; 5] =
        [&[9, 7, 8, 5, 5], &[9, 1, 1, 1, 1], &[9, 6, 7, 8, 5], &[9, 6, 1], &[9, 1]];
    let feed = Feed { audio: None, ..Feed::default() };
    let mut packager = feed.packager(Config::default());
    for (n, picture) in pictures.iter().enumerate() {
        packager.push(&AccessUnit {
            track: VIDEO,
            dts: Ticks::from_ms(n as i64 * 40),
            composition_offset: Ticks(0),
            keyframe: n == 0 || n == 2,
            payload: nals(picture),
        });
    }
    packager.end();
    let demuxer = demux(&packager.window());
    let found: Vec<Vec<u8>> = demuxer.pes.iter().map(|pes| types(&pes.payload)).collect();
    assert_eq!(found, expected);
}

#[test]
fn packets() {
    let feed = Feed { seconds: 3, ..Feed::default() };
    let window = packaged(&feed);
    let bytes = window.listed()[0].parts()[0].ts(&mut HeapPool::default()).unwrap().concat();
    let mut out = String::new();
    for packet in bytes.chunks(188) {
        let hex: String = packet[..40].iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{hex}").unwrap();
    }
    check("part.packets", &out);
}

#[test]
fn audio_rate_changes_are_a_new_program_version() {
    let feed = Feed { rate: None, seconds: 5, ..Feed::default() };
    let mut packager = feed.packaged(Config { window: 1000, ..Config::default() });
    packager.set_tracks(&[aac_track(44_100)]);
    let second = Feed { audio: Some(44_100), start_ms: 5000, ..feed };
    second.units().iter().for_each(|unit| packager.push(unit));
    packager.end();
    let window = packager.window();
    let demuxer = demux(&window);
    assert_eq!(demuxer.breaks, 1);
    let version = |at: usize| {
        let bytes = window.listed()[at].parts()[0].ts(&mut HeapPool::default()).unwrap().concat();
        bytes[188 + 4 + 1 + 5] >> 1 & 0x1f
    };
    assert_eq!((version(0), version(window.listed().len() - 1)), (0, 1));
}

#[test]
fn a_used_up_pool_is_no_panic() {
    struct Empty;
    impl weir_protocol::pool::Pool for Empty {
        type Region = weir_protocol::pool::HeapRegion;
        fn reserve(&mut self, _: usize) -> Option<Self::Region> {
            None
        }
    }
    let window = packaged(&Feed { seconds: 3, ..Feed::default() });
    let part = &window.listed()[0].parts()[0];
    assert!(part.ts(&mut Empty).is_none() && part.fmp4(&mut Empty).is_none());
    assert!(part.ts(&mut HeapPool::default()).is_some());
}
