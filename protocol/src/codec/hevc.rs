//! HEVC: HEVCDecoderConfigurationRecord (ISO 14496-15 §8.3.3.1) and its parameter sets.

mod sps;

use std::fmt::Write;

use bytes::Bytes;

use super::nal::{AnnexB, LengthSize, nal_units, put_sets, take_set};
use super::{Error, sei};
use sps::Sps;

/// NAL unit types (H.265 table 7-1).
pub mod nal_type {
    pub const BLA_W_LP: u8 = 16;
    /// The last type of intra random access point pictures, reserved ones included.
    pub const LAST_IRAP: u8 = 23;
    pub const LAST_SLICE: u8 = 31;
    pub const VPS: u8 = 32;
    pub const SPS: u8 = 33;
    pub const PPS: u8 = 34;
    pub const AUD: u8 = 35;
    pub const PREFIX_SEI: u8 = 39;
    pub const SUFFIX_SEI: u8 = 40;

    #[must_use]
    pub fn of(unit: &[u8]) -> Option<u8> {
        unit.first().map(|byte| byte >> 1 & 0x3f)
    }
}

/// Bytes of hvcC before its arrays.
const HEAD_BYTES: usize = 22;
/// The record's fields hold more, but decoders do not.
const MAX_SETS: usize = 64;

/// A parsed hvcC, its record built anew from the parameter sets as for AVC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub record: Bytes,
    pub vps: Vec<Bytes>,
    pub sps: Vec<Bytes>,
    pub pps: Vec<Bytes>,
    pub width: u32,
    pub height: u32,
}

/// Parameter sets by kind, before they are put into a record.
#[derive(Default)]
struct Sets<'a> {
    vps: Vec<&'a [u8]>,
    sps: Vec<&'a [u8]>,
    pps: Vec<&'a [u8]>,
    /// Only records carry these: what holds for the whole stream, such as the mastering display.
    sei: Vec<&'a [u8]>,
}

impl<'a> Sets<'a> {
    fn add(&mut self, unit: &'a [u8], with_sei: bool) {
        let sets = match nal_type::of(unit) {
            Some(nal_type::VPS) => &mut self.vps,
            Some(nal_type::SPS) => &mut self.sps,
            Some(nal_type::PPS) => &mut self.pps,
            Some(nal_type::PREFIX_SEI) if with_sei => &mut self.sei,
            _ => return,
        };
        if unit.len() <= 0xffff && sets.len() < MAX_SETS && sets.last() != Some(&unit) {
            sets.push(unit);
        }
    }
}

impl Config {
    /// Reads an hvcC, and with it how long the NAL lengths of the encoder's access units are.
    /// Parameter sets in Annex B form are read as well.
    ///
    /// # Errors
    /// When the record is empty, cut off, or lacks a VPS, SPS or PPS.
    pub fn parse(record: &[u8]) -> Result<(Self, LengthSize), Error> {
        let mut sets = Sets::default();
        if let Some(units) = AnnexB::new(record) {
            units.for_each(|unit| sets.add(unit, false));
            return Ok((Self::build(&sets)?, LengthSize::Four));
        }
        let (head, rest) = match record.split_first_chunk::<HEAD_BYTES>() {
            Some(split) => split,
            None if record.is_empty() => return Err(Error::Empty),
            None => return Err(Error::Truncated),
        };
        let [version, .., length_size] = *head;
        // Version 0 comes from encoders that wrote hvcC before it was final.
        if version > 1 {
            return Err(Error::Invalid("hvcC version"));
        }
        let length_size = LengthSize::from_minus_one(length_size)?;
        let (array_count, mut rest) = rest.split_first().ok_or(Error::Truncated)?;
        for _ in 0..*array_count {
            let (head, tail) = rest.split_first_chunk::<3>().ok_or(Error::Truncated)?;
            let [_kind, count @ ..] = *head;
            rest = tail;
            for _ in 0..u16::from_be_bytes(count) {
                sets.add(take_set(&mut rest)?, true);
            }
        }
        Ok((Self::build(&sets)?, length_size))
    }

    /// The configuration that an access unit carries in band.
    ///
    /// # Errors
    /// When the access unit does not hold a VPS, an SPS and a PPS.
    pub fn from_access_unit(payload: &[u8]) -> Result<Self, Error> {
        let mut sets = Sets::default();
        nal_units(payload).for_each(|unit| sets.add(unit, false));
        Self::build(&sets)
    }

