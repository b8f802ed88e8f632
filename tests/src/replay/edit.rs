//! Edits of FLV tags: what encoders do to timestamps, headers and bodies, done to a good file.
//!
//! [`GRAMMAR`] describes how they are written, the same on the command line and in tests.

mod audio;
mod parse;
mod selection;
mod verb;
mod video;

use weir_protocol::flv::{Tag, TagKind};

use selection::Selection;
use verb::Verb;

/// What `replay flv --help` says of edits.
pub const GRAMMAR: &str = "\
Edits are applied in order, each to what the one before gives; ';' or a line's end stands between
them. An edit is VERB SELECTION and what the verb takes:

  shift SEL MS         add to timestamps, modulo 2^32 (+95443000, -40): a jump with @5s, an outlier with /50
  scale SEL FACTOR     multiply timestamps
  modulo SEL N         timestamps modulo N: 2^24, 2^31, 2^32
  stamp SEL MS         this timestamp
  every SEL MS         the first timestamp selected, then one MS later each (23: constant AAC stamps)
  repeat SEL           the timestamp of the tag of its kind before it
  drop SEL             leave it out
  double SEL           send it twice
  cts SEL MS           composition time; =MS sets it, +MS and -MS add
  codec SEL N          the number of the codec in the first byte (12 or 7 also from Enhanced HEVC)
  lengths SEL 1|2|4    NAL lengths of so many bytes, with what the header says of them
  annexb SEL 3|4       start codes of so many bytes in place of NAL lengths, headers too
  without SEL TYPES    leave out NAL units of these types (9,6)
  nal SEL first|last HEX  one more NAL unit; an empty HEX is -
  inband SEL           the parameter sets of the newest header before the NAL units
  byte SEL AT HEX      overwrite from this byte of the body on
  body SEL HEX         another body; - is an empty one
  cut SEL N            only the first N bytes of the body
  append SEL HEX       more bytes behind the body
  header SEL video|audio  the newest sequence header of that kind before it, once more
  insert SEL video|audio|script HEX  a tag before it, with its timestamp
  adts SEL             an ADTS header before AAC frames, from the newest configuration

  SEL    KIND[.PART][@FROM[..TO]][#FIRST[..END]][/N[+K]]
  KIND   video audio script all
  PART   header frame key inter
  @      by the time in the file: @5s, @500ms..2m, @..10s
  #      by number among those, from 0: #3, #3..6 (END is not part of it)
  /      every N-th of what is left, or with +K the K-th of each N

Examples:
  shift video@5s +95443000
  shift video/50+49 -9800000; every audio.frame 23
  header video.key video; drop audio@30s..90s";

/// Edits with what they remember of the tags so far.
#[derive(Clone, Debug, Default)]
pub struct Editor {
    edits: Vec<Edit>,
}

#[derive(Clone, Debug)]
struct Edit {
    selection: Selection,
    verb: Verb,
}

/// A tag on its way through the edits, with the time that it has in the file.
#[derive(Clone, Debug)]
struct Item {
    tag: Tag,
    at_ms: u64,
}

impl Editor {
    /// # Errors
    /// Says which edit is none, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let edits = text.split([';', '\n']).map(str::trim).filter(|edit| !edit.is_empty());
        let parsed =
            edits.map(|edit| parse::edit(edit).map_err(|error| format!("\"{edit}\": {error}")));
        Ok(Self { edits: parsed.collect::<Result<_, _>>()? })
    }

    /// What becomes of the next tag of the file, which is at `at_ms` in it; a file that is sent
    /// again and again goes on in time.
    pub fn push(&mut self, tag: Tag, at_ms: u64) -> Vec<Tag> {
        let mut items = vec![Item { tag, at_ms }];
        for edit in &mut self.edits {
            items = items.into_iter().flat_map(|item| edit.push(item)).collect();
        }
        items.into_iter().map(|item| item.tag).collect()
    }

    /// What becomes of a whole file.
    #[must_use]
    pub fn edit(&mut self, tags: &[Tag]) -> Vec<Tag> {
        tags.iter().flat_map(|tag| self.push(tag.clone(), tag.timestamp_ms.into())).collect()
    }
}

impl Edit {
    fn push(&mut self, item: Item) -> Vec<Item> {
        self.verb.observe(&item.tag);
        if self.selection.takes(&item) { self.verb.apply(item) } else { vec![item] }
    }
}

/// A sequence header, of either kind and form.
#[must_use]
pub fn is_header(tag: &Tag) -> bool {
    match tag.kind {
        TagKind::Script => false,
        TagKind::Video => video::Form::of(&tag.body).is_some_and(|form| form.header),
        TagKind::Audio => audio::is_header(&tag.body),
    }
}

/// A picture or sound, of whatever form. What Enhanced RTMP says of a video track, as of its colour,
/// is none.
#[must_use]
pub fn is_frame(tag: &Tag) -> bool {
    let is_metadata =
        tag.kind == TagKind::Video && tag.body.first().is_some_and(|b| b & 0x8f == 0x84);
    tag.kind != TagKind::Script && !is_header(tag) && !is_metadata
}

