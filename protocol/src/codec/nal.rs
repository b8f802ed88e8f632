//! NAL units of AVC and HEVC: length-prefixed (ISO 14496-15 §5.3.4.2) and Annex B framing.

use bytes::Bytes;

use super::Error;
use crate::pool::{Pool, Region};

/// Bytes of the length before each NAL unit. Weir's own access units always have four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LengthSize {
    One,
    Two,
    #[default]
    Four,
}

impl LengthSize {
    /// From the two bits of `lengthSizeMinusOne`, of which 2 is reserved; other bits are masked.
    pub(super) fn from_minus_one(bits: u8) -> Result<Self, Error> {
        match bits & 3 {
            0 => Ok(Self::One),
            1 => Ok(Self::Two),
            3 => Ok(Self::Four),
            _ => Err(Error::Invalid("NAL length size")),
        }
    }

    fn split(self, bytes: &[u8]) -> Option<(usize, &[u8])> {
        let (len, rest) = match self {
            Self::One => {
                let (len, rest) = bytes.split_first()?;
                (u32::from(*len), rest)
            }
            Self::Two => {
                let (len, rest) = bytes.split_first_chunk()?;
                (u32::from(u16::from_be_bytes(*len)), rest)
            }
            Self::Four => {
                let (len, rest) = bytes.split_first_chunk()?;
                (u32::from_be_bytes(*len), rest)
            }
        };
        Some((usize::try_from(len).ok()?, rest))
    }
}

/// The NAL units of an access unit's payload, in order, empty ones left out.
#[must_use]
pub fn nal_units(payload: &[u8]) -> NalUnits<'_> {
    NalUnits { rest: payload, length_size: LengthSize::Four }
}

/// Ends at the first length that reaches beyond the payload.
#[derive(Clone, Debug)]
pub struct NalUnits<'a> {
    rest: &'a [u8],
    length_size: LengthSize,
}

impl<'a> NalUnits<'a> {
    /// The next NAL unit, possibly empty.
    fn next_raw(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.length_size.split(self.rest)?;
        let (unit, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(unit)
    }
}

impl<'a> Iterator for NalUnits<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let unit = self.next_raw()?;
            if !unit.is_empty() {
                return Some(unit);
            }
        }
    }
}

/// The NAL units between the start codes of an Annex B stream (H.264 §B.1), empty ones left out.
#[derive(Clone, Debug)]
pub(super) struct AnnexB<'a> {
    rest: &'a [u8],
}

impl<'a> AnnexB<'a> {
    /// `None` when `bytes` does not begin with a start code.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let starts = bytes.starts_with(&[0, 0, 0, 1]) || bytes.starts_with(&[0, 0, 1]);
        starts.then_some(Self { rest: bytes })
    }
}

impl<'a> Iterator for AnnexB<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = self.rest.windows(3).position(|window| window == [0, 0, 1]);
            let (unit, rest) = match end {
                Some(end) => (self.rest.get(..end)?, self.rest.get(end.checked_add(3)?..)?),
                None => (self.rest, &[][..]),
            };
            self.rest = rest;
            // Zeros before a start code belong to it or are trailing_zero_8bits.
            let len =
                unit.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
            if len > 0 {
                return unit.get(..len);
            }
        }
        None
    }
}

/// Why an access unit's body gives no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// No NAL unit in it.
    Empty,
    /// The pool has no room for the rewritten form.
    PoolExhausted,
}

/// The payload form of an access unit: 4-byte lengths, no empty NAL units, nothing behind the last.
///
/// A body that is in this form already is returned as it is; others, with shorter lengths, empty
/// units, a cut-off tail or Annex B start codes, in place of lengths or behind them, are rewritten into
/// the pool.
///
/// # Errors
/// When no NAL unit is left, or the pool has no room.
pub fn to_payload(
    body: Bytes,
    length_size: LengthSize,
    pool: &mut impl Pool,
) -> Result<Bytes, Unusable> {
    let units = NalUnits { rest: &body, length_size };
    let (mut walk, mut odd_units) = (units.clone(), false);
    while let Some(unit) = walk.next_raw() {
        odd_units |= unit.is_empty() || AnnexB::new(unit).is_some();
    }
    let whole = walk.rest.is_empty();
    if whole && !odd_units && length_size == LengthSize::Four && !body.is_empty() {
        return Ok(body);
    }
    // A start code reads as a length of 1 or of some 256, which hardly ever adds up by chance, not even
    // but for a few bytes behind a unit of such length.
    let tailed =
        length_size == LengthSize::Four && walk.rest.len() < 4 && body.starts_with(&[0, 0, 1]);
    match AnnexB::new(&body).filter(|_| !whole && !tailed) {
        Some(units) => rewrite(units, pool),
        None => rewrite(units.flat_map(without_start_codes), pool),
    }
}

/// The NAL units behind one length: itself, or those between start codes, with which none can begin.
fn without_start_codes(unit: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let inside = AnnexB::new(unit);
    let itself = inside.is_none().then_some(unit);
    itself.into_iter().chain(inside.into_iter().flatten())
}

fn rewrite<'a>(
    units: impl Iterator<Item = &'a [u8]> + Clone,
    pool: &mut impl Pool,
) -> Result<Bytes, Unusable> {
    let len =
        units.clone().fold(0_usize, |sum, unit| sum.saturating_add(4).saturating_add(unit.len()));
    if len == 0 {
        return Err(Unusable::Empty);
    }
    let mut region = pool.reserve(len).ok_or(Unusable::PoolExhausted)?;
    for unit in units {
        region.put(&u32::try_from(unit.len()).unwrap_or(u32::MAX).to_be_bytes());
        region.put(unit);
    }
    Ok(region.freeze())
}

