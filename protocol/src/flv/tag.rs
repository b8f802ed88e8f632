use bytes::{Buf, Bytes, BytesMut};

/// File header and the empty back pointer behind it (FLV v10.1 §E.2, §E.3).
pub const FILE_HEADER_BYTES: usize = 13;
pub const TAG_HEADER_BYTES: usize = 11;

const BACK_POINTER_BYTES: usize = 4;
/// The header of version 1; longer headers are allowed and skipped.
const MIN_DATA_OFFSET: usize = 9;
const MAX_DATA_OFFSET: usize = 1024;
/// Lengths are 24 bits on the wire.
const MAX_BODY_BYTES: u32 = 0x00ff_ffff;

/// What a tag or an RTMP media message holds. The values are those of both formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagKind {
    Audio = 8,
    Video = 9,
    Script = 18,
}

impl TagKind {
    #[must_use]
    pub fn from_type(kind: u8) -> Option<Self> {
        match kind {
            8 => Some(Self::Audio),
            9 => Some(Self::Video),
            18 => Some(Self::Script),
            _ => None,
        }
    }
}

/// One tag of a file, without its framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    pub kind: TagKind,
    pub timestamp_ms: u32,
    pub body: Bytes,
}

/// The first bytes of a file. The flags promise tracks to players, which may wait for them.
#[must_use]
pub fn file_header(video: bool, audio: bool) -> [u8; FILE_HEADER_BYTES] {
    let flags = u8::from(video) | u8::from(audio) << 2;
    [b'F', b'L', b'V', 1, flags, 0, 0, 0, 9, 0, 0, 0, 0]
}

/// The bytes before a tag's body (§E.4.1). Bodies are shorter than 16 MiB, as RTMP messages are.
#[must_use]
pub fn tag_header(kind: TagKind, body_len: usize, timestamp_ms: u32) -> [u8; TAG_HEADER_BYTES] {
    let [_, len @ ..] = body_len_field(body_len).to_be_bytes();
    let [high, time @ ..] = timestamp_ms.to_be_bytes();
    [kind as u8, len[0], len[1], len[2], time[0], time[1], time[2], high, 0, 0, 0]
}

/// The back pointer after a tag's body (§E.3).
#[must_use]
pub fn tag_trailer(body_len: usize) -> [u8; BACK_POINTER_BYTES] {
    body_len_field(body_len).saturating_add(TAG_HEADER_BYTES as u32).to_be_bytes()
}

fn body_len_field(body_len: usize) -> u32 {
    u32::try_from(body_len).unwrap_or(MAX_BODY_BYTES).min(MAX_BODY_BYTES)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not an FLV file")]
    NotFlv,
    #[error("FLV tags are encrypted")]
    Encrypted,
}

/// Takes a file apart as it arrives. Holds at most one unfinished tag (16 MiB) beyond what was
/// pushed since [`FileReader::next`] last returned `None`.
#[derive(Debug, Default)]
pub struct FileReader {
    buffer: BytesMut,
    started: bool,
}

impl FileReader {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole tag; `None` until more bytes are pushed. Tags of unknown kinds are skipped,
    /// back pointers are not believed.
    ///
    /// # Errors
    /// When the bytes are not an FLV file, or one of encrypted tags.
    #[expect(clippy::should_implement_trait, reason = "the end and an error are different things")]
    pub fn next(&mut self) -> Result<Option<Tag>, Error> {
        if !self.started && !self.skip_file_header()? {
            return Ok(None);
        }
        while let Some((kind, timestamp_ms, body)) = self.whole_tag()? {
            if let Some(kind) = TagKind::from_type(kind) {
                return Ok(Some(Tag { kind, timestamp_ms, body }));
            }
        }
        Ok(None)
    }

    fn skip_file_header(&mut self) -> Result<bool, Error> {
        let signature = b"FLV\x01";
        if self.buffer.iter().zip(signature).any(|(byte, expected)| byte != expected) {
            return Err(Error::NotFlv);
        }
        let Some(offset) = self.buffer.get(5..9).and_then(|mut bytes| bytes.try_get_u32().ok())
        else {
            return Ok(false);
        };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        if !(MIN_DATA_OFFSET..=MAX_DATA_OFFSET).contains(&offset) {
            return Err(Error::NotFlv);
        }
        if self.buffer.len() < offset {
            return Ok(false);
        }
        self.buffer.advance(offset);
        self.started = true;
        Ok(true)
    }

