//! AV1: AV1CodecConfigurationRecord (AV1-ISOBMFF §2.3) and OBUs.

mod sequence_header;

use bytes::Bytes;

use super::Error;
use super::bits::BitReader;
use sequence_header::SequenceHeader;

/// OBU types (AV1 §6.2.2).
pub mod obu_type {
    pub const SEQUENCE_HEADER: u8 = 1;
    pub const TEMPORAL_DELIMITER: u8 = 2;
    pub const FRAME_HEADER: u8 = 3;
    pub const FRAME: u8 = 6;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Four bytes derived from the sequence header, and it.
    pub record: Bytes,
    pub width: u32,
    pub height: u32,
}

impl Config {
    /// Reads an av1C.
    ///
    /// # Errors
    /// [`Error::Missing`] when the record has no sequence header, as is allowed: then the first
    /// keyframe has one, see [`Config::from_access_unit`]. Others when it can't be read.
    pub fn parse(record: &[u8]) -> Result<Self, Error> {
        let (head, obus) = match record.split_first_chunk::<4>() {
            Some(split) => split,
            None if record.is_empty() => return Err(Error::Empty),
            None => return Err(Error::Truncated),
        };
        // Marker and version in one byte.
        let [0x81, ..] = *head else { return Err(Error::Invalid("av1C version")) };
        Self::from_access_unit(obus)
    }

    /// The configuration that an access unit carries in band.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no sequence header.
    pub fn from_access_unit(payload: &[u8]) -> Result<Self, Error> {
        let obu = obus(payload)
            .find(|obu| obu.kind == obu_type::SEQUENCE_HEADER)
            .ok_or(Error::Missing("sequence header"))?;
        let header = SequenceHeader::parse(obu.payload)?;
        let mut record = header.record_head().to_vec();
        record.push(obu_type::SEQUENCE_HEADER << 3 | 0b10);
        put_leb128(&mut record, obu.payload.len());
        record.extend_from_slice(obu.payload);
        Ok(Self { record: record.into(), width: header.width, height: header.height })
    }

    /// Whether the sequence header in `payload`, if any, is that of this configuration.
    #[must_use]
    pub fn covers(&self, payload: &[u8]) -> bool {
        let of = |bytes| obus(bytes).find(|obu| obu.kind == obu_type::SEQUENCE_HEADER);
        match (of(payload), of(self.record.get(4..).unwrap_or_default())) {
            (Some(new), Some(known)) => new.payload == known.payload,
            _ => true,
        }
    }

    /// AV1-ISOBMFF §5: profile, level and tier, bit depth.
    #[must_use]
    pub fn rfc6381(&self) -> String {
        let Some([_, profile_level, flags, _]) = self.record.first_chunk() else {
            return "av01".to_owned();
        };
        let tier = if flags & 0x80 == 0 { 'M' } else { 'H' };
        let bit_depth = match flags & 0x60 {
            0 => 8,
            0x60 => 12,
            _ => 10,
        };
        let (profile, level) = (profile_level >> 5, profile_level & 0x1f);
        format!("av01.{profile}.{level:02}{tier}.{bit_depth:02}")
    }
}

/// One open bitstream unit (AV1 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obu<'a> {
    pub kind: u8,
    pub payload: &'a [u8],
}

/// The OBUs of an access unit; ends at the first that reaches beyond it.
#[must_use]
pub fn obus(payload: &[u8]) -> Obus<'_> {
    Obus { rest: payload }
}

#[derive(Clone, Debug)]
pub struct Obus<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Obus<'a> {
    type Item = Obu<'a>;

    fn next(&mut self) -> Option<Obu<'a>> {
        let (header, mut rest) = self.rest.split_first()?;
        let (has_extension, has_size) = (header & 4 != 0, header & 2 != 0);
        if has_extension {
            (_, rest) = rest.split_first()?;
        }
        // Only the last OBU may go without a size.
        let len = if has_size { take_leb128(&mut rest)? } else { rest.len() };
        let (payload, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(Obu { kind: header >> 3 & 0xf, payload })
    }
}

/// AV1 §4.10.5
fn take_leb128(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0_u64;
    for shift in (0..8_u32).map(|index| index.saturating_mul(7)) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte & 0x80 == 0 {
            return usize::try_from(value).ok();
        }
    }
    None
}

fn put_leb128(out: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// An access unit without its temporal delimiter, which containers leave out
/// (AV1-ISOBMFF §2.4). Nothing is copied.
#[must_use]
pub fn without_temporal_delimiter(payload: Bytes) -> Bytes {
    let mut rest = Obus { rest: &payload };
    match rest.next() {
        Some(obu) if obu.kind == obu_type::TEMPORAL_DELIMITER => payload.slice_ref(rest.rest),
        _ => payload,
    }
}

/// Whether a player can start at this access unit: its first frame is a shown key frame
/// (AV1 §5.9.2).
#[must_use]
pub fn is_keyframe(payload: &[u8]) -> bool {
    let frame =
        obus(payload).find(|obu| matches!(obu.kind, obu_type::FRAME | obu_type::FRAME_HEADER));
    let Some(frame) = frame else { return false };
    let mut bits = BitReader::new(frame.payload);
    // show_existing_frame, frame_type, show_frame
    matches!((bits.flag(), bits.bits(2), bits.flag()), (Ok(false), Ok(0), Ok(true)))
}

/// Whether the access unit holds a frame or a header that shows one.
#[must_use]
pub fn has_picture(payload: &[u8]) -> bool {
    obus(payload).any(|obu| matches!(obu.kind, obu_type::FRAME | obu_type::FRAME_HEADER))
}
