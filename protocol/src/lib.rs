//! Sans-IO protocols and the media model of Weir: bytes and time go in, outputs are drained.
//!
//! Nothing here opens a socket, reads a clock or a file. Every byte given to this crate may be
//! malicious: parsers are bounded, never panic, and never allocate from a declared size alone.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]
#![forbid(unsafe_code)]

pub mod amf0;
pub mod amf3;
pub mod codec;
pub mod flv;
pub mod limits;
pub mod media;
pub mod pool;
pub mod rtmp;
pub mod stream_name;
