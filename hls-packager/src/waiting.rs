use std::collections::VecDeque;

use weir_protocol::media::Ticks;

use crate::part::Sample;

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

    pub fn begins_before(&self, time: Ticks) -> bool {
        let first = [self.video.front(), self.audio.front()];
        first.into_iter().flatten().any(|sample| sample.at < time)
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
