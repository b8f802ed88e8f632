//! Where message bodies and packaged bytes are put: refcounted blocks behind a small interface.
//!
//! The gateway gives blocks of its arena, which the kernel can send without a copy; tests, fuzz
//! targets and tools use [`HeapPool`].

use bytes::{Bytes, BytesMut};

/// Hands out regions that are filled once and then shared.
///
/// Regions reserved one after the other usually share one block, so frames of one stream live and
/// die together and a small frame costs no block of its own.
pub trait Pool {
    type Region: Region;

    /// A region of exactly `len` bytes, or `None` when the memory budget is used up.
    fn reserve(&mut self, len: usize) -> Option<Self::Region>;

    /// Copies `bytes` into a region of its own.
    fn copy(&mut self, bytes: &[u8]) -> Option<Bytes> {
        let mut region = self.reserve(bytes.len())?;
        region.put(bytes);
        Some(region.freeze())
    }
}

/// A region that is written once, front to back, by its only holder.
pub trait Region {
    /// Bytes that can still be put.
    fn remaining(&self) -> usize;

    /// Appends as much of `bytes` as fits; the rest is ignored. Check [`Region::remaining`] first.
    fn put(&mut self, bytes: &[u8]);

    /// The bytes put so far.
    fn filled(&self) -> &[u8];

    /// The bytes put so far, immutable and shared from now on.
    fn freeze(self) -> Bytes;
}

/// A pool on the ordinary heap.
#[derive(Debug, Default)]
pub struct HeapPool {
    block: BytesMut,
}

/// Small regions share a heap block of this many bytes.
const HEAP_BLOCK_BYTES: usize = 64 * 1024;

impl Pool for HeapPool {
    type Region = HeapRegion;

    fn reserve(&mut self, len: usize) -> Option<HeapRegion> {
        if len > HEAP_BLOCK_BYTES / 4 {
            return Some(HeapRegion { free: len, bytes: BytesMut::new() });
        }
        if self.block.capacity() < len {
            self.block = BytesMut::with_capacity(HEAP_BLOCK_BYTES);
        }
        // An empty head of the block with `len` bytes of capacity; the tail stays for later.
        let tail = self.block.split_off(len);
        let bytes = std::mem::replace(&mut self.block, tail);
        Some(HeapRegion { free: len, bytes })
    }
}

/// A region of a [`HeapPool`]. A large one grows as bytes arrive, not from its declared size.
#[derive(Debug)]
pub struct HeapRegion {
    free: usize,
    bytes: BytesMut,
}

impl Region for HeapRegion {
    fn remaining(&self) -> usize {
        self.free
    }

    fn put(&mut self, bytes: &[u8]) {
        let (head, _) = bytes.split_at(bytes.len().min(self.free));
        self.free = self.free.saturating_sub(head.len());
        self.bytes.extend_from_slice(head);
    }

    fn filled(&self) -> &[u8] {
        &self.bytes
    }

    fn freeze(self) -> Bytes {
        self.bytes.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_disjoint_and_hold_what_was_put() {
        let mut pool = HeapPool::default();
        for len in [0, 1, 7, 4096, 16_384, 16_385, 70_000] {
            let mut first = pool.reserve(len).unwrap();
            let mut second = pool.reserve(len).unwrap();
            first.put(&vec![1; len + 5]);
            second.put(&vec![2; len]);
            assert_eq!(first.remaining(), 0);
            assert_eq!(first.freeze(), vec![1; len]);
            assert_eq!(second.freeze(), vec![2; len]);
        }
    }
}
