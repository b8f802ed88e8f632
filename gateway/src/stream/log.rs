//! The live log of a stream on one core: the GOP cache that players join at, and the buffer that
//! slow players may lag behind in.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use weir_protocol::flv;
use weir_protocol::media::{AccessUnit, Track, TrackKind};
use weir_protocol::pool::{Pool, Region};

use super::track_set::{SharedTracks, TrackSet, tag_kind};
use crate::limits;

/// Access units from at least the newest join point on, bounded in bytes.
///
/// Players are [`Cursor`]s: numbers, not queues. One that is overtaken by the log's tail jumps to
/// the newest join point, so a slow player costs nothing and slows nobody.
#[derive(Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// Sequence number of the first entry.
    first: u64,
    /// Sequence number of the newest entry where a player can start decoding.
    join: Option<u64>,
    bytes: usize,
}

/// What a log is made of, as it goes from an owner's to its replicas'.
#[derive(Clone)]
pub enum Item {
    Tracks(SharedTracks),
    Unit(AccessUnit),
}

/// One access unit and its wire headers, made once, by the first player that needs them.
pub struct Entry {
    pub unit: AccessUnit,
    pub tracks: Arc<TrackSet>,
    frame: OnceCell<Option<Frame>>,
}

/// What stands around an access unit's payload in FLV; an RTMP message has the codec header alone.
pub struct Frame {
    /// FLV tag header and codec header.
    pub head: Bytes,
    /// The back pointer.
    pub trailer: Bytes,
}

impl Frame {
    fn new(track: &Track, unit: &AccessUnit, pool: &mut impl Pool) -> Option<Self> {
        let codec_head = flv::unit_header(track, unit);
        let body_len = codec_head.len() + unit.payload.len();
        let tag_head = flv::tag_header(tag_kind(track), body_len, flv::timestamp_ms(unit.dts));
        let trailer = flv::tag_trailer(body_len);
        let mut region = pool.reserve(tag_head.len() + codec_head.len() + trailer.len())?;
        region.put(&tag_head);
        region.put(&codec_head);
        region.put(&trailer);
        let mut head = region.freeze();
        let trailer = head.split_off(head.len() - trailer.len());
        Some(Self { head, trailer })
    }

    /// What stands before the payload in an RTMP message.
    pub fn codec_head(&self) -> &[u8] {
        &self.head[flv::TAG_HEADER_BYTES..]
    }
}

impl Entry {
    /// `None` when there is no memory for it: the frame is then left out rather than the player
    /// cut off.
    pub fn frame(&self, track: &Track, pool: &mut impl Pool) -> Option<&Frame> {
        self.frame.get_or_init(|| Frame::new(track, &self.unit, pool)).as_ref()
    }
}

/// A player's place in the log.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    /// Sequence number of the next entry to send; `None` until there is a place to join.
    next: Option<u64>,
    /// How often this player was too slow and skipped ahead.
    pub jumps: u64,
}

impl Log {
    pub fn push(&mut self, unit: AccessUnit, tracks: &Arc<TrackSet>) {
        let sequence = self.first + self.entries.len() as u64;
        if self.is_join_point(&unit, tracks) {
            self.join = Some(sequence);
        }
        self.bytes += cost(&unit);
        let tracks = tracks.clone();
        self.entries.push_back(Entry { unit, tracks, frame: OnceCell::new() });
        self.trim();
    }

