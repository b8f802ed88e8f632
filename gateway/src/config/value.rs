use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::text::TextField;
use super::{Config, Cores};

/// The field of `C` that a value is for.
pub(super) type Field<C, T> = fn(&mut C) -> &mut T;

/// What a value looks like, which range it has, and the field it lands in: one of the [`Config`]
/// for a key, one of an entry for a list.
#[derive(Debug)]
pub enum Kind<C: 'static = Config> {
    Address(Field<C, SocketAddr>),
    Cores(Field<C, Cores>),
    Choice(Choice<C>),
    /// A filter of `tracing-subscriber`.
    Filter(Field<C, String>),
    Duration(RangeInclusive<Duration>, Field<C, Duration>),
    Bytes(RangeInclusive<u64>, Field<C, u64>),
    Count(RangeInclusive<usize>, Field<C, usize>),
    Text(&'static dyn TextField<C>),
}

/// One of several words.
#[derive(Debug)]
pub struct Choice<C> {
    pub words: &'static [&'static str],
    /// Takes the place of a word among the words.
    pub set: fn(&mut C, usize),
    pub get: fn(&C) -> usize,
}

/// The text is not a value of this kind; [`Kind::expected`] tells what is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAllowed;

impl<C> Kind<C> {
    /// Parses `text`, checks the range and sets the field.
    pub(super) fn set(&self, config: &mut C, text: &str) -> Result<(), NotAllowed> {
        let text = text.trim();
        match self {
            Self::Address(field) => *field(config) = address(text).ok_or(NotAllowed)?,
            Self::Cores(field) => *field(config) = Cores::parse(text).ok_or(NotAllowed)?,
            Self::Choice(choice) => {
                let place = choice.words.iter().position(|word| *word == text);
                (choice.set)(config, place.ok_or(NotAllowed)?);
            }
            Self::Filter(field) => {
                *field(config) = filter(text).ok_or(NotAllowed)?.to_owned();
            }
            Self::Duration(range, field) => {
                let parsed = humantime::parse_duration(text).ok();
                *field(config) = within(parsed, range)?;
            }
            Self::Bytes(range, field) => *field(config) = within(bytes(text), range)?,
            Self::Count(range, field) => *field(config) = within(text.parse().ok(), range)?,
            Self::Text(field) => field.set(config, text).then_some(()).ok_or(NotAllowed)?,
        }
        Ok(())
    }

    /// The field's value as text that [`Kind::set`] reads back.
    pub(super) fn text(&self, config: &C) -> String
    where
        C: Clone,
    {
        let mut config = config.clone();
        match self {
            Self::Address(field) => field(&mut config).to_string(),
            Self::Cores(field) => field(&mut config).to_string(),
            Self::Choice(choice) => choice.words[(choice.get)(&config)].to_owned(),
            Self::Filter(field) => field(&mut config).clone(),
            Self::Duration(_, field) => duration_text(*field(&mut config)),
            Self::Bytes(_, field) => bytes_text(*field(&mut config)),
            Self::Count(_, field) => field(&mut config).to_string(),
            Self::Text(field) => field.text(&mut config),
        }
    }

