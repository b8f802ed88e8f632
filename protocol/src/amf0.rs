//! AMF0, the value encoding of RTMP commands and FLV script data (AMF 0 specification, 2007).
//!
//! The reader takes nothing on trust: nesting and the number of elements are bounded, and declared
//! counts are hints from which nothing is allocated.

mod read;
#[cfg(test)]
mod tests;

pub use read::{Error, MAX_DEPTH, MAX_ELEMENTS, Reader};

/// Named values in the order they stood on the wire.
pub type Properties = Vec<(String, Value)>;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Boolean(bool),
    String(String),
    Object(Properties),
    EcmaArray(Properties),
    StrictArray(Vec<Value>),
    TypedObject {
        class: String,
        properties: Properties,
    },
    /// Milliseconds since 1970 in UTC; the time zone on the wire is reserved (§2.13).
    Date(f64),
    Xml(String),
    /// Index into the complex values sent before; never resolved, so no cycles can arise.
    Reference(u16),
    Null,
    Undefined,
    Unsupported,
}

/// Type markers (AMF0 §2.1).
mod marker {
    pub const NUMBER: u8 = 0x00;
    pub const BOOLEAN: u8 = 0x01;
    pub const STRING: u8 = 0x02;
    pub const OBJECT: u8 = 0x03;
    pub const MOVIE_CLIP: u8 = 0x04;
    pub const NULL: u8 = 0x05;
    pub const UNDEFINED: u8 = 0x06;
    pub const REFERENCE: u8 = 0x07;
    pub const ECMA_ARRAY: u8 = 0x08;
    pub const OBJECT_END: u8 = 0x09;
    pub const STRICT_ARRAY: u8 = 0x0a;
    pub const DATE: u8 = 0x0b;
    pub const LONG_STRING: u8 = 0x0c;
    pub const UNSUPPORTED: u8 = 0x0d;
    pub const RECORD_SET: u8 = 0x0e;
    pub const XML_DOCUMENT: u8 = 0x0f;
    pub const TYPED_OBJECT: u8 = 0x10;
    /// A value of AMF3 follows (§3.1).
    pub const AVM_PLUS: u8 = 0x11;
}

impl Value {
    /// The property `key` of an object or array with names. The last of doubled names counts, as
    /// it would by assignment.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.properties()?.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The named values of an object, ECMA array or typed object.
    #[must_use]
    pub fn properties(&self) -> Option<&[(String, Value)]> {
        match self {
            Self::Object(properties)
            | Self::EcmaArray(properties)
            | Self::TypedObject { properties, .. } => Some(properties),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(boolean) => Some(*boolean),
            _ => None,
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Self::Boolean(boolean)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

/// Appends `value` to `out`.
///
/// A property whose name does not fit the 16-bit length is left out. Values are ours or come from
/// [`Reader`], so their nesting is bounded.
pub fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            out.push(marker::NUMBER);
            out.extend(number.to_be_bytes());
        }
        Value::Boolean(boolean) => out.extend([marker::BOOLEAN, u8::from(*boolean)]),
        Value::String(text) => encode_string(text, out),
        Value::Object(properties) => {
            out.push(marker::OBJECT);
            encode_properties(properties, out);
        }
        Value::EcmaArray(properties) => {
            out.push(marker::ECMA_ARRAY);
            out.extend(count32(properties.len()));
            encode_properties(properties, out);
        }
        Value::TypedObject { class, properties } => {
            out.push(marker::TYPED_OBJECT);
            if !encode_name(class, out) {
                out.extend([0, 0]);
            }
            encode_properties(properties, out);
        }
        Value::StrictArray(values) => {
            out.push(marker::STRICT_ARRAY);
            out.extend(count32(values.len()));
            values.iter().for_each(|value| encode(value, out));
        }
        Value::Date(ms) => {
            out.push(marker::DATE);
            out.extend(ms.to_be_bytes());
            out.extend([0, 0]);
        }
        Value::Xml(text) => {
            out.push(marker::XML_DOCUMENT);
            out.extend(count32(text.len()));
            out.extend(text.as_bytes());
        }
        Value::Reference(index) => {
            out.push(marker::REFERENCE);
            out.extend(index.to_be_bytes());
        }
        Value::Null => out.push(marker::NULL),
        Value::Undefined => out.push(marker::UNDEFINED),
        Value::Unsupported => out.push(marker::UNSUPPORTED),
    }
}

/// Appends each of `values` to a fresh buffer: the shape of commands and data messages.
#[must_use]
pub fn encode_all(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|value| encode(value, &mut out));
    out
}

fn encode_string(text: &str, out: &mut Vec<u8>) {
    if let Ok(len) = u16::try_from(text.len()) {
        out.push(marker::STRING);
        out.extend(len.to_be_bytes());
    } else {
        out.push(marker::LONG_STRING);
        out.extend(count32(text.len()));
    }
    out.extend(text.as_bytes());
}

fn encode_properties(properties: &[(String, Value)], out: &mut Vec<u8>) {
    for (name, value) in properties {
        if encode_name(name, out) {
            encode(value, out);
        }
    }
    out.extend([0, 0, marker::OBJECT_END]);
}

fn encode_name(name: &str, out: &mut Vec<u8>) -> bool {
    let Ok(len) = u16::try_from(name.len()) else { return false };
    out.extend(len.to_be_bytes());
    out.extend(name.as_bytes());
    true
}

fn count32(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}
