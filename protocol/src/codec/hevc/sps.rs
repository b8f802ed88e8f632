use crate::codec::bits::BitReader;
use crate::codec::{Error, nal, picture_size};

/// What Weir needs of a sequence parameter set (H.265 §7.3.2.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sps {
    /// The general part of profile_tier_level, which hvcC repeats as it is (H.265 §7.3.3).
    pub(super) profile_tier_level: [u8; 12],
    pub(super) temporal_layers: u8,
    pub(super) temporal_id_nested: bool,
    pub(super) chroma_format: u8,
    pub(super) bit_depth_luma_minus8: u8,
    pub(super) bit_depth_chroma_minus8: u8,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Sps {
    pub(super) fn parse(unit: &[u8]) -> Result<Self, Error> {
        let rbsp = nal::rbsp(unit);
        // NAL header, then a byte of identifiers, then profile_tier_level on a byte boundary.
        let profile_tier_level =
            rbsp.get(3..).and_then(|rest| rest.first_chunk()).ok_or(Error::Truncated)?;
        let mut bits = BitReader::new(&rbsp);
        bits.skip(16 + 4)?;
        let sub_layers = bits.bits8(3)?;
        let temporal_id_nested = bits.flag()?;
        bits.skip(12 * 8)?;
        skip_sub_layers(&mut bits, sub_layers)?;
        let _id = bits.exp_golomb()?;
        let chroma_format = small(&mut bits, 3, "chroma format")?;
        let separate_planes = chroma_format == 3 && bits.flag()?;
        let chroma = if separate_planes { 0 } else { chroma_format };
        let (width, height) = read_size(&mut bits, chroma)?;
        Ok(Self {
            profile_tier_level: *profile_tier_level,
            temporal_layers: sub_layers.saturating_add(1),
            temporal_id_nested,
            chroma_format,
            bit_depth_luma_minus8: small(&mut bits, 7, "bit depth")?,
            bit_depth_chroma_minus8: small(&mut bits, 7, "bit depth")?,
            width,
            height,
        })
    }
}

fn small(bits: &mut BitReader<'_>, max: u32, what: &'static str) -> Result<u8, Error> {
    let value = bits.exp_golomb()?;
    if value > max { Err(Error::Invalid(what)) } else { Ok(value as u8) }
}

/// The sub-layer part of profile_tier_level.
fn skip_sub_layers(bits: &mut BitReader<'_>, sub_layers: u8) -> Result<(), Error> {
    if sub_layers == 0 {
        return Ok(());
    }
    let mut present_bits = 0_usize;
    for _ in 0..sub_layers {
        let (profile_present, level_present) = (bits.flag()?, bits.flag()?);
        let profile_bits = if profile_present { 88 } else { 0 };
        let level_bits = if level_present { 8 } else { 0 };
        present_bits = present_bits.saturating_add(profile_bits).saturating_add(level_bits);
    }
    let alignment = 8_usize.saturating_sub(sub_layers.into()).saturating_mul(2);
    bits.skip(alignment.saturating_add(present_bits))
}

/// Size in luma samples within the conformance window (H.265 §7.4.3.2.1).
fn read_size(bits: &mut BitReader<'_>, chroma: u8) -> Result<(u32, u32), Error> {
    let (width, height) = (bits.exp_golomb()?, bits.exp_golomb()?);
    let mut crop = [0_u32; 4];
    if bits.flag()? {
        for edge in &mut crop {
            *edge = bits.exp_golomb()?;
        }
    }
    let [left, right, top, bottom] = crop;
    let crop_x = if matches!(chroma, 1 | 2) { 2 } else { 1 };
    let crop_y = if chroma == 1 { 2 } else { 1 };
    picture_size(
        width.saturating_sub(left.saturating_add(right).saturating_mul(crop_x)),
        height.saturating_sub(top.saturating_add(bottom).saturating_mul(crop_y)),
    )
}
