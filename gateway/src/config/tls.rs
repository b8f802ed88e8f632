use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::value::address;

/// Where RTMPS is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rtmps {
    /// On its usual port, if there is a certificate.
    Auto,
    Off,
    At(SocketAddr),
}

/// PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 1936);

impl Rtmps {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "off" => Some(Self::Off),
            _ => address(text).map(Self::At),
        }
    }

    /// The address to listen on, with a certificate or without.
    #[must_use]
    pub fn address(self, tls: &Tls) -> Option<SocketAddr> {
        match self {
            Self::Auto => tls.certificate.is_some().then_some(USUAL),
            Self::Off => None,
            Self::At(address) => Some(address),
        }
    }
}

impl fmt::Display for Rtmps {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}
