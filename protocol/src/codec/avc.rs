//! AVC: AVCDecoderConfigurationRecord (ISO 14496-15 §5.3.3.1) and its parameter sets.

mod sps;

use bytes::Bytes;

use super::nal::{AnnexB, LengthSize, put_sets, take_set};
use super::{Error, nal, sei};
pub use nal::{NalUnits, nal_units};
use sps::Sps;

/// NAL unit types (H.264 table 7-1).
pub mod nal_type {
    pub const SLICE: u8 = 1;
    pub const IDR: u8 = 5;
    pub const SEI: u8 = 6;
    pub const SPS: u8 = 7;
    pub const PPS: u8 = 8;
    pub const AUD: u8 = 9;
    pub const END_OF_SEQUENCE: u8 = 10;
    pub const END_OF_STREAM: u8 = 11;
    pub const FILLER: u8 = 12;
    pub const SPS_EXTENSION: u8 = 13;

    #[must_use]
    pub fn of(unit: &[u8]) -> Option<u8> {
        unit.first().map(|byte| byte & 0x1f)
    }
}

/// A parsed avcC. Parameter sets are NAL units without length or start code.
///
/// The record is always built anew from the parameter sets, so two records that differ only in
/// reserved bits or in what an encoder left out compare as equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The record as containers carry it, rewritten so that NAL lengths are 4 bytes.
    pub record: Bytes,
    pub profile: u8,
    pub compatibility: u8,
    pub level: u8,
    pub sps: Vec<Bytes>,
    pub pps: Vec<Bytes>,
    pub width: u32,
    pub height: u32,
}

impl Config {
    /// Reads an avcC, and with it how long the NAL lengths of the encoder's access units are.
    /// Parameter sets in Annex B form, which some encoders send instead, are read as well.
    ///
    /// # Errors
    /// When the record is empty, cut off, or holds no usable SPS and PPS.
    pub fn parse(record: &[u8]) -> Result<(Self, LengthSize), Error> {
        if let Some(units) = AnnexB::new(record) {
            return Ok((Self::from_units(units)?, LengthSize::Four));
        }
        let (head, mut rest) = match record.split_first_chunk::<6>() {
            Some(split) => split,
            None if record.is_empty() => return Err(Error::Empty),
            None => return Err(Error::Truncated),
        };
        let [version, _profile, _compatibility, _level, length_size, sps_count] = *head;
        if version != 1 {
            return Err(Error::Invalid("avcC version"));
        }
        // Encoders forget the reserved bits, so they are masked.
        let length_size = LengthSize::from_minus_one(length_size)?;
        let sps = (0..sps_count & 0x1f).map(|_| take_set(&mut rest)).collect::<Result<_, _>>()?;
        let (pps_count, mut rest) = rest.split_first().ok_or(Error::Truncated)?;
        let pps = (0..*pps_count).map(|_| take_set(&mut rest)).collect::<Result<_, _>>()?;
        // What may follow for the High profiles stands in the SPS too.
        Ok((Self::build(sps, pps)?, length_size))
    }

    /// The configuration that an access unit carries in band.
    ///
    /// # Errors
    /// When the access unit does not hold both an SPS and a PPS.
    pub fn from_access_unit(payload: &[u8]) -> Result<Self, Error> {
        Self::from_units(nal_units(payload))
    }

    fn from_units<'a>(units: impl Iterator<Item = &'a [u8]>) -> Result<Self, Error> {
        let (mut sps, mut pps) = (Vec::new(), Vec::new());
        for unit in units {
            match nal_type::of(unit) {
                Some(nal_type::SPS) => sps.push(unit),
                Some(nal_type::PPS) => pps.push(unit),
                _ => {}
            }
        }
        Self::build(sps, pps)
    }

    fn build(mut sps: Vec<&[u8]>, mut pps: Vec<&[u8]>) -> Result<Self, Error> {
        let usable = |unit: &[u8], kind| nal_type::of(unit) == Some(kind) && unit.len() <= 0xffff;
        sps.retain(|unit| usable(unit, nal_type::SPS));
        pps.retain(|unit| usable(unit, nal_type::PPS));
        sps.dedup();
        pps.dedup();
        // The fields of the record hold 5 and 8 bits.
        sps.truncate(31);
        pps.truncate(255);
        let first = Sps::parse(sps.first().ok_or(Error::Missing("SPS"))?)?;
        if pps.is_empty() {
            return Err(Error::Missing("PPS"));
        }
        let mut record = vec![1, first.profile, first.compatibility, first.level, 0xff];
        record.push(0xe0 | sps.len() as u8);
        let sps = put_sets(&mut record, &sps);
        record.push(pps.len() as u8);
        let pps = put_sets(&mut record, &pps);
        if first.has_chroma_info {
            record.push(0xfc | first.chroma_format);
            record.push(0xf8 | first.bit_depth_luma_minus8);
            record.push(0xf8 | first.bit_depth_chroma_minus8);
            record.push(0);
        }
        let record = Bytes::from(record);
        Ok(Self {
            profile: first.profile,
            compatibility: first.compatibility,
            level: first.level,
            sps: sps.into_iter().map(|range| record.slice(range)).collect(),
            pps: pps.into_iter().map(|range| record.slice(range)).collect(),
            width: first.width,
            height: first.height,
            record,
        })
    }

    /// Whether this configuration has every SPS that `payload` carries in band. A PPS of its own
    /// is the access unit's affair: some encoders send another with each picture.
    #[must_use]
    pub fn covers(&self, payload: &[u8]) -> bool {
        nal_units(payload)
            .filter(|unit| nal_type::of(unit) == Some(nal_type::SPS))
            .all(|unit| self.sps.iter().any(|sps| sps == unit))
    }

    #[must_use]
    pub fn rfc6381(&self) -> String {
        format!("avc1.{:02x}{:02x}{:02x}", self.profile, self.compatibility, self.level)
    }
}

/// Whether a player can start at this access unit: an IDR picture, or one that the encoder calls a
/// keyframe and marks as a recovery point (periodic intra refresh).
#[must_use]
pub fn is_keyframe(payload: &[u8], called_keyframe: bool) -> bool {
    let is_recovery_point = |unit: &[u8]| {
        let messages = unit.get(1..).filter(|_| nal_type::of(unit) == Some(nal_type::SEI));
        messages.is_some_and(|messages| sei::has(messages, sei::RECOVERY_POINT))
    };
    nal_units(payload).any(|unit| nal_type::of(unit) == Some(nal_type::IDR))
        || called_keyframe && nal_units(payload).any(is_recovery_point)
}

/// Whether the access unit holds a slice: others carry only parameter sets or SEI.
#[must_use]
pub fn has_picture(payload: &[u8]) -> bool {
    nal_units(payload)
        .any(|unit| matches!(nal_type::of(unit), Some(nal_type::SLICE..=nal_type::IDR)))
}
