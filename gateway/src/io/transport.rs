//! What a protocol speaks over: a connection as it is, or with TLS.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::time::{Instant, timeout_at};

use super::conn::Direction;
use super::tls::{TlsConn, TlsError};
use super::{Batch, Conn};

/// A connection as a protocol's tasks use it; clones are the same connection.
///
/// One task reads and one task sends, with what [`Conn`] promises: a wait to read may be dropped,
/// deadlines act by [`Transport::shutdown`].
#[derive(Clone)]
pub enum Transport {
    Plain(Conn),
    Tls(TlsConn),
}

/// Where an outgoing connection goes.
#[derive(Clone, Debug)]
pub struct Remote {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
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
    #[error("cannot speak TLS with {host}: {error}")]
    Tls { host: String, error: TlsError },
}

impl Remote {
    /// A name or an IP address (IPv6 without brackets), and a port.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Remote {
        Remote { host: host.into(), port, tls: None }
    }

    /// The connection will speak TLS, with a server that `config` takes for the host.
    #[must_use]
    pub fn with_tls(self, config: Arc<ClientConfig>) -> Remote {
        Remote { tls: Some(config), ..self }
    }
}

impl Transport {
    /// The server's side of TLS on a connection that was accepted. Await [`Transport::handshake`] before
    /// anything else.
    ///
    /// # Errors
    /// The configuration's.
    pub fn server(conn: Conn, config: Arc<ServerConfig>) -> Result<Transport, TlsError> {
        TlsConn::server(conn, config).map(Transport::Tls)
    }

    /// Agrees with the peer on how to encrypt; nothing, without TLS. The peer has `limit` to take what it
    /// is sent; to bound the whole, shut the connection down.
    ///
    /// # Errors
    /// Why there is no TLS with this peer. It was told by an alert, where there is one.
    pub async fn handshake(&self, limit: Duration) -> Result<(), TlsError> {
        match self {
            Transport::Plain(_) => Ok(()),
            Transport::Tls(tls) => tls.handshake(limit).await,
        }
    }

    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self, Transport::Tls(_))
    }

    /// Connects from the calling core, within `limit` in all. The name is looked up in a thread of its
    /// own, and its addresses are tried one after the other, the time left shared among them. A server
    /// that is there but fails in TLS is the last that is tried.
    ///
    /// The future may be dropped; nothing of it stays.
    ///
    /// # Errors
    /// Says what failed last.
    pub async fn connect(remote: &Remote, limit: Duration) -> Result<Transport, ConnectError> {
        let deadline = Instant::now() + limit;
        let Remote { host, port, tls } = remote;
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
                Ok(Ok(conn)) => match tls {
                    None => return Ok(Transport::Plain(conn)),
                    Some(config) => {
                        let begun = begin_tls(conn, host, config.clone(), limit);
                        let begun = timeout_at(deadline, begun).await.map_err(|_| late())?;
                        return begun
                            .map_err(|error| ConnectError::Tls { host: host.clone(), error });
                    }
                },
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
            Transport::Tls(tls) => tls.read_with(take).await,
        }
    }

    /// As [`Conn::send_within`].
    pub async fn send_within(&self, batch: Batch, limit: Duration) -> (Batch, io::Result<()>) {
        match self {
            Transport::Plain(conn) => conn.send_within(batch, limit).await,
            Transport::Tls(tls) => tls.send_within(batch, limit).await,
        }
    }

    /// As [`Conn::shutdown`].
    pub fn shutdown(&self, how: Shutdown) {
        self.conn().shutdown(how);
    }

    /// Says in TLS that nothing more will come; the connection stays as it is.
    pub async fn finish(&self, limit: Duration) {
        match self {
            Transport::Plain(_) => {}
            Transport::Tls(tls) => tls.finish(limit).await,
        }
    }

    /// As [`Conn::close`], within `limit` once for the last words and once for the peer's end.
    pub async fn close(self, limit: Duration) {
        self.finish(limit).await;
        self.conn().clone().close(limit).await;
    }

    fn conn(&self) -> &Conn {
        match self {
            Transport::Plain(conn) => conn,
            Transport::Tls(tls) => tls.conn(),
        }
    }
}

async fn begin_tls(
    conn: Conn,
    host: &str,
    config: Arc<ClientConfig>,
    limit: Duration,
) -> Result<Transport, TlsError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| TlsError::Protocol(rustls::Error::General("no valid host name".into())))?;
    let tls = TlsConn::client(conn, config, name)?;
    tls.handshake(limit).await?;
    Ok(Transport::Tls(tls))
}
