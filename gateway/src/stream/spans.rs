//! How long players are thought of, by the playlist that they have.

use std::time::Duration;

use weir_hls::Window;

use crate::limits;

/// How long an ended stream can still be fetched: its whole playlist (RFC 8216 §6.2.2).
pub fn linger(window: Option<&Window>) -> Duration {
    let playlist = window.map(|window| window.duration() + window.target_duration());
    playlist.unwrap_or_default().max(limits::ENDED_LINGER_MIN)
}

/// How long an HLS player may be silent: it reloads the playlist once per target duration.
pub fn viewer(window: Option<&Window>) -> Duration {
    let reloads = window.map(|window| window.target_duration() * 2);
    reloads.unwrap_or_default().max(limits::HLS_VIEWER_SPAN)
}
