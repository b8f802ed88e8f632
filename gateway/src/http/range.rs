//! Byte ranges (RFC 9110 §14): one range per request; several are answered with the whole.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    Whole,
    Part(Range<usize>),
    /// 416: the range lies outside the body.
    Unsatisfiable,
}

/// What `header`, the value of `Range`, asks of a body of `len` bytes. Anything malformed counts
/// as absent, as RFC 9110 §14.2 wants it.
pub fn parse(header: Option<&str>, len: usize) -> Wanted {
    let Some(spec) = header.and_then(|value| value.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = spec.split_once('-').filter(|_| !spec.contains(',')) else {
        return Wanted::Whole;
    };
    let range = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) if first <= last => first..last.saturating_add(1).min(len),
        (Ok(first), Err(_)) if last.is_empty() => first..len,
        (Err(_), Ok(suffix)) if first.is_empty() && suffix > 0 => len.saturating_sub(suffix)..len,
        (Err(_), Ok(0)) if first.is_empty() => return Wanted::Unsatisfiable,
        _ => return Wanted::Whole,
    };
    if range.start >= len { Wanted::Unsatisfiable } else { Wanted::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ten_bytes() {
        use Wanted::{Part, Unsatisfiable, Whole};
        let cases = [
            (None, Whole),
            (Some("bytes=0-0"), Part(0..1)),
            (Some("bytes=0-"), Part(0..10)),
            (Some("bytes=-3"), Part(7..10)),
            (Some("bytes=-100"), Part(0..10)),
            (Some("bytes=-0"), Unsatisfiable),
            (Some("bytes=4-99"), Part(4..10)),
            (Some("bytes=10-"), Unsatisfiable),
            (Some("bytes=999999999-"), Unsatisfiable),
            (Some("bytes=5-3"), Whole),
            (Some("bytes=0-1,4-5"), Whole),
            (Some("bytes=a-b"), Whole),
            (Some("lines=1-2"), Whole),
            (Some("bytes=99999999999999999999999-"), Whole),
        ];
        for (header, wanted) in cases {
            assert_eq!(parse(header, 10), wanted, "{header:?}");
        }
    }
}