    /// A back pointer, a tag header and the body behind it, once all are there.
    fn whole_tag(&mut self) -> Result<Option<(u8, u32, Bytes)>, Error> {
        const BEFORE_BODY: usize = BACK_POINTER_BYTES + TAG_HEADER_BYTES;
        let Some(head) = self.buffer.first_chunk::<BEFORE_BODY>() else { return Ok(None) };
        let [_, _, _, _, kind, l0, l1, l2, t0, t1, t2, t3, ..] = *head;
        // The filter bit (§E.4.1).
        if kind & 0x20 != 0 {
            return Err(Error::Encrypted);
        }
        let body_len = usize::try_from(u32::from_be_bytes([0, l0, l1, l2])).unwrap_or(usize::MAX);
        let whole = BEFORE_BODY.saturating_add(body_len);
        if self.buffer.len() < whole {
            return Ok(None);
        }
        let mut tag = self.buffer.split_to(whole).freeze();
        tag.advance(BEFORE_BODY);
        Ok(Some((kind & 0x1f, u32::from_be_bytes([t3, t0, t1, t2]), tag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tags: &[(u8, u32, &[u8])]) -> Vec<u8> {
        let mut file = file_header(true, true).to_vec();
        for (kind, timestamp_ms, body) in tags {
            let mut header = tag_header(TagKind::Audio, body.len(), *timestamp_ms);
            header[0] = *kind;
            file.extend(header);
            file.extend(*body);
            file.extend(tag_trailer(body.len()));
        }
        file
    }

    fn read(file: &[u8], step: usize) -> Result<Vec<Tag>, Error> {
        let mut reader = FileReader::default();
        let mut tags = Vec::new();
        for bytes in file.chunks(step) {
            reader.push(bytes);
            while let Some(tag) = reader.next()? {
                tags.push(tag);
            }
        }
        Ok(tags)
    }

    #[test]
    fn headers_are_as_in_the_specification() {
        assert_eq!(file_header(true, false)[4], 1);
        assert_eq!(file_header(false, true)[4], 4);
        let header = tag_header(TagKind::Video, 0x01_0203, 0xf1f2_f3f4);
        assert_eq!(header, [9, 1, 2, 3, 0xf2, 0xf3, 0xf4, 0xf1, 0, 0, 0]);
        assert_eq!(tag_trailer(1), [0, 0, 0, 12]);
    }

    #[test]
    fn tags_are_found_however_the_bytes_are_split() {
        let tags: &[(u8, u32, &[u8])] =
            &[(18, 0, b"meta"), (9, u32::MAX, b""), (15, 3, b"unknown"), (8, 1 << 24, b"a")];
        let file = file(tags);
        let expected = [
            Tag { kind: TagKind::Script, timestamp_ms: 0, body: Bytes::from_static(b"meta") },
            Tag { kind: TagKind::Video, timestamp_ms: u32::MAX, body: Bytes::new() },
            Tag { kind: TagKind::Audio, timestamp_ms: 1 << 24, body: Bytes::from_static(b"a") },
        ];
        for step in [1, 2, 3, 13, 1000] {
            assert_eq!(read(&file, step).as_deref(), Ok(&expected[..]), "step {step}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let long = [&file_header(true, true)[..5], &[0, 0, 4, 1]].concat();
        let short = [&file_header(true, true)[..5], &[0, 0, 0, 8]].concat();
        let table: &[(&[u8], Error)] = &[
            (b"GIF", Error::NotFlv),
            (b"FLV\x02", Error::NotFlv),
            (&long, Error::NotFlv),
            (&short, Error::NotFlv),
            (&file(&[(0x29, 0, b"x")]), Error::Encrypted),
        ];
        for (bytes, error) in table {
            assert_eq!(read(bytes, 4), Err(*error), "{bytes:02x?}");
        }
    }
}
