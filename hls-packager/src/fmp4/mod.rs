//! Fragmented MP4 (ISO 14496-12, CMAF): init segments, and parts whose `mdat` is the list of
//! payloads as they came, uncopied.

mod boxes;
mod init;
mod part;

pub(crate) use init::init_segment;
pub(crate) use part::{head_len, write_part};

const VIDEO_TRACK_ID: u32 = 1;
const AUDIO_TRACK_ID: u32 = 2;
