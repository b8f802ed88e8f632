use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Place};
use super::keys::{KEYS, Key};
use crate::limits::CONFIG_FILE_BYTES;

/// One `key = value` of the file, with the value as text for [`super::value::Kind`].
pub(super) struct Entry {
    pub key: &'static Key,
    pub text: String,
    pub place: Place,
}

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |error| ConfigError::Unreadable { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(CONFIG_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > CONFIG_FILE_BYTES {
        let error = io::Error::other(format!("it is larger than {CONFIG_FILE_BYTES} bytes"));
        return Err(unreadable(error));
    }
    Ok(text)
}

/// The file's settings in the order of its lines.
pub(super) fn entries(path: &Path, text: &str) -> Result<Vec<Entry>, ConfigError> {
    let lines = Lines { path, text };
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        place: lines.place(error.span().map_or(0, |span| span.start)),
        message: error.message().trim().replace('\n', ", "),
    })?;
    let mut leaves = Vec::new();
    collect("", table.get_ref(), &mut leaves);
    leaves.sort_by_key(|leaf| leaf.offset);
    leaves.into_iter().map(|leaf| leaf.resolve(&lines)).collect()
}

struct Lines<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Lines<'_> {
    fn place(&self, offset: usize) -> Place {
        let before = self.text.bytes().take(offset);
        let line = before.filter(|&byte| byte == b'\n').count() + 1;
        Place::File { path: self.path.to_owned(), line }
    }
}

/// A value that is no table, or an empty or misplaced table, by its whole dotted name.
struct Leaf<'a> {
    name: String,
    offset: usize,
    value: &'a DeValue<'a>,
}

fn collect<'a>(prefix: &str, table: &'a DeTable<'a>, leaves: &mut Vec<Leaf<'a>>) {
    for (key, value) in table {
        let name = match prefix {
            "" => key.get_ref().to_string(),
            _ => format!("{prefix}.{}", key.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(inner) if !inner.is_empty() => collect(&name, inner, leaves),
            DeValue::Table(_) if is_group(&name) => {}
            other => leaves.push(Leaf { name, offset: offset_of(key), value: other }),
        }
    }
}

fn offset_of<T>(spanned: &Spanned<T>) -> usize {
    spanned.span().start
}

fn is_group(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

impl Leaf<'_> {
    fn resolve(self, lines: &Lines<'_>) -> Result<Entry, ConfigError> {
        let place = lines.place(self.offset);
        let Some(key) = Key::named(&self.name) else {
            return Err(ConfigError::unknown_key(place, &self.name));
        };
        let number = |value: &toml::de::DeInteger<'_>| {
            i128::from_str_radix(value.as_str(), value.radix()).ok().map(|n| n.to_string())
        };
        let text = match self.value {
            DeValue::String(text) if key.kind.takes_string() => Some(text.to_string()),
            DeValue::Integer(value) if key.kind.takes_number() => number(value),
            _ => None,
        };
        match text {
            Some(text) => Ok(Entry { key, text, place }),
            None => Err(ConfigError::BadValue {
                place,
                key: key.name,
                value: shown(self.value),
                expected: in_file(key),
            }),
        }
    }
}

/// What is allowed, in TOML's own spelling where the quotes are what went wrong.
fn in_file(key: &Key) -> String {
    let expected = key.kind.expected();
    let quoted = key.kind.takes_string() && !key.kind.takes_number();
    if quoted { format!("{expected}, in quotes") } else { format!("{expected}, without quotes") }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        other => format!("({})", other.type_str()),
    }
}
