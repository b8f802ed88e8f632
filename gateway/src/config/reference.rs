use std::fmt::Write as _;

use super::keys::{KEYS, Key};
use super::list::List;
use super::lists::LISTS;
use super::{CONFIG_VARIABLE, Loaded};

/// The reference of all keys as Markdown: what `docs/config.md` holds.
#[must_use]
pub fn markdown() -> String {
    let mut text = format!(
        "# Configuration\n\n\
         <!-- Made by `weir config --reference`; edit gateway/src/config/keys.rs instead. -->\n\n\
         Weir needs no configuration. What you set can stand in a TOML file (`weir --config FILE`, or\n\
         `{CONFIG_VARIABLE}=FILE`), in the environment, or on the command line. A flag wins over a\n\
         variable, a variable over the file, the file over the default; an empty variable counts as not\n\
         set. `weir config` prints what is in force, with the place where each value was set, as a\n\
         file to start from.\n\n\
         An unknown key or variable, or a value out of range, is an error: Weir names it, with the\n\
         line and the nearest valid key, and does not start.\n\n\
         | key | flag | variable | default | allowed |\n\
         | --- | --- | --- | --- | --- |\n"
    );
    for key in KEYS {
        let (name, flag, variable) = (key.name, key.flag(), key.variable());
        let (default, expected) = (key.default(), key.kind.expected());
        let _ = writeln!(
            text,
            "| [`{name}`](#{}) | `{flag}` | `{variable}` | `{default}` | {expected} |",
            anchor(name)
        );
    }
    for key in KEYS {
        let _ = write!(text, "\n## {}\n\n{}\n", key.name, key.about);
    }
    for list in LISTS {
        list_markdown(*list, &mut text);
    }
    text
}

fn list_markdown(list: &dyn List, text: &mut String) {
    let (name, about, most) = (list.name(), list.about(), list.most());
    let _ = write!(
        text,
        "\n## [[{name}]]\n\n{about}\n\nA list: it stands in the file alone, each entry as a table \
         `[[{name}]]`, {most} at most.\n\n| field | default | allowed | what it is |\n\
         | --- | --- | --- | --- |\n"
    );
    for field in list.fields() {
        let default = field.default.map_or("required".to_owned(), |text| format!("`{text}`"));
        // Between two stars Markdown would see stress.
        let expected = field.expected.replace('*', "\\*");
        let _ = writeln!(text, "| `{}` | {default} | {} | {} |", field.name, expected, field.about);
    }
}

/// Whether keys and passwords are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    Shown,
    Hidden,
}

/// The configuration in force as a TOML file, with where each value that is no default was set.
/// With secrets hidden, Weir does not start with it.
#[must_use]
pub fn toml(loaded: &Loaded, secrets: Secrets) -> String {
    let mut text = String::new();
    let mut group = "";
    for key in KEYS {
        let (table, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if table != group {
            let _ = writeln!(text, "\n[{table}]");
            group = table;
        }
        let value = value_in_toml(key, loaded);
        let place = loaded.places.get(key.name).map(|place| format!("  # set by {place}"));
        let _ = writeln!(text, "{name} = {value}{}", place.unwrap_or_default());
    }
    for list in LISTS {
        for entry in list.settings(&loaded.config) {
            let _ = writeln!(text, "\n[[{}]]", list.name());
            for field in entry {
                let _ = match (secrets, field.secret) {
                    (Secrets::Hidden, true) => {
                        writeln!(text, "{} = \"…\"  # `weir config --secrets` shows it", field.name)
                    }
                    _ if field.quoted => {
                        writeln!(text, "{} = {}", field.name, toml::Value::String(field.text))
                    }
                    _ => writeln!(text, "{} = {}", field.name, field.text),
                };
            }
        }
    }
    text
}

fn value_in_toml(key: &Key, loaded: &Loaded) -> String {
    let value = key.kind.text(&loaded.config);
    if key.kind.takes_string() { toml::Value::String(value).to_string() } else { value }
}

/// How Markdown renderers name a heading: lower case, without dots.
fn anchor(name: &str) -> String {
    name.replace('.', "")
}