    /// What is allowed, as the end of a sentence: "expected …".
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Address(_) => {
                "an IP address and a port, such as 0.0.0.0:8080, 127.0.0.1:8080 or [::]:8080".into()
            }
            Self::Cores(_) => "all, a number of cores such as 4, or CPUs such as 0,2-3".into(),
            Self::Choice(choice) => match choice.words {
                [first @ .., last] => format!("{} or {last}", first.join(", ")),
                [] => String::new(),
            },
            Self::Filter(_) => "a filter such as info or info,weir::rtmp=debug".into(),
            Self::Duration(range, _) => format!(
                "a duration with its unit, from {} to {}",
                duration_text(*range.start()),
                duration_text(*range.end())
            ),
            Self::Bytes(range, _) => format!(
                "a size with its unit, from {} to {}",
                bytes_text(*range.start()),
                bytes_text(*range.end())
            ),
            Self::Count(range, _) => {
                format!("a whole number from {} to {}", range.start(), range.end())
            }
            Self::Text(field) => field.expected().into(),
        }
    }

    /// The placeholder in `--help`.
    #[must_use]
    pub fn placeholder(&self) -> String {
        match self {
            Self::Address(_) => "ADDR".into(),
            Self::Cores(_) => "N|LIST".into(),
            Self::Choice(choice) => choice.words.join("|"),
            Self::Filter(_) => "FILTER".into(),
            Self::Duration(..) => "DURATION".into(),
            Self::Bytes(..) => "SIZE".into(),
            Self::Count(..) => "N".into(),
            Self::Text(_) => "TEXT".into(),
        }
    }

    /// Whether the value stands in no error and in no printed configuration unless that is asked for.
    pub(super) fn is_secret(&self) -> bool {
        matches!(self, Self::Text(field) if field.is_secret())
    }

    /// Whether a bare number in the file is meant for this key.
    pub(super) const fn takes_number(&self) -> bool {
        matches!(self, Self::Count(..) | Self::Cores(_))
    }

    /// Whether a quoted text in the file is meant for this key.
    pub(super) const fn takes_string(&self) -> bool {
        !matches!(self, Self::Count(..))
    }
}

fn within<T: PartialOrd>(value: Option<T>, range: &RangeInclusive<T>) -> Result<T, NotAllowed> {
    value.filter(|value| range.contains(value)).ok_or(NotAllowed)
}

/// `IP:port`, and what people type instead: `:port` for all IPv4 addresses, `localhost:port`.
pub(super) fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (host, port) = text.rsplit_once(':')?;
    let ip = match host {
        "" | "*" => Ipv4Addr::UNSPECIFIED,
        "localhost" => Ipv4Addr::LOCALHOST,
        _ => return None,
    };
    Some(SocketAddr::new(IpAddr::V4(ip), port.parse().ok()?))
}

/// `EnvFilter` takes any word for a module's name, so that `inof` would be silence. Here a word
/// alone is a level. A span filter has a grammar of its own, which is left to `EnvFilter`.
fn filter(text: &str) -> Option<&str> {
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let known = |directive: &str| directive.contains('=') || is_level(directive);
    let sound = text.contains('[') || text.split(',').all(known);
    (sound && EnvFilter::try_new(text).is_ok()).then_some(text)
}

fn duration_text(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// Largest first, so that the text of a size has the largest unit that leaves no fraction.
const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let (_, scale) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    number.parse::<u64>().ok()?.checked_mul(*scale)
}

fn bytes_text(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale));
    let (name, scale) = unit.copied().unwrap_or(("B", 1));
    format!("{}{name}", bytes / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, parsed) in [
            ("0.0.0.0:1935", Some("0.0.0.0:1935")),
            ("[::]:8080", Some("[::]:8080")),
            (":8080", Some("0.0.0.0:8080")),
            ("*:8080", Some("0.0.0.0:8080")),
            ("localhost:9090", Some("127.0.0.1:9090")),
            ("127.0.0.1", None),
            ("8080", None),
            ("example.org:80", None),
            ("127.0.0.1:65536", None),
            ("", None),
        ] {
            assert_eq!(address(text), parsed.map(|p| p.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn filters() {
        for text in
            ["info", "INFO", "off", "warn,weir::rtmp=debug", "weir=trace", "[span{a=1}]=info"]
        {
            assert_eq!(filter(text), Some(text));
        }
        for text in ["inof", "info,weir::rtmp", "weir=loud", "", "info,"] {
            assert_eq!(filter(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_need_a_unit_and_come_back() {
        for (text, parsed) in [
            ("512MiB", Some(512 << 20)),
            ("1 gib", Some(1 << 30)),
            ("1536KiB", Some(1536 << 10)),
            ("0B", Some(0)),
            ("512", None),
            ("512MB", None),
            ("-1MiB", None),
            ("99999999TiB", None),
            ("MiB", None),
        ] {
            assert_eq!(bytes(text), parsed, "{text}");
            if let Some(parsed) = parsed {
                assert_eq!(bytes(&bytes_text(parsed)), Some(parsed));
            }
        }
        assert_eq!(bytes_text(1 << 30), "1GiB");
        assert_eq!(bytes_text(1536 << 10), "1536KiB");
    }
}
