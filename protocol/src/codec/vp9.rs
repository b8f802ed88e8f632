//! VP9: VPCodecConfigurationRecord (VP Codec ISOBMFF binding §2.2) and frame headers.

use bytes::Bytes;

use super::bits::BitReader;
use super::{Error, picture_size};

const RECORD_BYTES: usize = 8;
/// Version 1 and no flags: the FullBox header that some encoders send along.
const FULL_BOX_HEADER: [u8; 4] = [1, 0, 0, 0];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The body of the `vpcC` box after its FullBox header.
    pub record: Bytes,
    pub width: u32,
    pub height: u32,
}

/// The record of a sequence start. It does not tell the picture size, keyframes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record([u8; RECORD_BYTES]);

impl Record {
    /// Reads a `vpcC` body, with or without its FullBox header.
    ///
    /// # Errors
    /// When the record is empty, cut off, or of a profile that does not exist.
    pub fn parse(record: &[u8]) -> Result<Self, Error> {
        if record.is_empty() {
            return Err(Error::Empty);
        }
        let body = match record.strip_prefix(&FULL_BOX_HEADER) {
            Some(body) if body.len() >= RECORD_BYTES - 2 => body,
            _ => record,
        };
        let [profile, level, depth, primaries, transfer, matrix] =
            *body.first_chunk().ok_or(Error::Truncated)?;
        if profile > 3 {
            return Err(Error::Invalid("VP9 profile"));
        }
        // VP9 has no initialization data.
        Ok(Self([profile, level, depth, primaries, transfer, matrix, 0, 0]))
    }
}

impl Config {
    /// The configuration of a keyframe, with the record of the sequence start if there was one.
    ///
    /// # Errors
    /// When the access unit is not a keyframe.
    pub fn from_access_unit(payload: &[u8], record: Option<Record>) -> Result<Self, Error> {
        let frame = KeyFrame::parse(payload)?;
        let Record(record) = record.unwrap_or_else(|| frame.record());
        let record = Bytes::copy_from_slice(&record);
        Ok(Self { record, width: frame.width, height: frame.height })
    }

    /// VP Codec ISOBMFF binding §2.3
    #[must_use]
    pub fn rfc6381(&self) -> String {
        let Some([profile, level, depth]) = self.record.first_chunk() else {
            return "vp09".to_owned();
        };
        format!("vp09.{profile:02}.{level:02}.{:02}", depth >> 4)
    }
}

/// Whether a player can start at this access unit.
#[must_use]
pub fn is_keyframe(payload: &[u8]) -> bool {
    KeyFrame::parse(payload).is_ok()
}

/// The uncompressed header of a keyframe (VP9 bitstream §6.2).
struct KeyFrame {
    profile: u8,
    bit_depth: u8,
    /// As in `vpcC`: 1 is 4:2:0, 2 is 4:2:2, 3 is 4:4:4.
    chroma: u8,
    full_range: bool,
    /// As in ISO 23091-2: primaries, transfer characteristics, matrix coefficients.
    color: [u8; 3],
    width: u32,
    height: u32,
}

impl KeyFrame {
    fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut bits = BitReader::new(payload);
        if bits.bits(2)? != 2 {
            return Err(Error::Invalid("VP9 frame marker"));
        }
        let profile = bits.bits8(1)? | bits.bits8(1)? << 1;
        if profile == 3 {
            bits.skip(1)?;
        }
        let (show_existing, inter) = (bits.flag()?, bits.flag()?);
        if show_existing || inter {
            return Err(Error::Missing("VP9 keyframe"));
        }
        bits.skip(2)?;
        if bits.bits(24)? != 0x49_8342 {
            return Err(Error::Invalid("VP9 sync code"));
        }
        let bit_depth = match profile {
            0 | 1 => 8,
            _ if bits.flag()? => 12,
            _ => 10,
        };
        let color_space = bits.bits8(3)?;
        let (full_range, chroma) = read_sampling(&mut bits, profile, color_space)?;
        let width = bits.bits(16)?.saturating_add(1);
        let height = bits.bits(16)?.saturating_add(1);
        let (width, height) = picture_size(width, height)?;
        let color = color_description(color_space);
        Ok(Self { profile, bit_depth, chroma, full_range, color, width, height })
    }

    fn record(&self) -> Record {
        let depth = self.bit_depth << 4 | self.chroma << 1 | u8::from(self.full_range);
        let [primaries, transfer, matrix] = self.color;
        Record([self.profile, self.level(), depth, primaries, transfer, matrix, 0, 0])
    }

    /// The lowest level whose pictures are large enough (VP9 levels, webmproject.org).
    fn level(&self) -> u8 {
        const LARGEST_PICTURE: [(u32, u8); 9] = [
            (36_864, 10),
            (73_728, 11),
            (122_880, 20),
            (245_760, 21),
            (552_960, 30),
            (983_040, 31),
            (2_228_224, 40),
            (8_912_896, 50),
            (35_651_584, 60),
        ];
        let samples = self.width.saturating_mul(self.height);
        LARGEST_PICTURE.iter().find(|(max, _)| samples <= *max).map_or(62, |(_, level)| *level)
    }
}

/// color_range and subsampling (VP9 bitstream §6.2.2).
fn read_sampling(
    bits: &mut BitReader<'_>,
    profile: u8,
    color_space: u8,
) -> Result<(bool, u8), Error> {
    const RGB: u8 = 7;
    let explicit = matches!(profile, 1 | 3);
    if color_space == RGB {
        if explicit {
            bits.skip(1)?;
        }
        return Ok((true, 3));
    }
    let full_range = bits.flag()?;
    if !explicit {
        return Ok((full_range, 1));
    }
    let chroma = match (bits.flag()?, bits.flag()?) {
        (true, true) => 1,
        (true, false) => 2,
        _ => 3,
    };
    bits.skip(1)?;
    Ok((full_range, chroma))
}

/// VP9 color_space in the terms of ISO 23091-2; 2 is unspecified.
fn color_description(color_space: u8) -> [u8; 3] {
    match color_space {
        1 => [5, 6, 5],
        2 => [1, 1, 1],
        3 => [6, 6, 6],
        4 => [7, 7, 7],
        5 => [9, 14, 9],
        7 => [1, 13, 0],
        _ => [2, 2, 2],
    }
}
