//! Sans-IO HLS packager: access units in; segments, parts, init segments and playlists out.

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
