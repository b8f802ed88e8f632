use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::{Current, Facts, Files};
use crate::pem_file;

/// Why there is nothing to show: one sentence for the operator.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read {key} {}: {error}", path.display())]
    Unreadable { key: &'static str, path: PathBuf, error: io::Error },
    #[error(
        "tls.certificate {} holds no certificate: name a PEM file with the server's certificate \
         first and those of its issuers behind it, such as fullchain.pem", path.display()
    )]
    NoCertificate { path: PathBuf },
    #[error(
        "tls.key {} holds no private key that can be used: name a PEM file with one and without a \
         passphrase (`openssl pkey -in FILE -out key.pem` takes it away)", path.display()
    )]
    NoKey { path: PathBuf },
    #[error("the certificate in {} cannot be used ({reason}): get a new one", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error(
        "tls.key {} does not belong to tls.certificate {}: name the key that the certificate was \
         made with", key.display(), certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error(
        "the certificate in {} has expired on {}: get a new one", path.display(),
        humantime::format_rfc3339_seconds(*expired)
    )]
    Expired { path: PathBuf, expired: SystemTime },
    #[error(
        "the certificate in {} is not valid before {}: get another one, or set the clock",
        path.display(), humantime::format_rfc3339_seconds(*begins)
    )]
    Early { path: PathBuf, begins: SystemTime },
}

/// Reads both files and checks that a client can take what is in them at `now`.
pub(super) fn load(files: &Files, now: SystemTime) -> Result<Current, CertificateError> {
    let path = || files.certificate.clone();
    let chain = CertificateDer::pem_slice_iter(&read("tls.certificate", &files.certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| CertificateError::Malformed { path: path(), reason: error.to_string() })?;
    let first = chain.first().ok_or_else(|| CertificateError::NoCertificate { path: path() })?;
    let facts = facts(first, &files.certificate, now)?;
    let no_key = || CertificateError::NoKey { path: files.key.clone() };
    let key = PrivateKeyDer::from_pem_slice(&read("tls.key", &files.key)?).map_err(|_| no_key())?;
    let provider = rustls::crypto::ring::default_provider();
    let key = provider.key_provider.load_private_key(key).map_err(|_| no_key())?;
    let certified = CertifiedKey::new(chain, key);
    match certified.keys_match() {
        Ok(()) => Ok(Current { key: Arc::new(certified), facts }),
        Err(rustls::Error::InconsistentKeys(_)) => Err(CertificateError::Mismatch {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
        }),
        Err(error) => Err(CertificateError::Malformed { path: path(), reason: error.to_string() }),
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |error| CertificateError::Unreadable { key, path: path.to_owned(), error };
    pem_file::read(path).map_err(unreadable)
}

fn facts(der: &[u8], path: &Path, now: SystemTime) -> Result<Facts, CertificateError> {
    let malformed = |error: x509_cert::der::Error| CertificateError::Malformed {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let certificate = Certificate::from_der(der).map_err(malformed)?;
    let certificate = certificate.tbs_certificate();
    let validity = certificate.validity();
    let (begins, expires) =
        (validity.not_before.to_system_time(), validity.not_after.to_system_time());
    if expires <= now {
        return Err(CertificateError::Expired { path: path.to_owned(), expired: expires });
    }
    if begins > now {
        return Err(CertificateError::Early { path: path.to_owned(), begins });
    }
    let names = certificate.get_extension::<SubjectAltName>().map_err(malformed)?;
    let names = names.map_or_else(Vec::new, |(_, names)| names.0);
    Ok(Facts { names: names.iter().filter_map(name).collect(), expires })
}

/// A host that the certificate is for.
fn name(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
            v4.or_else(|_| v6()).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}
