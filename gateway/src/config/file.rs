use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ConfigError, Place};
use super::keys::{KEYS, Key};
use super::list::List;
use super::lists::LISTS;
use super::value::Kind;
use crate::limits::CONFIG_FILE_BYTES;

/// One `key = value` of the file, with the value as text for its [`Kind`].
pub(super) struct Entry {
    pub key: &'static Key,
    pub text: String,
    pub place: Place,
}

/// One `[[list]]` of the file.
pub(super) struct Row {
    pub list: &'static dyn List,
    pub fields: Vec<RowField>,
    pub place: Place,
}

pub(super) struct RowField {
    pub name: String,
    pub value: Raw,
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

/// What the file sets, each in the order of its lines.
pub(super) struct Settings {
    pub entries: Vec<Entry>,
    pub rows: Vec<Row>,
}

pub(super) fn settings(path: &Path, text: &str) -> Result<Settings, ConfigError> {
    let lines = Lines { path, text };
    let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        place: lines.place(error.span().map_or(0, |span| span.start)),
        message: error.message().trim().replace('\n', ", "),
    })?;
    let (mut leaves, mut rows) = (Vec::new(), Vec::new());
    for (key, value) in table.get_ref() {
        match LISTS.iter().find(|list| list.name() == key.get_ref()) {
            Some(list) => {
                rows.extend(list_rows(*list, value, lines.place(offset_of(key)), &lines)?)
            }
            None => collect("", key, value, &mut leaves),
        }
    }
    leaves.sort_by_key(|leaf| leaf.offset);
    let entries = leaves.into_iter().map(|leaf| leaf.resolve(&lines)).collect::<Result<_, _>>()?;
    Ok(Settings { entries, rows })
}

/// The entries of one list.
fn list_rows(
    list: &'static dyn List,
    value: &Spanned<DeValue<'_>>,
    place: Place,
    lines: &Lines<'_>,
) -> Result<Vec<Row>, ConfigError> {
    let tables = value.get_ref().as_array().map(|array| array.iter().collect::<Vec<_>>());
    let row = |table: &Spanned<DeValue<'_>>| {
        let fields = table.get_ref().as_table()?.iter().map(|(name, value)| {
            let place = lines.place(offset_of(name));
            RowField { name: name.get_ref().to_string(), value: Raw::of(value.get_ref()), place }
        });
        Some(Row { list, fields: fields.collect(), place: lines.place(offset_of(table)) })
    };
    let rows = tables.and_then(|tables| tables.into_iter().map(row).collect());
    rows.ok_or_else(|| ConfigError::BadValue {
        place,
        key: list.name().to_owned(),
        value: shown(value.get_ref()),
        expected: format!("a table for each entry, each headed [[{}]]", list.name()),
    })
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

fn collect<'a>(
    prefix: &str,
    key: &Spanned<DeString<'a>>,
    value: &'a Spanned<DeValue<'a>>,
    leaves: &mut Vec<Leaf<'a>>,
) {
    let name = match prefix {
        "" => key.get_ref().to_string(),
        _ => format!("{prefix}.{}", key.get_ref()),
    };
    match value.get_ref() {
        DeValue::Table(inner) if !inner.is_empty() => {
            inner.iter().for_each(|(key, value)| collect(&name, key, value, leaves));
        }
        DeValue::Table(_) if is_group(&name) => {}
        other => leaves.push(Leaf { name, offset: offset_of(key), value: other }),
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
        let value = Raw::of(self.value);
        match value.for_kind(&key.kind) {
            Some(text) => Ok(Entry { key, text: text.to_owned(), place }),
            None => Err(ConfigError::BadValue {
                place,
                key: key.name.to_owned(),
                value: value.shown(),
                expected: in_file(&key.kind),
            }),
        }
    }
}

/// A value before it is known what it is for.
pub(super) enum Raw {
    Text(String),
    Number(String),
    /// As it is shown in an error.
    Other(String),
}

impl Raw {
    fn of(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(number) => {
                match i128::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Self::Number(number.to_string()),
                    Err(_) => Self::Other(number.as_str().to_owned()),
                }
            }
            other => Self::Other(shown(other)),
        }
    }

    /// The text that is meant for this kind, unless a text stands where a number should, or the
    /// other way round.
    pub(super) fn for_kind<C>(&self, kind: &Kind<C>) -> Option<&str> {
        match self {
            Self::Text(text) if kind.takes_string() => Some(text),
            Self::Number(number) if kind.takes_number() => Some(number),
            _ => None,
        }
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Number(text) | Self::Other(text) => text.clone(),
        }
    }
}

/// What is allowed, in TOML's own spelling where the quotes are what went wrong.
pub(super) fn in_file<C>(kind: &Kind<C>) -> String {
    let expected = kind.expected();
    let quoted = kind.takes_string() && !kind.takes_number();
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
