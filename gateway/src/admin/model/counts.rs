//! What was repaired in a stream, and what was lost.

use serde::Serialize;
use weir_hls::Dropped;
use weir_protocol::media::Repairs;

/// Steps of the publisher's clock that were not taken as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimeRepairs {
    /// Timestamps that went round; no repair, but worth knowing.
    pub wrap: u64,
    pub jitter: u64,
    pub outlier: u64,
    pub new_timeline: u64,
    /// Tracks whose first frame was far from the others.
    pub aligned: u64,
    /// Times an audio track's sample count was given up for its timestamps.
    pub resync: u64,
}

impl From<Repairs> for TimeRepairs {
    fn from(repairs: Repairs) -> Self {
        Self {
            wrap: repairs.wraps,
            jitter: repairs.jitter,
            outlier: repairs.outliers,
            new_timeline: repairs.new_timelines,
            aligned: repairs.aligned,
            resync: repairs.resyncs,
        }
    }
}

/// Access units that no HLS part holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HlsDropped {
    /// Of a track that HLS does not carry, or not yet.
    pub not_in_epoch: u64,
    /// Pictures before the first keyframe.
    pub before_keyframe: u64,
    /// Audio frames that there is no time for, or hours away from the pictures.
    pub out_of_time: u64,
    /// Without a payload.
    pub empty: u64,
}

impl From<Dropped> for HlsDropped {
    fn from(dropped: Dropped) -> Self {
        Self {
            not_in_epoch: dropped.not_in_epoch,
            before_keyframe: dropped.before_keyframe,
            out_of_time: dropped.out_of_time,
            empty: dropped.empty,
        }
    }
}
