//! Transport packets (ISO 13818-1 §2.4.3).

use bytes::Bytes;
use weir_protocol::media::Ticks;
use weir_protocol::pool::{Pool, Region};

use crate::limits;

pub const PACKET_BYTES: usize = 188;

/// Bytes after the 4-byte header.
const BODY_BYTES: usize = 184;

/// Longest adaptation field that is asked for: length, flags, PCR.
const CLOCK_FIELD_BYTES: usize = 8;

const DISCONTINUITY: u8 = 0x80;
const RANDOM_ACCESS: u8 = 0x40;
const HAS_PCR: u8 = 0x10;

/// What the adaptation field of a unit's first packet says (§2.4.3.4).
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptation {
    pub pcr: Option<Ticks>,
    pub random_access: bool,
    pub discontinuity: bool,
}

impl Adaptation {
    fn flags(self) -> u8 {
        let mut flags = 0;
        if self.discontinuity {
            flags |= DISCONTINUITY;
        }
        if self.random_access {
            flags |= RANDOM_ACCESS;
        }
        if self.pcr.is_some() {
            flags |= HAS_PCR;
        }
        flags
    }

    fn len(self) -> usize {
        match (self.pcr, self.flags()) {
            (Some(_), _) => CLOCK_FIELD_BYTES,
            (None, 0) => 0,
            (None, _) => 2,
        }
    }

    /// Packets that a unit of `len` bytes takes behind this field.
    pub fn packets(self, len: usize) -> u64 {
        let first = BODY_BYTES.saturating_sub(self.len());
        let rest = len.saturating_sub(first).div_ceil(BODY_BYTES);
        (rest as u64).saturating_add(1)
    }
}

/// Takes whole packets' worth of bytes into regions of a pool.
pub struct PacketWriter<'p, P: Pool> {
    pool: &'p mut P,
    region: Option<P::Region>,
    packets_left: u64,
    out: Vec<Bytes>,
}

impl<'p, P: Pool> PacketWriter<'p, P> {
    /// For exactly `packets` packets.
    pub fn new(pool: &'p mut P, packets: u64) -> Self {
        Self { pool, region: None, packets_left: packets, out: Vec::new() }
    }

    pub fn finish(mut self) -> Vec<Bytes> {
        self.out.extend(self.region.take().map(Region::freeze));
        self.out
    }

    /// A table's section, filled up to a whole packet (§2.4.4).
    pub fn section(&mut self, pid: u16, counter: &mut u8, section: &[u8]) -> Option<()> {
        let region = self.room()?;
        region.put(&header(pid, true, 0x10 | next(counter)));
        region.put(section);
        let padding = BODY_BYTES.saturating_sub(section.len());
        region.put(FILLER.get(..padding)?);
        Some(())
    }

    /// A packet with a PCR and no payload; the counter stands still (§2.4.3.3).
    pub fn clock(&mut self, pid: u16, counter: u8, adaptation: Adaptation) -> Option<()> {
        // The last payload-bearing packet's number is repeated.
        let number = counter.wrapping_sub(1) & 0x0f;
        let region = self.room()?;
        region.put(&header(pid, false, 0x20 | number));
        put_adaptation(region, adaptation, BODY_BYTES);
        Some(())
    }

    /// Starts a unit (a PES packet) of exactly `len` bytes.
    pub fn unit<'w>(
        &'w mut self,
        pid: u16,
        counter: &'w mut u8,
        adaptation: Adaptation,
        len: usize,
    ) -> UnitWriter<'w, 'p, P> {
        UnitWriter { packets: self, pid, counter, first: Some(adaptation), left: len, room: 0 }
    }

    /// The region with room for one more packet.
    fn room(&mut self) -> Option<&mut P::Region> {
        let full = self.region.as_ref().is_none_or(|region| region.remaining() < PACKET_BYTES);
        if full {
            self.out.extend(self.region.take().map(Region::freeze));
            let most = (limits::TS_REGION_BYTES / PACKET_BYTES) as u64;
            let packets = usize::try_from(self.packets_left.clamp(1, most)).ok()?;
            self.region = Some(self.pool.reserve(packets.checked_mul(PACKET_BYTES)?)?);
        }
        self.packets_left = self.packets_left.saturating_sub(1);
        self.region.as_mut()
    }
}

/// Spreads one unit over packets.
pub struct UnitWriter<'w, 'p, P: Pool> {
    packets: &'w mut PacketWriter<'p, P>,
    pid: u16,
    counter: &'w mut u8,
    /// Still to be said, in the first packet.
    first: Option<Adaptation>,
    left: usize,
    /// Payload bytes that the current packet still takes.
    room: usize,
}

impl<P: Pool> UnitWriter<'_, '_, P> {
    /// The unit's next bytes. `None` when the pool is used up.
    pub fn put(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            if self.room == 0 {
                self.start_packet()?;
            }
            let (now, later) = bytes.split_at_checked(self.room).unwrap_or((bytes, &[]));
            self.packets.region.as_mut()?.put(now);
            self.room = self.room.saturating_sub(now.len());
            self.left = self.left.saturating_sub(now.len());
            bytes = later;
        }
        Some(())
    }

    fn start_packet(&mut self) -> Option<()> {
        let is_first = self.first.is_some();
        let adaptation = self.first.take().unwrap_or_default();
        let capacity = BODY_BYTES.saturating_sub(adaptation.len());
        let payload = self.left.min(capacity);
        let field = BODY_BYTES.saturating_sub(payload);
        let control = if field == 0 { 0x10 } else { 0x30 };
        let region = self.packets.room()?;
        region.put(&header(self.pid, is_first, control | next(self.counter)));
        put_adaptation(region, adaptation, field);
        self.room = payload;
        Some(())
    }
}

const FILLER: [u8; BODY_BYTES] = [0xff; BODY_BYTES];

fn header(pid: u16, unit_start: bool, control: u8) -> [u8; 4] {
    let [high, low] = (pid & 0x1fff).to_be_bytes();
    [0x47, if unit_start { 0x40 | high } else { high }, low, control]
}

/// This packet's continuity counter, and moves on.
fn next(counter: &mut u8) -> u8 {
    let number = *counter & 0x0f;
    *counter = number.wrapping_add(1) & 0x0f;
    number
}

/// An adaptation field of exactly `len` bytes with its length byte; stuffing fills it.
fn put_adaptation(region: &mut impl Region, adaptation: Adaptation, len: usize) {
    let Some(after_length) = len.checked_sub(1) else { return };
    region.put(&[u8::try_from(after_length).unwrap_or(u8::MAX)]);
    let Some(mut stuffing) = after_length.checked_sub(1) else { return };
    region.put(&[adaptation.flags()]);
    if let Some(pcr) = adaptation.pcr {
        region.put(&pcr_field(pcr));
        stuffing = stuffing.saturating_sub(6);
    }
    region.put(FILLER.get(..stuffing).unwrap_or_default());
}

/// 33 bits of 90 kHz, 6 reserved bits, 9 bits of 27 MHz extension: zero (§2.4.3.5).
fn pcr_field(at: Ticks) -> [u8; 6] {
    let base = wrap33(at);
    let bits = base << 15 | 0x7e00;
    let [_, _, rest @ ..] = bits.to_be_bytes();
    rest
}

/// PTS, DTS and PCR count modulo 2^33 (§2.4.3.7).
pub fn wrap33(at: Ticks) -> u64 {
    at.0 as u64 & 0x1_ffff_ffff
}