    fn build(sets: &Sets<'_>) -> Result<Self, Error> {
        let sps = Sps::parse(sets.sps.first().ok_or(Error::Missing("SPS"))?)?;
        if sets.vps.is_empty() {
            return Err(Error::Missing("VPS"));
        }
        if sets.pps.is_empty() {
            return Err(Error::Missing("PPS"));
        }
        let mut record = vec![1];
        record.extend(sps.profile_tier_level);
        // No spatial segmentation known, parallelism unknown.
        record.extend([0xf0, 0x00, 0xfc]);
        record.push(0xfc | sps.chroma_format);
        record.push(0xf8 | sps.bit_depth_luma_minus8);
        record.push(0xf8 | sps.bit_depth_chroma_minus8);
        // Frame rate unspecified; 4-byte lengths.
        record.extend([0, 0]);
        record.push(sps.temporal_layers << 3 | u8::from(sps.temporal_id_nested) << 2 | 3);
        record.push(if sets.sei.is_empty() { 3 } else { 4 });
        let mut array = |kind, sets: &[&[u8]]| {
            // Complete: these are all the parameter sets, as sample entry hvc1 asks for.
            record.push(0x80 | kind);
            record.extend((sets.len() as u16).to_be_bytes());
            put_sets(&mut record, sets)
        };
        let vps_ranges = array(nal_type::VPS, &sets.vps);
        let sps_ranges = array(nal_type::SPS, &sets.sps);
        let pps_ranges = array(nal_type::PPS, &sets.pps);
        if !sets.sei.is_empty() {
            array(nal_type::PREFIX_SEI, &sets.sei);
        }
        let record = Bytes::from(record);
        let slices = |ranges: Vec<std::ops::Range<usize>>| {
            ranges.into_iter().map(|range| record.slice(range)).collect()
        };
        Ok(Self {
            vps: slices(vps_ranges),
            sps: slices(sps_ranges),
            pps: slices(pps_ranges),
            width: sps.width,
            height: sps.height,
            record: record.clone(),
        })
    }

    /// Whether this configuration has every SPS that `payload` carries in band, as for AVC.
    #[must_use]
    pub fn covers(&self, payload: &[u8]) -> bool {
        nal_units(payload)
            .filter(|unit| nal_type::of(unit) == Some(nal_type::SPS))
            .all(|unit| self.sps.iter().any(|sps| sps == unit))
    }

    /// ISO 14496-15 §E.3: profile space and profile, reversed compatibility flags, tier and level,
    /// constraint bytes without trailing zeros.
    #[must_use]
    pub fn rfc6381(&self) -> String {
        let Some([profile, c0, c1, c2, c3, constraints @ .., level]) =
            self.record.get(1..).and_then(|rest| rest.first_chunk::<12>())
        else {
            return "hvc1".to_owned();
        };
        let space = ["", "A", "B", "C"].get(usize::from(profile >> 6)).copied().unwrap_or_default();
        let compatibility = u32::from_be_bytes([*c0, *c1, *c2, *c3]).reverse_bits();
        let tier = if profile & 0x20 == 0 { 'L' } else { 'H' };
        let mut codecs = format!("hvc1.{space}{}.{compatibility:X}.{tier}{level}", profile & 0x1f);
        let used = constraints
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last.saturating_add(1));
        for byte in constraints.iter().take(used) {
            // Writing to a String does not fail.
            let _ = write!(codecs, ".{byte:X}");
        }
        codecs
    }
}

/// Whether a player can start at this access unit: an intra random access point, or a recovery point as
/// for AVC.
#[must_use]
pub fn is_keyframe(payload: &[u8], called_keyframe: bool) -> bool {
    let is_irap =
        |unit: &[u8]| matches!(nal_type::of(unit), Some(nal_type::BLA_W_LP..=nal_type::LAST_IRAP));
    let is_recovery_point = |unit: &[u8]| {
        let messages = unit.get(2..).filter(|_| nal_type::of(unit) == Some(nal_type::PREFIX_SEI));
        messages.is_some_and(|messages| sei::has(messages, sei::RECOVERY_POINT))
    };
    nal_units(payload).any(is_irap) || called_keyframe && nal_units(payload).any(is_recovery_point)
}

/// Whether the access unit holds a slice: others carry only parameter sets or SEI.
#[must_use]
pub fn has_picture(payload: &[u8]) -> bool {
    nal_units(payload).any(|unit| matches!(nal_type::of(unit), Some(0..=nal_type::LAST_SLICE)))
}
