use weir_protocol::media::{Track, TrackId, TrackKind};

/// The tracks that are packaged: the first declared one of each kind.
#[derive(Debug, Default)]
pub(crate) struct Tracks {
    video: Option<Declared>,
    audio: Option<Declared>,
}

#[derive(Debug)]
struct Declared {
    track: Track,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It has had no time to send yet.
    New,
    /// It had, and sent nothing.
    Silent,
    /// It sent something to start with: a keyframe, or any audio frame.
    Heard,
}

impl Tracks {
    /// Equal tracks stay as they are; others have to be heard anew.
    pub fn declare(&mut self, tracks: &[Track]) {
        for kind in [TrackKind::Video, TrackKind::Audio] {
            let track = tracks.iter().find(|track| track.kind() == kind);
            if self.declared(kind) != track {
                let presence = Presence::New;
                *self.slot(kind) = track.map(|track| Declared { track: track.clone(), presence });
            }
        }
    }

    pub fn declared(&self, kind: TrackKind) -> Option<&Track> {
        self.of(kind).map(|declared| &declared.track)
    }

    /// What should be packaged: declared tracks that send.
    pub fn heard(&self, kind: TrackKind) -> Option<&Track> {
        let heard = self.of(kind).filter(|declared| declared.presence == Presence::Heard);
        heard.map(|declared| &declared.track)
    }

    pub fn is_new(&self, kind: TrackKind) -> bool {
        self.of(kind).is_some_and(|declared| declared.presence == Presence::New)
    }

    pub fn set(&mut self, kind: TrackKind, presence: Presence) {
        if let Some(declared) = self.slot(kind) {
            declared.presence = presence;
        }
    }

    pub fn kind_of(&self, id: TrackId) -> Option<TrackKind> {
        let kinds = [TrackKind::Video, TrackKind::Audio];
        kinds.into_iter().find(|kind| self.declared(*kind).is_some_and(|track| track.id == id))
    }

    fn of(&self, kind: TrackKind) -> Option<&Declared> {
        match kind {
            TrackKind::Video => self.video.as_ref(),
            TrackKind::Audio => self.audio.as_ref(),
        }
    }

    fn slot(&mut self, kind: TrackKind) -> &mut Option<Declared> {
        match kind {
            TrackKind::Video => &mut self.video,
            TrackKind::Audio => &mut self.audio,
        }
    }
}
