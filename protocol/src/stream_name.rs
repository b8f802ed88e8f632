//! The one normaliser for the names of streams: RTMP, HTTP, authorisation and logs all use it.
//!
//! A stream is `app/name`: every path segment but the last is the app. How a peer splits its
//! address into tcUrl, app and key makes no difference, so `a/b` + `c`, `a` + `b/c` and
//! `/a//b/c/` are one stream. A name is a key of a table, never a path of a file system.

use std::fmt;
use std::sync::Arc;

mod query;
#[cfg(test)]
mod tests;

pub use query::Query;

/// Bytes of a whole name. It fits one file name's limit should a name ever be shown as one, and
/// keeps labels, logs and URLs short.
pub const MAX_NAME_BYTES: usize = 255;

/// Path segments of a name, app levels included.
pub const MAX_NAME_SEGMENTS: usize = 8;

/// Bytes of an address before decoding: three for each byte of the name, and a signed query.
const MAX_ADDRESS_BYTES: usize = 8192;

/// Why an address names no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a stream needs an app and a name, like live/mystream")]
    Incomplete,
    #[error("the stream name is longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    #[error("the stream name has more than {MAX_NAME_SEGMENTS} path segments")]
    TooDeep,
    #[error("the stream name holds {0:?}: it takes letters, digits and . _ - ~ + @ = ,")]
    BadCharacter(char),
    #[error("a part of the stream name starts with a dot or holds two in a row")]
    Dots,
    #[error("the stream name holds a broken percent escape")]
    BadEscape,
    #[error("the query of the address is too long")]
    QueryTooLong,
}

/// A valid, normalised stream name. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(Arc<str>);

impl StreamName {
    /// Reads an HTTP path (or any text) that names a stream: percent escapes are decoded once,
    /// empty segments dropped. A query is not part of a path; see [`StreamName::from_address`].
    ///
    /// # Errors
    /// Says why the text names no stream.
    pub fn from_path(path: &str) -> Result<Self, NameError> {
        Self::from_parts([path])
    }

    /// Reads the three texts in which RTMP spreads an address. Each may carry a query; the key's
    /// parameters come first, because some encoders cut tcUrl at 1024 characters. Of tcUrl only
    /// the query counts, and its path where the app is missing. The key may begin with a format, as
    /// Flash's `mp4:name.mp4` does, which librtmp and ffmpeg put before names with such an ending.
    ///
    /// # Errors
    /// Says why the texts name no stream.
    pub fn from_rtmp(app: &str, tc_url: &str, key: &str) -> Result<(Self, Query), NameError> {
        if [app, tc_url, key].iter().any(|text| text.len() > MAX_ADDRESS_BYTES) {
            return Err(NameError::TooLong);
        }
        let (app, app_query) = split_query(app);
        let (url, url_query) = split_query(tc_url);
        let (key, key_query) = split_query(key);
        let key = without_format(key);
        let app = if app.trim_matches('/').is_empty() { url_path(url) } else { app };
        let name = Self::from_parts([app, key])?;
        let query = Query::parse_all([key_query, app_query, url_query])?;
        Ok((name, query))
    }

    /// Reads `path?query`.
    ///
    /// # Errors
    /// Says why the text names no stream.
    pub fn from_address(address: &str) -> Result<(Self, Query), NameError> {
        let (path, query) = split_query(address);
        Ok((Self::from_path(path)?, Query::parse_all([query])?))
    }

    fn from_parts<const N: usize>(parts: [&str; N]) -> Result<Self, NameError> {
        let mut name = String::new();
        let mut segments = 0_usize;
        for part in parts {
            if part.len() > MAX_ADDRESS_BYTES {
                return Err(NameError::TooLong);
            }
            let part = percent_decode(part).ok_or(NameError::BadEscape)?;
            for segment in part.split('/').filter(|segment| !segment.is_empty()) {
                check_segment(segment)?;
                if segments > 0 {
                    name.push('/');
                }
                name.push_str(segment);
                segments = segments.saturating_add(1);
            }
        }
        match segments {
            0 | 1 => Err(NameError::Incomplete),
            _ if segments > MAX_NAME_SEGMENTS => Err(NameError::TooDeep),
            _ if name.len() > MAX_NAME_BYTES => Err(NameError::TooLong),
            _ => Ok(Self(name.into())),
        }
    }

    /// Every segment but the last, joined by `/`.
    #[must_use]
    pub fn app(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(app, _)| app)
    }

    /// The last segment.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// `app/name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `app/name` as it stands in a URL, without a leading slash (RFC 3986 §2.1).
    #[must_use]
    pub fn url_path(&self) -> impl fmt::Display + '_ {
        UrlPath(&self.0)
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamName({})", self.0)
    }
}

impl std::str::FromStr for StreamName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::from_path(text)
    }
}

struct UrlPath<'a>(&'a str);

impl fmt::Display for UrlPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            // Of what a name may hold, only non-ASCII letters need an escape in a path.
            if byte.is_ascii() {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

/// Names are what people type: letters and digits of any script, and the marks that mean nothing
/// to a shell, a file system, HTML or a URL's path.
fn check_segment(segment: &str) -> Result<(), NameError> {
    let allowed = |char: &char| char.is_alphanumeric() || "._-~+@=,".contains(*char);
    if let Some(other) = segment.chars().find(|char| !allowed(char)) {
        return Err(NameError::BadCharacter(other));
    }
    if segment.starts_with('.') || segment.contains("..") {
        return Err(NameError::Dots);
    }
    Ok(())
}

fn without_format(key: &str) -> &str {
    let format = |known: &&str| key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(known));
    match ["mp4:", "flv:", "mp3:"].iter().find(|known| format(known)) {
        Some(format) => key.get(format.len()..).unwrap_or_default(),
        None => key,
    }
}

fn split_query(text: &str) -> (&str, &str) {
    text.split_once('?').unwrap_or((text, ""))
}

/// The path of `scheme://authority/path`; nothing where the text is no URL.
fn url_path(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or("", |(_, rest)| rest);
    after_scheme.split_once('/').map_or("", |(_, path)| path)
}

/// `None` for a broken escape or one that is not UTF-8. Decodes once, never twice.
fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?].map(|digit| char::from(digit).to_digit(16));
            let [Some(high), Some(low)] = digits else { return None };
            bytes.push(u8::try_from(high << 4 | low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
