//! The chunk layer: messages of several chunk streams, interleaved (RTMP 1.0 §5.3).

mod read;
mod write;

pub use read::Reader;
pub use write::{Sink, Writer};

/// The value of a 24-bit timestamp field that says that 32 bits follow (RTMP 1.0 §5.3.1.3).
const EXTENDED: u32 = 0xff_ffff;
