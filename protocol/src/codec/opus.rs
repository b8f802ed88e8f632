//! Opus: identification header (RFC 7845 §5.1) and packet durations (RFC 6716 §3.1).

use bytes::{Buf, Bytes};

use super::Error;

/// Opus always counts in 48 kHz (RFC 7845 §4).
pub const SAMPLE_RATE: u32 = 48_000;

/// No packet is longer: 120 ms (RFC 6716 §3.2.5).
const MAX_PACKET_SAMPLES: u32 = 5_760;
/// What libopus encoders need (RFC 7845 §5.1), for streams that do not say.
const DEFAULT_PRE_SKIP: u16 = 312;
const DOPS_BYTES: usize = 11;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The body of the `dOps` box (Opus in ISOBMFF §4.3.2).
    pub record: Bytes,
    pub channels: u8,
    pub pre_skip: u16,
}

impl Config {
    /// Reads an identification header (`OpusHead`), with or without its magic, or a `dOps` body.
    /// Fields that a short header leaves out take their usual values.
    ///
    /// # Errors
    /// When the header is empty, of a later major version, or without channels.
    pub fn parse(header: &[u8]) -> Result<Self, Error> {
        let mut rest = header.strip_prefix(b"OpusHead").unwrap_or(header);
        let version = rest.try_get_u8().map_err(|_| Error::Empty)?;
        // dOps has version 0 and is big-endian; OpusHead has version 1, up to 15 being compatible.
        let big_endian = version == 0;
        if version > 15 {
            return Err(Error::Unsupported("OpusHead version"));
        }
        let channels = rest.try_get_u8().map_err(|_| Error::Truncated)?;
        let Some(([p0, p1, r0, r1, r2, r3, g0, g1, mapping], table)) = rest.split_first_chunk()
        else {
            return Self::build(channels, DEFAULT_PRE_SKIP, SAMPLE_RATE, 0, (0, &[]));
        };
        let (pre_skip, rate, gain) = ([*p0, *p1], [*r0, *r1, *r2, *r3], [*g0, *g1]);
        let (pre_skip, rate, gain) = if big_endian {
            (u16::from_be_bytes(pre_skip), u32::from_be_bytes(rate), i16::from_be_bytes(gain))
        } else {
            (u16::from_le_bytes(pre_skip), u32::from_le_bytes(rate), i16::from_le_bytes(gain))
        };
        Self::build(channels, pre_skip, rate, gain, (*mapping, table))
    }

    /// The configuration of a stream that came without any header. Stereo decoders play mono
    /// packets as well, so nothing is lost.
    #[must_use]
    pub fn stereo() -> Self {
        let record = dops(2, DEFAULT_PRE_SKIP, SAMPLE_RATE, 0, 0);
        Self { record: record.into(), channels: 2, pre_skip: DEFAULT_PRE_SKIP }
    }

    /// The header in its own form, magic included, as Enhanced RTMP carries it.
    #[must_use]
    pub fn identification_header(&self) -> Vec<u8> {
        let mut header = b"OpusHead\x01".to_vec();
        let mut rest = self.record.get(1..).unwrap_or_default();
        // dOps has the same fields, big-endian.
        for field_bytes in [1, 2, 4, 2] {
            let (field, tail) = rest.split_at_checked(field_bytes).unwrap_or_default();
            header.extend(field.iter().rev());
            rest = tail;
        }
        header.extend_from_slice(rest);
        header
    }

    fn build(
        channels: u8,
        pre_skip: u16,
        input_rate: u32,
        gain: i16,
        (mapping, table): (u8, &[u8]),
    ) -> Result<Self, Error> {
        let mut record = dops(channels, pre_skip, input_rate, gain, mapping);
        match (mapping, channels) {
            (0, 1 | 2) => {}
            (0, _) | (_, 0) => return Err(Error::Invalid("Opus channel count")),
            // Stream count, coupled count and one byte for each channel.
            _ => {
                let len = usize::from(channels).saturating_add(2);
                record.extend_from_slice(table.get(..len).ok_or(Error::Truncated)?);
            }
        }
        Ok(Self { record: record.into(), channels, pre_skip })
    }
}

fn dops(channels: u8, pre_skip: u16, input_rate: u32, gain: i16, mapping: u8) -> Vec<u8> {
    let mut record = Vec::with_capacity(DOPS_BYTES);
    record.extend([0, channels]);
    record.extend(pre_skip.to_be_bytes());
    record.extend(input_rate.to_be_bytes());
    record.extend(gain.to_be_bytes());
    record.push(mapping);
    record
}

/// Samples per channel at 48 kHz in a packet (RFC 6716 §3.1); `None` when it is not valid.
#[must_use]
pub fn packet_samples(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    let duration = u32::from(toc >> 3 & 3);
    let frame = match toc >> 3 {
        // SILK: 10, 20, 40, 60 ms.
        0..=11 if duration == 3 => 2_880,
        0..=11 => 480_u32.wrapping_shl(duration),
        // Hybrid: 10, 20 ms.
        12..=15 => 480_u32.wrapping_shl(duration & 1),
        // CELT: 2.5, 5, 10, 20 ms.
        _ => 120_u32.wrapping_shl(duration),
    };
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    let samples = frame.saturating_mul(frames);
    (1..=MAX_PACKET_SAMPLES).contains(&samples).then_some(samples)
}
