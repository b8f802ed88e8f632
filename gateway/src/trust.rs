//! Whom the gateway believes as a client over TLS.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::pem_file;

/// Which servers are believed to be who they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those with a certificate of an authority that this machine trusts.
    #[default]
    Machine,
    /// Those with a certificate of the authorities in this PEM file.
    File(PathBuf),
    /// All: what is sent is encrypted, but for whom is not known.
    Anyone,
}

/// Why nobody can be trusted, as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("cannot read the certificate authorities in {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("the certificate authorities in {} are no PEM: {error}", path.display())]
    Malformed { path: PathBuf, error: PemError },
    #[error("there is no certificate authority in {}: it takes PEM", .0.display())]
    Empty(PathBuf),
    #[error(
        "this machine trusts no certificate authority, so no server can be{}: install \
         ca-certificates, or name the file of the server's authority",
        .0.as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
    )]
    NoAuthorities(Option<String>),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Trust {
    const MACHINE: &str = "machine";
    const ANYONE: &str = "anyone";

    /// `None` for an empty text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" => None,
            Self::MACHINE => Some(Self::Machine),
            Self::ANYONE => Some(Self::Anyone),
            path => Some(Self::File(path.into())),
        }
    }

    /// How sessions with such servers are set up. Reads files: not for a core's thread.
    ///
    /// # Errors
    /// When there is no authority to be had.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, TrustError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let roots = match self {
            Self::Machine => machine_roots()?,
            Self::File(path) => file_roots(path)?,
            Self::Anyone => {
                let verifier = Arc::new(NoVerifier(provider));
                let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
                return Ok(Arc::new(builder.with_no_client_auth()));
            }
        };
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str(Self::MACHINE),
            Self::Anyone => f.write_str(Self::ANYONE),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// What was set up at the start, so that no core waits for a file.
#[derive(Debug, Default)]
pub struct Clients(Vec<(Trust, Arc<ClientConfig>)>);

impl Clients {
    /// Sets up each of these once.
    ///
    /// # Errors
    /// As [`Trust::client_config`].
    pub fn new<'a>(wanted: impl Iterator<Item = &'a Trust>) -> Result<Self, TrustError> {
        let mut clients = Self::default();
        for trust in wanted {
            if clients.get(trust).is_none() {
                clients.0.push((trust.clone(), trust.client_config()?));
            }
        }
        Ok(clients)
    }

    #[must_use]
    pub fn get(&self, trust: &Trust) -> Option<Arc<ClientConfig>> {
        self.0.iter().find(|(known, _)| known == trust).map(|(_, config)| config.clone())
    }
}

fn machine_roots() -> Result<RootCertStore, TrustError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(ToString::to_string);
        return Err(TrustError::NoAuthorities(why));
    }
    Ok(roots)
}

fn file_roots(path: &Path) -> Result<RootCertStore, TrustError> {
    let unreadable = |error| TrustError::Unreadable { path: path.to_owned(), error };
    let malformed = |error| TrustError::Malformed { path: path.to_owned(), error };
    let text = pem_file::read(path).map_err(unreadable)?;
    let found: Vec<CertificateDer> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(malformed)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found);
    if roots.is_empty() { Err(TrustError::Empty(path.to_owned())) } else { Ok(roots) }
}

/// Checks that the server has the key of the certificate that it shows, and nothing else.
#[derive(Debug)]
struct NoVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
