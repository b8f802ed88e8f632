use std::collections::VecDeque;

use weir_protocol::media::Ticks;

use crate::part::Sample;

/// Longer frames fill a hole, or are of no codec that is in use: Opus packets are up to 120 ms.
const LONGEST_SOUND: Ticks = Ticks::from_ms(120);

/// Samples that wait for the end of their part, and what they hold.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub video: VecDeque<Sample>,
    pub audio: VecDeque<Sample>,
    bytes: u64,
}

impl Waiting {
    pub fn add_picture(&mut self, sample: Sample) {
        self.bytes = self.bytes.saturating_add(sample.payload.len() as u64);
        self.video.push_back(sample);
    }

    pub fn add_sound(&mut self, sample: Sample) {
        self.bytes = self.bytes.saturating_add(sample.payload.len() as u64);
        self.audio.push_back(sample);
    }

    /// The pictures and the sound that begin before `end`.
    pub fn take_before(&mut self, end: Ticks) -> (Vec<Sample>, Vec<Sample>) {
        let taken = (take_before(&mut self.video, end), take_before(&mut self.audio, end));
        let bytes = |sum: u64, sample: &Sample| sum.saturating_sub(sample.payload.len() as u64);
        self.bytes = taken.0.iter().chain(&taken.1).fold(self.bytes, bytes);
        taken
    }

    /// When the first of them begins.
    pub fn first(&self) -> Option<Ticks> {
        let first = [self.video.front(), self.audio.front()];
        first.into_iter().flatten().map(|sample| sample.at).min()
    }

    /// There is sound before and after `time`, without a hole.
    pub fn sounds_across(&self, time: Ticks) -> bool {
        let across = self.audio.iter().find(|sound| sound.end_at() > time);
        across.is_some_and(|sound| sound.at < time && sound.end_at() - sound.at <= LONGEST_SOUND)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn units(&self) -> usize {
        self.video.len().saturating_add(self.audio.len())
    }
}

fn take_before(samples: &mut VecDeque<Sample>, end: Ticks) -> Vec<Sample> {
    let count = samples.iter().take_while(|sample| sample.at < end).count();
    samples.drain(..count).collect()
}
