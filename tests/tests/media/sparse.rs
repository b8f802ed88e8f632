//! Few pictures: still scenes and slides, one in a second.

use weir_e2e::replay::edit::{is_frame, is_key};
use weir_e2e::replay::flv::Clip;
use weir_e2e::{Backend, clips};
use weir_protocol::flv::TagKind;

use crate::{Row, run};

/// The clip twice in a row, of its pictures only the keyframes.
fn each_second(clip: &Clip) -> Clip {
    let keep = clip
        .turns(2)
        .filter(|(tag, _)| tag.kind != TagKind::Video || !is_frame(tag) || is_key(tag));
    Clip { tags: keep.map(|(tag, _)| tag).collect(), length_ms: 2 * clip.length_ms }
}

/// The last picture begins at 20.24 s and lasts as long as the one before it.
#[test]
fn vi_09_few_pictures_keep_their_times() {
    let clips = [clips::plain(), clips::reordered(), clips::pictures()];
    let row = |clip| Row::new("VI-09", &each_second(clip), "").gap(1.05).seconds(21.24);
    run(Backend::Uring, &clips.map(row));
}
