//! AAC: AudioSpecificConfig (ISO 14496-3 §1.6.2.1).

use bytes::Bytes;

use super::Error;
use super::bits::BitReader;
use crate::media::Ticks;

/// ISO 14496-3 table 1.18
const SAMPLE_RATES: [u32; 13] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
    7_350,
];

/// Audio object types (ISO 14496-3 table 1.17).
mod object_type {
    pub(super) const MAIN: u8 = 1;
    pub(super) const LTP: u8 = 4;
    pub(super) const SBR: u8 = 5;
    pub(super) const SCALABLE: u8 = 6;
    pub(super) const ER_LC: u8 = 17;
    pub(super) const ER_BSAC: u8 = 22;
    pub(super) const ER_LD: u8 = 23;
    pub(super) const PS: u8 = 29;
    pub(super) const ESCAPE: u8 = 31;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The AudioSpecificConfig as it came.
    pub record: Bytes,
    /// Audio object type of the outermost configuration: 2 LC, 5 HE-AAC (SBR), 29 HE-AAC v2 (PS).
    pub object_type: u8,
    /// Core sampling rate in Hz: the clock that frames count in.
    pub sample_rate: u32,
    pub channels: u8,
    /// Core samples per frame: 1024 or 960.
    pub frame_samples: u32,
}

impl Config {
    /// Reads an AudioSpecificConfig.
    ///
    /// # Errors
    /// When it is empty, as some encoders send it first, cut off, or not of the AAC family.
    pub fn parse(record: &[u8]) -> Result<Self, Error> {
        if record.is_empty() {
            return Err(Error::Empty);
        }
        let core = Core::parse(record)?;
        let parametric_stereo = core.outer_object_type == object_type::PS;
        Ok(Self {
            record: Bytes::copy_from_slice(record),
            object_type: core.outer_object_type,
            sample_rate: core.sample_rate,
            channels: if parametric_stereo { 2 } else { core.channels },
            frame_samples: core.frame_samples,
        })
    }

    /// The configuration that a frame's ADTS header tells; `None` of a frame without one.
    ///
    /// # Errors
    /// When it tells too little: channels that stand in a program_config_element, for example.
    pub fn from_adts(frame: &[u8]) -> Option<Result<Self, Error>> {
        AdtsHeader::of(frame)?;
        let [_, _, profile, channels, ..] = *frame.first_chunk::<7>()?;
        // Profile, sampling rate and channels, as an AudioSpecificConfig orders them.
        let object_type = u16::from(profile >> 6).saturating_add(1);
        let rate = u16::from(profile >> 2 & 0xf);
        let channels = u16::from(profile & 1) << 2 | u16::from(channels >> 6);
        if channels == 0 {
            return Some(Err(Error::Unsupported("channel configuration in ADTS")));
        }
        let record = object_type << 11 | rate << 7 | channels << 3;
        Some(Self::parse(&record.to_be_bytes()))
    }

    #[must_use]
    pub fn rfc6381(&self) -> String {
        format!("mp4a.40.{}", self.object_type)
    }

    /// The ADTS header of a frame with `payload_len` bytes (ISO 14496-3 §1.A.3.2.1), as TS wants
    /// it; `None` where ADTS has no room for this configuration or length. Channels that only a
    /// program_config_element describes are such a case.
    #[must_use]
    pub fn adts_header(&self, payload_len: usize) -> Option<[u8; 7]> {
        let core = Core::parse(&self.record).ok()?;
        let profile = core.object_type.checked_sub(1).filter(|profile| *profile < 4)?;
        let rate = SAMPLE_RATES.iter().position(|rate| *rate == core.sample_rate)? as u8;
        let channels = Some(core.channel_configuration).filter(|code| (1..=7).contains(code))?;
        let len = payload_len.checked_add(7).and_then(|len| u16::try_from(len).ok())?;
        if len > 0x1fff || core.frame_samples != 1024 {
            return None;
        }
        Some([
            0xff,
            0xf1,
            profile << 6 | rate << 2 | channels >> 2,
            channels << 6 | (len >> 11) as u8,
            (len >> 3) as u8,
            (len << 5) as u8 | 0x1f,
            0xfc,
        ])
    }
}

/// ADTS frames of one message. Encoders that collect them send some ten.
const MAX_ADTS_FRAMES: u8 = 64;
/// Core samples of each: ADTS knows no others.
const ADTS_FRAME_SAMPLES: i64 = 1024;

