//! The bytes of a message as a script writes them.

use weir_protocol::amf0;
use weir_protocol::flv::TagKind;

use super::amf::{Literal, literals};
use super::number::{Env, Number};
use super::scan::{Scan, Text};
use crate::media;

/// What the tests' media is marked with, see [`media`].
pub const PUBLISHER: u8 = 1;

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Hex(Vec<u8>),
    Text(Text),
    Amf(Vec<Literal>),
    Fill(Number, Number),
    Repeat(Number, Vec<Item>),
    /// The bytes from one position to another.
    Slice(Number, Number, Vec<Item>),
    /// Big-endian, of this many bytes.
    Integer(usize, Number),
    /// An FLV tag with its back pointer: type, timestamp, body.
    Tag(Number, Number, Vec<Item>),
    /// A picture of the tests' media, of a size or its own.
    Video(Number, Option<Number>),
    Audio(Number),
    Header(TagKind),
}

/// Items up to a closing bracket or the line's end.
///
/// # Errors
/// When one of them is none.
pub fn items(scan: &mut Scan) -> Result<Vec<Item>, String> {
    let mut all = Vec::new();
    while !scan.is_empty() && scan.peek() != Some(')') {
        all.push(item(scan)?);
    }
    Ok(all)
}

fn item(scan: &mut Scan) -> Result<Item, String> {
    if scan.peek() == Some('"') {
        return scan.quoted().map(Item::Text);
    }
    let word = scan.word();
    if !scan.eat("(") {
        return match word {
            "video-header" => Ok(Item::Header(TagKind::Video)),
            "audio-header" => Ok(Item::Header(TagKind::Audio)),
            digits => hex(digits).map(Item::Hex),
        };
    }
    let item = match word {
        "amf" => Item::Amf(literals(scan, Some(')'))?),
        "fill" => {
            let count = scan.number()?;
            let byte = if scan.eat(",") { scan.number()? } else { Number::of(0x55) };
            Item::Fill(count, byte)
        }
        "repeat" => {
            let count = scan.number()?;
            scan.expect(",")?;
            Item::Repeat(count, items(scan)?)
        }
        "slice" => {
            let from = scan.number()?;
            scan.expect(",")?;
            let to = scan.number()?;
            scan.expect(",")?;
            Item::Slice(from, to, items(scan)?)
        }
        "u8" => Item::Integer(1, scan.number()?),
        "u16" => Item::Integer(2, scan.number()?),
        "u24" => Item::Integer(3, scan.number()?),
        "u32" => Item::Integer(4, scan.number()?),
        "tag" => {
            let kind = scan.number()?;
            scan.expect(",")?;
            let timestamp = scan.number()?;
            scan.expect(",")?;
            Item::Tag(kind, timestamp, items(scan)?)
        }
        "video" => {
            let number = scan.number()?;
            let size = if scan.eat(",") { Some(scan.number()?) } else { None };
            Item::Video(number, size)
        }
        "audio" => Item::Audio(scan.number()?),
        other => return Err(format!("\"{other}(\" is no payload")),
    };
    scan.expect(")")?;
    Ok(item)
}

fn hex(digits: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("\"{digits}\" is not pairs of hexadecimal digits");
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return Err(bad());
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad())).collect()
}

/// The bytes of all `items`.
#[must_use]
pub fn bytes(items: &[Item], env: &Env) -> Vec<u8> {
    let mut out = Vec::new();
    items.iter().for_each(|item| append(item, env, &mut out));
    out
}

fn append(item: &Item, env: &Env, out: &mut Vec<u8>) {
    match item {
        Item::Hex(bytes) => out.extend_from_slice(bytes),
        Item::Text(text) => out.extend_from_slice(text.render(env).as_bytes()),
        Item::Amf(values) => {
            values.iter().for_each(|literal| amf0::encode(&literal.value(env), out));
        }
        Item::Fill(count, byte) => {
            out.resize(out.len() + count.value(env) as usize, byte.value(env) as u8);
        }
        Item::Repeat(count, items) => {
            out.extend(bytes(items, env).repeat(count.value(env) as usize));
        }
        Item::Slice(from, to, items) => {
            let all = bytes(items, env);
            let to = all.len().min(to.value(env) as usize);
            out.extend_from_slice(&all[to.min(from.value(env) as usize)..to]);
        }
        Item::Integer(size, number) => {
            out.extend_from_slice(&number.value(env).to_be_bytes()[8 - size..]);
        }
        Item::Tag(kind, timestamp, items) => {
            let body = bytes(items, env);
            let length = body.len() as u32;
            let [t3, t2, t1, t0] = timestamp.u32(env).to_be_bytes();
            out.push(kind.value(env) as u8);
            out.extend_from_slice(&length.to_be_bytes()[1..]);
            out.extend_from_slice(&[t2, t1, t0, t3, 0, 0, 0]);
            out.extend_from_slice(&body);
            out.extend_from_slice(&(length + 11).to_be_bytes());
        }
        Item::Video(number, size) => {
            let number = number.u32(env);
            let size = size.as_ref().map(|size| size.value(env) as usize);
            out.extend_from_slice(&media::video(PUBLISHER, number, size).body);
        }
        Item::Audio(number) => {
            out.extend_from_slice(&media::audio(PUBLISHER, number.u32(env)).body);
        }
        Item::Header(kind) => {
            let headers = media::headers();
            let header = headers.iter().find(|tag| tag.kind == *kind);
            header.into_iter().for_each(|tag| out.extend_from_slice(&tag.body));
        }
    }
}
