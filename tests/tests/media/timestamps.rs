use weir_e2e::airing::{Airing, KEEP_ALL};
use weir_e2e::replay::edit::{Editor, is_frame};
use weir_e2e::{Backend, Gateway, clips};
use weir_protocol::flv::Tag;
use weir_protocol::flv::TagKind::{Audio, Video};

use crate::{Row, run};

#[test]
fn odd_stamps_are_repaired_and_counted() {
    let (plain, reordered) = (clips::plain(), clips::reordered());
    let mut rows = vec![
        // Each track has an origin of its own.
        Row::new("TS-05", plain, "shift video +95443000").repairs("aligned", 1..=1),
        Row::new("TS-05", plain, "shift audio +95443000").repairs("aligned", 1..=1),
        Row::new("TS-06", plain, "cts video.frame =-34"),
        // Constant steps where frames last 23.22 ms.
        Row::new("TS-08", plain, "every audio.frame 23").repairs("resync", 1..=1),
        Row::new("TS-08", plain, "every audio.frame 24").repairs("resync", 3..=5),
        Row::new("TS-09", plain, "repeat video.inter/20").repairs("jitter", 10..=14),
    ];
    for edits in
        ["shift video/50+49 -9800000", "shift video/50+49 +37600000", "shift audio/50+49 +37600000"]
    {
        rows.push(Row::new("TS-03", plain, edits).repairs("outlier", 5..=9));
        rows.push(Row::new("TS-03", reordered, edits).repairs("outlier", 5..=10));
    }
    run(Backend::Epoll, &rows);
}

#[test]
fn clocks_may_wrap() {
    let (plain, reordered) = (clips::plain(), clips::reordered());
    let mut rows = vec![
        Row::new("unedited", plain, "").decodes(),
        Row::new("unedited", reordered, "").decodes(),
        Row::new("unedited", clips::sound(), "").decodes(),
        Row::new("unedited", clips::pictures(), "").decodes(),
    ];
    for bits in [24, 31, 32] {
        let before = (1_u64 << bits) - 5_017;
        let edits = format!("shift all +{before}; modulo all 2^{bits}");
        for clip in [plain, reordered, clips::sound(), clips::pictures()] {
            let wraps = if clip.tags.len() < 450 { 1..=1 } else { 2..=2 };
            rows.push(Row::new("TS-01", clip, &edits).repairs("wrap", wraps));
        }
    }
    run(Backend::Uring, &rows);
}

/// Encoders that begin anew on the same connection, and files that are sent again and again.
#[test]
fn ts_02_steps_back_do_not_end_the_stream() {
    let mut rows = Vec::new();
    for clip in [clips::plain(), clips::reordered(), clips::sound(), clips::pictures()] {
        let new_timeline = |edits| {
            Row::new("TS-02", clip, edits).repairs("new_timeline", 1..=1).discontinuities(1)
        };
        rows.extend([
            Row::new("TS-02", clip, "shift all@5s -40").repairs("jitter", 1..=4),
            new_timeline("shift all@5s -1000"),
            new_timeline("shift all@5s -5000"),
            new_timeline("shift all +3700000; shift all@5s -3600000"),
            new_timeline("shift all@10240ms -10240").turns(2),
        ]);
    }
    run(Backend::Epoll, &rows);
}

/// TS-05: the first frame is of sound that is ahead of the pictures, from zero on and from anywhere.
/// The pictures before it keep their times.
#[test]
fn ts_05_tracks_may_begin_before_the_first_frame() {
    let gateway = Gateway::start(Backend::Epoll, &KEEP_ALL);
    let mut clip = clips::plain().clone();
    let first = |kind| clip.tags.iter().position(|tag| tag.kind == kind && is_frame(tag));
    let (picture, sound) = (first(Video).expect("a picture"), first(Audio).expect("sound"));
    clip.tags[picture.min(sound)..=sound].rotate_right(1);
    let table = [(200, 0), (500, 0), (3_000, 0), (3_000, 95_443_000)];
    for (number, (ahead, origin)) in table.into_iter().enumerate() {
        let edits = format!("shift audio +{ahead}; shift all +{origin}");
        let airing = Airing::of(&gateway, &format!("ts-05-ahead-{number}"), &clip, &edits);
        let sent = Editor::parse(&edits).expect("edits").edit(&clip.tags);
        for (name, times) in outputs(&airing) {
            let what = format!("{name}: {ahead} ms ahead, from {origin} on");
            assert_eq!(times[0].len(), clips::PICTURES, "{what}");
            let moved = [Video, Audio].map(|kind| {
                let sent = sent.iter().filter(|tag| tag.kind == kind && is_frame(tag));
                let sent = sent.map(|tag| f64::from(tag.timestamp_ms) / 1000.0);
                let times = &times[usize::from(kind == Audio)];
                // A player that joins at the first picture misses the sound before it.
                let pairs = times.iter().rev().zip(sent.rev());
                pairs.map(|(time, sent)| time - sent).collect::<Vec<_>>()
            });
            assert!(spread(&moved[0]) < 0.002, "{what}: pictures moved by {:?}", moved[0]);
            assert!(spread(&moved.concat()) < 0.045, "{what}: moved by {moved:?}");
        }
    }
}

/// When pictures and sound are presented in each output, in seconds.
fn outputs(airing: &Airing) -> Vec<(&'static str, [Vec<f64>; 2])> {
    let seconds = |tag: &&Tag| f64::from(tag.timestamp_ms) / 1000.0;
    let flv = [Video, Audio].map(|kind| airing.flv_frames(kind).iter().map(seconds).collect());
    let hls = airing.renditions().map(|(name, rendition)| {
        let times = |kind| rendition.of(kind).iter().map(|sample| sample.pts).collect();
        (name, [Video, Audio].map(times))
    });
    [("FLV", flv)].into_iter().chain(hls).collect()
}

fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    most - values.iter().copied().fold(f64::MAX, f64::min)
}
