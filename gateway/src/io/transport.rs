//! What a protocol speaks over: a connection as it is.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::conn::Direction;
use super::{Batch, Conn};

/// A connection as a protocol's tasks use it; clones are the same connection.
///
/// One task reads and one task sends, with what [`Conn`] promises: a wait to read may be dropped,
/// deadlines act by [`Transport::shutdown`].
#[derive(Clone)]
pub enum Transport {
    Plain(Conn),
}

/// Where an outgoing connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    host: String,
    port: u16,
}

/// Why an outgoing connection came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot find the address of {host}: {error}")]
    Lookup { host: String, error: io::Error },
    #[error("cannot connect to {address}: {error}")]
    Connect { address: SocketAddr, error: io::Error },
    #[error("{host}:{port} has not answered within {} s", limit.as_secs())]
    Late { host: String, port: u16, limit: Duration },
}

impl Remote {
    /// A name or an IP address (IPv6 without brackets), and a port.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Remote {
        Remote { host: host.into(), port }
    }
}

impl Transport {
    /// Connects from the calling core, within `limit` in all. The name is looked up in a thread of its
    /// own, and its addresses are tried one after the other, the time left shared among them.
    ///
    /// The future may be dropped; nothing of it stays.
    ///
    /// # Errors
    /// Says what failed last.
    pub async fn connect(remote: &Remote, limit: Duration) -> Result<Transport, ConnectError> {
        let deadline = Instant::now() + limit;
        let Remote { host, port } = remote;
        let late = || ConnectError::Late { host: host.clone(), port: *port, limit };
        let lookup_error = |error| ConnectError::Lookup { host: host.clone(), error };
        let lookup = tokio::net::lookup_host((host.as_str(), *port));
        let found = timeout_at(deadline, lookup).await.map_err(|_| late())?;
        let addresses: Vec<SocketAddr> = found.map_err(lookup_error)?.collect();
        let mut failed = lookup_error(io::ErrorKind::NotFound.into());
        for (tried, &address) in addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            failed = match tokio::time::timeout(share, Conn::connect(address)).await {
                Ok(Ok(conn)) => return Ok(Transport::Plain(conn)),
                Ok(Err(error)) => ConnectError::Connect { address, error },
                Err(_) => late(),
            };
        }
        Err(failed)
    }

    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.conn().peer_addr()
    }

    /// As [`Conn::local_addr`].
    ///
    /// # Errors
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.conn().local_addr()
    }

    /// Bytes on the wire.
    #[must_use]
    pub fn received(&self) -> Direction {
        self.conn().received()
    }

    /// Bytes on the wire.
    #[must_use]
    pub fn sent(&self) -> Direction {
        self.conn().sent()
    }

    /// As [`Conn::read_with`].
    ///
    /// # Errors
    /// The connection's error.
    pub async fn read_with<T>(&self, take: impl FnOnce(&[u8]) -> T) -> io::Result<Option<T>> {
        match self {
            Transport::Plain(conn) => conn.read_with(take).await,
        }
    }

    /// As [`Conn::send_within`].
    pub async fn send_within(&self, batch: Batch, limit: Duration) -> (Batch, io::Result<()>) {
        match self {
            Transport::Plain(conn) => conn.send_within(batch, limit).await,
        }
    }

    /// As [`Conn::shutdown`].
    pub fn shutdown(&self, how: Shutdown) {
        self.conn().shutdown(how);
    }

    /// As [`Conn::close`].
    pub async fn close(self, limit: Duration) {
        match self {
            Transport::Plain(conn) => conn.close(limit).await,
        }
    }

    fn conn(&self) -> &Conn {
        match self {
            Transport::Plain(conn) => conn,
        }
    }
}
