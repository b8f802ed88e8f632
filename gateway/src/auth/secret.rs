use std::fmt;

use subtle::ConstantTimeEq;

/// A text that lets its owner in. Neither `Debug` nor an error shows it, and comparing takes equally
/// long whatever is the same.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

/// Twelve random letters and digits are 71 bits, which nobody finds by trying.
const SHORTEST: usize = 12;

/// Longer ones are no safer, and some encoders cut what one types.
const LONGEST: usize = 128;

impl Secret {
    /// The marks that mean something in an address are left out, so that a key can be typed into
    /// any field of any encoder as it is.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let sound = (SHORTEST..=LONGEST).contains(&text.len()) && text.bytes().all(allowed);
        sound.then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// For the operator who asks for it. Not for logs, API or metrics.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_fits_every_field_and_shows_itself_nowhere() {
        for text in ["0123456789ab", "A-b_C-d_E-f_", &"x".repeat(128)] {
            let secret = Secret::parse(text).unwrap();
            assert!(secret.is(text));
            assert!(!secret.is(&text[1..]) && !secret.is(&format!("{text}0")) && !secret.is(""));
            assert!(!format!("{secret:?}").contains(text));
        }
        let long = "x".repeat(129);
        for text in ["", "0123456789a", "0123456789 ab", "0123456789a+", "0123456789aé", &long] {
            assert_eq!(Secret::parse(text), None, "{text}");
        }
    }
}
