use bytes::Bytes;
use weir_protocol::codec::CodecConfig;
use weir_protocol::media::{Track, TrackKind};

use crate::fmp4;
use crate::ts;

/// A stretch of the stream with one set of tracks and configurations: one init segment, one PMT.
#[derive(Debug)]
pub struct Epoch {
    number: u32,
    video: Option<Track>,
    audio: Option<Track>,
    init: Bytes,
    /// fMP4 leaves the audio out.
    fmp4_is_mute: bool,
    ts: ts::Layout,
}

impl Epoch {
    pub(crate) fn new(number: u32, video: Option<Track>, audio: Option<Track>) -> Self {
        // Browsers refuse MP3 in fMP4, and the pictures with it.
        let is_mp3 = |track: &Track| matches!(*track.codec, CodecConfig::Mp3(_));
        let fmp4_is_mute = video.is_some() && audio.as_ref().is_some_and(is_mp3);
        let fmp4_audio = audio.as_ref().filter(|_| !fmp4_is_mute);
        let init = fmp4::init_segment(video.as_ref(), fmp4_audio).into();
        let ts = ts::Layout::new(number, video.as_ref(), audio.as_ref());
        Self { number, video, audio, init, fmp4_is_mute, ts }
    }

    /// Counts epochs of the stream, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    #[must_use]
    pub fn video(&self) -> Option<&Track> {
        self.video.as_ref()
    }

    #[must_use]
    pub fn audio(&self) -> Option<&Track> {
        self.audio.as_ref()
    }

    /// The fMP4 init segment.
    #[must_use]
    pub fn init(&self) -> &Bytes {
        &self.init
    }

    /// The audio track, where players would refuse the fMP4 rendition for it: MP3 next to video.
    #[must_use]
    pub fn missing_in_fmp4(&self) -> Option<&Track> {
        self.audio.as_ref().filter(|_| self.fmp4_is_mute)
    }

    /// Tracks of this epoch that a transport stream cannot carry, and why.
    #[must_use]
    pub fn missing_in_ts(&self) -> &[(Track, ts::Missing)] {
        self.ts.missing()
    }

    pub(crate) fn track(&self, kind: TrackKind) -> Option<&Track> {
        match kind {
            TrackKind::Video => self.video(),
            TrackKind::Audio => self.audio(),
        }
    }

    pub(crate) fn has(&self, kind: TrackKind) -> bool {
        self.track(kind).is_some()
    }

    pub(crate) fn ts(&self) -> &ts::Layout {
        &self.ts
    }

    /// The `CODECS` attribute of the fMP4 rendition (RFC 8216 §4.3.4.2); `None` where a codec has
    /// no known name.
    pub(crate) fn codecs(&self) -> Option<String> {
        let audio = self.audio.as_ref().filter(|_| !self.fmp4_is_mute);
        let names: Vec<String> = [self.video.as_ref(), audio]
            .into_iter()
            .flatten()
            .map(|track| track.codec.rfc6381())
            .collect();
        names.iter().all(|name| !name.is_empty()).then(|| names.join(","))
    }
}