/// The frames of a message, each with how much later than the first it is: the one that FLV has room
/// for, or several with ADTS headers, as some encoders send them. Nothing is copied.
///
/// Ends with an error where ADTS headers begin and what they tell of is not whole.
pub fn frames(data: Bytes) -> impl Iterator<Item = Result<(Ticks, Bytes), Error>> {
    let (mut rest, mut count) = (Some(data), 0_u8);
    std::iter::from_fn(move || {
        let mut data = rest.take()?;
        let before = count;
        count = count.saturating_add(1);
        let header = match AdtsHeader::read(&data) {
            None if before == 0 => return Some(Ok((Ticks::ZERO, data))),
            Some(header) if before < MAX_ADTS_FRAMES && header.fits(&data) => header,
            _ => return Some(Err(Error::Truncated)),
        };
        let frame = data.split_to(header.frame_bytes);
        rest = Some(data).filter(|data| !data.is_empty());
        let samples = ADTS_FRAME_SAMPLES.saturating_mul(before.into());
        Some(Ok((Ticks::from_rate(samples, header.sample_rate), frame)))
    })
}

/// A raw frame without the ADTS header that some encoders leave before it. Nothing is copied.
#[must_use]
pub fn without_adts(payload: Bytes) -> Bytes {
    match AdtsHeader::of(&payload) {
        Some(header) => payload.slice(header.header_bytes..),
        _ => payload,
    }
}

/// What Weir reads of the header of an ADTS frame (ISO 14496-3 §1.A.2.2).
struct AdtsHeader {
    /// 0 where it tells none.
    sample_rate: u32,
    header_bytes: usize,
    /// Of the frame, the header among them.
    frame_bytes: usize,
}

impl AdtsHeader {
    /// `None` where there is none. A raw frame cannot look like one: it would end before it begins.
    fn read(bytes: &[u8]) -> Option<Self> {
        let [sync, flags, profile, len_high, len_mid, len_low, _] = bytes.first_chunk()?;
        let len = u32::from_be_bytes([0, *len_high & 3, *len_mid, *len_low]) >> 5;
        (*sync == 0xff && flags & 0xf6 == 0xf0).then_some(Self {
            sample_rate: SAMPLE_RATES.get(usize::from(profile >> 2 & 0xf)).copied().unwrap_or(0),
            header_bytes: if flags & 1 == 1 { 7 } else { 9 },
            frame_bytes: usize::try_from(len).ok()?,
        })
    }

    /// The header of a payload that is one frame and nothing else.
    fn of(payload: &[u8]) -> Option<Self> {
        Self::read(payload)
            .filter(|header| header.fits(payload) && header.frame_bytes == payload.len())
    }

    /// Whether the frame is there, and something in it.
    fn fits(&self, bytes: &[u8]) -> bool {
        let lens = self.header_bytes.saturating_add(1)..=bytes.len();
        self.sample_rate > 0 && lens.contains(&self.frame_bytes)
    }
}

/// The fields of the record, of the core coder unless they say otherwise.
struct Core {
    outer_object_type: u8,
    object_type: u8,
    sample_rate: u32,
    channel_configuration: u8,
    channels: u8,
    frame_samples: u32,
}

impl Core {
    fn parse(record: &[u8]) -> Result<Self, Error> {
        let mut bits = BitReader::new(record);
        let outer_object_type = read_object_type(&mut bits)?;
        let sample_rate = read_sample_rate(&mut bits)?;
        let channel_configuration = bits.bits8(4)?;
        let mut core = Self {
            outer_object_type,
            object_type: outer_object_type,
            sample_rate,
            channel_configuration,
            channels: channel_count(channel_configuration)?,
            frame_samples: 1024,
        };
        // Hierarchical signalling of SBR and PS.
        if matches!(outer_object_type, object_type::SBR | object_type::PS) {
            read_sample_rate(&mut bits)?;
            core.object_type = read_object_type(&mut bits)?;
            if core.object_type == object_type::ER_BSAC {
                bits.skip(4)?;
            }
        }
        core.read_general_audio(&mut bits)?;
        core.read_sync_extension(&mut bits);
        Ok(core)
    }