    /// The next entry for this player, or `None` when it has to wait for news.
    pub fn next(&self, cursor: &mut Cursor) -> Option<&Entry> {
        if cursor.next.is_some_and(|next| next < self.first) {
            // Once, however often it asks before there is a place to go on.
            *cursor = Cursor { next: None, jumps: cursor.jumps + 1 };
        }
        let next = cursor.next.or(self.join)?;
        let index = usize::try_from(next.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get(index);
        cursor.next = Some(if entry.is_some() { next + 1 } else { next });
        entry
    }

    /// What a replica needs to begin with: all units from the newest join point on.
    pub fn since_join(&self) -> impl Iterator<Item = &Entry> {
        let from = self.join.map_or(self.entries.len(), |join| (join - self.first) as usize);
        self.entries.iter().skip(from)
    }

    /// Whether the log has got as far as this unit of its track already.
    pub fn has(&self, unit: &AccessUnit) -> bool {
        let newest = self.entries.iter().rev().find(|entry| entry.unit.track == unit.track);
        newest.is_some_and(|entry| entry.unit.dts >= unit.dts)
    }

    /// Nothing before a new epoch can be joined: decoders start over at the next keyframe.
    pub fn forget_join_point(&mut self) {
        self.join = None;
    }

    /// Forgets everything; players go on with what comes.
    pub fn start_over(&mut self) {
        self.first += self.entries.len() as u64;
        self.entries.clear();
        self.bytes = 0;
        self.join = None;
    }

    fn is_join_point(&self, unit: &AccessUnit, tracks: &TrackSet) -> bool {
        if !tracks.has(TrackKind::Video) {
            // Any audio frame will do; joining a little back fills the player's buffer at once.
            let since = self.join.and_then(|join| self.entries.get((join - self.first) as usize));
            return since.is_none_or(|entry| unit.dts - entry.unit.dts >= limits::AUDIO_JOIN_SPAN);
        }
        // Of several video tracks, players get the first; the keyframes of others do not help them.
        let sent = tracks.flv_track(unit.track);
        unit.keyframe && sent.is_some_and(|track| track.kind() == TrackKind::Video)
    }

    /// Lets go of what no player may lag behind in any more. A GOP larger than the byte bound loses
    /// its head, and so its join point: new players then wait for the next keyframe.
    fn trim(&mut self) {
        while let (Some(front), Some(back)) = (self.entries.front(), self.entries.back()) {
            let before_join = self.join.is_some_and(|join| self.first < join);
            let old = back.unit.dts - front.unit.dts > limits::LOG_SPAN;
            if self.bytes <= limits::LOG_BYTES && !(before_join && old) {
                return;
            }
            self.bytes -= cost(&front.unit);
            self.entries.pop_front();
            self.first += 1;
            if self.join.is_some_and(|join| join < self.first) {
                self.join = None;
            }
        }
    }
}

/// What keeping a unit takes: a peer may send any number that carry next to nothing.
fn cost(unit: &AccessUnit) -> usize {
    unit.payload.len() + size_of::<Entry>()
}

#[cfg(test)]
mod tests {
    use weir_protocol::flv::Metadata;
    use weir_protocol::media::{Ticks, Track, TrackId};

    use super::*;
    use crate::stream::track_set::tests::{
        AUDIO, VIDEO, audio_only, audio_track, audio_video, video_track,
    };

    fn unit(track: TrackId, ms: i64, keyframe: bool, len: usize) -> AccessUnit {
        AccessUnit {
            track,
            dts: Ticks::from_ms(ms),
            composition_offset: Ticks::ZERO,
            keyframe,
            payload: Bytes::from(vec![0; len]),
        }
    }

    fn drain(log: &Log, cursor: &mut Cursor) -> Vec<i64> {
        std::iter::from_fn(|| log.next(cursor).map(|entry| entry.unit.dts.as_ms())).collect()
    }

    #[test]
    fn a_new_player_starts_at_the_newest_keyframe_and_then_misses_nothing() {
        let (mut log, tracks) = (Log::default(), Arc::new(audio_video()));
        let mut cursor = Cursor::default();
        assert!(log.next(&mut cursor).is_none());
        for ms in [0, 40, 80] {
            log.push(unit(VIDEO, ms, ms == 0 || ms == 80, 10), &tracks);
            log.push(unit(AUDIO, ms + 5, true, 10), &tracks);
        }
        assert_eq!(drain(&log, &mut cursor), [80, 85]);
        log.push(unit(VIDEO, 120, false, 10), &tracks);
        assert_eq!(drain(&log, &mut cursor), [120]);
        assert_eq!(drain(&log, &mut Cursor::default()), [80, 85, 120]);
        assert_eq!(cursor.jumps, 0);
    }

