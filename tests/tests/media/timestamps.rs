use weir_e2e::{Backend, clips};

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
