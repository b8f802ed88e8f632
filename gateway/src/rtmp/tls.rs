//! What goes before RTMP on the port for RTMPS, and who is at the wrong port.

use std::net::{Shutdown, SocketAddr};

use crate::core::Core;
use crate::core::connection::Connection;
use crate::io::tls::TlsError;
use crate::limits;
use crate::metrics::{Closed, Label};

/// The first byte of a TLS connection, a record of the handshake (RFC 8446 §5.1). RTMP begins with
/// its version, which is 3.
const TLS_HANDSHAKE: u8 = 22;

/// Whether the first bytes of a connection are TLS.
pub(super) fn is_spoken(first: &[u8]) -> bool {
    first.first() == Some(&TLS_HANDSHAKE)
}

/// The handshake, within the time that a connection has until it publishes or plays. False when there
/// is no connection afterwards.
pub(super) async fn begin(core: &Core, connection: &Connection) -> bool {
    let (peer, limit) = (connection.peer, core.config.timeouts.handshake);
    connection.set_deadline(connection.since + limit, Closed::HandshakeTimeout);
    let error = match connection.conn.handshake(limit).await {
        Ok(()) => return true,
        Err(error) => error,
    };
    match (&error, connection.close_reason()) {
        (_, Some(reason)) => {
            tracing::info!(%peer, reason = reason.value(), "rtmps: connection closed");
        }
        (TlsError::Plain, None) => {
            connection.close(Closed::PlainOnTls);
            tracing::info!(%peer, reason = Closed::PlainOnTls.value(), "rtmps: {error}");
        }
        (TlsError::Protocol(_), None) => {
            connection.close(Closed::TlsFailed);
            tracing::info!(%peer, reason = Closed::TlsFailed.value(), "rtmps: {error}");
            // The peer has been told by an alert, which a reset would take from it.
            connection.conn.clone().close(limits::FAREWELL).await;
        }
        (TlsError::Left | TlsError::Io(_), None) => tracing::debug!(%peer, "rtmps: {error}"),
    }
    connection.conn.shutdown(Shutdown::Both);
    false
}

/// Says that TLS came to the port without it.
pub(super) fn refuse(core: &Core, peer: SocketAddr) {
    core.counters.closed.of(Closed::TlsOnPlain).increment();
    let reason = Closed::TlsOnPlain.value();
    tracing::info!(%peer, reason, "rtmp: it speaks TLS; rtmps:// has a port of its own");
}
