use std::fmt::Debug;
use std::path::PathBuf;

use super::Rtmps;
use super::value::Field;
use crate::auth::Secret;
use crate::relay::address::Address;
use crate::stream::Pattern;
use crate::trust::Trust;

/// A type whose values are texts in the configuration.
pub trait TextValue: Debug + Sized + 'static {
    /// As the end of a sentence: "expected …".
    const EXPECTED: &'static str;

    /// It stands in no error and in no printed configuration unless that is asked for.
    const SECRET: bool = false;

    /// `None` for a text that is not [`TextValue::EXPECTED`].
    fn read(text: &str) -> Option<Self>;

    /// The text that [`TextValue::read`] makes the same value of.
    fn text(&self) -> String;
}

/// A field of `C` that holds a [`TextValue`].
#[derive(Debug)]
pub(super) struct TextIn<C, T>(pub Field<C, T>);

/// A [`TextIn`] of any type.
pub trait TextField<C>: Debug + Sync {
    fn expected(&self) -> &'static str;
    fn is_secret(&self) -> bool;
    fn text(&self, config: &mut C) -> String;

    /// Whether the text fits.
    fn set(&self, config: &mut C, text: &str) -> bool;
}

impl<C: Debug, T: TextValue> TextField<C> for TextIn<C, T> {
    fn expected(&self) -> &'static str {
        T::EXPECTED
    }

    fn is_secret(&self) -> bool {
        T::SECRET
    }

    fn text(&self, config: &mut C) -> String {
        (self.0)(config).text()
    }

    fn set(&self, config: &mut C, text: &str) -> bool {
        T::read(text).map(|value| *(self.0)(config) = value).is_some()
    }
}

impl TextValue for Rtmps {
    const EXPECTED: &'static str =
        "auto, off, or an IP address and a port, such as 0.0.0.0:1936 or [::]:1936";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// The word for no file. A file of that name is `./none`.
const NONE: &str = "none";

impl TextValue for Option<PathBuf> {
    const EXPECTED: &'static str = "the path of a PEM file, or none";

    fn read(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| (text != NONE).then(|| PathBuf::from(text)))
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| NONE.to_owned(), |path| path.display().to_string())
    }
}

impl TextValue for Secret {
    const EXPECTED: &'static str = "a secret of 12 to 128 letters (a-z, A-Z), digits, - or _ \
                                    (`openssl rand -hex 16` makes one)";
    const SECRET: bool = true;

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.reveal().to_owned()
    }
}

impl TextValue for Pattern {
    const EXPECTED: &'static str = "the name of a stream such as live/show, or of several such as \
                                    live/* or live/cam-*";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl TextValue for Address {
    const EXPECTED: &'static str = "an address such as rtmp://HOST/APP/KEY, in whose path {app} \
                                    and {name} may stand for those of the stream";
    const SECRET: bool = true;

    fn read(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }

    fn text(&self) -> String {
        self.reveal().to_owned()
    }
}

impl TextValue for Trust {
    const EXPECTED: &'static str = "machine, anyone, or the path of a PEM file with an authority";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}
