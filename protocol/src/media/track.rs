use std::sync::Arc;

use crate::codec::CodecConfig;

/// Names an elementary stream within its stream; small and stable for the life of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackId(pub u8);

impl TrackId {
    /// The one that publishers without multitrack use: video tracks are even, audio tracks odd.
    #[must_use]
    pub const fn first(kind: TrackKind) -> Self {
        match kind {
            TrackKind::Video => Self(0),
            TrackKind::Audio => Self(1),
        }
    }

    #[must_use]
    pub const fn kind(self) -> TrackKind {
        if self.0 & 1 == 0 { TrackKind::Video } else { TrackKind::Audio }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrackKind {
    Video,
    Audio,
}

/// One elementary stream and how to decode it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    pub id: TrackId,
    pub codec: Arc<CodecConfig>,
}

impl Track {
    #[must_use]
    pub fn kind(&self) -> TrackKind {
        self.codec.kind()
    }
}