    #[test]
    fn of_several_video_tracks_players_start_with_the_first() {
        let further = Track { id: TrackId(2), ..video_track() };
        let tracks = vec![video_track(), audio_track(), further];
        let (mut log, tracks) =
            (Log::default(), Arc::new(TrackSet::new(tracks, Metadata::default())));
        log.push(unit(VIDEO, 0, true, 10), &tracks);
        log.push(unit(TrackId(2), 10, false, 10), &tracks);
        log.push(unit(VIDEO, 40, false, 10), &tracks);
        log.push(unit(TrackId(2), 50, true, 10), &tracks);
        assert_eq!(drain(&log, &mut Cursor::default()), [0, 10, 40, 50]);
    }

    #[test]
    fn an_overtaken_player_jumps_to_the_newest_keyframe() {
        let (mut log, tracks) = (Log::default(), Arc::new(audio_video()));
        log.push(unit(VIDEO, 0, true, 10), &tracks);
        let mut cursor = Cursor::default();
        assert_eq!(drain(&log, &mut cursor), [0]);
        let step = limits::LOG_SPAN.as_ms();
        for i in 1..=6 {
            log.push(unit(VIDEO, i * step, true, 10), &tracks);
        }
        assert_eq!(drain(&log, &mut cursor), [6 * step]);
        assert_eq!(cursor.jumps, 1);
    }

    #[test]
    fn a_gop_over_the_byte_bound_is_cut_and_waits_for_the_next_keyframe() {
        let (mut log, tracks) = (Log::default(), Arc::new(audio_video()));
        let chunk = limits::LOG_BYTES / 4;
        for i in 0..6 {
            log.push(unit(VIDEO, i, i == 0, chunk), &tracks);
        }
        assert!(log.bytes <= limits::LOG_BYTES);
        assert!(log.next(&mut Cursor::default()).is_none());
        log.push(unit(VIDEO, 7, true, 10), &tracks);
        assert_eq!(drain(&log, &mut Cursor::default()), [7]);
    }

    #[test]
    fn a_player_that_waits_for_the_next_keyframe_has_jumped_once() {
        let (mut log, tracks) = (Log::default(), Arc::new(audio_video()));
        log.push(unit(VIDEO, 0, true, 10), &tracks);
        let mut cursor = Cursor::default();
        assert_eq!(drain(&log, &mut cursor), [0]);
        for i in 1..10 {
            log.push(unit(VIDEO, i, false, limits::LOG_BYTES / 4), &tracks);
        }
        for _ in 0..3 {
            assert!(log.next(&mut cursor).is_none());
        }
        log.push(unit(VIDEO, 10, true, 10), &tracks);
        assert_eq!(drain(&log, &mut cursor), [10]);
        assert_eq!(cursor.jumps, 1);
    }

    #[test]
    fn units_of_next_to_nothing_are_bounded_too() {
        let (mut log, tracks) = (Log::default(), Arc::new(audio_video()));
        let most = limits::LOG_BYTES / size_of::<Entry>();
        let payload = Bytes::from_static(b"x");
        for i in 0..most as i64 + 1000 {
            let unit = AccessUnit { payload: payload.clone(), ..unit(AUDIO, i, true, 0) };
            log.push(unit, &tracks);
        }
        assert!(log.entries.len() <= most);
    }

    #[test]
    fn audio_alone_can_be_joined_a_little_back() {
        let (mut log, tracks) = (Log::default(), Arc::new(audio_only()));
        for i in 0..100 {
            log.push(unit(AUDIO, i * 20, true, 10), &tracks);
        }
        let joined = drain(&log, &mut Cursor::default());
        let span = Ticks::from_ms(joined.last().unwrap() - joined[0]);
        assert!(span <= limits::AUDIO_JOIN_SPAN, "{span:?}");
    }
}
