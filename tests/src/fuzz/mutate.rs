//! Seeded changes to bytes.

/// SplitMix64: small, and good enough to choose what to break.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

/// Values at which lengths, counts and times go wrong.
const EDGES: [u32; 12] =
    [0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x00ff_ffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
const LONGEST: usize = 64 * 1024;

impl Random {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % (end.max(1) as u64)) as usize
    }

    /// A position that is more often near the start, where headers are.
    fn position(&mut self, len: usize) -> usize {
        let most = self.below(len) + 1;
        self.below(most)
    }

    /// One of the corpus, changed in a few places.
    pub fn mutated(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = corpus[self.below(corpus.len())].clone();
        if self.below(8) == 0 {
            let keep = self.position(bytes.len());
            let other = &corpus[self.below(corpus.len())];
            let from = self.position(other.len());
            bytes.truncate(keep);
            bytes.extend_from_slice(&other[from.min(other.len())..]);
        }
        let changes = 1 + self.below(6);
        for _ in 0..changes {
            self.change(&mut bytes);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        let at = self.position(len);
        match self.below(8) {
            0 | 1 if len > 0 => bytes[at] ^= 1 << self.below(8),
            2 if len > 0 => bytes[at] = self.bits() as u8,
            3 | 4 => self.put_edge(bytes, at),
            5 => bytes.truncate(at),
            6 => {
                let end = (at + 1 + self.below(16)).min(len);
                bytes.drain(at.min(end)..end);
            }
            _ => {
                let end = (at + 1 + self.below(64)).min(len);
                let again = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }

    /// Overwrites one to four bytes with an edge value, big or little endian.
    fn put_edge(&mut self, bytes: &mut [u8], at: usize) {
        let edge = EDGES[self.below(EDGES.len())];
        let width = 1 + self.below(4);
        let big = edge.to_be_bytes();
        let little = edge.to_le_bytes();
        let value = if self.below(4) == 0 { &little[..width] } else { &big[4 - width..] };
        for (byte, value) in bytes.iter_mut().skip(at).zip(value) {
            *byte = *value;
        }
    }
}
