//! An FLV file as an endless or a single run of timed tags.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use weir_protocol::flv::{self, FileReader, Tag, TagKind};

#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error(
        "{}: {error}; make an FLV file of it with: ffmpeg -i FILE -c copy out.flv", path.display()
    )]
    Format { path: PathBuf, error: flv::Error },
    #[error("{} holds no audio or video", path.display())]
    Empty { path: PathBuf },
}

pub struct Clip {
    path: PathBuf,
    file: File,
    reader: FileReader,
    endless: bool,
    /// Added to the file's timestamps: the length of the rounds before.
    offset_ms: u32,
    audio: Round,
    video: Round,
}

/// How far one kind of track has come in this round.
#[derive(Clone, Copy, Default)]
struct Round {
    last_ms: Option<u32>,
    step_ms: u32,
}

impl Round {
    fn note(&mut self, timestamp_ms: u32) {
        if let Some(step) = self.last_ms.and_then(|last| timestamp_ms.checked_sub(last)) {
            self.step_ms = step;
        }
        self.last_ms = Some(timestamp_ms);
    }

    fn end_ms(self) -> u32 {
        self.last_ms.unwrap_or(0).saturating_add(self.step_ms)
    }
}

impl Clip {
    pub fn open(path: &Path, endless: bool) -> Result<Self, ClipError> {
        let file =
            File::open(path).map_err(|error| ClipError::Read { path: path.to_owned(), error })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            reader: FileReader::default(),
            endless,
            offset_ms: 0,
            audio: Round::default(),
            video: Round::default(),
        })
    }

    /// The next tag, its timestamp rising over all rounds. `None` at the end of a clip that isn't
    /// endless.
    pub fn next(&mut self) -> Result<Option<Tag>, ClipError> {
        loop {
            if let Some(tag) = self.next_of_file()? {
                return Ok(Some(self.place(tag)));
            }
            let Some(round_ms) = self.round_ms() else {
                return Err(ClipError::Empty { path: self.path.clone() });
            };
            if !self.endless {
                return Ok(None);
            }
            self.offset_ms = self.offset_ms.wrapping_add(round_ms);
            (self.audio, self.video) = Default::default();
            self.reader = FileReader::default();
            self.file.rewind().map_err(|error| self.read_error(error))?;
        }
    }

    fn next_of_file(&mut self) -> Result<Option<Tag>, ClipError> {
        let mut bytes = [0; 32 * 1024];
        loop {
            let next = self.reader.next();
            let next =
                next.map_err(|error| ClipError::Format { path: self.path.clone(), error })?;
            if next.is_some() {
                return Ok(next);
            }
            match self.file.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.reader.push(&bytes[..count]),
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }

    fn place(&mut self, mut tag: Tag) -> Tag {
        match tag.kind {
            TagKind::Audio => self.audio.note(tag.timestamp_ms),
            TagKind::Video => self.video.note(tag.timestamp_ms),
            TagKind::Script => {}
        }
        // RTMP time wraps at 32 bits, and so does a clip that plays for seven weeks.
        tag.timestamp_ms = tag.timestamp_ms.wrapping_add(self.offset_ms);
        tag
    }

    /// How long the round was. The picture decides, so that its GOPs stay evenly spaced.
    fn round_ms(&self) -> Option<u32> {
        let deciding = if self.video.last_ms.is_some() { self.video } else { self.audio };
        Some(deciding.end_ms()).filter(|round_ms| *round_ms > 0)
    }

    fn read_error(&self, error: io::Error) -> ClipError {
        ClipError::Read { path: self.path.clone(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip(tags: &[(TagKind, u32)], endless: bool) -> (tempfile::NamedTempFile, Clip) {
        let mut bytes = flv::file_header(true, true).to_vec();
        for (kind, timestamp_ms) in tags {
            bytes.extend(flv::tag_header(*kind, 1, *timestamp_ms));
            bytes.push(0);
            bytes.extend(flv::tag_trailer(1));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let clip = Clip::open(file.path(), endless).unwrap();
        (file, clip)
    }

    #[test]
    fn rounds_follow_each_other_by_the_length_of_the_picture() {
        use TagKind::{Audio, Video};
        let tags = [(Video, 0), (Audio, 0), (Audio, 21), (Video, 40), (Audio, 43)];
        let (_file, mut clip) = clip(&tags, true);
        let times: Vec<_> = (0..10).map(|_| clip.next().unwrap().unwrap().timestamp_ms).collect();
        assert_eq!(times, [0, 0, 21, 40, 43, 80, 80, 101, 120, 123]);
    }

    #[test]
    fn a_clip_ends_or_is_refused() {
        let (_file, mut once) = clip(&[(TagKind::Video, 0), (TagKind::Video, 40)], false);
        assert!(once.next().unwrap().is_some() && once.next().unwrap().is_some());
        assert!(once.next().unwrap().is_none());
        let (_file, mut empty) = clip(&[], true);
        assert!(matches!(empty.next(), Err(ClipError::Empty { .. })));
        let (file, mut other) = clip(&[], true);
        std::fs::write(file.path(), b"RIFF....").unwrap();
        assert!(matches!(other.next(), Err(ClipError::Format { .. })));
    }
}
