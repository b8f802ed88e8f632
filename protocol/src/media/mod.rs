//! The one media model between all inputs and all outputs.

mod access_unit;
pub mod normalise;
mod time;
mod track;

pub use access_unit::AccessUnit;
pub use normalise::Repairs;
pub use time::{TIMESCALE, Ticks};
pub use track::{Track, TrackId, TrackKind};
