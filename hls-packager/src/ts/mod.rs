//! MPEG-2 transport stream (ISO 13818-1) for players that know no fMP4.
//!
//! A part's transport stream is a [`Schedule`] of items. Closing the part only counts the items'
//! packets, so that the next part knows its continuity counters; writing walks the same schedule.

mod layout;
mod nal;
mod packet;
mod pes;
mod psi;
mod schedule;

use bytes::Bytes;
use weir_protocol::media::Ticks;
use weir_protocol::pool::Pool;

pub(crate) use layout::Layout;
pub use layout::Missing;
pub(crate) use packet::PACKET_BYTES;

use crate::part::Draft;
use packet::PacketWriter;
use schedule::Schedule;

/// Where a transport stream stands between two parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    counters: Counters,
    /// The newest PCR, in the time of the DTS that it goes before.
    clock: Option<Ticks>,
    /// This segment had a picture with parameter sets.
    introduced: bool,
}

/// The next continuity counter of each PID (ISO 13818-1 §2.4.3.3).
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    pat: u8,
    pmt: u8,
    video: u8,
    audio: u8,
}

/// Packets in the part's transport stream; moves `state` past them.
pub(crate) fn count(draft: &Draft, state: &mut State) -> u64 {
    let mut schedule = Schedule::new(draft, *state);
    let mut packets = 0_u64;
    for item in &mut schedule {
        packets = packets.saturating_add(item.count(draft.epoch.ts(), &mut state.counters));
    }
    (state.clock, state.introduced) = schedule.end();
    packets
}

/// The part's transport stream, or `None` when `pool` is used up.
pub(crate) fn write(
    draft: &Draft,
    state: State,
    packets: u64,
    pool: &mut impl Pool,
) -> Option<Vec<Bytes>> {
    let mut writer = PacketWriter::new(pool, packets);
    let mut counters = state.counters;
    for item in Schedule::new(draft, state) {
        item.write(draft.epoch.ts(), &mut counters, &mut writer)?;
    }
    Some(writer.finish())
}
