//! The few bytes that wait for the rest of their header.

use super::header::MAX_HEADER_BYTES;

#[derive(Debug, Default)]
pub struct Cut {
    bytes: [u8; MAX_HEADER_BYTES],
    pub len: usize,
}

impl Cut {
    /// Takes from `input` what fits; a header never needs more.
    pub fn append(&mut self, input: &mut &[u8]) {
        let free = self.bytes.get_mut(self.len..).unwrap_or_default();
        let (now, rest) = input.split_at_checked(free.len()).unwrap_or((*input, &[]));
        for (to, from) in free.iter_mut().zip(now) {
            *to = *from;
        }
        self.len = self.len.saturating_add(now.len());
        *input = rest;
    }

    /// Takes up to `len` bytes from the front, and tells how many those are.
    pub fn take(&mut self, len: usize) -> ([u8; MAX_HEADER_BYTES], usize) {
        let bytes = self.bytes;
        let len = len.min(self.len);
        self.bytes.copy_within(len..self.len, 0);
        self.len = self.len.saturating_sub(len);
        (bytes, len)
    }

    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
