use std::collections::HashMap;

use bytes::Bytes;
use weir_protocol::flv::{Tag, TagKind};

use super::{Item, audio, is_header, video};

/// What an edit does; [`super::GRAMMAR`] has it in words.
#[derive(Clone, Debug)]
pub(super) enum VerbKind {
    Shift(i64),
    Scale(f64),
    Modulo(u64),
    Stamp(u32),
    Every(f64),
    Repeat,
    Drop,
    Double,
    Cts { set: bool, ms: i32 },
    Codec(u8),
    Lengths(usize),
    AnnexB(usize),
    Without(Vec<u8>),
    Nal { first: bool, unit: Bytes },
    InBand,
    Byte(usize, Bytes),
    Body(Bytes),
    Cut(usize),
    Append(Bytes),
    Header(TagKind),
    Insert(TagKind, Bytes),
    Adts,
}

#[derive(Clone, Debug)]
pub(super) struct Verb {
    kind: VerbKind,
    /// The newest sequence headers.
    headers: HashMap<TagKind, Bytes>,
    /// The newest timestamps: of the tag that is edited, and of the one before it.
    stamps: HashMap<TagKind, (u32, u32)>,
    /// Timestamp of the first tag selected, and how many came since.
    first: Option<(u32, u64)>,
}

impl Verb {
    pub(super) fn new(kind: VerbKind) -> Self {
        Self { kind, headers: HashMap::new(), stamps: HashMap::new(), first: None }
    }

    /// Sees every tag, selected or not.
    pub(super) fn observe(&mut self, tag: &Tag) {
        if is_header(tag) {
            self.headers.insert(tag.kind, tag.body.clone());
        }
        let now = tag.timestamp_ms;
        let stamps = self.stamps.entry(tag.kind).or_insert((now, now));
        *stamps = (now, stamps.0);
    }

    pub(super) fn apply(&mut self, mut item: Item) -> Vec<Item> {
        match &self.kind {
            VerbKind::Drop => return Vec::new(),
            VerbKind::Double => return vec![item.clone(), item],
            VerbKind::Insert(kind, body) => {
                let tag = Tag { kind: *kind, body: body.clone(), ..item.tag };
                return vec![Item { tag, ..item }, item];
            }
            VerbKind::Header(kind) => {
                let before = self.headers.get(kind).map(|body| {
                    let tag = Tag { kind: *kind, body: body.clone(), ..item.tag };
                    Item { tag, ..item }
                });
                return before.into_iter().chain([item]).collect();
            }
            _ => {}
        }
        item.tag.timestamp_ms = self.stamp(&item.tag);
        let mut body = item.tag.body.to_vec();
        self.edit_body(item.tag.kind, &mut body);
        item.tag.body = body.into();
        vec![item]
    }

    fn stamp(&mut self, tag: &Tag) -> u32 {
        let now = tag.timestamp_ms;
        match self.kind {
            VerbKind::Shift(ms) => now.wrapping_add(ms as u32),
            VerbKind::Scale(factor) => (f64::from(now) * factor).round() as u32,
            VerbKind::Modulo(modulus) => (u64::from(now) % modulus) as u32,
            VerbKind::Stamp(ms) => ms,
            VerbKind::Every(ms) => {
                let (first, count) = self.first.get_or_insert((now, 0));
                *count += 1;
                first.wrapping_add(((*count - 1) as f64 * ms).round() as u64 as u32)
            }
            VerbKind::Repeat => self.stamps.get(&tag.kind).map_or(now, |stamps| stamps.1),
            _ => now,
        }
    }

    fn edit_body(&self, kind: TagKind, body: &mut Vec<u8>) {
        let is_video = kind == TagKind::Video;
        match &self.kind {
            VerbKind::Cts { set, ms } if is_video => video::set_time(body, *set, *ms),
            VerbKind::Codec(number) if is_video => video::set_codec(body, *number),
            VerbKind::Codec(number) => {
                if let Some(first) = body.first_mut() {
                    *first = *first & 0xf | number << 4;
                }
            }
            VerbKind::Lengths(size) if is_video => video::set_lengths(body, *size),
            VerbKind::AnnexB(size) if is_video => video::set_start_codes(body, *size),
            VerbKind::Without(types) if is_video => video::strip(body, types),
            VerbKind::Nal { first, unit } if is_video => {
                video::add(body, *first, &[unit.to_vec()]);
            }
            VerbKind::InBand if is_video => {
                let header = self.headers.get(&TagKind::Video);
                let sets = header.map(|header| video::parameter_sets(header));
                video::add(body, true, &sets.unwrap_or_default());
            }
            VerbKind::Byte(at, bytes) => {
                let end = (at + bytes.len()).max(body.len());
                body.resize(end, 0);
                body[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            VerbKind::Body(bytes) => *body = bytes.to_vec(),
            VerbKind::Cut(length) => body.truncate(*length),
            VerbKind::Append(bytes) => body.extend_from_slice(bytes),
            VerbKind::Adts if kind == TagKind::Audio => {
                audio::add_adts(body, self.headers.get(&TagKind::Audio).map(|header| &header[..]));
            }
            _ => {}
        }
    }
}
