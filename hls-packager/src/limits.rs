//! Every bound of the packager, in one place, with its reason.

use std::time::Duration;

/// What one open segment may hold, with what waits for its next part, before it is cut, keyframe
/// or not: 10 s at 26 Mbit/s.
/// A publisher above that gets shorter segments, never more memory.
pub const SEGMENT_BYTES: u64 = 32 * 1024 * 1024;

/// Access units in one open segment: 10 s of 240 pictures and 400 Opus packets a second are 6400.
pub const SEGMENT_UNITS: usize = 8192;

/// What all segments of one stream may hold together; the oldest leave first. Two windows of
/// seven 2 s segments at 50 Mbit/s are 175 MB.
pub const WINDOW_BYTES: u64 = 256 * 1024 * 1024;

/// Segments that stay listed even over [`WINDOW_BYTES`]: players start three from the end
/// (RFC 8216 §6.3.3).
pub const FEWEST_LISTED: usize = 3;

/// How much of the stream is watched before the first segment, to learn which tracks really send
/// and how far apart pictures are. Video or audio that is silent for so long is left out until it
/// speaks. Nothing is late by it: the first segment takes longer to fill.
pub const LEAD_IN: Duration = Duration::from_secs(1);

/// Pictures that the lead-in waits for: enough for a median distance that one jitter cannot bend.
pub const LEAD_IN_PICTURES: usize = 6;

/// The lead-in's time where pictures are rare, which are waited for longer: parts that are cut to
/// their distance have a picture each, and players do not run out of them.
pub const LEAD_IN_RARE: Duration = Duration::from_secs(10);

/// Fewer pictures than this in [`LEAD_IN`] are rare. One distance alone may be an encoder's slow
/// start.
pub const LEAD_IN_FEW_PICTURES: usize = 3;

/// What the lead-in may hold; beyond it, it ends early.
pub const LEAD_IN_UNITS: usize = 1024;
pub const LEAD_IN_BYTES: usize = 8 * 1024 * 1024;

/// How far the counted audio clock may be from the stamps before it is set again. The stamps have
/// been judged and counted before and may themselves be 80 ms off the pictures; both together stay
/// below the 125 ms at which people notice sound ahead of picture (ITU-R BT.1359).
pub const AUDIO_DRIFT: Duration = Duration::from_millis(40);

/// How far audio may run ahead of the newest picture before parts go on without waiting for
/// pictures. Above the interleaving of every usual encoder.
pub const PICTURE_WAIT: Duration = Duration::from_millis(500);

/// How long pictures, or all of the media, may pause on one timeline: longer than the 10 s for which
/// the normaliser takes a track's word.
pub const PAUSE: Duration = Duration::from_secs(12);

/// How far media may be behind what came before it on one timeline. Above the interleaving of every
/// usual encoder.
pub const STEP_BACK: Duration = Duration::from_secs(4);

/// Every timeline starts this late in the containers, so that a PCR ahead of the first DTS and a
/// DTS shifted ahead of its PTS are never negative.
pub const ORIGIN: Duration = Duration::from_secs(2);

/// How far the PCR is ahead of the DTS that it comes with: pictures a second apart, which come
/// that much later than the audio around them, are still in time. It is also the longest that
/// data may wait in a decoder (ISO 13818-1 §2.4.2.6).
pub const CLOCK_LEAD: Duration = Duration::from_secs(1);

/// How far DTS may be shifted in a transport stream to stay below PTS: 12 pictures at 15 Hz.
pub const DECODE_SHIFT: Duration = Duration::from_millis(800);

/// Longest payload of one audio PES: below its 16-bit length, and 200 ms of 640 kbit/s.
pub const AUDIO_PES_BYTES: usize = 16 * 1024;

/// Transport stream is made in regions of at most this many bytes.
pub const TS_REGION_BYTES: usize = 64 * 1024;
