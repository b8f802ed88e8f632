use std::ops::Range;

use weir_protocol::flv::TagKind;

use super::{Item, is_frame, is_header, is_key};

/// Which tags an edit is for.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// Of all kinds where there is none.
    pub(super) kind: Option<TagKind>,
    pub(super) part: Part,
    /// In the time of the file.
    pub(super) span_ms: Range<u64>,
    /// Among those of the kind, the part and the span.
    pub(super) numbers: Range<u64>,
    /// The `turn`-th of each `every` of those.
    pub(super) every: u64,
    pub(super) turn: u64,
    pub(super) seen: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Any,
    Header,
    Frame,
    Key,
    Inter,
}

impl Selection {
    pub(super) fn takes(&mut self, item: &Item) -> bool {
        let Item { tag, at_ms } = item;
        let is_frame = is_frame(tag);
        let part = match self.part {
            Part::Any => true,
            Part::Header => is_header(tag),
            Part::Frame => is_frame,
            Part::Key => is_key(tag),
            Part::Inter => is_frame && !is_key(tag),
        };
        let kind = self.kind.is_none_or(|kind| kind == tag.kind);
        if !kind || !part || !self.span_ms.contains(at_ms) {
            return false;
        }
        let number = self.seen;
        self.seen += 1;
        self.numbers.contains(&number) && (number - self.numbers.start) % self.every == self.turn
    }
}