/// A picture at which a player can start, as the tag has it.
#[must_use]
pub fn is_key(tag: &Tag) -> bool {
    tag.kind == TagKind::Video && is_frame(tag) && tag.body.first().is_some_and(|b| b >> 4 & 7 == 1)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::media;

    fn edited(edits: &str) -> Vec<Tag> {
        let tags = [media::headers(), media::frames(1, 0, 20)].concat();
        Editor::parse(edits).expect("edits").edit(&tags)
    }

    fn times(tags: &[Tag], kind: TagKind) -> Vec<u32> {
        let frames = tags.iter().filter(|tag| tag.kind == kind && !is_header(tag));
        frames.map(|tag| tag.timestamp_ms).collect()
    }

    fn body(tags: &[Tag], kind: TagKind, number: usize) -> &[u8] {
        let frames = tags.iter().filter(|tag| tag.kind == kind && !is_header(tag));
        frames.map(|tag| &tag.body[..]).nth(number).expect("a tag")
    }

    #[test]
    fn timestamps_are_edited() {
        for (edits, expected) in [
            ("shift video.frame@100ms +1000", [0, 50, 1100, 1150, 1200]),
            ("shift video.frame/2+1 -50", [0, 0, 100, 100, 200]),
            ("shift video -1; modulo video 2^31", [0x7fff_ffff, 49, 99, 149, 199]),
            ("every video.frame#1.. 7", [0, 50, 57, 64, 71]),
            ("repeat video.frame#2", [0, 50, 50, 150, 200]),
            ("scale video 2", [0, 100, 200, 300, 400]),
            ("stamp video.frame#1..3 9", [0, 9, 9, 150, 200]),
            ("drop video.frame#1; double video.key", [0, 0, 100, 150, 200]),
        ] {
            assert_eq!(times(&edited(edits), TagKind::Video)[..5], expected, "{edits}");
            assert_eq!(times(&edited(edits), TagKind::Audio)[..3], [0, 25, 50], "{edits}");
        }
    }

    #[test]
    fn bodies_are_edited() {
        use TagKind::{Audio, Video};
        let plain = edited("");
        let picture = &body(&plain, Video, 1)[9..];
        let length = picture.len() as u16;
        for (edits, kind, expected) in [
            ("cts video =-34", Video, [&[0x27, 1, 0xff, 0xff, 0xde][..], &[0, 0]].concat()),
            ("lengths video 2", Video, [&[0x27, 1, 0, 0, 0], &length.to_be_bytes()[..]].concat()),
            ("annexb video 3", Video, [&[0x27, 1, 0, 0, 0, 0, 0, 1], &picture[..9]].concat()),
            ("nal video first 09f0", Video, vec![0x27, 1, 0, 0, 0, 0, 0, 0, 2, 9, 0xf0, 0]),
            ("without video 1; nal video last -", Video, vec![0x27, 1, 0, 0, 0, 0, 0, 0, 0]),
            ("codec video 12", Video, vec![0x2c, 1]),
            ("body video.inter 2701", Video, vec![0x27, 1]),
            ("cut audio.frame 1; append audio.frame 01ff", Audio, vec![0xaf, 1, 0xff]),
            ("adts audio.frame", Audio, vec![0xaf, 1, 0xff, 0xf1]),
            ("byte audio.frame 0 2e", Audio, vec![0x2e, 1]),
        ] {
            let edited = edited(edits);
            assert!(body(&edited, kind, 1).starts_with(&expected), "{edits}");
        }
        assert_eq!(edited("header video.key video").iter().filter(|tag| is_header(tag)).count(), 4);
        assert_eq!(edited("insert video.key audio af00").len(), plain.len() + 2);
        let inband = edited("inband video.key");
        assert!(body(&inband, Video, 0).len() > body(&plain, Video, 0).len());
    }

    #[test]
    fn a_body_without_composition_time_gets_one() {
        let body = Bytes::from_static(b"\xa3hvc1\0\0\0\x01\x02");
        let tag = Tag { kind: TagKind::Video, timestamp_ms: 0, body };
        let edited = Editor::parse("cts video -80").expect("an edit").edit(&[tag]);
        assert_eq!(&edited[0].body[..], b"\xa1hvc1\xff\xff\xb0\0\0\0\x01\x02");
    }

    #[test]
    fn what_is_said_of_a_track_is_no_frame() {
        let tag = |kind, body: &'static [u8]| Tag { kind, timestamp_ms: 0, body: body.into() };
        for (kind, body, frame) in [
            (TagKind::Video, &b"\xd4hvc1\x02\0\x09colorInfo"[..], false),
            (TagKind::Video, b"\x90hvc1\x01", false),
            (TagKind::Video, b"\xa1hvc1\0\0\x50\0\0\0\x01\x02", true),
            (TagKind::Video, b"\xa3av01\x12", true),
            (TagKind::Video, b"\x27\x01\0\0\0", true),
            (TagKind::Audio, b"\xaf\x01\x21", true),
            (TagKind::Script, b"\x02\0\x0aonMetaData", false),
        ] {
            assert_eq!(is_frame(&tag(kind, body)), frame, "{body:02x?}");
        }
    }

    #[test]
    fn what_is_no_edit_is_refused() {
        for text in [
            "shft video 1",
            "shift",
            "shift vide 1",
            "shift video x",
            "drop video@x",
            "drop video 1",
            "lengths video 3",
            "byte video 0 2",
            "every video/0 1",
        ] {
            assert!(Editor::parse(text).is_err(), "{text}");
        }
    }
}
