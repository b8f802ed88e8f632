use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use weir_protocol::pool::{Pool, Region};

use super::{Arena, Block, CLASS_SHIFTS};

/// A publisher's way to the arena: regions are cut one after the other from its open block.
///
/// A new pool holds nothing. One pool per session keeps frames that die together in the same blocks.
pub struct ArenaPool {
    arena: &'static Arena,
    open: Option<Open>,
}

/// A block wants room for this many regions like the one it is taken for, so that what is left over
/// at its end is a small part of it.
const REGIONS_PER_BLOCK: usize = 4;

impl ArenaPool {
    #[must_use]
    pub fn new(arena: &'static Arena) -> ArenaPool {
        ArenaPool { arena, open: None }
    }

    fn take_block(&self, len: usize) -> Option<Open> {
        let fitting = |wanted: usize| CLASS_SHIFTS.iter().position(|shift| wanted <= 1 << shift);
        let least = fitting(len)?;
        let roomy = fitting(len.saturating_mul(REGIONS_PER_BLOCK)).unwrap_or(least);
        let block = self.arena.take(roomy).or_else(|| self.arena.take(least))?;
        Some(Open::new(block))
    }
}

impl Pool for ArenaPool {
    type Region = ArenaRegion;

    fn reserve(&mut self, len: usize) -> Option<ArenaRegion> {
        if let Some(region) = self.open.as_mut().and_then(|open| open.cut(len)) {
            return Some(region);
        }
        let Some(mut taken) = self.take_block(len) else {
            self.arena.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let region = taken.cut(len);
        // Go on with the block that has more room left.
        if self.open.as_ref().is_none_or(|open| open.free < taken.free) {
            self.open = Some(taken);
        }
        region
    }
}

/// A block of which `free` bytes at the end belong to nobody yet.
struct Open {
    /// Holds the block. Regions are slices of it, so a frame costs no allocation of its own. It is
    /// never read as a whole: its end is not written yet.
    whole: Bytes,
    start: NonNull<u8>,
    free: usize,
}

impl Open {
    fn new(block: Block) -> Open {
        let (start, free) = (block.address(), block.bytes());
        Open { whole: Bytes::from_owner(Whole(block)), start, free }
    }

    fn cut(&mut self, len: usize) -> Option<ArenaRegion> {
        let offset = self.whole.len() - self.free;
        self.free = self.free.checked_sub(len)?;
        // SAFETY: `offset + len` is within the block, by the subtraction above.
        let start = unsafe { self.start.add(offset) };
        Some(ArenaRegion { whole: self.whole.clone(), start, offset, len, filled: 0 })
    }
}

struct Whole(Block);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range is the block's, which `self` holds, and mapped memory is initialised. The
        // reference lives only inside `Bytes::from_owner`, on the one thread that has the block, before
        // anything is written; `Bytes` keeps the address. Later references are those of regions that
        // are frozen, and those bytes are never written again while the block is held.
        unsafe { std::slice::from_raw_parts(self.0.address().as_ptr(), self.0.bytes()) }
    }
}

/// A region of an arena block that is being written.
pub struct ArenaRegion {
    whole: Bytes,
    start: NonNull<u8>,
    offset: usize,
    len: usize,
    filled: usize,
}

impl Region for ArenaRegion {
    fn remaining(&self) -> usize {
        self.len - self.filled
    }

    fn put(&mut self, bytes: &[u8]) {
        let count = bytes.len().min(self.remaining());
        // SAFETY: `filled + count <= len`, and the `len` bytes at `start` were cut for this region
        // alone from a block that `whole` holds. `&mut self` is the only way to write them, and nobody
        // has a reference to them before `freeze`, so `bytes` cannot overlap them either.
        unsafe {
            let end = self.start.add(self.filled);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), end.as_ptr(), count);
        }
        self.filled += count;
    }

    fn filled(&self) -> &[u8] {
        // SAFETY: the first `filled` bytes at `start` were written by `put`, belong to this region alone,
        // and `&self` keeps them from being written while the slice lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.filled) }
    }

    fn freeze(self) -> Bytes {
        self.whole.slice(self.offset..self.offset + self.filled)
    }
}
