//! HEVC under each of its names, and in every form.

use weir_e2e::replay::edit::{is_frame, is_header};
use weir_e2e::replay::flv::Clip;
use weir_e2e::{Backend, clips};

use crate::{Row, run, same};

/// Without what only Enhanced RTMP can say, its colour.
fn bare() -> Clip {
    let clip = clips::hevc();
    let tags = clip.tags.iter().filter(|tag| is_header(tag) || is_frame(tag)).cloned().collect();
    Clip { tags, length_ms: clip.length_ms }
}

#[test]
fn hevc_comes_out_whole() {
    let hevc = clips::hevc();
    // All pictures 80 ms earlier: some are shown before they are decoded.
    let [early, early_avc] =
        [hevc, clips::reordered()].map(|clip| clip.edited("cts video.frame -80"));
    let rows = [
        Row::new("ER-01", hevc, "").decodes(),
        Row::new("ER-01", hevc, "codec video 12").decodes(),
        Row::new("ER-01", hevc, "codec video 7").decodes(),
        Row::new("ER-01", hevc, "codec video 7; header video.key video").decodes(),
        Row::new("ER-01", hevc, "inband video.key; drop video.header; codec video 12").decodes(),
        Row::new("TS-06", &early, "").decodes(),
        Row::new("TS-06", &early, "codec video 12").decodes(),
        Row::new("TS-06", &early_avc, "").decodes(),
        Row::new("VI-01", hevc, "header video.key video; inband video.key").decodes(),
        Row::new("VI-03", hevc, "inband video.key; drop video.header").decodes(),
        Row::new("VI-04", hevc, "nal video.frame first -; append video.frame 000000").decodes(),
        Row::new("VI-04", hevc, "insert video/10 video a368766331; insert video/7 video a3")
            .decodes(),
        Row::new("VI-08", hevc, "nal video.frame first 460150").decodes(),
        Row::new("VI-08", hevc, "nal video.frame first 460150; inband video.key; lengths video 2")
            .decodes(),
    ];
    run(Backend::Epoll, &rows);
}

#[test]
fn er_01_the_name_of_hevc_makes_no_difference() {
    let hevc = &bare();
    let edits = ["", "codec video 12", "codec video 7", "lengths video 2", "annexb video.frame 4"];
    same(Backend::Uring, "ER-01", &edits.map(|edits| (hevc, edits)));
}
