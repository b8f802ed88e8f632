//! Reading one line of a script from left to right.

use super::number::{Env, Number};

/// What is left of a line.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    rest: &'a str,
}

/// Words, names and numbers end here.
const DELIMITERS: &[char] = &[' ', '\t', '(', ')', '{', '}', '[', ']', ',', ':', '"', '='];

/// Text of a script in which `$app`, `$key`, `$url`, `$n` and `$c` stand for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(pub String);

impl Text {
    #[must_use]
    pub fn render(&self, env: &Env) -> String {
        if !self.0.contains('$') {
            return self.0.clone();
        }
        let text = self.0.replace("$app", &env.app).replace("$key", &env.key);
        let text = text.replace("$url", &env.url).replace("$n", &env.turn.to_string());
        text.replace("$c", &env.connection.to_string())
    }
}

impl<'a> Scan<'a> {
    /// Reads `line` up to a `#` that stands outside of quotes.
    #[must_use]
    pub fn new(line: &'a str) -> Self {
        let mut quoted = false;
        let end = line.char_indices().find(|(_, character)| {
            quoted ^= *character == '"';
            *character == '#' && !quoted
        });
        Self { rest: line[..end.map_or(line.len(), |(at, _)| at)].trim() }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// # Errors
    /// When something is left.
    pub fn end(&self) -> Result<(), String> {
        if self.is_empty() { Ok(()) } else { Err(format!("what is \"{}\"?", self.rest)) }
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(text) else { return false };
        self.rest = rest.trim_start();
        true
    }

    /// # Errors
    /// When something else comes next.
    pub fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.eat(text) { Ok(()) } else { Err(format!("expected {text} at \"{}\"", self.rest)) }
    }

    #[must_use]
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Up to a space, bracket, comma, colon, quote or equals sign; may be empty.
    pub fn word(&mut self) -> &'a str {
        let end = self.rest.find(DELIMITERS).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// The next word, without taking it.
    #[must_use]
    pub fn next_word(&self) -> &'a str {
        let mut copy = *self;
        copy.word()
    }

    /// Up to a space.
    pub fn token(&mut self) -> &'a str {
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        token
    }

    /// `NAME=`, if that is next.
    pub fn option(&mut self) -> Option<&'a str> {
        let mut after = *self;
        let name = after.word();
        let is_option = !name.is_empty() && self.rest[name.len()..].starts_with('=');
        if !is_option {
            return None;
        }
        after.eat("=");
        *self = after;
        Some(name)
    }

    /// # Errors
    /// When no number is next.
    pub fn number(&mut self) -> Result<Number, String> {
        Number::parse(self.word())
    }

    /// `"…"`, without escapes.
    ///
    /// # Errors
    /// When there is none, or it does not end.
    pub fn quoted(&mut self) -> Result<Text, String> {
        let begun = self.rest.strip_prefix('"');
        let found = begun.and_then(|rest| rest.split_once('"'));
        let (text, rest) =
            found.ok_or_else(|| format!("expected \"text\" at \"{}\"", self.rest))?;
        self.rest = rest.trim_start();
        Ok(Text(text.to_owned()))
    }
}
