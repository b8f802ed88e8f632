//! Sans-IO HLS packager: access units in; segments, parts, init segments and playlists out.
//!
//! # What to call, in what order
//!
//! A [`Packager`] belongs to one stream, on the core that its publisher landed on:
//!
//! 1. [`Packager::new`] with a [`Config`] whose `prefix` was never used before for this stream and
//!    whose `first_msn` is not below any number used before at its address.
//! 2. [`Packager::set_tracks`] with every track, each time one came or changed;
//!    [`Packager::set_wall_clock`] before the first access unit.
//! 3. [`Packager::push`] each access unit as it comes. It only notes boundaries; nothing is muxed.
//! 4. When [`Packager::version`] rose, hand [`Packager::window`] to all cores and wake the requests
//!    that wait there. A [`Window`] never changes and is one `Arc`; it, its segments and its parts
//!    may be read by any core at once.
//! 5. When the publisher leaves: [`Packager::discontinuity`], and again step 4. Players get the
//!    tail, their next reload waits. When it comes back, go on with step 2: MSN and playlist do.
//!    A publisher that begins anew without leaving is [`Packager::restarted`].
//! 6. When the stream is over: [`Packager::end`], and a last time step 4: the playlists now have
//!    their ENDLIST, and every waiting request is ready.
//!
//! A request is answered from the newest window of the core that got it:
//!
//! * playlists: [`Window::media_playlist`], and [`Window::multivariant`]. Where
//!   [`Window::is_playable`] is false yet, wait for the next window. With `_HLS_msn`, ask
//!   [`Window::resolve`] first; with `_HLS_skip=YES` or `v2`, answer [`Window::delta_playlist`].
//! * media: [`Window::find`] with the address behind `/live/name/`, then [`Part::fmp4`],
//!   [`Part::ts`] of each part with the asking core's own pool. Lengths are known before that.
//!
//! All of these answers but the playlists are immutable: addresses are never used twice.
//!
//! # Time
//!
//! No clock is read here: durations come from the access units' stamps, and wall-clock time from
//! [`Packager::set_wall_clock`]. A stretch begins with up to [`limits::LEAD_IN`] of media held back,
//! until it is known which declared tracks really send.

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

mod config;
mod dropped;
mod epoch;
mod fmp4;
mod history;
mod lead_in;
pub mod limits;
mod name;
mod packager;
mod part;
mod playlist;
mod segment;
mod segmenter;
mod target;
mod timeline;
mod tracks;
mod ts;
mod waiting;
mod window;

pub use config::Config;
pub use dropped::Dropped;
pub use epoch::Epoch;
pub use packager::Packager;
pub use part::Part;
pub use playlist::{Variant, multivariant};
pub use segment::Segment;
pub use ts::Missing as MissingInTs;
pub use window::{Reload, Resource, Window};

/// The container of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Fragmented MP4, with Low-Latency parts.
    Fmp4,
    /// MPEG-2 transport stream.
    Ts,
}
