//! An FLV file as a live stream, as it is or edited, at its own speed or as fast as it is taken.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use weir_protocol::flv::{FileReader, Tag, TagKind};
use weir_protocol::rtmp::message::kind;

use super::Target;
use super::actor::Actor;
use super::chunks::ChunkHeader;
use super::edit::{Editor, is_frame};
use super::send;

/// How long the server may take for any answer, and to take what is sent.
const WITHIN: Duration = Duration::from_secs(30);

/// Most servers take no longer chunks.
const CHUNK_SIZE: u32 = 65_536;

/// The tags of a file, and how long it is.
#[derive(Clone, Debug)]
pub struct Clip {
    pub tags: Vec<Tag>,
    pub length_ms: u64,
}

impl Clip {
    /// # Errors
    /// When the file is not there, or is no FLV.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut reader = FileReader::default();
        reader.push(&bytes);
        let mut tags = Vec::new();
        while let Some(tag) =
            reader.next().map_err(|error| format!("{}: {error}", path.display()))?
        {
            tags.push(tag);
        }
        Ok(Self::of(tags))
    }

    /// The length is that of the longer track: up to its last frame, which lasts as long as the
    /// one before it.
    #[must_use]
    pub fn of(tags: Vec<Tag>) -> Self {
        let end = |kind| {
            let mut frames = tags.iter().rev().filter(|tag| tag.kind == kind && is_frame(tag));
            let last = u64::from(frames.next()?.timestamp_ms);
            let before = frames.next().map_or(last, |tag| tag.timestamp_ms.into());
            Some(last + last.saturating_sub(before))
        };
        let ends = [TagKind::Video, TagKind::Audio].into_iter().filter_map(end);
        let length_ms = ends.max().unwrap_or(0);
        Self { tags, length_ms }
    }

    /// The clip after these edits.
    ///
    /// # Panics
    /// When they are none.
    #[must_use]
    pub fn edited(&self, edits: &str) -> Self {
        let tags = Editor::parse(edits).expect("edits").edit(&self.tags);
        Self { tags, length_ms: self.length_ms }
    }

    /// The tags `turns` times in a row with the time that each has in all; headers and metadata
    /// only once.
    pub fn turns(&self, turns: u64) -> impl Iterator<Item = (Tag, u64)> + '_ {
        (0..turns).flat_map(move |turn| {
            let again = turn > 0;
            let wanted = move |tag: &&Tag| !again || is_frame(tag);
            self.tags.iter().filter(wanted).map(move |tag| {
                let at = turn * self.length_ms + u64::from(tag.timestamp_ms);
                // Time goes round at 2^32, as on the wire.
                (Tag { timestamp_ms: at as u32, ..tag.clone() }, at)
            })
        })
    }
}

/// A connection that publishes tags.
pub struct Sender {
    actor: Actor,
}

impl Sender {
    /// # Errors
    /// When the server does not let it publish.
    pub fn start(target: &Target) -> Result<Self, String> {
        let by = Instant::now() + WITHIN;
        let mut actor = Actor::connect(target.rtmp)?;
        send::begin(&mut actor, "publish", &target.app, &target.key, target.rtmp, by)?;
        actor.set_chunk_size(CHUNK_SIZE);
        Ok(Self { actor })
    }

    /// Puts a tag behind what is to be sent.
    pub fn send(&mut self, tag: &Tag) {
        let (chunk_stream, kind) = match tag.kind {
            TagKind::Audio => (4, kind::AUDIO),
            TagKind::Video => (6, kind::VIDEO),
            TagKind::Script => (5, kind::DATA),
        };
        let header = ChunkHeader {
            format: 0,
            chunk_stream,
            form: None,
            timestamp: tag.timestamp_ms,
            length: tag.body.len() as u32,
            kind,
            message_stream: self.actor.message_stream,
            repeats_extended: true,
        };
        let mut out = Vec::new();
        header.write_message(&tag.body, self.actor.chunk_size(), &mut out);
        self.actor.push(&out);
    }

    pub fn flush(&mut self) {
        self.actor.flush(None);
    }

    /// Waits until the server has read all that was sent.
    ///
    /// # Errors
    /// When it does not, or has closed the connection.
    pub fn sync(&mut self) -> Result<(), String> {
        self.actor.sync(Instant::now() + WITHIN)
    }

    /// Ends the connection behind all that was sent.
    pub fn finish(mut self) {
        self.actor.flush(None);
        self.actor.peer().finish();
    }
}

/// How a file is sent.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Times its own speed; none is as fast as the server takes it.
    pub speed: Option<f64>,
    pub turns: u64,
}

/// Sends a clip with its edits, and gives the number of tags sent.
///
/// # Errors
/// When the server refuses, or ends the connection before the clip ends.
pub fn publish(
    clip: &Clip,
    edits: &mut Editor,
    pace: Pace,
    target: &Target,
) -> Result<u64, String> {
    let mut sender = Sender::start(target)?;
    let began = Instant::now();
    let mut sent = 0;
    for (tag, at_ms) in clip.turns(pace.turns) {
        if let Some(speed) = pace.speed {
            let due = Duration::from_secs_f64(at_ms as f64 / 1000.0 / speed);
            let wait = due.saturating_sub(began.elapsed());
            if !wait.is_zero() {
                sender.flush();
                thread::sleep(wait);
            }
        }
        for tag in edits.push(tag, at_ms) {
            sender.send(&tag);
            sent += 1;
        }
    }
    sender.sync()?;
    sender.finish();
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media;
    use crate::replay::edit::is_header;

    #[test]
    fn turns_go_on_in_time_without_headers() {
        let clip = Clip::of([media::headers(), media::frames(1, 0, 20)].concat());
        assert_eq!(clip.length_ms, 1000);
        let tags: Vec<(Tag, u64)> = clip.turns(3).collect();
        assert_eq!(tags.iter().filter(|(tag, _)| is_header(tag)).count(), 2);
        assert_eq!(tags.len(), 2 + 3 * 60);
        assert_eq!(tags.last().expect("a tag").1, 2975);
    }
}
