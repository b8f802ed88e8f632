//! Chunks as no encoder need write them: any format, any chunk stream, in any form of header.
//!
//! The gateway's own writer is not used: it writes one form, and this is for all the others.

/// The value of a 24-bit timestamp field that says that 32 bits follow (RTMP 1.0 §5.3.1.3).
const EXTENDED: u32 = 0xff_ffff;

/// The header of one chunk (RTMP 1.0 §5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// 0 to 3. What a format leaves out is not written, whatever stands here.
    pub format: u8,
    pub chunk_stream: u32,
    /// Bytes of the basic header, 1 to 3; the shortest that holds the id where none is given.
    pub form: Option<u8>,
    /// Absolute in format 0, else a difference.
    pub timestamp: u32,
    pub length: u32,
    pub kind: u8,
    pub message_stream: u32,
    /// Whether format 3 says an extended timestamp again.
    pub repeats_extended: bool,
}

impl ChunkHeader {
    pub fn write(&self, out: &mut Vec<u8>) {
        self.basic(out);
        let short = self.timestamp.min(EXTENDED).to_be_bytes();
        if self.format < 3 {
            out.extend_from_slice(&short[1..]);
        }
        if self.format < 2 {
            out.extend_from_slice(&self.length.to_be_bytes()[1..]);
            out.push(self.kind);
        }
        if self.format == 0 {
            out.extend_from_slice(&self.message_stream.to_le_bytes());
        }
        let says = self.format < 3 || self.repeats_extended;
        if says && self.timestamp >= EXTENDED {
            out.extend_from_slice(&self.timestamp.to_be_bytes());
        }
    }

    fn basic(&self, out: &mut Vec<u8>) {
        let form = self.form.unwrap_or(match self.chunk_stream {
            0..=63 => 1,
            64..=319 => 2,
            _ => 3,
        });
        let format = self.format << 6;
        let high = self.chunk_stream.wrapping_sub(64).to_le_bytes();
        match form {
            1 => out.push(format | (self.chunk_stream & 0x3f) as u8),
            2 => out.extend_from_slice(&[format, high[0]]),
            _ => out.extend_from_slice(&[format | 1, high[0], high[1]]),
        }
    }

    /// A whole message in chunks of `size`: this header, then as many of format 3 as it takes.
    pub fn write_message(&self, body: &[u8], size: usize, out: &mut Vec<u8>) {
        let mut header = *self;
        let mut chunks = body.chunks(size.max(1));
        header.write(out);
        out.extend_from_slice(chunks.next().unwrap_or_default());
        header.format = 3;
        for chunk in chunks {
            header.write(out);
            out.extend_from_slice(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_header_is_written() {
        let header = ChunkHeader {
            format: 0,
            chunk_stream: 6,
            form: None,
            timestamp: 0x0100_0000,
            length: 3,
            kind: 9,
            message_stream: 1,
            repeats_extended: true,
        };
        let written = |header: ChunkHeader| {
            let mut out = Vec::new();
            header.write_message(b"abc", 2, &mut out);
            out
        };
        let time = [1, 0, 0, 0];
        let whole =
            [&[6, 255, 255, 255, 0, 0, 3, 9, 1, 0, 0, 0][..], &time, b"ab", &[0xc6], &time, b"c"];
        assert_eq!(written(header), whole.concat());
        let once = ChunkHeader { repeats_extended: false, ..header };
        assert_eq!(written(once)[18..], [0xc6, b'c']);
        let basic = |chunk_stream, form| {
            let mut out = Vec::new();
            ChunkHeader { format: 2, chunk_stream, form, ..header }.basic(&mut out);
            out
        };
        assert_eq!(basic(64, None), [0x80, 0]);
        assert_eq!(basic(319, None), [0x80, 255]);
        assert_eq!(basic(320, None), [0x81, 0, 1]);
        assert_eq!(basic(65_599, None), [0x81, 255, 255]);
        assert_eq!(basic(64, Some(3)), [0x81, 0, 0]);
    }
}
