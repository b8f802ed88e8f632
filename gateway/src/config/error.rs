use std::path::PathBuf;
use std::{fmt, io};

use strsim::damerau_levenshtein;
use thiserror::Error;

use super::keys::{KEYS, Key};
use super::list::List;
use super::lists::LISTS;

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
    BadValue { place: Place, key: String, value: String, expected: String },
    #[error("{place}: [[{list}]] without {field}: expected {expected}")]
    Missing { place: Place, list: &'static str, field: &'static str, expected: String },
    #[error("{place}: [[{list}]]: {rule}")]
    BadEntry { place: Place, list: &'static str, rule: String },
    #[error("{first} does not go with {second}: {rule}")]
    Conflict { first: String, second: String, rule: String },
}

impl ConfigError {
    pub(super) fn bad_value(place: Place, key: &'static Key, value: &str) -> Self {
        let expected = key.kind.expected();
        Self::BadValue { place, key: key.name.to_owned(), value: format!("{value:?}"), expected }
    }

    pub(super) fn unknown_key(place: Place, name: &str) -> Self {
        let keys = KEYS.iter().map(|key| key.name);
        let lists = LISTS.iter().map(|list| list.name());
        Self::UnknownKey {
            place,
            name: name.to_owned(),
            hint: quoted_hint(name, keys.chain(lists)),
        }
    }

    /// Of an entry of a list.
    pub(super) fn unknown_field(place: Place, list: &dyn List, name: &str) -> Self {
        let name = format!("{}.{name}", list.name());
        let fields = list.fields();
        let names: Vec<_> =
            fields.iter().map(|field| format!("{}.{}", list.name(), field.name)).collect();
        let hint = quoted_hint(&name, names.iter().map(String::as_str));
        Self::UnknownKey { place, name, hint }
    }

    pub(super) fn unknown_variable(name: &str) -> Self {
        let bare = name.trim_start_matches(super::VARIABLE_PREFIX);
        let hint = match LISTS.iter().find(|list| list.name().eq_ignore_ascii_case(bare)) {
            Some(list) => format!("[[{}]] can only stand in the configuration file", list.name()),
            None => {
                let meant = nearest(bare, KEYS.iter().map(|key| key.name));
                hint(meant.and_then(Key::named).map(Key::variable))
            }
        };
        Self::UnknownVariable { name: name.to_owned(), hint }
    }
}

fn hint(nearest: Option<String>) -> String {
    let all = "`weir config --reference` lists all";
    nearest.map_or_else(|| all.to_owned(), |nearest| format!("did you mean {nearest}? ({all})"))
}

fn quoted_hint<'a>(name: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> String {
    hint(nearest(name, candidates).map(|meant| format!("\"{meant}\"")))
}

/// The key that was probably meant. Dots, dashes, underscores and case do not count, and the last
/// word alone is enough (`segment`), also below a key that is no table (`rtmp.address`).
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let bare = |name: &str| name.to_lowercase().replace(['.', '-'], "_");
    let wanted = bare(name);
    let by_word = candidates.clone().find(|key| {
        key.rsplit('.').next() == Some(&wanted) || wanted.starts_with(&(bare(key) + "_"))
    });
    let distance = |key: &&str| damerau_levenshtein(&wanted, &bare(key));
    let close = |key: &&str| distance(key) <= wanted.len().div_ceil(3);
    by_word.or_else(|| candidates.min_by_key(distance).filter(close))
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
            let keys = KEYS.iter().map(|key| key.name);
            assert_eq!(nearest(typed, keys), meant, "{typed}");
        }
    }
}
