//! Sound that is late with its configuration, has another form, or never comes.

use std::process::Command;

use weir_e2e::airing::{Airing, KEEP_ALL};
use weir_e2e::replay::edit::{Editor, is_frame, is_header};
use weir_e2e::replay::flv::Clip;
use weir_e2e::{Backend, Gateway, clips, tools};
use weir_protocol::flv::{Tag, TagKind};

use crate::{Row, run, same};

#[test]
fn sound_comes_out_or_is_left_out() {
    let plain = clips::plain();
    let rows = [
        // An empty header before the real one; headers of ADTS, with and without another one.
        Row::new("AU-01", plain, "insert audio.header#0 audio af00").decodes(),
        Row::new("AU-01", clips::sound(), "insert audio.header#0 audio af00").decodes(),
        Row::new("AU-01", plain, "adts audio.frame").decodes(),
        Row::new("AU-01", plain, "adts audio.frame; drop audio.header").decodes(),
        Row::new("AU-01", clips::sound(), "adts audio.frame; drop audio.header").decodes(),
        // Frames that nothing tells how to decode do not hold up the pictures.
        Row::new("AU-01", plain, "drop audio.header").tracks("v").decodes(),
        // Tracks that are announced and never come.
        Row::new("AU-04", plain, "drop audio.frame").tracks("v").decodes(),
        Row::new("AU-04", plain, "drop video.frame").tracks("a").decodes(),
        Row::new("AU-04", clips::pictures(), "").decodes(),
        // Codecs that Weir does not know.
        Row::new("AU-07", plain, "codec audio 11").tracks("v").decodes(),
        Row::new("AU-07", plain, "codec audio 7").tracks("v").decodes(),
        Row::new("AU-08", clips::sound(), "").decodes(),
    ];
    run(Backend::Uring, &rows);
}

/// AU-01: frames with ADTS headers, some in each message, leave no trace beside a sequence
/// header.
#[test]
fn au_01_several_adts_frames_in_a_message() {
    let [two, five] = [2, 5].map(|count| collected(clips::plain(), count));
    let variants = [(clips::plain(), ""), (&two, ""), (&five, "")];
    same(Backend::Epoll, "AU-01", &variants);
}

/// The clip with so many audio frames in each message.
fn collected(clip: &Clip, count: usize) -> Clip {
    let tags = Editor::parse("adts audio.frame").expect("an edit").edit(&clip.tags);
    let (mut collected, mut room) = (Vec::<Tag>::new(), 0);
    for tag in tags {
        let is_sound = tag.kind == TagKind::Audio && is_frame(&tag);
        match collected.last_mut() {
            Some(last) if is_sound && room > 0 => {
                last.body = [&last.body[..], &tag.body[2..]].concat().into();
                room -= 1;
            }
            _ => {
                room = if is_sound { count - 1 } else { 0 };
                collected.push(tag);
            }
        }
    }
    Clip { tags: collected, ..clip.clone() }
}

/// Sound that is announced after five seconds, and sound that is away for twenty: it is there from
/// the next keyframe on, with a new init segment where it is new.
#[test]
fn au_03_sound_may_come_late_and_return() {
    let late = "header audio.frame@5s..5025ms audio; drop audio.header#0; drop audio.frame@..5s";
    let mut rows = Vec::new();
    for clip in [clips::plain(), clips::reordered()] {
        rows.push(
            Row::new("AU-03", clip, late)
                .discontinuities(1)
                .lost_sounds(256..=284)
                .elsewhere()
                .also(|airing| {
                    let last = airing.fmp4.inits.last();
                    assert!(airing.fmp4.inits.first() != last, "the init segment is the same");
                    assert!(airing.multivariant.contains("mp4a.40.2"), "{}", airing.multivariant);
                })
                .decodes(),
        );
        rows.push(
            Row::new("AU-03", clip, "drop audio.frame@3s..23s")
                .turns(3)
                .lost_sounds(860..=940)
                .repairs("resync", 1..=1)
                .gap(20.1)
                .elsewhere(),
        );
    }
    run(Backend::Uring, &rows);
}

/// AU-06: five channels in a layout that only a program_config_element describes.
#[test]
fn au_06_channels_may_stand_in_a_program_config_element() {
    let surround = ["-af", "aformat=channel_layouts=5.0(side)", "-c:a", "aac"];
    let clip = clips::with_audio(&surround);
    let header = clip.tags.iter().find(|tag| is_header(tag) && tag.kind == TagKind::Audio);
    let header = header.expect("a header");
    assert_eq!(header.body[3] >> 3 & 15, 0, "channelConfiguration of {:02x?}", header.body);
    let gateway = Gateway::start(Backend::Epoll, &KEEP_ALL);
    let airing = Airing::of(&gateway, "au-06", &clip, "header audio/40 audio");
    let fmp4 = &airing.fmp4;
    assert_eq!(fmp4.of(TagKind::Audio).len(), 441);
    assert_eq!(channels(&fmp4.joined(0..fmp4.segments.len())), 5);
    assert_eq!(airing.flv_frames(TagKind::Audio).len(), 441);
    // ADTS cannot describe it, and the operator is told.
    assert_eq!(airing.ts.of(TagKind::Audio).len(), 0);
    let left_out = &airing.stream["left_out"];
    assert!(left_out.to_string().contains("ADTS"), "{left_out}");
    for (name, rendition) in airing.renditions() {
        assert_eq!(rendition.of(TagKind::Video).len(), clips::PICTURES, "{name}");
    }
}

/// What ffprobe finds in a file.
fn channels(file: &[u8]) -> u64 {
    let scratch = weir_e2e::Scratch::new();
    let path = scratch.file("joined");
    std::fs::write(&path, file).expect("a file");
    let mut ffprobe = Command::new("ffprobe");
    ffprobe.args(["-v", "error", "-select_streams", "a", "-show_entries", "stream=channels"]);
    ffprobe.args(["-of", "csv=p=0"]).arg(&path);
    let text = tools::run("ffprobe", &mut ffprobe);
    let count = text.lines().next().and_then(|line| line.trim().parse().ok());
    count.unwrap_or_else(|| panic!("{text}"))
}
