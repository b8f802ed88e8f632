//! Certificates that tests make, and a TLS client that looks at what it is shown.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A self-signed certificate for `localhost` and 127.0.0.1, with its key.
pub struct Pair {
    pub certificate: CertificateDer<'static>,
    certificate_pem: String,
    key_pem: String,
}

impl Pair {
    /// # Panics
    /// When none can be made.
    #[must_use]
    pub fn new() -> Self {
        Self::made(|_| {})
    }

    /// One that was valid in 2001.
    ///
    /// # Panics
    /// When none can be made.
    #[must_use]
    pub fn expired() -> Self {
        Self::made(|params| {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        })
    }

    fn made(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().expect("a key");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        change(&mut params);
        let made = params.self_signed(&key).expect("a certificate");
        Self {
            certificate: made.der().clone(),
            certificate_pem: made.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// Writes `cert.pem` and `key.pem`.
    ///
    /// # Panics
    /// When they cannot be written.
    #[must_use]
    pub fn put(&self, directory: &Path) -> [PathBuf; 2] {
        let paths = ["cert.pem", "key.pem"].map(|name| directory.join(name));
        for (path, text) in paths.iter().zip([&self.certificate_pem, &self.key_pem]) {
            std::fs::write(path, text).expect("a file");
        }
        paths
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes a handshake with a server that must show one of `trusted`, and gives the connection.
///
/// # Errors
/// Why the handshake fails.
///
/// # Panics
/// When nobody listens.
pub fn connect(
    address: SocketAddr,
    trusted: &[&Pair],
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    for pair in trusted {
        roots.add(pair.certificate.clone()).expect("a certificate");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider's versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let socket = TcpStream::connect(address).expect("a listener");
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut stream = StreamOwned::new(session, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    stream.flush()?;
    Ok(stream)
}
