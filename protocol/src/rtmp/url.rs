use std::fmt;

use crate::rtmp::Error;

/// The address of a stream on an RTMP server, for a client.
///
/// Unlike [`StreamName`](crate::stream_name::StreamName) it belongs to somebody else, so app and
/// key go out as they were written. The key is often a secret: neither `Debug` nor `Display`
/// shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct RtmpUrl {
    /// RTMPS: RTMP inside TLS.
    pub tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    pub app: String,
    /// With its query.
    pub key: String,
}

const PORT: u16 = 1935;
/// RTMPS has no port of its own; the big services take it on that of HTTPS.
const TLS_PORT: u16 = 443;

impl RtmpUrl {
    /// Reads `rtmp[s]://host[:port]/app/key[?query]`. Every path segment but the last is the app.
    ///
    /// # Errors
    /// `BadUrl` says what is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = |why| Error::BadUrl(why);
        let (scheme, rest) = text.split_once("://").ok_or(bad("no scheme"))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "rtmp" => false,
            "rtmps" => true,
            _ => return Err(bad("the scheme is neither rtmp nor rtmps")),
        };
        let (authority, path) = rest.split_once('/').ok_or(bad("no path"))?;
        if authority.contains('@') {
            return Err(bad("user and password are not supported"));
        }
        let (host, port) = split_port(authority).ok_or(bad("the host is not valid"))?;
        let port = match port {
            Some(port) => port.parse().map_err(|_| bad("the port is not a number"))?,
            None if tls => TLS_PORT,
            None => PORT,
        };
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        let path = path.trim_start_matches('/');
        let (app, name) = path.rsplit_once('/').unwrap_or((path, ""));
        let app = app.trim_end_matches('/');
        if app.is_empty() {
            return Err(bad("no app in the path"));
        }
        let key = match query {
            Some(query) => format!("{name}?{query}"),
            None => name.to_owned(),
        };
        Ok(Self { tls, host: host.to_owned(), port, app: app.to_owned(), key })
    }

    /// The server's part of the address, for `connect`.
    #[must_use]
    pub fn tc_url(&self) -> String {
        let scheme = if self.tls { "rtmps" } else { "rtmp" };
        let host = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let default = if self.tls { TLS_PORT } else { PORT };
        let port = if self.port == default { String::new() } else { format!(":{}", self.port) };
        format!("{scheme}://{host}{port}/{}", self.app)
    }
}

fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    (!host.is_empty()).then_some((host, port))
}

impl std::str::FromStr for RtmpUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for RtmpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.tc_url())
    }
}

impl fmt::Debug for RtmpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RtmpUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_and_put_together() {
        for (text, tc_url, key, port) in [
            ("rtmp://h/live/k", "rtmp://h/live", "k", 1935),
            ("RTMP://h:1935/live/k?token=a/b", "rtmp://h/live", "k?token=a/b", 1935),
            ("rtmp://h:99/a/b/c/k", "rtmp://h:99/a/b/c", "k", 99),
            ("rtmps://h/live2/k-1", "rtmps://h/live2", "k-1", 443),
            ("rtmps://[::1]:1936/live/k", "rtmps://[::1]:1936/live", "k", 1936),
            ("rtmp://h/live", "rtmp://h/live", "", 1935),
            ("rtmp://h//live//k", "rtmp://h/live", "k", 1935),
        ] {
            let url = RtmpUrl::parse(text).unwrap();
            assert_eq!((url.tc_url().as_str(), url.key.as_str(), url.port), (tc_url, key, port));
            assert!(key.is_empty() || !format!("{url} {url:?}").contains(key));
        }
        for text in [
            "",
            "h/live/k",
            "http://h/live/k",
            "rtmp://h",
            "rtmp://h/",
            "rtmp:///live/k",
            "rtmp://h:x/live/k",
            "rtmp://h:70000/live/k",
            "rtmp://[::1/live/k",
            "rtmp://[::1]x/live/k",
            "rtmp://user:pass@h/live/k",
        ] {
            assert!(matches!(RtmpUrl::parse(text), Err(Error::BadUrl(_))), "{text}");
        }
    }
}