    /// GASpecificConfig (ISO 14496-3 §4.4.1).
    fn read_general_audio(&mut self, bits: &mut BitReader<'_>) -> Result<(), Error> {
        let kind = self.object_type;
        let error_resilient =
            (object_type::ER_LC..=object_type::ER_LD).contains(&kind) && kind != 18;
        if !matches!(kind, object_type::MAIN..=object_type::LTP | object_type::SCALABLE | 7)
            && !error_resilient
        {
            return Err(Error::Unsupported("audio object type"));
        }
        let short_frames = bits.flag()?;
        self.frame_samples = match (kind == object_type::ER_LD, short_frames) {
            (false, false) => 1024,
            (false, true) => 960,
            (true, false) => 512,
            (true, true) => 480,
        };
        if bits.flag()? {
            bits.skip(14)?;
        }
        let extension = bits.flag()?;
        if self.channel_configuration == 0 {
            self.channels = read_program_config(bits)?;
        }
        if matches!(kind, object_type::SCALABLE | 20) {
            bits.skip(3)?;
        }
        if extension {
            if kind == object_type::ER_BSAC {
                bits.skip(5 + 11)?;
            }
            if matches!(kind, object_type::ER_LC | 19 | 20 | object_type::ER_LD) {
                bits.skip(3)?;
            }
            bits.skip(1)?;
        }
        Ok(())
    }

    /// Backward compatible signalling of SBR and PS behind the core (ISO 14496-3 §1.6.2.1). What
    /// can't be read there is padding.
    fn read_sync_extension(&mut self, bits: &mut BitReader<'_>) {
        if self.outer_object_type != self.object_type || bits.bits_left() < 16 {
            return;
        }
        if bits.bits(11) != Ok(0x2b7) || read_object_type(bits) != Ok(object_type::SBR) {
            return;
        }
        if bits.flag() != Ok(true) || read_sample_rate(bits).is_err() {
            return;
        }
        self.outer_object_type = object_type::SBR;
        if bits.bits_left() >= 12 && bits.bits(11) == Ok(0x548) && bits.flag() == Ok(true) {
            self.outer_object_type = object_type::PS;
        }
    }
}

fn read_object_type(bits: &mut BitReader<'_>) -> Result<u8, Error> {
    match bits.bits8(5)? {
        0 => Err(Error::Invalid("audio object type")),
        object_type::ESCAPE => Ok(bits.bits8(6)?.saturating_add(32)),
        kind => Ok(kind),
    }
}

fn read_sample_rate(bits: &mut BitReader<'_>) -> Result<u32, Error> {
    let rate = match bits.bits8(4)? {
        15 => bits.bits(24)?,
        index => SAMPLE_RATES.get(usize::from(index)).copied().unwrap_or(0),
    };
    if (1_000..=192_000).contains(&rate) { Ok(rate) } else { Err(Error::Invalid("sampling rate")) }
}

/// ISO 14496-3 table 1.19; 0 stands for a program_config_element.
fn channel_count(configuration: u8) -> Result<u8, Error> {
    match configuration {
        0..=6 => Ok(configuration),
        7 | 12 | 14 => Ok(8),
        11 => Ok(7),
        13 => Ok(24),
        _ => Err(Error::Invalid("channel configuration")),
    }
}

/// Channels of a program_config_element, read to its end (ISO 14496-3 §4.4.1.1).
fn read_program_config(bits: &mut BitReader<'_>) -> Result<u8, Error> {
    bits.skip(4 + 2 + 4)?;
    let (front, side, back) = (bits.bits8(4)?, bits.bits8(4)?, bits.bits8(4)?);
    let (lfe, data, coupling) = (bits.bits8(2)?, bits.bits8(3)?, bits.bits8(4)?);
    for mixdown_bits in [4, 4, 3] {
        if bits.flag()? {
            bits.skip(mixdown_bits)?;
        }
    }
    let mut channels = lfe;
    for _ in 0..front.saturating_add(side).saturating_add(back) {
        let pair = bits.flag()?;
        bits.skip(4)?;
        channels = channels.saturating_add(1).saturating_add(u8::from(pair));
    }
    let [lfe, data, coupling] = [lfe, data, coupling].map(usize::from);
    let tag_bits = lfe.saturating_add(data).saturating_mul(4);
    bits.skip(tag_bits.saturating_add(coupling.saturating_mul(5)))?;
    bits.skip(bits.bits_left() & 7)?;
    let comment_bytes = bits.bits8(8)?;
    bits.skip(usize::from(comment_bytes).saturating_mul(8))?;
    if channels == 0 { Err(Error::Invalid("program_config_element")) } else { Ok(channels) }
}
