use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A lock-free stack of block numbers (Treiber). Its links live beside the blocks, in a table that
/// all lists of one size class share, because a block is in one list at most.
///
/// The head carries a tag that changes with every operation, so a head that was popped and pushed
/// back between a load and its exchange is not mistaken for an unchanged one.
#[derive(Debug, Default)]
pub(super) struct FreeList {
    /// `tag << INDEX_BITS | block + 1`; zero in the low bits means empty.
    head: AtomicU64,
}

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;

/// Blocks that one list can name.
pub(super) const MAX_BLOCKS: usize = INDEX_MASK as usize;

impl FreeList {
    pub(super) fn push(&self, links: &[AtomicU32], block: u32) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            links[block as usize].store((head & INDEX_MASK) as u32, Ordering::Relaxed);
            // Release: whoever pops the block sees the link, and all that was read from the block
            // before it was freed is over.
            match self.exchange(head, block + 1) {
                Ok(()) => return,
                Err(now) => head = now,
            }
        }
    }

    pub(super) fn pop(&self, links: &[AtomicU32]) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let block = ((head & INDEX_MASK) as u32).checked_sub(1)?;
            // Stale when another core popped this block meanwhile; then the tag differs.
            let next = links[block as usize].load(Ordering::Relaxed);
            match self.exchange(head, next) {
                Ok(()) => return Some(block),
                Err(now) => head = now,
            }
        }
    }

    fn exchange(&self, head: u64, index: u32) -> Result<(), u64> {
        let tag = (head >> INDEX_BITS).wrapping_add(1);
        let new = tag << INDEX_BITS | u64::from(index);
        self.head.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }
}
