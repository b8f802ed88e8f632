use super::{Properties, Value, marker};
use crate::amf3;

/// Objects and arrays within each other; real commands need three.
pub const MAX_DEPTH: usize = 32;

/// Values read from one input, names not counted. A keyframe index of some hours fits; a body full
/// of one-byte nulls can not make more than about a megabyte of values.
pub const MAX_ELEMENTS: usize = 32_768;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("AMF value is cut off")]
    Truncated,
    #[error("unknown AMF marker 0x{0:02x}")]
    UnknownMarker(u8),
    #[error("AMF values nested deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("more than {MAX_ELEMENTS} AMF values, or more text than they may have")]
    TooManyElements,
    #[error("AMF3 reference to a string or class that was not sent")]
    BadReference,
    #[error("AMF3 object that only its class can read")]
    Externalizable,
}

/// Reads the values of one message body, one after the other.
///
/// An object or array that ends with the input instead of its end marker is taken as complete,
/// because ffmpeg sends such metadata. Text that is not UTF-8 is read with replacement characters.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    elements_left: usize,
    lenient: bool,
    /// What values of AMF3 in this body refer back to.
    amf3: amf3::Tables,
}

impl<'a> Reader<'a> {
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        let amf3 = amf3::Tables::default();
        Self { rest: body, elements_left: MAX_ELEMENTS, lenient: false, amf3 }
    }

    /// For data that is only advisory: an object or array with an unreadable element yields what
    /// was read before it, and the reader is then at its end.
    #[must_use]
    pub fn lenient(body: &'a [u8]) -> Self {
        Self { lenient: true, ..Self::new(body) }
    }

    /// The bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next value, or `None` at the end of the body.
    ///
    /// # Errors
    /// When the body is cut off within a value, nested too deep, too rich in values, or holds what
    /// neither AMF0 nor AMF3 defines. The reader is of no use afterwards.
    #[expect(clippy::should_implement_trait, reason = "the end and an error are different things")]
    pub fn next(&mut self) -> Result<Option<Value>, Error> {
        if self.rest.is_empty() { Ok(None) } else { self.value(MAX_DEPTH).map(Some) }
    }

    fn value(&mut self, depth_left: usize) -> Result<Value, Error> {
        self.elements_left = self.elements_left.checked_sub(1).ok_or(Error::TooManyElements)?;
        let [kind] = self.chunk()?;
        Ok(match kind {
            marker::NUMBER => Value::Number(f64::from_be_bytes(self.chunk()?)),
            marker::BOOLEAN => Value::Boolean(self.chunk::<1>()? != [0]),
            marker::STRING => Value::String(self.short_text()?),
            marker::LONG_STRING => Value::String(self.long_text()?),
            marker::XML_DOCUMENT => Value::Xml(self.long_text()?),
            marker::OBJECT => Value::Object(self.properties(depth_left)?),
            marker::TYPED_OBJECT => Value::TypedObject {
                class: self.short_text()?,
                properties: self.properties(depth_left)?,
            },
            marker::ECMA_ARRAY => {
                // The count is a hint that encoders get wrong; the end marker decides (§2.10).
                self.chunk::<4>()?;
                Value::EcmaArray(self.properties(depth_left)?)
            }
            marker::STRICT_ARRAY => Value::StrictArray(self.elements(depth_left)?),
            marker::DATE => {
                let ms = f64::from_be_bytes(self.chunk()?);
                self.chunk::<2>()?;
                Value::Date(ms)
            }
            marker::REFERENCE => Value::Reference(u16::from_be_bytes(self.chunk()?)),
            marker::NULL => Value::Null,
            marker::UNDEFINED => Value::Undefined,
            // Movie clip and record set are reserved and carry nothing (§2.6, §2.16).
            marker::UNSUPPORTED | marker::MOVIE_CLIP | marker::RECORD_SET => Value::Unsupported,
            marker::AVM_PLUS => {
                amf3::read(&mut self.rest, &mut self.amf3, &mut self.elements_left, depth_left)?
            }
            other => return Err(Error::UnknownMarker(other)),
        })
    }

    fn properties(&mut self, depth_left: usize) -> Result<Properties, Error> {
        let depth_left = depth_left.checked_sub(1).ok_or(Error::TooDeep)?;
        let mut properties = Properties::new();
        while !self.rest.is_empty() {
            match self.property(depth_left) {
                Ok(Some(property)) => properties.push(property),
                Ok(None) => break,
                Err(_) if self.lenient => self.rest = &[],
                Err(error) => return Err(error),
            }
        }
        Ok(properties)
    }

    /// `None` at the end marker.
    fn property(&mut self, depth_left: usize) -> Result<Option<(String, Value)>, Error> {
        let name = self.short_text()?;
        if name.is_empty() && self.rest.first() == Some(&marker::OBJECT_END) {
            self.chunk::<1>()?;
            return Ok(None);
        }
        Ok(Some((name, self.value(depth_left)?)))
    }

    fn elements(&mut self, depth_left: usize) -> Result<Vec<Value>, Error> {
        let depth_left = depth_left.checked_sub(1).ok_or(Error::TooDeep)?;
        let count = u32::from_be_bytes(self.chunk()?);
        let mut values = Vec::new();
        for _ in 0..count {
            if self.rest.is_empty() {
                break;
            }
            match self.value(depth_left) {
                Ok(value) => values.push(value),
                Err(_) if self.lenient => self.rest = &[],
                Err(error) => return Err(error),
            }
        }
        Ok(values)
    }

    fn short_text(&mut self) -> Result<String, Error> {
        let len = u16::from_be_bytes(self.chunk()?);
        self.text(usize::from(len))
    }

    fn long_text(&mut self) -> Result<String, Error> {
        let len = u32::from_be_bytes(self.chunk()?);
        self.text(usize::try_from(len).unwrap_or(usize::MAX))
    }

    fn text(&mut self, len: usize) -> Result<String, Error> {
        let (text, rest) = self.rest.split_at_checked(len).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (chunk, rest) = self.rest.split_first_chunk().ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(*chunk)
    }
}
