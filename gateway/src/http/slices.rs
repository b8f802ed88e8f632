//! Runs of shared bytes, never copied on their way to the socket.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

use bytes::{Buf, Bytes};

/// A run of bytes in shared slices.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    slices: VecDeque<Bytes>,
    len: usize,
}

impl Slices {
    pub fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.len += bytes.len();
            self.slices.push_back(bytes);
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keeps only this range of bytes, which must lie within.
    pub fn keep(&mut self, range: Range<usize>) {
        let mut skip = range.start;
        let mut want = range.len();
        let mut kept = Self::default();
        for slice in self.slices.drain(..) {
            let start = skip.min(slice.len());
            skip -= start;
            let end = start + want.min(slice.len() - start);
            want -= end - start;
            kept.push(slice.slice(start..end));
        }
        *self = kept;
    }
}

impl FromIterator<Bytes> for Slices {
    fn from_iter<I: IntoIterator<Item = Bytes>>(iter: I) -> Self {
        let mut slices = Self::default();
        iter.into_iter().for_each(|bytes| slices.push(bytes));
        slices
    }
}

impl From<Bytes> for Slices {
    fn from(bytes: Bytes) -> Self {
        Self::from_iter([bytes])
    }
}

impl Buf for Slices {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.slices.front().map_or(&[], |slice| slice)
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slot, slice) in out.iter_mut().zip(&self.slices) {
            *slot = IoSlice::new(slice);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.len, "advance past the end");
        self.len -= count;
        let mut left = count;
        while let Some(front) = self.slices.front_mut().filter(|_| left > 0) {
            if front.len() > left {
                front.advance(left);
                return;
            }
            left -= front.len();
            self.slices.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices() -> Slices {
        ["ab", "", "cde", "f"].map(|text| Bytes::from_static(text.as_bytes())).into_iter().collect()
    }

    fn text(mut slices: Slices) -> String {
        let bytes = slices.copy_to_bytes(slices.remaining());
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn any_range_and_any_advance_give_the_same_bytes() {
        for start in 0..=6 {
            for end in start..=6 {
                let mut part = slices();
                part.keep(start..end);
                assert_eq!(part.len(), end - start);
                assert_eq!(text(part), "abcdef"[start..end]);
            }
            let mut rest = slices();
            rest.advance(start);
            assert_eq!(text(rest), "abcdef"[start..]);
        }
    }
}
