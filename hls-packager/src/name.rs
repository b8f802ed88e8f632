use std::fmt;

use crate::Format;

/// The file names under a stream's prefix; writing and reading are each other's inverse, so every
/// resource has exactly one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Init { epoch: u32 },
    Segment { msn: u64, format: Format },
    Part { msn: u64, index: u32 },
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Init { epoch } => write!(f, "init-{epoch}.mp4"),
            Self::Segment { msn, format: Format::Fmp4 } => write!(f, "{msn}.m4s"),
            Self::Segment { msn, format: Format::Ts } => write!(f, "{msn}.ts"),
            Self::Part { msn, index } => write!(f, "{msn}.{index}.m4s"),
        }
    }
}

impl Name {
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(epoch) = name.strip_prefix("init-").and_then(|n| n.strip_suffix(".mp4")) {
            return Some(Self::Init { epoch: number(epoch)? });
        }
        if let Some(msn) = name.strip_suffix(".ts") {
            return Some(Self::Segment { msn: number(msn)?, format: Format::Ts });
        }
        let stem = name.strip_suffix(".m4s")?;
        match stem.split_once('.') {
            None => Some(Self::Segment { msn: number(stem)?, format: Format::Fmp4 }),
            Some((msn, index)) => Some(Self::Part { msn: number(msn)?, index: number(index)? }),
        }
    }
}

/// A decimal number in its one shortest form.
fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    canonical.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in [
            Name::Init { epoch: 0 },
            Name::Segment { msn: u64::MAX, format: Format::Fmp4 },
            Name::Segment { msn: 10, format: Format::Ts },
            Name::Part { msn: 3, index: 12 },
        ] {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        for wrong in
            ["", "1", "01.m4s", "+1.m4s", "1.01.m4s", ".m4s", "1..m4s", "1.2.3.m4s", "init-.mp4"]
        {
            assert_eq!(Name::parse(wrong), None, "{wrong}");
        }
    }
}
