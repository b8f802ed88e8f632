use std::fmt;

use weir_protocol::stream_name::{NameError, StreamName};

/// The name of a stream, or of several: in each path segment one `*` stands for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern(Vec<String>);

/// Why a text names no streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("a part of the stream name holds two *")]
    TwoStars,
}

impl Pattern {
    /// # Errors
    /// Says why the text names no streams.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        // A name cannot hold a star, so any letter in its place tells whether the rest is one.
        StreamName::from_path(&text.replace('*', "x"))?;
        if text.contains('%') {
            return Err(NameError::BadCharacter('%').into());
        }
        let segments: Vec<&str> = text.split('/').filter(|segment| !segment.is_empty()).collect();
        if segments.iter().any(|segment| segment.matches('*').count() > 1) {
            return Err(PatternError::TwoStars);
        }
        Ok(Self(segments.into_iter().map(str::to_owned).collect()))
    }

    #[must_use]
    pub fn matches(&self, name: &StreamName) -> bool {
        let segments = || name.as_str().split('/');
        segments().count() == self.0.len()
            && segments().zip(&self.0).all(|(segment, pattern)| match pattern.split_once('*') {
                Some((head, tail)) => {
                    segment.strip_prefix(head).is_some_and(|rest| rest.ends_with(tail))
                }
                None => segment == pattern,
            })
    }

    /// The name, where it is but one.
    #[must_use]
    pub fn single(&self) -> Option<StreamName> {
        let text = self.0.join("/");
        if text.contains('*') { None } else { StreamName::from_path(&text).ok() }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, yes, no) in [
            ("live/a", &["live/a"][..], &["live/b", "live/a/b", "x/live/a", "live/aa"][..]),
            ("/live//*/", &["live/a", "live/b.c"], &["live/a/b", "vod/a"]),
            ("live/cam-*", &["live/cam-1", "live/cam-"], &["live/cam", "live/xcam-1"]),
            ("live/*-hd", &["live/a-hd"], &["live/a-hdx", "live/hd"]),
            ("live/ab*ba", &["live/abba", "live/ab-ba"], &["live/aba"]),
            ("*/*", &["live/a", "a/b"], &["a/b/c"]),
            ("org/*/cam", &["org/x/cam"], &["org/cam", "org/x/y/cam"]),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            let matches = |name: &&str| parsed.matches(&StreamName::from_path(name).unwrap());
            assert!(yes.iter().all(matches) && !no.iter().any(matches), "{pattern}");
            assert_eq!(parsed.single().is_some(), !pattern.contains('*'), "{pattern}");
        }
        for pattern in ["", "live", "*", "live/**", "live/%41", "live/../a", "live/a b"] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}
