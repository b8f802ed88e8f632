//! Relays: streams that the gateway itself sends to other RTMP servers, or has from them.
//!
//! A *push* follows a live stream as a player does, and publishes it at another server. A *pull*
//! plays a stream of another server, and publishes it here. Either is one task on one core, which
//! opens a connection, and another one after a while when that breaks.

pub mod address;
mod backoff;
mod demand;
mod failure;
mod lookup;
mod pull;
mod push;
pub mod rules;
mod session;
mod status;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::time::Duration;

use weir_protocol::limits::MAX_VIA;
use weir_protocol::stream_name::StreamName;

use crate::clock;
use crate::core::Core;
use crate::stream::Pattern;
use failure::Failure;
use session::Link;
use status::Status;

pub use demand::Demand;
pub use lookup::find;
pub use pull::begin_always as begin_pulls;
pub use push::begin as begin_pushes;
pub use status::Relays;

/// Stands for this stream of this gateway, among those of all gateways, for as long as it runs.
fn place(name: &StreamName) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(name)
}

/// Whether a stream that has come by these places would go round by being published under this name.
pub fn is_circle(via: &[u64], name: &StreamName) -> bool {
    via.contains(&place(name)) || via.len() >= MAX_VIA
}

/// Random enough to keep relays apart.
fn seed(name: &StreamName) -> u64 {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_ok() {
        return u64::from_be_bytes(bytes);
    }
    name.as_str().bytes().fold(0, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()))
}

/// Tells the log, the API and the metrics that a connection is over, and when the next one comes.
fn note_failure(core: &Core, status: &Status, failure: &Failure, wait: Duration) {
    let now = clock::now();
    status.failed(failure);
    status.wait_until(now + wait, now);
    let (stream, url, error) = (&status.name, &status.url, failure.text(&status.url));
    match failure.label() {
        Some(label) => {
            core.counters.relay_failures.of(label).increment();
            let retry_in = humantime::format_duration(Duration::from_secs(wait.as_secs()));
            tracing::warn!(%stream, %url, %error, %retry_in, "relay: no connection");
        }
        None => tracing::info!(%stream, %url, reason = error, "relay: connection ended"),
    }
}

/// Whether the connection ends at this gateway's own listener, at the same stream or at one that the
/// same rule would relay again. What leads back over other
/// gateways they tell each other, see [`is_circle`].
fn leads_back(link: &Link, status: &Status, pattern: &Pattern) -> bool {
    let (peer, url) = (link.connection.peer, &status.url);
    let is_here = peer.ip().is_loopback()
        || link.connection.conn.local_addr().is_ok_and(|local| local.ip() == peer.ip());
    let own = link.core.relays.own_addresses.borrow();
    let is_own = own.iter().any(|own| {
        own.port() == peer.port() && (own.ip().is_unspecified() || own.ip() == peer.ip())
    });
    let there = StreamName::from_rtmp(&url.app, "", &url.key).map(|(name, _)| name);
    is_here && is_own && there.is_ok_and(|name| name == status.name || pattern.matches(&name))
}
