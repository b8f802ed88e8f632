//! Bit fields of parameter sets, read with bounds.

use super::Error;

#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// In bits from the start.
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub(super) fn flag(&mut self) -> Result<bool, Error> {
        let byte = self.bytes.get(self.position >> 3).ok_or(Error::Truncated)?;
        let bit = byte.rotate_left((self.position & 7) as u32) & 0x80;
        self.position = self.position.saturating_add(1);
        Ok(bit != 0)
    }

    /// An unsigned field of at most 32 bits.
    pub(super) fn bits(&mut self, count: u32) -> Result<u32, Error> {
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | u32::from(self.flag()?);
        }
        Ok(value)
    }

    /// A field of at most 8 bits.
    pub(super) fn bits8(&mut self, count: u32) -> Result<u8, Error> {
        Ok(self.bits(count)? as u8)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Error> {
        let position = self.position.saturating_add(count);
        if position > self.bytes.len().saturating_mul(8) {
            return Err(Error::Truncated);
        }
        self.position = position;
        Ok(())
    }

    pub(super) fn bits_left(&self) -> usize {
        self.bytes.len().saturating_mul(8).saturating_sub(self.position)
    }

    /// ue(v), at most 2³² - 2 (H.264 §9.1, H.265 §9.2).
    pub(super) fn exp_golomb(&mut self) -> Result<u32, Error> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros = u32::saturating_add(zeros, 1);
            if zeros > 31 {
                return Err(Error::Invalid("Exp-Golomb code"));
            }
        }
        let suffix = self.bits(zeros)?;
        Ok((1_u32.wrapping_shl(zeros)).wrapping_sub(1).saturating_add(suffix))
    }

    /// se(v) (H.264 §9.1.1).
    pub(super) fn signed_exp_golomb(&mut self) -> Result<i32, Error> {
        let code = self.exp_golomb()?;
        let magnitude = i32::try_from(code.div_ceil(2)).unwrap_or(i32::MAX);
        Ok(if code & 1 == 1 { magnitude } else { magnitude.saturating_neg() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_across_bytes() {
        let mut bits = BitReader::new(&[0b1010_0000, 0b1111_0001]);
        assert_eq!(bits.bits(3), Ok(0b101));
        assert_eq!(bits.bits(9), Ok(0b1111));
        assert_eq!(bits.bits_left(), 4);
        assert_eq!(bits.skip(5), Err(Error::Truncated));
        assert_eq!(bits.bits8(4), Ok(1));
        assert_eq!(bits.flag(), Err(Error::Truncated));
    }

    #[test]
    fn exp_golomb_codes_are_bounded() {
        // 1 | 010 | 011 | 00100 | 00101 ...
        let mut bits = BitReader::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        let codes: Vec<_> = (0..5).map(|_| bits.exp_golomb().unwrap()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4]);
        let mut signed = BitReader::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        let codes: Vec<_> = (0..5).map(|_| signed.signed_exp_golomb().unwrap()).collect();
        assert_eq!(codes, [0, 1, -1, 2, -2]);
        let longest = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(BitReader::new(&longest).exp_golomb(), Ok(u32::MAX - 1));
        assert!(matches!(BitReader::new(&[0; 64]).exp_golomb(), Err(Error::Invalid(_))));
    }
}
