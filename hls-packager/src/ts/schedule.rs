use std::iter::Peekable;
use std::slice;

use weir_protocol::media::Ticks;
use weir_protocol::pool::Pool;

use super::layout::{Audio, Layout};
use super::nal::Picture;
use super::packet::{Adaptation, PacketWriter};
use super::{Counters, State};
use super::{pes, psi};
use crate::limits;
use crate::part::{Draft, Sample};

/// The PCR must come every 100 ms (ISO 13818-1 §2.7.2).
const CLOCK_INTERVAL: Ticks = Ticks::from_ms(90);

/// A gap longer than this is a break, not to be filled with clock packets.
const LONGEST_GAP: Ticks = Ticks::from_ms(10_000);

/// One thing in the stream that starts in a packet of its own.
pub enum Item<'a> {
    Tables,
    Clock(Adaptation),
    Picture { sample: &'a Sample, picture: Picture<'a>, adaptation: Adaptation },
    Sound { samples: &'a [Sample], adaptation: Adaptation },
}

/// What a part's transport stream consists of, in order.
pub struct Schedule<'a> {
    layout: &'a Layout,
    video: Peekable<slice::Iter<'a, Sample>>,
    audio: &'a [Sample],
    tables: bool,
    /// Parameter sets go before a segment's first picture also if it is no keyframe: a segment
    /// that was cut elsewhere tells its decoder at least what it is.
    introduced: bool,
    clock: Option<Ticks>,
    discontinuity: bool,
}

impl<'a> Schedule<'a> {
    pub fn new(draft: &'a Draft, state: State) -> Self {
        let layout = draft.epoch.ts();
        let video = if layout.video().is_some() { draft.video.as_slice() } else { &[] };
        let audio = if layout.audio().is_some() { draft.audio.as_slice() } else { &[] };
        Self {
            layout,
            video: video.iter().peekable(),
            audio,
            tables: draft.index == 0 && !layout.is_empty(),
            introduced: state.introduced && draft.index > 0,
            clock: state.clock.filter(|_| !draft.discontinuity),
            discontinuity: draft.discontinuity,
        }
    }

    /// The newest PCR and whether the segment is introduced, as the next part needs them.
    pub fn end(&self) -> (Option<Ticks>, bool) {
        (self.clock, self.introduced)
    }

    /// A packet with nothing but a PCR, if the next unit, at `at`, comes too late to carry it.
    fn overdue_clock(&mut self, at: Ticks) -> Option<Item<'a>> {
        let due = self.clock? + CLOCK_INTERVAL;
        if due >= at {
            return None;
        }
        if at - due > LONGEST_GAP {
            self.clock = None;
            return None;
        }
        let pcr = self.stamp(due);
        Some(Item::Clock(Adaptation { pcr, ..self.break_flag() }))
    }

    /// Moves the clock on to `at`; it never goes back, also where a late picture does.
    fn stamp(&mut self, at: Ticks) -> Option<Ticks> {
        if self.clock.is_some_and(|clock| clock >= at) {
            return None;
        }
        self.clock = Some(at);
        Some(at - Ticks::from(limits::CLOCK_LEAD))
    }

    /// The break in the time base is told once, with its first PCR (§2.4.3.5).
    fn break_flag(&mut self) -> Adaptation {
        let discontinuity = std::mem::take(&mut self.discontinuity);
        Adaptation { discontinuity, ..Adaptation::default() }
    }

    fn picture(&mut self, sample: &'a Sample) -> Option<Item<'a>> {
        let video = self.layout.video()?;
        let introduce = !std::mem::replace(&mut self.introduced, true) || sample.keyframe;
        let picture = Picture::new(video, &sample.payload, introduce);
        let pcr = self.stamp(sample.ts_dts);
        let adaptation = Adaptation { pcr, random_access: sample.keyframe, ..self.break_flag() };
        Some(Item::Picture { sample, picture, adaptation })
    }

    /// As many frames as follow on each other in time and fit into one PES.
    fn sound(&mut self) -> Option<Item<'a>> {
        let first = self.audio.first()?;
        let (mut count, mut bytes, mut end) = (0_usize, 0_usize, first.position);
        for sample in self.audio {
            bytes = bytes.saturating_add(sample.payload.len());
            let fits = sample.position == end && bytes <= limits::AUDIO_PES_BYTES;
            if count > 0 && !fits {
                break;
            }
            count = count.saturating_add(1);
            end = sample.end();
        }
        let (samples, later) = self.audio.split_at_checked(count)?;
        self.audio = later;
        let mut adaptation = Adaptation { random_access: true, ..Adaptation::default() };
        if self.layout.video().is_none() {
            adaptation.pcr = self.stamp(first.ts_dts);
            adaptation.discontinuity = self.break_flag().discontinuity;
        }
        Some(Item::Sound { samples, adaptation })
    }
}

