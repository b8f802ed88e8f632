//! What a publish has counted in the metrics so far, of counts that others keep.

use weir_hls::Dropped;
use weir_protocol::media::Repairs;

use crate::core::Core;
use crate::metrics::{HlsDropped, TimeRepair};
use crate::stream::Stream;

#[derive(Default)]
pub struct Tally {
    /// Of the demuxer, which is the session's own.
    repairs: Repairs,
    /// Of the packager, which outlives sessions.
    dropped: Dropped,
    cuts_without_keyframe: u64,
    told_of_cuts: bool,
}

impl Tally {
    pub fn begin(stream: &Stream) -> Self {
        let (dropped, cuts_without_keyframe) = packaged(stream).unwrap_or_default();
        Self { dropped, cuts_without_keyframe, ..Self::default() }
    }

    pub fn catch_up(&mut self, core: &Core, stream: &Stream, repairs: Repairs) {
        if repairs != self.repairs {
            self.count_repairs(core, repairs);
            stream.with_owner(|owner| owner.repairs = repairs);
        }
        let Some((dropped, cuts)) = packaged(stream) else { return };
        if dropped != self.dropped {
            self.count_dropped(core, dropped);
        }
        let cuts = cuts - std::mem::replace(&mut self.cuts_without_keyframe, cuts);
        core.counters.cuts_without_keyframe.add(cuts);
        if cuts > 0 && !std::mem::replace(&mut self.told_of_cuts, true) {
            tracing::warn!(
                stream = %stream.name,
                "keyframes come too late: HLS segments begin without one, where no player can start"
            );
        }
    }

    fn count_repairs(&mut self, core: &Core, now: Repairs) {
        let before = std::mem::replace(&mut self.repairs, now);
        for (kind, now, before) in [
            (TimeRepair::Wrap, now.wraps, before.wraps),
            (TimeRepair::Jitter, now.jitter, before.jitter),
            (TimeRepair::Outlier, now.outliers, before.outliers),
            (TimeRepair::NewTimeline, now.new_timelines, before.new_timelines),
            (TimeRepair::Aligned, now.aligned, before.aligned),
            (TimeRepair::Resync, now.resyncs, before.resyncs),
        ] {
            core.counters.time_repairs.of(kind).add(now - before);
        }
    }

    fn count_dropped(&mut self, core: &Core, now: Dropped) {
        let before = std::mem::replace(&mut self.dropped, now);
        for (reason, now, before) in [
            (HlsDropped::NotInEpoch, now.not_in_epoch, before.not_in_epoch),
            (HlsDropped::BeforeKeyframe, now.before_keyframe, before.before_keyframe),
            (HlsDropped::OutOfTime, now.out_of_time, before.out_of_time),
            (HlsDropped::Empty, now.empty, before.empty),
        ] {
            core.counters.hls_dropped.of(reason).add(now - before);
        }
    }
}

fn packaged(stream: &Stream) -> Option<(Dropped, u64)> {
    stream.with_owner(|owner| (owner.hls_dropped(), owner.cuts_without_keyframe()))
}
