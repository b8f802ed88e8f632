/// Access units that are in no part, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Of a track that is not packaged, or not yet: a stream has one video and one audio track,
    /// and a new one starts at a keyframe.
    pub not_in_epoch: u64,
    /// Pictures before a keyframe.
    pub before_keyframe: u64,
    /// Audio frames that there is no time for, or hours away from the pictures.
    pub out_of_time: u64,
    /// Without a payload.
    pub empty: u64,
}

pub(crate) fn bump(count: &mut u64) {
    *count = count.saturating_add(1);
}
