//! From the words of an edit to what it does.

use std::ops::Range;

use bytes::Bytes;
use weir_protocol::flv::TagKind;

use super::Edit;
use super::selection::{Part, Selection};
use super::verb::{Verb, VerbKind};

pub(super) fn edit(text: &str) -> Result<Edit, String> {
    let mut words = text.split_whitespace();
    let mut next = |what: &str| words.next().ok_or(format!("{what} is missing"));
    let name = next("the verb")?;
    let selection = selection(next("the selection")?)?;
    let kind = match name {
        "shift" => VerbKind::Shift(number(next("MS")?)?),
        "scale" => VerbKind::Scale(real(next("FACTOR")?)?),
        "modulo" => VerbKind::Modulo(modulus(next("N")?)?),
        "stamp" => VerbKind::Stamp(number(next("MS")?)? as u32),
        "every" => VerbKind::Every(real(next("MS")?)?),
        "repeat" => VerbKind::Repeat,
        "drop" => VerbKind::Drop,
        "double" => VerbKind::Double,
        "cts" => cts(next("MS")?)?,
        "codec" => VerbKind::Codec(number(next("N")?)? as u8 & 0xf),
        "lengths" => VerbKind::Lengths(one_of(next("a size")?, &[1, 2, 4])?),
        "annexb" => VerbKind::AnnexB(one_of(next("a size")?, &[3, 4])?),
        "without" => VerbKind::Without(types(next("TYPES")?)?),
        "nal" => {
            let first = match next("first or last")? {
                "first" => true,
                "last" => false,
                other => return Err(format!("{other} is neither first nor last")),
            };
            VerbKind::Nal { first, unit: hex(next("HEX")?)? }
        }
        "inband" => VerbKind::InBand,
        "byte" => VerbKind::Byte(number(next("AT")?)? as usize, hex(next("HEX")?)?),
        "body" => VerbKind::Body(hex(next("HEX")?)?),
        "cut" => VerbKind::Cut(number(next("N")?)? as usize),
        "append" => VerbKind::Append(hex(next("HEX")?)?),
        "header" => VerbKind::Header(tag_kind(next("video or audio")?)?),
        "insert" => VerbKind::Insert(tag_kind(next("a kind")?)?, hex(next("HEX")?)?),
        "adts" => VerbKind::Adts,
        other => return Err(format!("no such verb: {other}")),
    };
    match words.next() {
        Some(word) => Err(format!("what is {word}?")),
        None => Ok(Edit { selection, verb: Verb::new(kind) }),
    }
}

/// `KIND[.PART][@SPAN][#NUMBERS][/N[+K]]`.
fn selection(text: &str) -> Result<Selection, String> {
    let (text, every) = text.split_once('/').unwrap_or((text, "1"));
    let (text, numbers) = text.split_once('#').unwrap_or((text, ".."));
    let (text, span) = text.split_once('@').unwrap_or((text, ".."));
    let (kind, part) = text.split_once('.').unwrap_or((text, ""));
    let kind = if kind == "all" { None } else { Some(tag_kind(kind)?) };
    let part = match part {
        "" => Part::Any,
        "header" => Part::Header,
        "frame" => Part::Frame,
        "key" => Part::Key,
        "inter" => Part::Inter,
        other => return Err(format!("no such part: {other}")),
    };
    let (every, turn) = every.split_once('+').unwrap_or((every, "0"));
    let (every, turn) = (number(every)? as u64, number(turn)? as u64);
    if every == 0 {
        return Err("every 0th".into());
    }
    let span_ms = range(span, milliseconds, |from| from..u64::MAX)?;
    let numbers = range(numbers, |text| Ok(number(text)? as u64), |one| one..one + 1)?;
    Ok(Selection { kind, part, span_ms, numbers, every, turn, seen: 0 })
}

fn range(
    text: &str,
    read: impl Fn(&str) -> Result<u64, String>,
    alone: impl Fn(u64) -> Range<u64>,
) -> Result<Range<u64>, String> {
    let Some((from, to)) = text.split_once("..") else { return read(text).map(alone) };
    let from = if from.is_empty() { 0 } else { read(from)? };
    Ok(from..if to.is_empty() { u64::MAX } else { read(to)? })
}

fn milliseconds(text: &str) -> Result<u64, String> {
    let duration = humantime::parse_duration(text).map_err(|error| format!("{text}: {error}"))?;
    Ok(duration.as_millis() as u64)
}

fn tag_kind(text: &str) -> Result<TagKind, String> {
    match text {
        "video" => Ok(TagKind::Video),
        "audio" => Ok(TagKind::Audio),
        "script" => Ok(TagKind::Script),
        other => Err(format!("no such kind: {other}")),
    }
}

fn cts(text: &str) -> Result<VerbKind, String> {
    Ok(match text.strip_prefix('=') {
        Some(ms) => VerbKind::Cts { set: true, ms: number(ms)? as i32 },
        None => VerbKind::Cts { set: false, ms: number(text)? as i32 },
    })
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

fn real(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|number: &f64| number.is_finite());
    read.ok_or(format!("{text} is no number"))
}

/// `2^31` or digits; at least 1.
fn modulus(text: &str) -> Result<u64, String> {
    let value = match text.strip_prefix("2^") {
        Some(bits) => 1_u64.checked_shl(number(bits)? as u32).unwrap_or(0),
        None => number(text)? as u64,
    };
    if value == 0 { Err(format!("modulo {text}")) } else { Ok(value) }
}

fn one_of(text: &str, sizes: &[usize]) -> Result<usize, String> {
    let size = number(text)? as usize;
    if sizes.contains(&size) { Ok(size) } else { Err(format!("{text} is none of {sizes:?}")) }
}

fn types(text: &str) -> Result<Vec<u8>, String> {
    text.split(',').map(|kind| Ok(number(kind)? as u8)).collect()
}

/// Digits in pairs; `-` is nothing.
fn hex(text: &str) -> Result<Bytes, String> {
    if text == "-" {
        return Ok(Bytes::new());
    }
    let pair = |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(pair).collect();
    bytes.map(Bytes::from).ok_or(format!("{text} is not hexadecimal"))
}
