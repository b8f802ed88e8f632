use crate::codec::bits::BitReader;
use crate::codec::{Error, nal, picture_size};

/// What Weir needs of a sequence parameter set (H.264 §7.3.2.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sps {
    pub(super) profile: u8,
    pub(super) compatibility: u8,
    pub(super) level: u8,
    /// Whether avcC repeats the three fields below.
    pub(super) has_chroma_info: bool,
    pub(super) chroma_format: u8,
    pub(super) bit_depth_luma_minus8: u8,
    pub(super) bit_depth_chroma_minus8: u8,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Sps {
    pub(super) fn parse(unit: &[u8]) -> Result<Self, Error> {
        let rbsp = nal::rbsp(unit);
        let mut bits = BitReader::new(&rbsp);
        bits.skip(8)?;
        let (profile, compatibility, level) = (bits.bits8(8)?, bits.bits8(8)?, bits.bits8(8)?);
        let _id = bits.exp_golomb()?;
        let mut sps = Self {
            profile,
            compatibility,
            level,
            has_chroma_info: !matches!(profile, 66 | 77 | 88),
            chroma_format: 1,
            bit_depth_luma_minus8: 0,
            bit_depth_chroma_minus8: 0,
            width: 0,
            height: 0,
        };
        let mut separate_planes = false;
        if matches!(
            profile,
            100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 134 | 135 | 138 | 139
        ) {
            sps.chroma_format = small(&mut bits, 3, "chroma format")?;
            if sps.chroma_format == 3 {
                separate_planes = bits.flag()?;
            }
            sps.bit_depth_luma_minus8 = small(&mut bits, 6, "bit depth")?;
            sps.bit_depth_chroma_minus8 = small(&mut bits, 6, "bit depth")?;
            bits.skip(1)?;
            if bits.flag()? {
                let lists = if sps.chroma_format == 3 { 12 } else { 8 };
                skip_scaling_lists(&mut bits, lists)?;
            }
        }
        skip_frame_order(&mut bits)?;
        let chroma = if separate_planes { 0 } else { sps.chroma_format };
        (sps.width, sps.height) = read_size(&mut bits, chroma)?;
        Ok(sps)
    }
}

fn small(bits: &mut BitReader<'_>, max: u32, what: &'static str) -> Result<u8, Error> {
    let value = bits.exp_golomb()?;
    if value > max { Err(Error::Invalid(what)) } else { Ok(value as u8) }
}

/// H.264 §7.3.2.1.1.1
fn skip_scaling_lists(bits: &mut BitReader<'_>, lists: u32) -> Result<(), Error> {
    for list in 0..lists {
        if !bits.flag()? {
            continue;
        }
        let mut scale = 8_i32;
        for _ in 0..if list < 6 { 16 } else { 64 } {
            scale = scale.wrapping_add(bits.signed_exp_golomb()?) & 0xff;
            // Zero repeats the last scale to the end of the list.
            if scale == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// From log2_max_frame_num_minus4 to gaps_in_frame_num_value_allowed_flag.
fn skip_frame_order(bits: &mut BitReader<'_>) -> Result<(), Error> {
    bits.exp_golomb()?;
    match bits.exp_golomb()? {
        0 => drop(bits.exp_golomb()?),
        1 => {
            bits.skip(1)?;
            bits.signed_exp_golomb()?;
            bits.signed_exp_golomb()?;
            for _ in 0..small(bits, 255, "picture order count")? {
                bits.signed_exp_golomb()?;
            }
        }
        2 => {}
        _ => return Err(Error::Invalid("picture order count")),
    }
    bits.exp_golomb()?;
    bits.skip(1)
}

/// Size in luma samples after cropping (H.264 §7.4.2.1.1, equations 7-19 to 7-22).
fn read_size(bits: &mut BitReader<'_>, chroma: u8) -> Result<(u32, u32), Error> {
    let width_in_mbs = bits.exp_golomb()?.saturating_add(1);
    let height_in_map_units = bits.exp_golomb()?.saturating_add(1);
    let frame_mbs_only = bits.flag()?;
    if !frame_mbs_only {
        bits.skip(1)?;
    }
    bits.skip(1)?;
    let fields = if frame_mbs_only { 1 } else { 2 };
    let mut crop = [0_u32; 4];
    if bits.flag()? {
        for edge in &mut crop {
            *edge = bits.exp_golomb()?;
        }
    }
    let [left, right, top, bottom] = crop;
    let crop_x = if matches!(chroma, 1 | 2) { 2 } else { 1 };
    let crop_y = if chroma == 1 { 2 } else { 1_u32 }.saturating_mul(fields);
    let width = width_in_mbs.saturating_mul(16);
    let height = height_in_map_units.saturating_mul(16).saturating_mul(fields);
    picture_size(
        width.saturating_sub(left.saturating_add(right).saturating_mul(crop_x)),
        height.saturating_sub(top.saturating_add(bottom).saturating_mul(crop_y)),
    )
}
