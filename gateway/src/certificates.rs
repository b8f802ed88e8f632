//! The certificate that RTMPS shows: read and checked at the start, and anew when its files change.
//!
//! Sessions keep what they were set up with. A new certificate is for new handshakes, on all cores from
//! the moment it was found good; one that is not good changes nothing and is counted.

mod load;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::Tls;
pub use load::CertificateError;
use load::load;

/// Shared by all cores and the control plane.
#[derive(Debug)]
pub struct Certificates {
    files: Files,
    /// Looked at once per handshake.
    current: Mutex<Current>,
    failures: AtomicU64,
    watch: Mutex<Watch>,
}

#[derive(Clone, Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

#[derive(Clone, Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    facts: Facts,
}

/// What an operator wants to know of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Host names and addresses that it is for.
    pub names: Vec<String>,
    pub expires: SystemTime,
}

#[derive(Debug)]
struct Watch {
    /// The files that were read last, good or not.
    read: Stamps,
    /// As they were at the last look.
    seen: Stamps,
}

/// By what a change of the two files is noticed.
type Stamps = [Option<(u64, u64, i64, i64)>; 2];

impl Certificates {
    /// Reads the files. `None` when the configuration names none.
    ///
    /// # Errors
    /// What is wrong with them, and the remedy.
    pub fn open(tls: &Tls) -> Result<Option<Arc<Certificates>>, CertificateError> {
        let (Some(certificate), Some(key)) = (tls.certificate.clone(), tls.key.clone()) else {
            return Ok(None);
        };
        let files = Files { certificate, key };
        let stamps = files.stamps();
        Ok(Some(Arc::new(Certificates {
            current: Mutex::new(load(&files, SystemTime::now())?),
            files,
            failures: AtomicU64::new(0),
            watch: Mutex::new(Watch { read: stamps, seen: stamps }),
        })))
    }

    /// What a server's sessions are set up with.
    ///
    /// # Errors
    /// rustls's; none is known for these settings.
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        // An RTMP connection lasts for hours: its one handshake is not worth a memory of sessions.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    #[must_use]
    pub fn facts(&self) -> Facts {
        lock(&self.current).facts.clone()
    }

    /// Times that new files were not good.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Reads the files if they have changed, and not while they still do: a certificate and its key are
    /// two files, which nobody replaces at once. Call it every now and then.
    pub fn look(&self) {
        let now = self.files.stamps();
        let settled = {
            let mut watch = lock(&self.watch);
            let seen = std::mem::replace(&mut watch.seen, now);
            seen == now && watch.read != now
        };
        if settled {
            self.reload();
        }
    }

    /// Reads the files now.
    pub fn reload(&self) {
        lock(&self.watch).read = self.files.stamps();
        match load(&self.files, SystemTime::now()) {
            Ok(new) => {
                let expires = humantime::format_rfc3339_seconds(new.facts.expires);
                tracing::info!(names = new.facts.names.join(" "), %expires, "certificate read");
                *lock(&self.current) = new;
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                tracing::error!("the certificate stays as it was: {error}");
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello) -> Option<Arc<CertifiedKey>> {
        Some(lock(&self.current).key.clone())
    }
}

impl Files {
    fn stamps(&self) -> Stamps {
        [&self.certificate, &self.key].map(|path| {
            let data = fs::metadata(path).ok()?;
            Some((data.ino(), data.size(), data.mtime(), data.mtime_nsec()))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
