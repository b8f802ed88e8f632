//! Pictures in every form that encoders send them in.

use weir_e2e::replay::edit::{Editor, is_frame};
use weir_e2e::{Backend, clips};
use weir_protocol::flv::TagKind::Video;

use crate::{Row, run, same};

#[test]
fn pictures_come_out_whatever_their_form() {
    let (plain, reordered) = (clips::plain(), clips::reordered());
    let mut rows = vec![
        // The same headers again and again.
        Row::new("VI-01", plain, "header video.key video; header audio/40 audio").decodes(),
        Row::new("VI-01", reordered, "header video.key video; inband video.key").decodes(),
        // No sequence header, an empty one, one that says nothing.
        Row::new("VI-03", plain, "inband video.key; drop video.header").decodes(),
        Row::new("VI-03", plain, "inband video.key; body video.header 1700000000").decodes(),
        Row::new("VI-03", plain, "inband video.key; body video.header 17000000000164001fffe000"),
        // Nothing in a message, in a frame, in a NAL unit.
        Row::new("VI-04", plain, "insert video/10 video 2701000000; insert video/7 video 27")
            .decodes(),
        Row::new("VI-04", plain, "insert audio/10 audio af01; insert audio/7 audio af").decodes(),
        Row::new("VI-04", plain, "nal video.frame first -; nal video.frame last -").decodes(),
        Row::new("VI-04", plain, "append video.frame 0000").decodes(),
        // What the encoder says of itself is too long for such lengths.
        Row::new("VI-07", clips::small_units(), "without video.frame 6; lengths video 1").decodes(),
        // An access unit delimiter or none, parameter sets in band, several slices.
        Row::new("VI-08", reordered, "without video.frame 9").decodes(),
        Row::new("VI-08", reordered, "inband video.key").decodes(),
        Row::new("VI-08", plain, "nal video.frame first 0910").decodes(),
    ];
    for clip in [plain, reordered] {
        rows.push(Row::new("VI-06", clip, "annexb video 4").decodes());
        rows.push(Row::new("VI-06", clip, "annexb video 3").decodes());
        rows.push(Row::new("VI-07", clip, "lengths video 2").decodes());
        rows.push(Row::new("VI-07", clip, "lengths video 4").decodes());
    }
    run(Backend::Uring, &rows);
}

#[test]
fn vi_07_the_form_of_nal_units_leaves_no_trace() {
    for clip in [clips::plain(), clips::reordered()] {
        let edits = [
            "",
            "lengths video 2",
            "annexb video 3",
            "annexb video 4",
            "append video.frame 000000",
            "nal video.frame first -; nal video.frame last -",
            // Reserved bits that are not set, and something behind the record.
            "byte video.header 9 0301",
            "append video.header 00ff00ff",
            // The same header again, or only its reserved bits others.
            "header video.key video",
            "header video.key video; byte video.header#1.. 9 0301",
        ];
        same(Backend::Epoll, "VI-07", &edits.map(|edits| (clip, edits)));
    }
}

/// VI-06: start codes inside what a length goes before.
#[test]
fn vi_06_start_codes_behind_a_length_leave_no_trace() {
    for clip in [clips::plain(), clips::reordered()] {
        let mut boxed = clip.clone();
        boxed.tags = Editor::parse("annexb video.frame 4").expect("an edit").edit(&clip.tags);
        for tag in boxed.tags.iter_mut().filter(|tag| tag.kind == Video && is_frame(tag)) {
            let (head, units) = tag.body.split_at(5);
            tag.body = [head, &(units.len() as u32).to_be_bytes(), units].concat().into();
        }
        same(Backend::Epoll, "VI-06", &[(clip, ""), (&boxed, "")]);
    }
}

#[test]
fn vi_03_pictures_begin_where_they_can_be_decoded() {
    let (plain, pictures) = (clips::plain(), clips::pictures());
    let rows = [
        // In the middle of a GOP.
        Row::new("VI-03", pictures, "drop video.frame#0").lost_pictures(25).seconds(9.24).decodes(),
        // Headers of one parameter set, of none, of three bytes.
        Row::new("VI-03", plain, "inband video.key; body video.header 170000000001640014ffe10000")
            .decodes(),
        Row::new("VI-03", plain, "inband video.key; body video.header 1700000000014d").decodes(),
        // A length of NAL lengths that there is not.
        Row::new("VI-07", plain, "inband video.key; byte video.header 9 fe").decodes(),
        Row::new("VI-04", plain, "insert video/9 video 17; insert video/7 video 1701").decodes(),
        Row::new("VI-04", plain, "insert video/9 video 17010000; insert audio/5 audio -").decodes(),
        Row::new("VI-04", plain, "insert video/9 video -; insert video/7 video 270100000000000000")
            .decodes(),
        Row::new("VI-06", plain, "annexb video.frame 4").decodes(),
        Row::new("VI-06", plain, "annexb video.header 4").decodes(),
        Row::new("VI-08", plain, "nal video.key last 0a; nal video.frame first 09f0").decodes(),
        Row::new("VI-08", plain, "insert video/10 video 270100000000000005060401ffff80").decodes(),
    ];
    run(Backend::Epoll, &rows);
}
