//! Validators of all that a recording holds. Each is blind to something, so all of them run.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mp4::Timeline;
use crate::recorder::{Piece, Recording};
use crate::tools::{self, output, run};

/// Runs every validator that fits.
///
/// # Panics
/// With the first complaint.
pub fn recording(recording: &Recording) {
    playlists(&recording.playlists);
    assert!(!recording.segments.is_empty(), "no segment was recorded");
    let fragmented = recording.segments[0].init.is_some();
    if fragmented {
        fragments(&recording.segments);
        if !recording.parts.is_empty() {
            fragments(&recording.parts);
        }
    }
    durations(recording);
    recording.segments.iter().for_each(segment);
    let joined = recording.joined();
    decodes(&joined);
    decode_times_rise(&joined);
    if !fragmented {
        transport_stream(&joined);
    }
}

/// hls-parser in strict mode, m3u8 and openm3u8.
///
/// # Panics
/// With their complaints.
pub fn playlists(files: &[PathBuf]) {
    assert!(!files.is_empty(), "no playlist to validate");
    let scripts = tools::root().join("tests/validate");
    let mut node = Command::new("node");
    run("hls-parser", node.arg(scripts.join("playlists.mjs")).args(files));
    let mut python = Command::new(tools::python());
    run("m3u8", python.arg(scripts.join("playlists.py")).args(files));
}

/// Times and sizes of the boxes of consecutive segments, or parts.
///
/// # Panics
/// With what is wrong, and where.
pub fn fragments(pieces: &[Piece]) {
    let mut timeline = Timeline::default();
    for piece in pieces {
        if let Err(error) = timeline.check(&piece.bytes()) {
            panic!("{}: {error}", piece.uri);
        }
    }
}

/// No segment is longer than the target duration (rounded, RFC 8216bis §4.4.3.1), no part longer
/// than the part target, and only a segment's last part shorter than 85 % of it
/// (§4.4.4.9); the hold back is at least two part targets (§4.4.3.8).
///
/// # Panics
/// With the offender.
pub fn durations(recording: &Recording) {
    let target = recording.last.target_duration;
    for segment in &recording.segments {
        assert!(segment.duration.round() <= target, "{}: {} s", segment.uri, segment.duration);
    }
    let Some(target) = recording.last.part_target else { return };
    let hold = recording.last.part_hold_back.expect("PART-HOLD-BACK is mandatory with parts");
    assert!(hold >= 2.0 * target, "PART-HOLD-BACK {hold} for parts of {target}");
    let longest = recording.parts.iter().find(|part| part.duration > target + 1e-6);
    assert!(longest.is_none(), "part longer than {target}: {longest:?}");
    for segment in &recording.last.segments {
        let all_but_last = segment.parts.split_last().map_or(&[][..], |(_, parts)| parts);
        for part in all_but_last {
            assert!(part.duration >= 0.85 * target, "{}: {} s", part.uri, part.duration);
        }
    }
}

/// A segment alone (after its init segment) decodes without a complaint.
///
/// # Panics
/// With the complaint.
pub fn segment(piece: &Piece) {
    match &piece.init {
        None => decodes(&piece.file),
        Some(init) => {
            let mut bytes = fs::read(init).expect("an init segment");
            bytes.extend(piece.bytes());
            let alone = piece.file.with_extension("alone.mp4");
            fs::write(&alone, bytes).expect("a file");
            decodes(&alone);
        }
    }
}

/// ffmpeg decodes all of `file` and has nothing to say.
///
/// # Panics
/// With what it says.
pub fn decodes(file: &Path) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-xerror", "-err_detect", "explode", "-i"]).arg(file);
    let output = output("ffmpeg", command.args(["-map", "0", "-f", "null", "-"]));
    let complaint = String::from_utf8_lossy(&output.stderr);
    let good = output.status.success() && complaint.trim().is_empty();
    assert!(good, "ffmpeg on {}: {}\n{complaint}", file.display(), output.status);
}

/// The decode times of every track rise in file order.
///
/// # Panics
/// With the time that does not.
pub fn decode_times_rise(file: &Path) {
    let mut command = Command::new("ffprobe");
    let entries = "packet=stream_index,dts";
    command.args(["-v", "error", "-show_entries", entries, "-of", "csv=p=0"]).arg(file);
    let mut last = HashMap::new();
    for line in run("ffprobe", &mut command).lines() {
        let Some((track, dts)) = line.split_once(',') else { continue };
        // TS carries one PES packet of several audio frames; ffprobe invents no time for some.
        let Ok(dts) = dts.trim_end_matches(',').parse::<i64>() else { continue };
        if let Some(before) = last.insert(track.to_owned(), dts) {
            assert!(dts > before, "{}: track {track}: {dts} after {before}", file.display());
        }
    }
    assert!(!last.is_empty(), "{}: no packet", file.display());
}

/// Continuity counters and sync bytes, by ffmpeg; tables and their checksums, by tsreport.
///
/// # Panics
/// With the first complaint.
pub fn transport_stream(file: &Path) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "warning", "-i"]).arg(file);
    let output = output("ffmpeg", command.args(["-map", "0", "-c", "copy", "-f", "null", "-"]));
    let complaint = String::from_utf8_lossy(&output.stderr).to_lowercase();
    for word in ["corrupt", "continuity", "sync"] {
        assert!(!complaint.contains(word), "{}: {complaint}", file.display());
    }
    let report = run("tsreport", Command::new("tsreport").args(["-b", "-err", "stdout"]).arg(file));
    let complaint = report.lines().find(|line| line.contains("###") || line.contains("!!!"));
    assert!(complaint.is_none(), "tsreport: {report}");
    assert!(report.contains("PCR"), "tsreport found no program: {report}");
}
