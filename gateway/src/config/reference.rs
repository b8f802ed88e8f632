use std::fmt::Write as _;

use super::keys::{KEYS, Key};
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
    text
}

/// The configuration in force as a TOML file, with where each value that is no default was set.
#[must_use]
pub fn toml(loaded: &Loaded) -> String {
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
