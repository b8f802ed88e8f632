//! FLAC: STREAMINFO (RFC 9639 §8.2) and frame lengths (§9.1).

use bytes::Bytes;

use super::Error;
use super::bits::BitReader;

/// A metadata block's header: the last one, of type STREAMINFO, and its length.
const BLOCK_HEADER: [u8; 4] = [0x80, 0, 0, STREAMINFO_BYTES as u8];
const STREAMINFO_BYTES: usize = 34;
const MAGIC: &[u8] = b"fLaC";

#[derive(Clone, Debug)]
pub struct Config {
    /// The body of the `dfLa` box behind its version and flags: the STREAMINFO block alone.
    pub record: Bytes,
    pub sample_rate: u32,
    pub channels: u8,
    pub bits_per_sample: u8,
}

/// Sizes of frames and blocks, the length and the checksum of a live stream say nothing to a decoder.
impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        let said = |config: &Self| (config.sample_rate, config.channels, config.bits_per_sample);
        said(self) == said(other)
    }
}

impl Eq for Config {}

impl Config {
    /// Reads STREAMINFO: as Enhanced RTMP has it, behind the signature and the block's header; or
    /// bare, as ffmpeg sends it.
    ///
    /// # Errors
    /// When it is not there, or has no sampling rate.
    pub fn parse(header: &[u8]) -> Result<Self, Error> {
        let blocks = header.strip_prefix(MAGIC).unwrap_or(header);
        let info = match blocks {
            [] => return Err(Error::Empty),
            [kind, 0, 0, 34, info @ ..] if kind & 0x7f == 0 && info.len() >= STREAMINFO_BYTES => {
                info
            }
            bare => bare,
        };
        let info: &[u8; STREAMINFO_BYTES] = info.first_chunk().ok_or(Error::Truncated)?;
        let mut bits = BitReader::new(info.get(10..).unwrap_or_default());
        let sample_rate = bits.bits(20)?;
        let channels = bits.bits(3)?.saturating_add(1) as u8;
        let bits_per_sample = bits.bits(5)?.saturating_add(1) as u8;
        if sample_rate == 0 {
            return Err(Error::Invalid("FLAC sampling rate"));
        }
        let record = [&BLOCK_HEADER[..], info].concat().into();
        Ok(Self { record, sample_rate, channels, bits_per_sample })
    }

    /// The header as Enhanced RTMP carries it.
    #[must_use]
    pub fn sequence_header(&self) -> Vec<u8> {
        [MAGIC, &self.record].concat()
    }
}

/// Samples per channel in the frame that `payload` is; `None` when it does not begin with one.
#[must_use]
pub fn samples(payload: &[u8]) -> Option<u32> {
    let [sync, strategy, codes, _, rest @ ..] = payload else { return None };
    if (*sync, strategy & 0xfe) != (0xff, 0xf8) {
        return None;
    }
    // The frame's or sample's number is coded like a character of UTF-8 (§9.1.5).
    let after_number = || {
        let len = match rest.first()?.leading_ones() {
            0 => 1,
            ones @ 2..=7 => ones as usize,
            _ => return None,
        };
        rest.get(len..)
    };
    match u32::from(codes >> 4) {
        1 => Some(192),
        code @ 2..=5 => Some(144_u32.wrapping_shl(code)),
        6 => after_number()?.first().map(|&less| u32::from(less).saturating_add(1)),
        7 => {
            let less = u16::from_be_bytes(*after_number()?.first_chunk()?);
            Some(u32::from(less).saturating_add(1))
        }
        code @ 8..=15 => Some(1_u32.wrapping_shl(code)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::{STREAMINFO, hex};

    #[test]
    fn streaminfo_in_every_form() {
        let bare = hex(STREAMINFO);
        let block = [&BLOCK_HEADER[..], &bare].concat();
        let whole = [MAGIC, &block].concat();
        let more = [&whole[..], &[4, 0, 0, 1, 0]].concat();
        for header in [&bare, &block, &whole, &more] {
            let config = Config::parse(header).unwrap();
            let said = (config.sample_rate, config.channels, config.bits_per_sample);
            assert_eq!(said, (48_000, 1, 16));
            assert_eq!(config.record, block);
            assert_eq!(config.sequence_header(), whole);
        }
        assert_eq!(Config::parse(&[]), Err(Error::Empty));
        assert_eq!(Config::parse(MAGIC), Err(Error::Empty));
        for len in 1..34 {
            assert_eq!(Config::parse(&bare[..len]), Err(Error::Truncated));
        }
        assert_eq!(Config::parse(&[0; 34]), Err(Error::Invalid("FLAC sampling rate")));
    }

    #[test]
    fn frame_lengths() {
        let table: &[(&str, Option<u32>)] = &[
            ("fff8aa0800ed", Some(1024)),
            ("fff81a0800", Some(192)),
            ("fff82a0800", Some(576)),
            ("fff85a0800", Some(4608)),
            ("fff8ca0800", Some(4096)),
            ("fff8fa0800", Some(32_768)),
            ("fff86a0800ff", Some(256)),
            ("fff86a08c280ff", Some(256)),
            ("fff97a08fe808080808080ffff", Some(65_536)),
            ("fff87a080001", None),
            ("fff86a08ff", None),
            ("fff80a0800", None),
            ("fff0aa0800", None),
            ("fff8", None),
            ("", None),
        ];
        for (frame, expected) in table {
            assert_eq!(samples(&hex(frame)), *expected, "{frame}");
        }
    }
}
