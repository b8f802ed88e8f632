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
