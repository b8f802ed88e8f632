//! AMF3, which a value of AMF0 may switch to (AMF 3 specification, 2013; AMF0 §3.1).
//!
//! Values become those of AMF0: commands and metadata mean the same in both. Nothing is taken on trust:
//! nesting, the number of elements and the text that references may multiply are bounded, and nothing
//! is allocated from declared counts.

use std::rc::Rc;

use crate::amf0::{Error, MAX_DEPTH, MAX_ELEMENTS, Properties, Value};

#[cfg(test)]
mod tests;

/// Text of one message, each reference to a string counted as the string itself. The longest command
/// has a token or two of some KiB.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// Type markers (AMF3 §3.1).
mod marker {
    pub const UNDEFINED: u8 = 0x00;
    pub const NULL: u8 = 0x01;
    pub const FALSE: u8 = 0x02;
    pub const TRUE: u8 = 0x03;
    pub const INTEGER: u8 = 0x04;
    pub const DOUBLE: u8 = 0x05;
    pub const STRING: u8 = 0x06;
    pub const XML_DOCUMENT: u8 = 0x07;
    pub const DATE: u8 = 0x08;
    pub const ARRAY: u8 = 0x09;
    pub const OBJECT: u8 = 0x0a;
    pub const XML: u8 = 0x0b;
    pub const BYTE_ARRAY: u8 = 0x0c;
    pub const VECTOR_INT: u8 = 0x0d;
    pub const VECTOR_UINT: u8 = 0x0e;
    pub const VECTOR_DOUBLE: u8 = 0x0f;
    pub const VECTOR_OBJECT: u8 = 0x10;
    pub const DICTIONARY: u8 = 0x11;
}

/// What values of one message may refer back to. Complex values are not among it: a reference to one
/// is read as such, so no cycles can arise.
#[derive(Clone, Debug)]
pub struct Tables {
    strings: Vec<String>,
    traits: Vec<Rc<Traits>>,
    text_left: usize,
}

impl Default for Tables {
    fn default() -> Self {
        Self { strings: Vec::new(), traits: Vec::new(), text_left: MAX_TEXT_BYTES }
    }
}

/// The class of objects: the names of the members that each of them has (AMF3 §3.12).
#[derive(Debug)]
struct Traits {
    class: String,
    names: Vec<String>,
    is_dynamic: bool,
}

/// Reads the values of one message body that is AMF3 as a whole.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    tables: Tables,
    elements_left: usize,
}

impl<'a> Reader<'a> {
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body, tables: Tables::default(), elements_left: MAX_ELEMENTS }
    }

    /// The next value, or `None` at the end of the body.
    ///
    /// # Errors
    /// As [`read`].
    #[expect(clippy::should_implement_trait, reason = "the end and an error are different things")]
    pub fn next(&mut self) -> Result<Option<Value>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        read(&mut self.rest, &mut self.tables, &mut self.elements_left, MAX_DEPTH).map(Some)
    }
}

/// Reads one value from the front of `rest`, as part of a message with these tables, of whose bounds so
/// much is left.
///
/// # Errors
/// When the value is cut off, nested too deep, too rich in values or text, refers to what is not there,
/// or holds a marker that AMF3 does not define or an object that only its class could read.
pub fn read(
    rest: &mut &[u8],
    tables: &mut Tables,
    elements_left: &mut usize,
    depth_left: usize,
) -> Result<Value, Error> {
    let mut values = Values { rest, tables, elements_left };
    let value = values.value(depth_left);
    *rest = values.rest;
    value
}

struct Values<'a, 'b> {
    rest: &'a [u8],
    tables: &'b mut Tables,
    elements_left: &'b mut usize,
}

