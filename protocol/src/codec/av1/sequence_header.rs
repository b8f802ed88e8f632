use crate::codec::bits::BitReader;
use crate::codec::{Error, picture_size};

/// What Weir needs of a sequence header OBU (AV1 §5.5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SequenceHeader {
    profile: u8,
    level: u8,
    tier: bool,
    color: Color,
    pub(super) width: u32,
    pub(super) height: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Color {
    high_bitdepth: bool,
    twelve_bit: bool,
    monochrome: bool,
    subsampling_x: bool,
    subsampling_y: bool,
    sample_position: u8,
}

impl SequenceHeader {
    pub(super) fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut bits = BitReader::new(payload);
        let mut header = Self { profile: bits.bits8(3)?, ..Self::default() };
        bits.skip(1)?;
        let reduced = bits.flag()?;
        if reduced {
            header.level = bits.bits8(5)?;
        } else {
            header.read_operating_points(&mut bits)?;
        }
        let (width_bits, height_bits) = (bits.bits(4)?, bits.bits(4)?);
        let width = bits.bits(width_bits.saturating_add(1))?.saturating_add(1);
        let height = bits.bits(height_bits.saturating_add(1))?.saturating_add(1);
        (header.width, header.height) = picture_size(width, height)?;
        if !reduced && bits.flag()? {
            // Lengths of frame identifiers.
            bits.skip(7)?;
        }
        skip_tools(&mut bits, reduced)?;
        header.color = Color::parse(&mut bits, header.profile)?;
        Ok(header)
    }

    /// Level and tier of the first operating point, which is the whole stream.
    fn read_operating_points(&mut self, bits: &mut BitReader<'_>) -> Result<(), Error> {
        let mut delay_bits = None;
        if bits.flag()? {
            bits.skip(64)?;
            if bits.flag()? {
                skip_uvlc(bits)?;
            }
            if bits.flag()? {
                delay_bits = Some(usize::from(bits.bits8(5)?).saturating_add(1));
                bits.skip(32 + 5 + 5)?;
            }
        }
        let display_delay_present = bits.flag()?;
        for index in 0..=bits.bits(5)? {
            bits.skip(12)?;
            let level = bits.bits8(5)?;
            let tier = level > 7 && bits.flag()?;
            if index == 0 {
                (self.level, self.tier) = (level, tier);
            }
            if let Some(delay_bits) = delay_bits
                && bits.flag()?
            {
                bits.skip(delay_bits.saturating_mul(2).saturating_add(1))?;
            }
            if display_delay_present && bits.flag()? {
                bits.skip(4)?;
            }
        }
        Ok(())
    }

    /// The four bytes of av1C before its OBUs (AV1-ISOBMFF §2.3.3).
    pub(super) fn record_head(&self) -> [u8; 4] {
        let color = &self.color;
        let flags = u8::from(self.tier) << 7
            | u8::from(color.high_bitdepth) << 6
            | u8::from(color.twelve_bit) << 5
            | u8::from(color.monochrome) << 4
            | u8::from(color.subsampling_x) << 3
            | u8::from(color.subsampling_y) << 2
            | color.sample_position;
        [0x81, self.profile << 5 | self.level, flags, 0]
    }
}

/// AV1 §4.10.3
fn skip_uvlc(bits: &mut BitReader<'_>) -> Result<(), Error> {
    let mut zeros = 0_usize;
    while !bits.flag()? {
        zeros = zeros.saturating_add(1);
    }
    if zeros < 32 { bits.skip(zeros) } else { Ok(()) }
}

/// From use_128x128_superblock to enable_restoration.
fn skip_tools(bits: &mut BitReader<'_>, reduced: bool) -> Result<(), Error> {
    bits.skip(3)?;
    if !reduced {
        bits.skip(4)?;
        let order_hint = bits.flag()?;
        if order_hint {
            bits.skip(2)?;
        }
        let screen_content = bits.flag()? || bits.flag()?;
        if screen_content && !bits.flag()? {
            bits.skip(1)?;
        }
        if order_hint {
            bits.skip(3)?;
        }
    }
    bits.skip(3)
}

impl Color {
    /// AV1 §5.5.2
    fn parse(bits: &mut BitReader<'_>, profile: u8) -> Result<Self, Error> {
        const BT_709: u32 = 1;
        const SRGB: u32 = 13;
        const IDENTITY: u32 = 0;
        let mut color = Self { high_bitdepth: bits.flag()?, ..Self::default() };
        color.twelve_bit = profile == 2 && color.high_bitdepth && bits.flag()?;
        color.monochrome = profile != 1 && bits.flag()?;
        let description = match bits.flag()? {
            true => Some((bits.bits(8)?, bits.bits(8)?, bits.bits(8)?)),
            false => None,
        };
        if color.monochrome {
            (color.subsampling_x, color.subsampling_y) = (true, true);
            return Ok(color);
        }
        if description == Some((BT_709, SRGB, IDENTITY)) {
            return Ok(color);
        }
        bits.skip(1)?;
        (color.subsampling_x, color.subsampling_y) = match profile {
            0 => (true, true),
            1 => (false, false),
            _ if color.twelve_bit => {
                let x = bits.flag()?;
                (x, x && bits.flag()?)
            }
            _ => (true, false),
        };
        if color.subsampling_x && color.subsampling_y {
            color.sample_position = bits.bits8(2)?;
        }
        Ok(color)
    }
}
