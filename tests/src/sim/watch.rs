//! What a player may see of a stream, whatever happens to its publishers.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use weir_protocol::flv::{Tag, TagKind};

use super::fingerprint;
use crate::media::{self, FRAME_MS, Mark};
use crate::playlist::Playlist;

/// Frames of one session of a publisher: the numbers of its frames begin with a multiple of this.
pub const SESSION_FRAMES: u32 = 10_000;

/// One player's view: frames of its stream only, session after session, each in order.
#[derive(Debug, Default)]
pub struct Watch {
    stream: u8,
    /// Every frame must come, from the first one on.
    all: bool,
    session: Option<u32>,
    /// Sessions that were followed by another.
    over: HashSet<u32>,
    /// The last number of each kind.
    last: HashMap<bool, u32>,
    /// The last time of each kind.
    times: HashMap<TagKind, u32>,
}

impl Watch {
    #[must_use]
    pub fn new(stream: u8) -> Self {
        Self { stream, ..Self::default() }
    }

    /// Nothing may be missing.
    #[must_use]
    pub fn of_all(stream: u8) -> Self {
        Self { all: true, ..Self::new(stream) }
    }

    /// The next tag of a live player.
    ///
    /// # Panics
    /// When it must not come now.
    pub fn tag(&mut self, tag: &Tag) {
        let marks = media::marks(&tag.body);
        self.marks(&marks);
        if marks.is_empty() {
            return;
        }
        let before = self.times.insert(tag.kind, tag.timestamp_ms);
        let time = tag.timestamp_ms;
        assert!(before.is_none_or(|before| time > before), "{time} ms after {before:?}");
    }

    /// The next frames, in the order of their kinds.
    ///
    /// # Panics
    /// When they must not come now.
    pub fn marks(&mut self, marks: &[Mark]) {
        for mark in marks {
            assert_eq!(mark.publisher, self.stream, "another stream's frame");
            let frame = if mark.video { mark.number } else { mark.number / 2 };
            self.enter(frame / SESSION_FRAMES);
            let before = self.last.insert(mark.video, mark.number);
            let follows = match before {
                None => !mark.video || mark.number.is_multiple_of(media::GOP),
                Some(before) if self.all => mark.number == before + 1,
                Some(before) => mark.number > before,
            };
            assert!(follows, "{mark:?} after {before:?}");
        }
    }

    fn enter(&mut self, session: u32) {
        if self.session == Some(session) {
            return;
        }
        assert!(!self.over.contains(&session), "session {session} after {:?}", self.session);
        self.over.extend(self.session.replace(session));
        self.last.clear();
    }

    /// The number of the last picture.
    #[must_use]
    pub fn last_picture(&self) -> Option<u32> {
        self.last.get(&true).copied()
    }
}

/// What all players of HLS have been given: a URI means the same bytes to all, at all times.
#[derive(Debug, Default)]
pub struct Shelf {
    pieces: RefCell<HashMap<String, u64>>,
    /// The URI of each segment, by playlist and sequence number.
    segments: RefCell<HashMap<(String, u64), String>>,
    /// TARGETDURATION and PART-TARGET, by what the media URIs of a playlist begin with: a stream
    /// that begins after another has ended at its address has its own.
    targets: RefCell<HashMap<String, (f64, Option<f64>)>>,
}

impl Shelf {
    /// # Panics
    /// When the URI was used for something else.
    pub fn piece(&self, uri: &str, bytes: &[u8]) {
        let print = fingerprint(bytes);
        let known = *self.pieces.borrow_mut().entry(uri.to_owned()).or_insert(print);
        assert_eq!(known, print, "{uri} has changed");
    }

    fn playlist(&self, url: &str, playlist: &Playlist) {
        let mut segments = self.segments.borrow_mut();
        for (msn, segment) in (playlist.media_sequence..).zip(&playlist.segments) {
            let known = segments.entry((url.to_owned(), msn));
            let known = known.or_insert_with(|| segment.uri.clone());
            assert_eq!(*known, segment.uri, "{url}: segment {msn} has changed");
            // RFC 8216bis §4.4.3.1.
            let (duration, target) = (segment.duration, playlist.target_duration);
            assert!(duration.round() <= target, "{url}: {duration} s above {target} s");
        }
        let parts = playlist.open_parts.iter().map(|part| &part.uri);
        let uri = playlist.segments.iter().map(|segment| &segment.uri).chain(parts).next();
        let Some((prefix, _)) = uri.and_then(|uri| uri.rsplit_once('/')) else { return };
        let targets = (playlist.target_duration, playlist.part_target);
        let mut known = self.targets.borrow_mut();
        let known = known.entry(prefix.to_owned()).or_insert(targets);
        assert_eq!(*known, targets, "{url}: the target durations have changed");
    }
}

/// One playlist as one player sees it.
#[derive(Clone, Debug, Default)]
pub struct PlaylistWatch {
    newest: u64,
    discontinuities: u64,
}

impl PlaylistWatch {
    /// The next version.
    ///
    /// # Panics
    /// When a sequence goes back, a segment or a target duration has changed, or a segment is too
    /// long.
    pub fn version(&mut self, shelf: &Shelf, url: &str, text: &str) -> Playlist {
        let playlist = Playlist::parse(text);
        shelf.playlist(url, &playlist);
        let (first, before) = (playlist.media_sequence, self.newest);
        assert!(first >= before, "{url}: EXT-X-MEDIA-SEQUENCE {first} after {before}");
        self.newest = first;
        let (count, before) = (playlist.discontinuity_sequence, self.discontinuities);
        assert!(count >= before, "{url}: EXT-X-DISCONTINUITY-SEQUENCE {count} after {before}");
        self.discontinuities = count;
        playlist
    }
}

/// The time of a frame in its session.
#[must_use]
pub fn time_of(frame: u32) -> std::time::Duration {
    std::time::Duration::from_millis(u64::from(FRAME_MS * (frame % SESSION_FRAMES)))
}
