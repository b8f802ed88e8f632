//! Few pictures: still scenes and slides, one in a second or in many.

use weir_e2e::replay::edit::{is_frame, is_key};
use weir_e2e::replay::flv::Clip;
use weir_e2e::{Backend, clips};
use weir_protocol::flv::TagKind;

use crate::{Row, run};

/// So many turns of the clip in a row. After the first `whole` turns, its pictures are only every
/// so-manieth of the keyframes, a second apart.
fn few(clip: &Clip, turns: u64, whole: u64, every: u64) -> Clip {
    let mut keyframes = 0;
    let keep = clip.turns(turns).filter(|(tag, at_ms)| {
        if tag.kind != TagKind::Video || !is_frame(tag) || *at_ms < whole * clip.length_ms {
            return true;
        }
        keyframes += u64::from(is_key(tag));
        is_key(tag) && keyframes % every == 1 % every
    });
    Clip { tags: keep.map(|(tag, _)| tag).collect(), length_ms: turns * clip.length_ms }
}

/// The last picture begins at 20.24 s and lasts as long as the one before it.
#[test]
fn vi_09_few_pictures_keep_their_times() {
    let clips = [clips::plain(), clips::reordered(), clips::pictures()];
    let row = |clip| Row::new("VI-09", &few(clip, 2, 0, 1), "").gap(1.05).seconds(21.24);
    run(Backend::Uring, &clips.map(row));
}

#[test]
fn vi_09_a_picture_in_five_seconds_is_a_segment() {
    let row = |clip, seconds| Row::new("VI-09", &few(clip, 4, 0, 5), "").gap(5.1).seconds(seconds);
    let whole = 4.0 * clips::plain().length_ms as f64 / 1000.0;
    // The last of the pictures begins at 37.72 s. How long it is seen, nothing tells.
    let rows = [(clips::plain(), whole), (clips::reordered(), whole), (clips::pictures(), 38.72)];
    run(Backend::Uring, &rows.map(|(clip, seconds)| row(clip, seconds)));
}

/// TARGETDURATION, two seconds, was promised when pictures were many. They keep their times all the
/// same, and that segments begin without them is counted.
#[test]
fn vi_09_pictures_may_become_few() {
    let row = |clip| Row::new("VI-09", &few(clip, 4, 1, 5), "").gap(5.1).without_keyframe(13);
    run(Backend::Uring, &[clips::plain(), clips::reordered()].map(row));
}
