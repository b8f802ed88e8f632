//! The validators themselves: they accept what ffmpeg makes, and each sees its seeded defect.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weir_e2e::recorder::{Recording, record};
use weir_e2e::sync::Marks;
use weir_e2e::{Process, Scratch, tools, validate, wait_until};

/// Packages the demo clip with ffmpeg, serves it, and records it as the gateway's output will be.
fn recorded(kind: &str, scratch: &Scratch) -> Recording {
    let served = scratch.directory(kind);
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error", "-i"]).arg(tools::demo_clip()).args(["-c", "copy"]);
    ffmpeg.args(["-f", "hls", "-hls_time", "2", "-hls_playlist_type", "vod"]);
    ffmpeg.args(["-hls_segment_type", kind, "-hls_fmp4_init_filename", "init.mp4"]);
    tools::run("ffmpeg", ffmpeg.arg(served.join("index.m3u8")));

    let mut server = Command::new(tools::python());
    server.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]).current_dir(&served);
    let server = Process::start("server", &mut server, scratch.path());
    let port = wait_until("a port", Duration::from_secs(10), || {
        let log = server.log();
        Some(log.split_once("port ")?.1.split_once(' ')?.0.to_owned())
    });
    let url = format!("http://127.0.0.1:{port}/index.m3u8");
    record(&url, 30.0, &scratch.directory(&format!("recorded-{kind}")))
}

fn fails(what: &str, check: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(check)).is_err(), "{what} was not seen");
}

fn changed(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

fn position(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).unwrap()
}

#[test]
fn fragmented_mp4_is_validated() {
    let scratch = Scratch::new();
    let recording = recorded("fmp4", &scratch);
    assert_eq!(recording.segments.len(), 8);
    validate::recording(&recording);
    Marks::of(&recording.joined()).assert_in_sync(14, 0.02);

    let segment = &recording.segments[3];
    let good = segment.bytes();
    changed(&segment.file, |bytes| {
        let at = position(bytes, b"tfdt");
        bytes[at..at + 4].copy_from_slice(b"free");
    });
    fails("a missing tfdt", || validate::fragments(&recording.segments));
    changed(&segment.file, |bytes| {
        *bytes = good.clone();
        let at = position(bytes, b"tfdt");
        bytes[at + 11] ^= 1;
    });
    fails("a wrong tfdt", || validate::fragments(&recording.segments));
    changed(&segment.file, |bytes| bytes.truncate(good.len() - 100));
    fails("a truncated segment", || validate::fragments(&recording.segments));
    changed(&segment.file, |bytes| {
        *bytes = good.clone();
        let at = position(bytes, b"mdat");
        bytes[at + 8..at + 400].fill(0xff);
    });
    fails("a broken picture", || validate::segment(segment));
}

#[test]
fn transport_streams_are_validated() {
    let scratch = Scratch::new();
    let recording = recorded("mpegts", &scratch);
    assert_eq!(recording.segments.len(), 8);
    validate::recording(&recording);
    let joined = recording.joined();
    Marks::of(&joined).assert_in_sync(14, 0.02);

    let good = fs::read(&joined).unwrap();
    changed(&joined, |bytes| drop(bytes.drain(188 * 40..188 * 41)));
    fails("a lost TS packet", || validate::transport_stream(&joined));
    changed(&joined, |bytes| {
        *bytes = good.clone();
        let program_map = bytes.chunks(188).position(|packet| packet[1] & 0x5f == 0x50).unwrap();
        bytes[188 * program_map + 20] ^= 1;
    });
    fails("a wrong checksum", || validate::transport_stream(&joined));
    changed(&joined, |bytes| {
        *bytes = [&good[188 * 200..], &good[..188 * 200]].concat();
    });
    fails("decode times that fall", || validate::decode_times_rise(&joined));
}

#[test]
fn playlists_are_validated() {
    let scratch = Scratch::new();
    let file = scratch.file("live.m3u8");
    let good = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n\
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.6\n\
        #EXT-X-PART-INF:PART-TARGET=0.2\n#EXT-X-MAP:URI=\"init.mp4\"\n\
        #EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:05.678Z\n#EXTINF:2.00000,\n7.m4s\n\
        #EXT-X-PART:DURATION=0.20000,URI=\"8.0.m4s\",INDEPENDENT=YES\n\
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"8.1.m4s\"\n";
    fs::write(&file, good).unwrap();
    validate::playlists(std::slice::from_ref(&file));
    for (defect, from, to) in [
        ("a segment over the target duration", "#EXTINF:2.0", "#EXTINF:2.6"),
        ("a part over the part target", "DURATION=0.20000", "DURATION=0.30000"),
        ("a short hold back", "PART-HOLD-BACK=0.6", "PART-HOLD-BACK=0.1"),
        ("no target duration", "#EXT-X-TARGETDURATION:2\n", ""),
        ("a duration that is no number", "#EXTINF:2.00000", "#EXTINF:2.0x000"),
        ("a date that is none", "2026-01-02T", "2026-13-02T"),
    ] {
        assert!(good.contains(from));
        fs::write(&file, good.replace(from, to)).unwrap();
        fails(defect, || validate::playlists(std::slice::from_ref(&file)));
    }
}

#[test]
fn late_sound_is_measured() {
    let clip = tools::demo_clip();
    Marks::of(&clip).assert_in_sync(15, 0.02);
    let scratch = Scratch::new();
    let late = scratch.file("late.mkv");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-i"]).arg(&clip).args(["-itsoffset", "0.1", "-i"]).arg(&clip);
    command.args(["-map", "0:v", "-map", "1:a", "-c", "copy"]).arg(&late);
    tools::run("ffmpeg", &mut command);
    let offsets = Marks::of(&late).offsets();
    assert!(offsets.len() >= 14);
    assert!(offsets.iter().all(|offset| (0.08..0.12).contains(offset)), "{offsets:?}");
}