impl<'a> Iterator for Schedule<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if std::mem::take(&mut self.tables) {
            return Some(Item::Tables);
        }
        let picture = self.video.peek().map(|sample| sample.ts_dts);
        let sound = self.audio.first().map(|sample| sample.ts_dts);
        let at = picture.into_iter().chain(sound).min()?;
        if let Some(item) = self.overdue_clock(at) {
            return Some(item);
        }
        match (picture, sound) {
            (Some(picture), sound) if sound.is_none_or(|sound| picture <= sound) => {
                let sample = self.video.next()?;
                self.picture(sample)
            }
            _ => self.sound(),
        }
    }
}

impl Item<'_> {
    /// Packets of this item; moves `counters` past them.
    pub fn count(&self, layout: &Layout, counters: &mut Counters) -> u64 {
        match self {
            Item::Tables => {
                advance(&mut counters.pat, 1);
                advance(&mut counters.pmt, 1);
                2
            }
            Item::Clock(_) => 1,
            Item::Picture { picture, adaptation, .. } => match picture.len() {
                0 => 0,
                len => {
                    let packets = adaptation.packets(len.saturating_add(pes::VIDEO_HEADER_BYTES));
                    advance(&mut counters.video, packets);
                    packets
                }
            },
            Item::Sound { samples, adaptation } => match sound_len(layout, samples) {
                0 => 0,
                len => {
                    let packets = adaptation.packets(len.saturating_add(pes::AUDIO_HEADER_BYTES));
                    advance(&mut counters.audio, packets);
                    packets
                }
            },
        }
    }

    /// Writes exactly the packets that [`Item::count`] counts.
    pub fn write<P: Pool>(
        &self,
        layout: &Layout,
        counters: &mut Counters,
        writer: &mut PacketWriter<'_, P>,
    ) -> Option<()> {
        match self {
            Item::Tables => {
                writer.section(psi::PAT_PID, &mut counters.pat, &psi::pat())?;
                writer.section(psi::PMT_PID, &mut counters.pmt, &psi::pmt(layout))
            }
            Item::Clock(adaptation) => {
                let pid = psi::clock_pid(layout);
                let counter = if pid == psi::VIDEO_PID { counters.video } else { counters.audio };
                writer.clock(pid, counter, *adaptation)
            }
            Item::Picture { sample, picture, adaptation } => {
                let len = picture.len();
                if len == 0 {
                    return Some(());
                }
                let len = len.saturating_add(pes::VIDEO_HEADER_BYTES);
                let mut unit = writer.unit(psi::VIDEO_PID, &mut counters.video, *adaptation, len);
                unit.put(&pes::video_header(sample.ts_pts, sample.ts_dts))?;
                picture.write(|bytes| unit.put(bytes))
            }
            Item::Sound { samples, adaptation } => {
                let (Some(first), Some(audio)) = (samples.first(), layout.audio()) else {
                    return Some(());
                };
                let payload_len = sound_len(layout, samples);
                if payload_len == 0 {
                    return Some(());
                }
                let len = payload_len.saturating_add(pes::AUDIO_HEADER_BYTES);
                let mut unit = writer.unit(psi::AUDIO_PID, &mut counters.audio, *adaptation, len);
                let stream = match audio {
                    Audio::Ac3 { .. } => pes::PRIVATE_STREAM,
                    Audio::Adts(_) | Audio::Mp3 { .. } => pes::AUDIO_STREAM,
                };
                unit.put(&pes::audio_header(stream, first.ts_pts, payload_len))?;
                for sample in *samples {
                    write_frame(audio, &sample.payload, |bytes| unit.put(bytes))?;
                }
                Some(())
            }
        }
    }
}

fn advance(counter: &mut u8, packets: u64) {
    *counter = (u64::from(*counter).wrapping_add(packets) & 0x0f) as u8;
}

fn sound_len(layout: &Layout, samples: &[Sample]) -> usize {
    let Some(audio) = layout.audio() else { return 0 };
    samples.iter().fold(0, |sum, sample| sum.saturating_add(frame_len(audio, &sample.payload)))
}

/// Bytes that [`write_frame`] gives.
fn frame_len(audio: &Audio, payload: &[u8]) -> usize {
    match audio {
        Audio::Mp3 { .. } | Audio::Ac3 { .. } => payload.len(),
        Audio::Adts(config) => config
            .adts_header(payload.len())
            .map_or(0, |header| header.len().saturating_add(payload.len())),
    }
}

/// Gives a frame with its header to `put`; nothing of a frame that is too long for its header.
fn write_frame(
    audio: &Audio,
    payload: &[u8],
    mut put: impl FnMut(&[u8]) -> Option<()>,
) -> Option<()> {
    if let Audio::Adts(config) = audio {
        let Some(header) = config.adts_header(payload.len()) else { return Some(()) };
        put(&header)?;
    }
    put(payload)
}