/// A NAL unit's RBSP: without the emulation prevention bytes (H.264 §7.4.1.1).
pub(super) fn rbsp(unit: &[u8]) -> Vec<u8> {
    rbsp_bytes(unit).collect()
}

pub(super) fn rbsp_bytes(unit: &[u8]) -> impl Iterator<Item = u8> {
    let mut zeros = 0_u8;
    unit.iter().copied().filter(move |byte| {
        let prevents_emulation = zeros >= 2 && *byte == 3;
        zeros = if *byte == 0 { zeros.saturating_add(1) } else { 0 };
        !prevents_emulation
    })
}

/// Copies parameter sets into `record` behind 16-bit lengths and tells where each lies.
pub(super) fn put_sets(record: &mut Vec<u8>, sets: &[&[u8]]) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::with_capacity(sets.len());
    for set in sets {
        record.extend(u16::try_from(set.len()).unwrap_or(u16::MAX).to_be_bytes());
        let start = record.len();
        record.extend_from_slice(set);
        ranges.push(start..record.len());
    }
    ranges
}

/// Splits a parameter set behind its 16-bit length off `rest`, without a start code before it.
pub(super) fn take_set<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let (len, tail) = LengthSize::Two.split(rest).ok_or(Error::Truncated)?;
    let (set, tail) = tail.split_at_checked(len).ok_or(Error::Truncated)?;
    *rest = tail;
    Ok(without_start_codes(set).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::HeapPool;

    #[test]
    fn bodies_become_payloads_with_four_byte_lengths() {
        use LengthSize::{Four, One, Two};
        let good = b"\0\0\0\x02\x67\x01\0\0\0\x01\x68";
        type Row<'a> = (LengthSize, &'a [u8], Result<&'a [u8], Unusable>);
        let table: [Row<'_>; 20] = [
            (Four, good, Ok(good)),
            (Two, b"\0\x02\x67\x01\0\x01\x68", Ok(good)),
            (One, b"\x02\x67\x01\x01\x68", Ok(good)),
            (Four, b"\0\0\0\x02\x67\x01\0\0\0\0\0\0\0\x01\x68", Ok(good)),
            (Four, b"\0\0\0\x02\x67\x01\0\0\0\x01\x68\0\0\0", Ok(good)),
            (Four, b"\0\0\0\x02\x67\x01\0\0\0\x01\x68\0\0\x01\0\x65", Ok(good)),
            (Four, b"\0\0\0\x01\x67\x01\0\0\0\x01\x68", Ok(good)),
            (Two, b"\0\0\x01\x67\x01\0\0\x01\x68\0\0", Ok(good)),
            (Four, b"\0\0\x01\x67\x01\0\0\x01\x68", Ok(good)),
            // Start codes behind the lengths: before each NAL unit, and all of them behind one length.
            (Four, b"\0\0\0\x06\0\0\0\x01\x67\x01\0\0\0\x04\0\0\x01\x68", Ok(good)),
            (Two, b"\0\x06\0\0\0\x01\x67\x01\0\x05\0\0\0\x01\x68", Ok(good)),
            (Four, b"\0\0\0\x0b\0\0\0\x01\x67\x01\0\0\0\x01\x68", Ok(good)),
            (Four, b"\0\0\0\x02\x67\x01\0\0\0\x05\0\0\0\x01\x68", Ok(good)),
            (Four, b"\0\0\0\x06\0\0\0\x01\x67\x01\0\0\0\x04\0\0\0\x01\0\0\0\x01\x68", Ok(good)),
            (Four, b"\0\0\0\x04\0\0\0\x01", Err(Unusable::Empty)),
            (Four, b"", Err(Unusable::Empty)),
            (Four, b"\0\0\0\0", Err(Unusable::Empty)),
            (Four, b"\0\0\0\x01", Err(Unusable::Empty)),
            (Four, b"\0\0", Err(Unusable::Empty)),
            (Four, b"\xff\xff\xff\xff\x65", Err(Unusable::Empty)),
        ];
        for (length_size, body, expected) in table {
            let body = Bytes::copy_from_slice(body);
            let payload = to_payload(body.clone(), length_size, &mut HeapPool::default());
            assert_eq!(payload.as_deref(), expected.as_ref().copied(), "{body:02x?}");
        }
    }

    #[test]
    fn a_length_like_a_start_code_is_one() {
        let good = [&[0, 0, 1, 0x2c][..], &[0x41; 300]].concat();
        for tail in [&[][..], &[0], &[0, 0], &[0, 0, 0], &[0; 4]] {
            let body = Bytes::from([&good, tail].concat());
            let payload = to_payload(body, LengthSize::Four, &mut HeapPool::default());
            assert_eq!(payload.as_deref(), Ok(&good[..]), "{tail:?}");
        }
    }

    #[test]
    fn a_good_body_is_not_copied() {
        let body = Bytes::from_static(b"\0\0\0\x01\x09\0\0\0\x02\x65\0");
        let payload = to_payload(body.clone(), LengthSize::Four, &mut HeapPool::default()).unwrap();
        assert_eq!(payload.as_ptr(), body.as_ptr());
        assert_eq!(nal_units(&payload).collect::<Vec<_>>(), [&b"\x09"[..], b"\x65\0"]);
    }

    #[test]
    fn emulation_prevention_is_removed() {
        assert_eq!(rbsp(&[0, 0, 3, 1, 0, 0, 3, 0, 0, 3]), [0, 0, 1, 0, 0, 0, 0]);
    }
}
