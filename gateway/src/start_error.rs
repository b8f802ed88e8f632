use std::net::SocketAddr;
use std::process::ExitCode;
use std::{fmt, io};

use thiserror::Error;

use crate::certificates::CertificateError;
use crate::config::{ConfigError, CoreChoiceError, Key};
use crate::io::probe::ProbeError;
use crate::publish::PublishError;
use crate::trust::TrustError;

/// Why the process did not start: one sentence that says what to do next.
#[derive(Debug, Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Cores(#[from] CoreChoiceError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(
        "the {listener} address {address} is already in use: end the program that listens there \
         (`ss -ltnp` shows it), or choose another address with {flag}"
    )]
    AddressInUse { listener: Listener, address: SocketAddr, flag: String },
    #[error(
        "the {listener} address {address} is not one of this machine's: use one that `ip address` \
         shows, or 0.0.0.0 for all, with {flag}"
    )]
    AddressAbsent { listener: Listener, address: SocketAddr, flag: String },
    #[error(
        "listening on the {listener} address {address} is not allowed: choose a port of 1024 or \
         above with {flag}, or grant CAP_NET_BIND_SERVICE"
    )]
    AddressForbidden { listener: Listener, address: SocketAddr, flag: String },
    #[error("cannot listen on the {listener} address {address}: {error}")]
    Listen { listener: Listener, address: SocketAddr, error: io::Error },
    #[error("io = \"uring\" was asked for, but {0}; or start with --io auto or --io epoll")]
    Uring(#[from] ProbeError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("cannot {action}: {error}")]
    System { action: &'static str, error: io::Error },
}

/// The listeners of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    Rtmp,
    Rtmps,
    Http,
    Admin,
}

impl Listener {
    /// The key that sets its address.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Rtmp => "rtmp",
            Self::Rtmps => "rtmps",
            Self::Http => "http",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rtmp => "RTMP",
            Self::Rtmps => "RTMPS",
            Self::Http => "HTTP",
            Self::Admin => "admin",
        })
    }
}

impl StartError {
    /// What `bind` or `listen` failed with, as a sentence about this listener.
    #[must_use]
    pub fn listen(listener: Listener, address: SocketAddr, error: io::Error) -> Self {
        let flag = Key::named(listener.key()).map(Key::flag).unwrap_or_default();
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { listener, address, flag },
            io::ErrorKind::AddrNotAvailable => Self::AddressAbsent { listener, address, flag },
            io::ErrorKind::PermissionDenied => Self::AddressForbidden { listener, address, flag },
            _ => Self::Listen { listener, address, error },
        }
    }

    /// 2 for what the operator wrote, 1 for what the machine refused.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Cores(_) | Self::Certificate(_) | Self::Trust(_) => {
                ExitCode::from(2)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listen_error_names_listener_address_and_flag() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1935));
        for (kind, words) in [
            (io::ErrorKind::AddrInUse, ["RTMP", "127.0.0.1:1935", "already in use", "--rtmp"]),
            (io::ErrorKind::AddrNotAvailable, ["RTMP", "127.0.0.1:1935", "this machine", "--rtmp"]),
            (io::ErrorKind::PermissionDenied, ["RTMP", "127.0.0.1:1935", "1024", "--rtmp"]),
            (io::ErrorKind::OutOfMemory, ["RTMP", "127.0.0.1:1935", "cannot listen", "memory"]),
        ] {
            let sentence = StartError::listen(Listener::Rtmp, address, kind.into()).to_string();
            for word in words {
                assert!(sentence.contains(word), "{sentence}");
            }
        }
    }
}