impl Values<'_, '_> {
    fn value(&mut self, depth_left: usize) -> Result<Value, Error> {
        self.count()?;
        let [kind] = self.chunk()?;
        Ok(match kind {
            marker::UNDEFINED => Value::Undefined,
            marker::NULL => Value::Null,
            marker::FALSE => Value::Boolean(false),
            marker::TRUE => Value::Boolean(true),
            marker::INTEGER => Value::Number(signed(self.u29()?).into()),
            marker::DOUBLE => Value::Number(f64::from_be_bytes(self.chunk()?)),
            marker::STRING => Value::String(self.text()?),
            marker::XML_DOCUMENT | marker::XML => match self.length()? {
                Length::Inline(len) => {
                    let bytes = self.bytes(len)?;
                    Value::Xml(self.decode(bytes)?)
                }
                Length::Reference(index) => reference(index),
            },
            marker::DATE => match self.length()? {
                Length::Inline(_) => Value::Date(f64::from_be_bytes(self.chunk()?)),
                Length::Reference(index) => reference(index),
            },
            marker::ARRAY => self.array(depth_left)?,
            marker::OBJECT => self.object(depth_left)?,
            marker::BYTE_ARRAY => self.skipped(0, 1)?,
            marker::VECTOR_INT | marker::VECTOR_UINT => self.skipped(1, 4)?,
            marker::VECTOR_DOUBLE => self.skipped(1, 8)?,
            marker::VECTOR_OBJECT => self.vector(depth_left)?,
            marker::DICTIONARY => self.dictionary(depth_left)?,
            other => return Err(Error::UnknownMarker(other)),
        })
    }

