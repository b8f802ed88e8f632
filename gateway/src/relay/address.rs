//! Where a stream is on another server.

use std::fmt;

use weir_protocol::rtmp::{self, RtmpUrl};
use weir_protocol::stream_name::StreamName;

/// Why a text is no address for a relay. The text itself stays out of it, with its key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AddressError {
    #[error(transparent)]
    Url(#[from] rtmp::Error),
    #[error("the URL may hold {{name}} and {{app}} in its path, and no other braces")]
    Braces,
    #[error("the URL ends without a stream name: rtmp://server/app/name, where name may be a key")]
    NoName,
}

/// An RTMP URL in which `{name}` and `{app}` stand for those of the stream. It mostly holds a secret
/// key, which neither `Debug` nor `Display` shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// # Errors
    /// Says what is wrong, without the URL itself.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let filled = text.replace("{name}", "n").replace("{app}", "a");
        let authority = text.split("://").nth(1).and_then(|rest| rest.split('/').next());
        if filled.contains(['{', '}']) || authority.is_some_and(|host| host.contains('{')) {
            return Err(AddressError::Braces);
        }
        let url = RtmpUrl::parse(&filled)?;
        // What is shown of a URL is all but its name, so the key must be there.
        if url.key.split('?').next().is_none_or(str::is_empty) {
            return Err(AddressError::NoName);
        }
        Ok(Self(text.to_owned()))
    }

    /// The address of this stream.
    ///
    /// # Errors
    /// Names hold nothing that has a meaning in a URL, so there should be none.
    pub fn of(&self, name: &StreamName) -> Result<RtmpUrl, rtmp::Error> {
        RtmpUrl::parse(&self.0.replace("{name}", name.name()).replace("{app}", name.app()))
    }

    /// With the key. For the operator who asks for it; not for logs, API or metrics.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// RTMP inside TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.0.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("rtmps:"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match RtmpUrl::parse(&self.0) {
            Ok(url) => url.fmt(f),
            Err(_) => f.write_str("…"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_filled_in_and_hide_their_keys() {
        let name = StreamName::from_path("live/eu/a").unwrap();
        for (text, tc_url, key) in [
            ("rtmp://h/x/{name}", "rtmp://h/x", "a"),
            ("rtmps://h:1936/{app}/{name}?k=secret", "rtmps://h:1936/live/eu", "a?k=secret"),
            ("rtmp://h/app/secret", "rtmp://h/app", "secret"),
        ] {
            let address = Address::parse(text).unwrap();
            let url = address.of(&name).unwrap();
            assert_eq!((url.tc_url().as_str(), url.key.as_str()), (tc_url, key));
            assert_eq!(address.is_tls(), url.tls);
            assert!(!format!("{address} {address:?}").contains("secret"), "{address:?}");
        }
        for text in [
            "",
            "http://h/a/b",
            "rtmp://{name}/a/b",
            "rtmp://h/a/{key}",
            "rtmp://h/a/{b",
            "rtmp://h/app/secret/",
            "rtmp://h/app/?key=secret",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
