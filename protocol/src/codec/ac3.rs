//! AC-3 and E-AC-3: what their frames tell of themselves (ETSI TS 102 366 §4.3, annex E §E.1.2).

use bytes::Bytes;

use super::Error;
use super::bits::BitReader;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The body of the `dac3` or `dec3` box (annex F).
    pub record: Bytes,
    pub sample_rate: u32,
    /// Of the first substream, the low-frequency one included.
    pub channels: u8,
    /// E-AC-3.
    pub is_enhanced: bool,
}

const SYNC_WORD: u32 = 0x0b77;
const BLOCK_SAMPLES: u32 = 256;
const RATES: [u32; 3] = [48_000, 44_100, 32_000];
const AC3_KBPS: [u32; 19] =
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
/// By audio coding mode.
const CHANNELS: [u8; 8] = [2, 1, 2, 3, 3, 4, 4, 5];
/// Greatest bitstream identification of AC-3; those of E-AC-3 go up to 16.
const LAST_AC3: u32 = 10;
const FIRST_EAC3: u32 = 11;
const LAST_EAC3: u32 = 16;

impl Config {
    /// The configuration that the first frame of an access unit tells.
    ///
    /// # Errors
    /// When it does not begin with a frame.
    pub fn from_access_unit(payload: &[u8]) -> Result<Self, Error> {
        let frame = Frame::parse(payload)?;
        let record = if frame.is_enhanced { frame.dec3() } else { frame.dac3() };
        let channels = CHANNELS.get(frame.coding_mode as usize).copied().unwrap_or(2);
        Ok(Self {
            record: record.into(),
            sample_rate: frame.sample_rate,
            channels: channels.saturating_add(frame.low_frequency as u8),
            is_enhanced: frame.is_enhanced,
        })
    }

    /// Whether the access unit says nothing that this configuration does not. The bit rate may change
    /// from frame to frame.
    #[must_use]
    pub fn covers(&self, payload: &[u8]) -> bool {
        Self::from_access_unit(payload).is_ok_and(|said| {
            let format = |config: &Self| (config.sample_rate, config.channels, config.is_enhanced);
            format(self) == format(&said)
        })
    }
}

/// Samples per channel in an access unit: those of its frames of the first substream, which others
/// accompany. `None` when it does not begin with a frame.
#[must_use]
pub fn samples(payload: &[u8]) -> Option<u32> {
    let (mut rest, mut samples) = (payload, 0_u32);
    while let Ok(frame) = Frame::parse(rest) {
        if frame.is_first_substream {
            samples = samples.saturating_add(frame.samples);
        }
        rest = rest.get(frame.bytes..).unwrap_or_default();
    }
    (samples > 0).then_some(samples)
}

/// A synchronization frame's header.
struct Frame {
    is_enhanced: bool,
    is_first_substream: bool,
    rate_code: u32,
    sample_rate: u32,
    samples: u32,
    bytes: usize,
    bitstream_id: u32,
    bitstream_mode: u32,
    coding_mode: u32,
    low_frequency: u32,
    /// Of AC-3.
    bit_rate_code: u32,
}

