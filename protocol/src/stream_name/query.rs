use std::fmt;

use super::{NameError, percent_decode};

/// Parameters of one address. Real ones have a handful.
const MAX_PARAMETERS: usize = 32;

/// Bytes of all queries of one address: room for a signed token of 4 KiB in each of three places.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// The parameters behind `?` in a publisher's or player's address, in the order that counts.
///
/// They often hold secrets, so `Debug` shows the keys alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads several queries; the first one's parameters win.
    ///
    /// A `+` stays a `+`: tokens are often pasted as unescaped Base64. A broken escape stays as it
    /// was written, for the same reason.
    pub(super) fn parse_all<const N: usize>(queries: [&str; N]) -> Result<Self, NameError> {
        let bytes = queries.iter().fold(0_usize, |sum, query| sum.saturating_add(query.len()));
        if bytes > MAX_QUERY_BYTES {
            return Err(NameError::QueryTooLong);
        }
        let decode = |text: &str| percent_decode(text).unwrap_or_else(|| text.to_owned());
        let mut parameters: Vec<(String, String)> = Vec::new();
        for pair in queries.iter().flat_map(|query| query.split(['&', '?'])) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let parameter = (decode(key), decode(value));
            if parameter.0.is_empty() || parameters.contains(&parameter) {
                continue;
            }
            if parameters.len() == MAX_PARAMETERS {
                return Err(NameError::QueryTooLong);
            }
            parameters.push(parameter);
        }
        Ok(Self(parameters))
    }

    /// Reads the query of a URL, without its `?`.
    ///
    /// # Errors
    /// `QueryTooLong`.
    pub fn parse(query: &str) -> Result<Self, NameError> {
        Self::parse_all([query])
    }

    /// The value that counts for `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Every parameter, decoded.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As it would stand in a URL, without `?`. It may hold secrets: not for logs.
    #[must_use]
    pub fn to_query_string(&self) -> String {
        let mut text = String::new();
        for (key, value) in self.iter() {
            if !text.is_empty() {
                text.push('&');
            }
            escape(key, &mut text);
            text.push('=');
            escape(value, &mut text);
        }
        text
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|(key, _)| key)).finish()
    }
}

fn escape(text: &str, out: &mut String) {
    use fmt::Write;
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}
