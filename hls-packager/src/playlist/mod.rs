//! Playlists (RFC 8216, rfc8216bis): a typed model, made from a [`crate::Window`] and rendered by
//! one function. m3u8-rs knows no Low-Latency tags, so it writes the multivariant playlist only.

mod media;
mod multivariant;
mod tags;

pub(crate) use media::{fmp4, ts};
pub use multivariant::{Variant, multivariant};
