//! FLV: the tag framing of files and HTTP-FLV, and the audio and video bodies it shares with RTMP
//! (Adobe FLV v10.1, annex E; Enhanced RTMP v1 and v2).

mod body;
mod color_info;
mod demux;
mod metadata;
mod mux;
mod skip;
mod tag;
#[cfg(test)]
mod tests;

pub use body::four_cc;
pub use color_info::{ColorInfo, MASTERING};
pub use demux::{Demuxer, Event};
pub use metadata::Metadata;
pub use mux::{UnitHeader, metadata, sequence_header, timestamp_ms, unit_header};
pub use skip::{CodecId, SkipReason, Skipped};
pub use tag::{
    Error, FILE_HEADER_BYTES, FileReader, TAG_HEADER_BYTES, Tag, TagKind, file_header, tag_header,
    tag_trailer,
};
