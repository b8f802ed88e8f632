//! The boxes of fragmented MP4, as far as no other validator looks at them: every fragment must
//! say its decode time (`tfdt`), and the times of a track must follow from its durations.

use std::collections::BTreeMap;

/// A box: its type, and its content without the header.
#[derive(Clone, Copy, Debug)]
pub struct Mp4Box<'a> {
    pub kind: [u8; 4],
    pub content: &'a [u8],
}

/// The boxes that fill `bytes` exactly.
///
/// # Errors
/// When a size does not fit.
pub fn boxes(mut bytes: &[u8]) -> Result<Vec<Mp4Box<'_>>, String> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let header = bytes.get(..8).ok_or("a box header is cut off")?;
        let kind = [header[4], header[5], header[6], header[7]];
        let name = String::from_utf8_lossy(&kind).into_owned();
        let (head, size) = match word(header, 0)? {
            0 => (8, bytes.len()),
            1 => (16, usize::try_from(long(bytes, 8)?).map_err(|error| error.to_string())?),
            size => (8, size as usize),
        };
        let content = bytes.get(head..size).ok_or(format!("{name}: size {size} does not fit"))?;
        found.push(Mp4Box { kind, content });
        bytes = &bytes[size..];
    }
    Ok(found)
}

/// The content of the first box at `path`, such as `moof/mfhd`.
///
/// # Errors
/// When there is none.
pub fn find<'a>(bytes: &'a [u8], path: &str) -> Result<&'a [u8], String> {
    path.split('/').try_fold(bytes, |bytes, kind| {
        let found = boxes(bytes)?.into_iter().find(|found| found.kind == kind.as_bytes());
        found.map(|found| found.content).ok_or(format!("no {kind} of {path}"))
    })
}

/// Follows the fragments of one rendition and checks that they join.
#[derive(Debug, Default)]
pub struct Timeline {
    /// The decode time at which the next fragment of each track must begin.
    next: BTreeMap<u32, u64>,
    sequence: Option<u32>,
}

impl Timeline {
    /// Checks a segment or part: `moof` and `mdat` in turn, a `tfdt` in every `traf` that goes on
    /// where the last ended, samples that fill the `mdat`, rising sequence numbers.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&mut self, segment: &[u8]) -> Result<(), String> {
        let mut samples = None;
        let mut fragments = 0;
        for found in boxes(segment)? {
            match &found.kind {
                b"moof" if samples.is_none() => samples = Some(self.fragment(found.content)?),
                b"moof" => return Err("a moof without its mdat".into()),
                b"mdat" => {
                    let size = samples.take().ok_or("an mdat without its moof")?;
                    if size != found.content.len() as u64 {
                        return Err(format!("samples of {size} bytes in {}", found.content.len()));
                    }
                    fragments += 1;
                }
                _ => {}
            }
        }
        if fragments == 0 || samples.is_some() {
            return Err("no whole fragment".into());
        }
        Ok(())
    }

    /// The bytes of all samples of the fragment.
    fn fragment(&mut self, moof: &[u8]) -> Result<u64, String> {
        let sequence = word(find(moof, "mfhd")?, 4)?;
        if self.sequence.is_some_and(|last| sequence <= last) {
            return Err(format!("mfhd sequence number {sequence} after {:?}", self.sequence));
        }
        self.sequence = Some(sequence);
        let mut bytes = 0;
        for traf in boxes(moof)?.iter().filter(|found| &found.kind == b"traf") {
            bytes += self.track_fragment(traf.content)?;
        }
        Ok(bytes)
    }

    fn track_fragment(&mut self, traf: &[u8]) -> Result<u64, String> {
        let header = Header::parse(find(traf, "tfhd")?)?;
        let tfdt = find(traf, "tfdt")?;
        let begin = match tfdt.first() {
            Some(1) => long(tfdt, 4)?,
            _ => u64::from(word(tfdt, 4)?),
        };
        let track = header.track;
        if let Some(expected) = self.next.get(&track).filter(|expected| **expected != begin) {
            return Err(format!(
                "track {track}: tfdt {begin}, the last fragment ended at {expected}"
            ));
        }
        let (mut bytes, mut duration) = (0, 0);
        for trun in boxes(traf)?.iter().filter(|found| &found.kind == b"trun") {
            let run = run(trun.content, &header)?;
            bytes += run.0;
            duration += run.1;
        }
        self.next.insert(track, begin + duration);
        Ok(bytes)
    }
}

/// What a `tfhd` says (ISO 14496-12 §8.8.7).
struct Header {
    track: u32,
    duration: u32,
    size: u32,
}

impl Header {
    fn parse(tfhd: &[u8]) -> Result<Self, String> {
        let flags = word(tfhd, 0)?;
        let mut at =
            8 + if flags & 0x1 == 0 { 0 } else { 8 } + if flags & 0x2 == 0 { 0 } else { 4 };
        let mut optional = |bit: u32| -> Result<u32, String> {
            if flags & bit == 0 {
                return Ok(0);
            }
            at += 4;
            word(tfhd, at - 4)
        };
        Ok(Self { track: word(tfhd, 4)?, duration: optional(0x8)?, size: optional(0x10)? })
    }
}

/// Bytes and duration of the samples of a `trun` (ISO 14496-12 §8.8.8).
fn run(trun: &[u8], header: &Header) -> Result<(u64, u64), String> {
    let flags = word(trun, 0)?;
    let count = word(trun, 4)?;
    let mut at = 8 + 4 * (flags & 0x5).count_ones() as usize;
    let mut field = |bit: u32, otherwise: u32| -> Result<u32, String> {
        if flags & bit == 0 {
            return Ok(otherwise);
        }
        at += 4;
        word(trun, at - 4)
    };
    let (mut bytes, mut duration) = (0, 0);
    for _ in 0..count {
        duration += u64::from(field(0x100, header.duration)?);
        bytes += u64::from(field(0x200, header.size)?);
        field(0x400, 0)?;
        field(0x800, 0)?;
    }
    if at != trun.len() {
        return Err(format!("trun of {count} samples has {} bytes, not {at}", trun.len()));
    }
    Ok((bytes, duration))
}

fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let four = bytes.get(at..at + 4).ok_or("a field is cut off")?;
    Ok(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

fn long(bytes: &[u8], at: usize) -> Result<u64, String> {
    Ok(u64::from(word(bytes, at)?) << 32 | u64::from(word(bytes, at + 4)?))
}
