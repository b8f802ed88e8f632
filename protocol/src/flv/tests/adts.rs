//! AAC with ADTS headers, which belong to files and broadcast, not into FLV.

use super::*;
use crate::media::Repairs;

/// AU-01: without any sequence header, the configuration stands in ADTS headers; one that comes counts.
#[test]
fn au_01_aac_with_adts_and_no_header() {
    // LC at 48 kHz, two channels; and at 44.1 kHz. A frame of two bytes behind each.
    let (first, other) = ("fff14c80013ffc2110", "fff15080013ffc2110");
    check(
        &[
            "aaf012110",
            &format!("aaf01{first}"),
            &format!("aaf01{first}"),
            &format!("aaf01{other}"),
            "aaf001190",
            &format!("aaf01{other}"),
        ],
        &[
            "skipped: frame before its codec configuration",
            "track 1 mp4a.40.2",
            "unit 1 key at 0 +0 of 2",
            "unit 1 key at 21 +0 of 2",
            "track 1 mp4a.40.2",
            "unit 1 key at 80 +0 of 2",
            "track 1 mp4a.40.2",
            "unit 1 key at 160 +0 of 2",
        ],
    );
    // Channels in a program_config_element are not told by the header.
    check(&["aaf01fff14c00013ffc2110"], &["skipped: frame before its codec configuration"]);
}

/// AU-01: several ADTS frames in a message are as many access units, each behind the one before.
#[test]
fn au_01_several_adts_frames_in_a_message() {
    let frame = "fff14c80013ffc2110";
    let units = [
        "track 1 mp4a.40.2",
        "unit 1 key at 0 +0 of 2",
        "unit 1 key at 21 +0 of 2",
        "unit 1 key at 43 +0 of 2",
        "unit 1 key at 64 +0 of 2",
        "unit 1 key at 85 +0 of 2",
    ];
    let two = format!("aaf01{frame}{frame}");
    let three = format!("aaf01{frame}{frame}{frame}");
    // At 0 and at 40 ms.
    check(&[&two, &three], &units);
    check(&["aaf001190", &format!("{two}{frame}{frame}{frame}")], &units);
    // What is no whole frame gets to nobody.
    for rest in [
        "00",
        "2110",
        "fff14c",
        "fff14c80015ffc2110",
        "fff14c8000dffc",
        "fff14c8000fffc",
        "fff17c80013ffc2110",
    ] {
        let mut expected = units[..3].to_vec();
        expected.push("skipped: message is cut off");
        check(&[&format!("{two}{rest}")], &expected);
        if rest.len() > 12 {
            check(&["aaf001190", &format!("aaf01{rest}")], &["skipped: message is cut off"]);
        }
    }
    // Nobody collects so many.
    let events = demux(&[&format!("aaf01{}", frame.repeat(1000))]);
    assert!(events.len() < 100, "{} events", events.len());
    assert_eq!(events.last().unwrap(), "skipped: message is cut off");
    // Nothing of it is a repair.
    let (mut demuxer, mut pool) = (Demuxer::default(), HeapPool::default());
    for at in (0..430).step_by(43) {
        demuxer.push(TagKind::Audio, at, hex(&two[1..]).into(), &mut pool);
    }
    assert_eq!(demuxer.repairs(), Repairs::default());
}