impl Frame {
    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut bits = BitReader::new(bytes);
        if bits.bits(16)? != SYNC_WORD {
            return Err(Error::Invalid("AC-3 sync word"));
        }
        // Both forms have their identification in the same place.
        let bitstream_id = u32::from(bytes.get(5).ok_or(Error::Truncated)? >> 3);
        match bitstream_id {
            ..=LAST_AC3 => Self::parse_ac3(bits, bitstream_id),
            FIRST_EAC3..=LAST_EAC3 => Self::parse_eac3(bits, bitstream_id),
            _ => Err(Error::Unsupported("AC-3 bitstream")),
        }
    }

    fn parse_ac3(mut bits: BitReader, bitstream_id: u32) -> Result<Self, Error> {
        bits.bits(16)?; // checksum
        let rate_code = bits.bits(2)?;
        let size_code = bits.bits(6)?;
        bits.bits(5)?;
        let bitstream_mode = bits.bits(3)?;
        let coding_mode = bits.bits(3)?;
        // Mix levels of centre and surround, or the surround mode of stereo.
        for present in
            [coding_mode & 1 == 1 && coding_mode != 1, coding_mode & 4 != 0, coding_mode == 2]
        {
            if present {
                bits.bits(2)?;
            }
        }
        let low_frequency = bits.bits(1)?;
        let rate = *RATES.get(rate_code as usize).ok_or(Error::Invalid("sampling rate"))?;
        let kbps = *AC3_KBPS.get(size_code as usize >> 1).ok_or(Error::Invalid("bit rate"))?;
        let samples = BLOCK_SAMPLES.saturating_mul(6);
        // 16-bit words at the bit rate; at 44.1 kHz every other frame has one more.
        let words = kbps.saturating_mul(1000).saturating_mul(samples >> 4).checked_div(rate);
        let odd = if rate_code == 1 { size_code & 1 } else { 0 };
        let words = words.unwrap_or_default().saturating_add(odd);
        Ok(Self {
            is_enhanced: false,
            is_first_substream: true,
            rate_code,
            // Identifications above 8 halve the rate, once or twice.
            sample_rate: rate.wrapping_shr(bitstream_id.saturating_sub(8)),
            samples,
            bytes: words.saturating_mul(2) as usize,
            bitstream_id,
            bitstream_mode,
            coding_mode,
            low_frequency,
            bit_rate_code: size_code >> 1,
        })
    }

    fn parse_eac3(mut bits: BitReader, bitstream_id: u32) -> Result<Self, Error> {
        const DEPENDENT: u32 = 1;
        const BLOCKS: [u32; 4] = [1, 2, 3, 6];

        let kind = bits.bits(2)?;
        let substream = bits.bits(3)?;
        let words = bits.bits(11)?.saturating_add(1);
        let rate_code = bits.bits(2)?;
        let second = bits.bits(2)?;
        let invalid = Error::Invalid("sampling rate");
        let (sample_rate, blocks) = match RATES.get(rate_code as usize) {
            Some(rate) => (*rate, BLOCKS.get(second as usize).copied().unwrap_or(6)),
            None => (RATES.get(second as usize).ok_or(invalid)? >> 1, 6),
        };
        Ok(Self {
            is_enhanced: true,
            is_first_substream: kind != DEPENDENT && substream == 0,
            rate_code,
            sample_rate,
            samples: BLOCK_SAMPLES.saturating_mul(blocks),
            bytes: words.saturating_mul(2) as usize,
            bitstream_id,
            bitstream_mode: 0,
            coding_mode: bits.bits(3)?,
            low_frequency: bits.bits(1)?,
            bit_rate_code: 0,
        })
    }

    /// §F.4.
    fn dac3(&self) -> Vec<u8> {
        let fields = self.rate_code << 22
            | self.bitstream_id << 17
            | self.bitstream_mode << 14
            | self.coding_mode << 11
            | self.low_frequency << 10
            | self.bit_rate_code << 5;
        let [_, record @ ..] = fields.to_be_bytes();
        record.to_vec()
    }

    /// §F.6, for one independent substream without dependent ones.
    fn dec3(&self) -> Vec<u8> {
        let bits_per_second = u64::from(self.sample_rate)
            .saturating_mul(self.bytes as u64)
            .saturating_mul(8)
            .checked_div(self.samples.into());
        let kbps = (bits_per_second.unwrap_or_default() / 1000).min(0x1fff) as u16;
        let substream = self.rate_code << 22
            | self.bitstream_id << 17
            | self.bitstream_mode << 12
            | self.coding_mode << 9
            | self.low_frequency << 8;
        let [_, substream @ ..] = substream.to_be_bytes();
        [&(kbps << 3).to_be_bytes()[..], &substream].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::{AC3, EAC3, hex};

    #[test]
    fn configurations() {
        let ac3 = Config::from_access_unit(&hex(AC3)).unwrap();
        assert_eq!((ac3.sample_rate, ac3.channels, ac3.is_enhanced), (48_000, 1, false));
        // 48 kHz, bsid 8, mode 0, one front channel, no low-frequency one, 96 kbit/s.
        assert_eq!(ac3.record, hex("1008c0"));
        let eac3 = Config::from_access_unit(&hex(EAC3)).unwrap();
        assert_eq!((eac3.sample_rate, eac3.channels, eac3.is_enhanced), (48_000, 1, true));
        // 96 kbit/s, one substream: 48 kHz, bsid 16, one front channel.
        assert_eq!(eac3.record, hex("0300200200"));
        assert!(ac3.covers(&hex(AC3)) && !ac3.covers(&hex(EAC3)) && !ac3.covers(&[]));
        let surround = [&hex("0b77000014")[..], &[8 << 3, 0b1110_0001, 0, 0]].concat();
        assert_eq!(Config::from_access_unit(&surround).unwrap().channels, 6);
    }

    #[test]
    fn frames_of_an_access_unit() {
        let frame = |head: &str, bytes: usize| {
            let mut frame = hex(head);
            frame.resize(bytes, 0);
            frame
        };
        assert_eq!(samples(&frame(AC3, 384)), Some(1536));
        assert_eq!(samples(&[frame(AC3, 384), frame(AC3, 384)].concat()), Some(3072));
        assert_eq!(samples(&frame(EAC3, 384)), Some(1536));
        // A dependent substream adds channels, not time.
        let mut dependent = frame(EAC3, 384);
        dependent[2] |= 0x40;
        assert_eq!(samples(&[frame(EAC3, 384), dependent].concat()), Some(1536));
        // At 44.1 kHz frames of 128 kbit/s have 278 or 279 words; 32 kHz of 640 kbit/s 1920.
        for (code, bytes) in [(0x40 | 16, 556), (0x40 | 17, 558), (0x80 | 37, 3840)] {
            let mut odd = hex(AC3);
            odd[4] = code;
            assert_eq!(Frame::parse(&odd).unwrap().bytes, bytes);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let mut reserved = hex(AC3);
        reserved[4] = 0xff;
        let mut later = hex(AC3);
        later[5] = 17 << 3;
        for (frame, error) in [
            (hex("0b78480d0c402f842b"), Error::Invalid("AC-3 sync word")),
            (reserved, Error::Invalid("sampling rate")),
            (later, Error::Unsupported("AC-3 bitstream")),
            (hex(AC3)[..5].to_vec(), Error::Truncated),
            (vec![], Error::Truncated),
        ] {
            assert_eq!(Config::from_access_unit(&frame).unwrap_err(), error);
            assert_eq!(samples(&frame), None);
        }
    }
}
