use std::path::PathBuf;
use std::{fmt, io};

use strsim::damerau_levenshtein;
use thiserror::Error;

use super::keys::{KEYS, Key};

/// Where a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Lines count from 1.
    File {
        path: PathBuf,
        line: usize,
    },
    Variable(String),
    Flag(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Why a configuration cannot be used: one sentence for the operator, with the place first.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{place}: not valid TOML: {message}")]
    Syntax { place: Place, message: String },
    #[error("{place}: unknown key \"{name}\"; {hint}")]
    UnknownKey { place: Place, name: String, hint: String },
    #[error("unknown environment variable {name}; {hint}")]
    UnknownVariable { name: String, hint: String },
    #[error("{place}: {key} = {value}: expected {expected}")]
    BadValue { place: Place, key: &'static str, value: String, expected: String },
    #[error("{first} does not go with {second}: {rule}")]
    Conflict { first: String, second: String, rule: String },
}

impl ConfigError {
    pub(super) fn bad_value(place: Place, key: &'static Key, value: &str) -> Self {
        let value = format!("{value:?}");
        Self::BadValue { place, key: key.name, value, expected: key.kind.expected() }
    }

    pub(super) fn unknown_key(place: Place, name: &str) -> Self {
        let hint = hint(nearest(name).map(|key| format!("\"{}\"", key.name)));
        Self::UnknownKey { place, name: name.to_owned(), hint }
    }

    pub(super) fn unknown_variable(name: &str) -> Self {
        let bare = name.trim_start_matches(super::VARIABLE_PREFIX);
        Self::UnknownVariable {
            name: name.to_owned(),
            hint: hint(nearest(bare).map(Key::variable)),
        }
    }
}

fn hint(nearest: Option<String>) -> String {
    let all = "`weir config --reference` lists all";
    nearest.map_or_else(|| all.to_owned(), |nearest| format!("did you mean {nearest}? ({all})"))
}

/// The key that was probably meant. Dots, dashes, underscores and case do not count, and the last
/// word alone is enough (`segment`), also below a key that is no table (`rtmp.address`).
fn nearest(name: &str) -> Option<&'static Key> {
    let bare = |name: &str| name.to_lowercase().replace(['.', '-'], "_");
    let wanted = bare(name);
    let by_word = KEYS.iter().find(|key| {
        key.name.rsplit('.').next() == Some(&wanted) || wanted.starts_with(&(bare(key.name) + "_"))
    });
    let distance = |key: &&Key| damerau_levenshtein(&wanted, &bare(key.name));
    let close = |key: &&Key| distance(key) <= wanted.len().div_ceil(3);
    by_word.or_else(|| KEYS.iter().min_by_key(distance).filter(close))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_the_one_that_was_meant() {
        for (typed, meant) in [
            ("hls.segmnet", Some("hls.segment")),
            ("hsl.part", Some("hls.part")),
            ("segment", Some("hls.segment")),
            ("rtmp.address", Some("rtmp")),
            ("resume-window", Some("resume_window")),
            ("HLS_WINDOWS", Some("hls.window")),
            ("max_connections", Some("limits.connections")),
            ("connections", Some("limits.connections")),
            ("handshake_timeout", None),
            ("foo", None),
            ("zzzzzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed).map(|key| key.name), meant, "{typed}");
        }
    }
}