    /// Names first, up to an empty one, then values without (§3.11).
    fn array(&mut self, depth_left: usize) -> Result<Value, Error> {
        let depth_left = depth_left.checked_sub(1).ok_or(Error::TooDeep)?;
        let count = match self.length()? {
            Length::Inline(count) => count,
            Length::Reference(index) => return Ok(reference(index)),
        };
        let mut named = Properties::new();
        self.dynamic_members(&mut named, depth_left)?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(depth_left)?);
        }
        if named.is_empty() {
            return Ok(Value::StrictArray(values));
        }
        let numbered = values.into_iter().enumerate();
        named.extend(numbered.map(|(index, value)| (index.to_string(), value)));
        Ok(Value::EcmaArray(named))
    }

    fn object(&mut self, depth_left: usize) -> Result<Value, Error> {
        let depth_left = depth_left.checked_sub(1).ok_or(Error::TooDeep)?;
        let head = self.u29()?;
        if head & 1 == 0 {
            return Ok(reference(head >> 1));
        }
        let traits = self.traits(head)?;
        let mut properties = Properties::new();
        for name in &traits.names {
            self.spend(name.len())?;
            properties.push((name.clone(), self.value(depth_left)?));
        }
        if traits.is_dynamic {
            self.dynamic_members(&mut properties, depth_left)?;
        }
        Ok(match traits.class.as_str() {
            "" => Value::Object(properties),
            class => {
                self.spend(class.len())?;
                Value::TypedObject { class: class.to_owned(), properties }
            }
        })
    }

    /// The traits that an object's head tells or refers to (§3.12).
    fn traits(&mut self, head: u32) -> Result<Rc<Traits>, Error> {
        const INLINE: u32 = 2;
        const EXTERNALIZABLE: u32 = 4;
        const DYNAMIC: u32 = 8;

        if head & INLINE == 0 {
            let known = usize::try_from(head >> 2).ok().and_then(|at| self.tables.traits.get(at));
            return known.cloned().ok_or(Error::BadReference);
        }
        let class = self.text()?;
        if head & EXTERNALIZABLE != 0 {
            return Err(Error::Externalizable);
        }
        let mut names = Vec::new();
        for _ in 0..head >> 4 {
            self.count()?;
            names.push(self.text()?);
        }
        let traits = Rc::new(Traits { class, names, is_dynamic: head & DYNAMIC != 0 });
        self.tables.traits.push(traits.clone());
        Ok(traits)
    }

    fn dynamic_members(
        &mut self,
        properties: &mut Properties,
        depth_left: usize,
    ) -> Result<(), Error> {
        loop {
            let name = self.text()?;
            if name.is_empty() {
                return Ok(());
            }
            properties.push((name, self.value(depth_left)?));
        }
    }

    /// §3.15; whether its length is fixed does not matter here, nor does its class.
    fn vector(&mut self, depth_left: usize) -> Result<Value, Error> {
        let depth_left = depth_left.checked_sub(1).ok_or(Error::TooDeep)?;
        let count = match self.length()? {
            Length::Inline(count) => count,
            Length::Reference(index) => return Ok(reference(index)),
        };
        self.chunk::<1>()?;
        self.text()?;
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(depth_left)?);
        }
        Ok(Value::StrictArray(values))
    }

    /// §3.16. Its keys are values, which AMF0 has no place for.
    fn dictionary(&mut self, depth_left: usize) -> Result<Value, Error> {
        let depth_left = depth_left.checked_sub(1).ok_or(Error::TooDeep)?;
        let count = match self.length()? {
            Length::Inline(count) => count,
            Length::Reference(index) => return Ok(reference(index)),
        };
        self.chunk::<1>()?;
        for _ in 0..count {
            self.value(depth_left)?;
            self.value(depth_left)?;
        }
        Ok(Value::Unsupported)
    }

    /// Bytes or numbers that nobody asks for, behind so many bytes of head.
    fn skipped(&mut self, head: usize, element: usize) -> Result<Value, Error> {
        match self.length()? {
            Length::Inline(count) => {
                let bytes = usize::try_from(count).ok().and_then(|it| it.checked_mul(element));
                let bytes = bytes.and_then(|bytes| bytes.checked_add(head));
                let (_, rest) = self
                    .rest
                    .split_at_checked(bytes.unwrap_or(usize::MAX))
                    .ok_or(Error::Truncated)?;
                self.rest = rest;
                Ok(Value::Unsupported)
            }
            Length::Reference(index) => Ok(reference(index)),
        }
    }

    /// A string, in place or by reference; the empty one is never referred to (§1.3.2).
    fn text(&mut self) -> Result<String, Error> {
        match self.length()? {
            Length::Inline(len) => {
                let bytes = self.bytes(len)?;
                let text = self.decode(bytes)?;
                if !text.is_empty() {
                    self.tables.strings.push(text.clone());
                }
                Ok(text)
            }
            Length::Reference(index) => {
                let known = usize::try_from(index).ok().and_then(|at| self.tables.strings.get(at));
                let text = known.ok_or(Error::BadReference)?.clone();
                self.spend(text.len())?;
                Ok(text)
            }
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<String, Error> {
        self.spend(bytes.len())?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Error> {
        let left = self.tables.text_left.checked_sub(bytes).ok_or(Error::TooManyElements)?;
        self.tables.text_left = left;
        Ok(())
    }

    fn count(&mut self) -> Result<(), Error> {
        *self.elements_left = self.elements_left.checked_sub(1).ok_or(Error::TooManyElements)?;
        Ok(())
    }

    /// A number whose lowest bit tells whether it is a length, or points to an earlier value.
    fn length(&mut self) -> Result<Length, Error> {
        let number = self.u29()?;
        let value = number >> 1;
        Ok(if number & 1 == 1 { Length::Inline(value) } else { Length::Reference(value) })
    }

    /// One to four bytes; the fourth has eight bits (§1.3.1).
    fn u29(&mut self) -> Result<u32, Error> {
        let mut number = 0;
        for _ in 0..3 {
            let [byte] = self.chunk()?;
            number = number << 7 | u32::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        let [byte] = self.chunk()?;
        Ok(number << 8 | u32::from(byte))
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (chunk, rest) = self.rest.split_first_chunk().ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(*chunk)
    }
}

impl<'a> Values<'a, '_> {
    fn bytes(&mut self, len: u32) -> Result<&'a [u8], Error> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }
}

enum Length {
    Inline(u32),
    Reference(u32),
}

fn reference(index: u32) -> Value {
    Value::Reference(u16::try_from(index).unwrap_or(u16::MAX))
}

/// The 29 bits as two's complement.
fn signed(number: u32) -> i32 {
    let shifted = i32::from_be_bytes((number << 3).to_be_bytes());
    shifted >> 3
}
