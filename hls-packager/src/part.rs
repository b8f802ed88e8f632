use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use weir_protocol::media::Ticks;
use weir_protocol::pool::Pool;

use crate::{Epoch, fmp4, ts};

/// One access unit with its place in the containers.
#[derive(Debug)]
pub(crate) struct Sample {
    pub payload: Bytes,
    pub keyframe: bool,
    /// Decoding time on the stream's timeline, counted from [`crate::limits::ORIGIN`].
    pub at: Ticks,
    pub pts: Ticks,
    /// Decoding time in a transport stream: strictly rising and not above `ts_pts`.
    pub ts_dts: Ticks,
    pub ts_pts: Ticks,
    /// `at` on the track's own clock: 90 kHz for video, the sample rate for audio.
    pub position: i64,
    /// On the track's own clock.
    pub duration: u32,
    /// Units per second of the track's own clock.
    pub rate: u32,
}

impl Sample {
    pub fn composition_offset(&self) -> i32 {
        let offset = (self.pts - self.at).0;
        i32::try_from(offset).unwrap_or(if offset < 0 { i32::MIN } else { i32::MAX })
    }

    /// Position of the sample after this one, if nothing is between.
    pub fn end(&self) -> i64 {
        self.position.saturating_add(i64::from(self.duration))
    }

    /// [`Sample::end`] on the stream's timeline.
    pub fn end_at(&self) -> Ticks {
        Ticks::from_rate(self.end(), self.rate)
    }
}

/// What a part is made of, before it is one.
#[derive(Debug)]
pub(crate) struct Draft {
    pub epoch: Arc<Epoch>,
    pub msn: u64,
    pub index: u32,
    /// `mfhd` sequence number: counts the stream's parts.
    pub sequence: u32,
    pub start: Ticks,
    pub duration: Ticks,
    pub video: Vec<Sample>,
    pub audio: Vec<Sample>,
    /// The first part after a break in the timeline.
    pub discontinuity: bool,
}

impl Draft {
    fn fmp4_audio(&self) -> &[Sample] {
        if self.epoch.missing_in_fmp4().is_some() { &[] } else { &self.audio }
    }
}

fn payload_len(samples: &[Sample]) -> u64 {
    samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.payload.len() as u64))
}

/// A partial segment: about 200 ms of all tracks.
///
/// Closing it recorded access units and boundaries only. Its bytes are made when first asked for,
/// by whichever core was asked, and kept as long as the part is.
#[derive(Debug)]
pub struct Part {
    draft: Draft,
    independent: bool,
    payload_bytes: u64,
    fmp4_len: u64,
    ts_start: ts::State,
    ts_packets: u64,
    fmp4: OnceLock<Box<[Bytes]>>,
    ts: OnceLock<Box<[Bytes]>>,
}

impl Part {
    /// Closes a part. `ts_state` is where the transport stream stands, and is moved past the part.
    pub(crate) fn close(draft: Draft, ts_state: &mut ts::State) -> Self {
        let payload_bytes = payload_len(&draft.video).saturating_add(payload_len(&draft.audio));
        let fmp4_audio = draft.fmp4_audio();
        let head_len = fmp4::head_len(&draft.video, fmp4_audio) as u64;
        let fmp4_len = payload_len(&draft.video)
            .saturating_add(payload_len(fmp4_audio))
            .saturating_add(head_len);
        let independent = match draft.epoch.video() {
            Some(_) => draft.video.iter().any(|sample| sample.keyframe),
            None => true,
        };
        let ts_start = *ts_state;
        let ts_packets = ts::count(&draft, ts_state);
        Self {
            draft,
            independent,
            payload_bytes,
            fmp4_len,
            ts_start,
            ts_packets,
            fmp4: OnceLock::new(),
            ts: OnceLock::new(),
        }
    }

    /// Media sequence number of the segment that this part belongs to.
    #[must_use]
    pub fn msn(&self) -> u64 {
        self.draft.msn
    }

    /// Position within its segment, from 0.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.draft.index
    }

    #[must_use]
    pub fn epoch(&self) -> &Arc<Epoch> {
        &self.draft.epoch
    }

    #[must_use]
    pub fn duration(&self) -> Ticks {
        self.draft.duration
    }

    pub(crate) fn end(&self) -> Ticks {
        self.draft.start + self.draft.duration
    }

    /// A player can start with this part (rfc8216bis §4.4.4.9).
    #[must_use]
    pub fn is_independent(&self) -> bool {
        self.independent
    }

    /// [`Part::is_independent`], and nothing comes before the keyframe.
    pub(crate) fn begins_independent(&self) -> bool {
        let pictures = self.draft.epoch.video().map(|_| self.draft.video.first());
        pictures.is_none_or(|first| first.is_some_and(|picture| picture.keyframe))
    }

    /// Bytes of access units that this part keeps alive.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    pub(crate) fn units(&self) -> usize {
        self.draft.video.len().saturating_add(self.draft.audio.len())
    }

    /// How many pictures there are, and how long they last.
    pub(crate) fn pictures(&self) -> (usize, Ticks) {
        let lasting = |sum, sample: &Sample| sum + Ticks(sample.duration.into());
        (self.draft.video.len(), self.draft.video.iter().fold(Ticks::ZERO, lasting))
    }

    /// Length of [`Part::fmp4`], known without making it.
    #[must_use]
    pub fn fmp4_len(&self) -> u64 {
        self.fmp4_len
    }

    /// The part as fMP4: one small head from `pool`, then the access units' own bytes.
    /// `None` when `pool` is used up.
    pub fn fmp4(&self, pool: &mut impl Pool) -> Option<&[Bytes]> {
        if self.fmp4.get().is_none() {
            let draft = &self.draft;
            let made = fmp4::write_part(draft.sequence, &draft.video, draft.fmp4_audio(), pool)?;
            // Where another core was faster, its bytes stay and these are dropped: they are equal.
            let _ = self.fmp4.set(made.into());
        }
        self.fmp4.get().map(AsRef::as_ref)
    }

    /// Length of [`Part::ts`], known without making it. Zero where the epoch has no track that a
    /// transport stream can carry.
    #[must_use]
    pub fn ts_len(&self) -> u64 {
        self.ts_packets.saturating_mul(ts::PACKET_BYTES as u64)
    }

    /// The part as transport stream: whole packets in regions of `pool` of at most 64 KiB each.
    /// `None` when `pool` is used up.
    pub fn ts(&self, pool: &mut impl Pool) -> Option<&[Bytes]> {
        if self.ts.get().is_none() {
            let made = ts::write(&self.draft, self.ts_start, self.ts_packets, pool)?;
            let _ = self.ts.set(made.into());
        }
        self.ts.get().map(AsRef::as_ref)
    }
}
