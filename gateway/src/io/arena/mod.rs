//! Memory for media: refcounted blocks of one mapping that all cores share.
//!
//! One mapping has two uses. A frame is written once, into a block, and every later holder, on
//! whatever core, has a handle on it. And any slice is known by its address: [`Arena::lookup`] turns
//! bytes that a library hands over as a plain slice back into an owned handle, so they are queued for
//! the kernel without a copy.
//!
//! Blocks have five sizes. Each size has an area of its own in the mapping, large enough for the whole
//! budget, because only pages that are written cost memory. A block that comes back is kept warm up to
//! [`WARM_BYTES`] per size; beyond this its pages return to the system.

mod free_list;
mod pool;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use bytes::Bytes;
use free_list::{FreeList, MAX_BLOCKS};

pub use pool::{ArenaPool, ArenaRegion};

use super::sys;

/// log2 of the block sizes: 64 KiB, 256 KiB, 1 MiB, 4 MiB, 16 MiB.
const CLASS_SHIFTS: [u32; 5] = [16, 18, 20, 22, 24];

/// The largest region that can be reserved.
pub const MAX_REGION_BYTES: usize = 1 << 24;

/// Freed memory of one block size that stays resident for the next taker. A page that was given back
/// costs a fault and its zeroing (about 0.25 µs for 4 KiB); 16 MiB ride out the swing of a busy core.
const WARM_BYTES: usize = 16 << 20;

/// The process's media memory. Lives as long as the process, so a handle is two words and no count.
pub struct Arena {
    base: NonNull<u8>,
    /// Bytes of the mapping that belong to each size class.
    area_bytes: usize,
    max_bytes: usize,
    classes: [Class; CLASS_SHIFTS.len()],
    in_use_bytes: AtomicUsize,
    refused: AtomicU64,
}

// SAFETY: `base` is never a way to a place by itself: memory is reached through a `Block`, whose count
// keeps it, or an `ArenaRegion`, which alone owns its bytes. The rest of the struct is atomics.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

struct Class {
    shift: u32,
    /// Handles per block; zero while the block is free.
    refs: Box<[AtomicU32]>,
    /// Links of the free lists.
    links: Box<[AtomicU32]>,
    /// Blocks below this number have been used before.
    fresh: AtomicU32,
    warm: FreeList,
    cold: FreeList,
    warm_bytes: AtomicUsize,
    in_use: AtomicUsize,
}

/// What the arena holds at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaUsage {
    pub max_bytes: usize,
    /// Whole blocks that someone holds.
    pub in_use_bytes: usize,
    pub in_use_blocks: usize,
    /// Free, but kept resident.
    pub warm_bytes: usize,
    /// Reservations that failed since the start: over the budget or over [`MAX_REGION_BYTES`].
    pub refused: u64,
}

impl Arena {
    /// Maps address space for at most `max_bytes` of blocks (rounded up to 16 MiB). Nothing is
    /// resident until it is written.
    ///
    /// # Errors
    /// `InvalidInput` beyond 1 TiB; `OutOfMemory` where the system grants no such mapping (overcommit
    /// mode 2, or a limit on address space).
    pub fn reserve(max_bytes: usize) -> io::Result<&'static Arena> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "media memory beyond 1 TiB");
        let area_bytes =
            max_bytes.max(1).checked_next_multiple_of(MAX_REGION_BYTES).ok_or_else(too_large)?;
        if area_bytes >> CLASS_SHIFTS[0] > MAX_BLOCKS {
            return Err(too_large());
        }
        let base = sys::map_reserved(area_bytes * CLASS_SHIFTS.len())?;
        Ok(Box::leak(Box::new(Arena {
            base,
            area_bytes,
            max_bytes: area_bytes,
            classes: CLASS_SHIFTS.map(|shift| Class::new(shift, area_bytes >> shift)),
            in_use_bytes: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        })))
    }

    /// An owned handle on `slice`, when it lies in this arena.
    ///
    /// No count is taken from nothing: a reference into the arena exists only while someone holds its
    /// block, and bytes that can be referred to are never written again while the block is held.
    #[must_use]
    pub fn lookup(&'static self, slice: &[u8]) -> Option<BlockSlice> {
        let from_base = slice.as_ptr().addr().checked_sub(self.base.as_ptr().addr())?;
        let (class, in_area) = (from_base / self.area_bytes, from_base % self.area_bytes);
        let shift = self.classes.get(class)?.shift;
        let offset = in_area & ((1 << shift) - 1);
        // An empty slice may point one past its block, which nobody needs to hold.
        if slice.is_empty() || offset + slice.len() > 1 << shift {
            return None;
        }
        let block = self.share(class, (in_area >> shift) as u32)?;
        Some(BlockSlice { block, offset: offset as u32, len: slice.len() as u32 })
    }

    #[must_use]
    pub fn usage(&self) -> ArenaUsage {
        let sum = |count: fn(&Class) -> &AtomicUsize| {
            self.classes.iter().map(|class| count(class).load(Ordering::Relaxed)).sum()
        };
        ArenaUsage {
            max_bytes: self.max_bytes,
            in_use_bytes: self.in_use_bytes.load(Ordering::Relaxed),
            in_use_blocks: sum(|class| &class.in_use),
            warm_bytes: sum(|class| &class.warm_bytes),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// A free block of the class, held once, within the budget.
    fn take(&'static self, class: usize) -> Option<Block> {
        let bytes = 1 << self.classes[class].shift;
        let within = |used: usize| (used + bytes <= self.max_bytes).then_some(used + bytes);
        self.in_use_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).ok()?;
        let Some(index) = self.classes[class].pop() else {
            self.in_use_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        };
        self.classes[class].refs[index as usize].store(1, Ordering::Relaxed);
        self.classes[class].in_use.fetch_add(1, Ordering::Relaxed);
        Some(Block { arena: self, class: class as u8, index })
    }

    /// One more handle on a block that is held.
    fn share(&'static self, class: usize, index: u32) -> Option<Block> {
        // Free blocks stay free, and a count near its end is left alone: the caller copies instead.
        let more = |refs: u32| (refs > 0 && refs < u32::MAX / 2).then(|| refs + 1);
        let refs = self.classes[class].refs.get(index as usize)?;
        refs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Block { arena: self, class: class as u8, index })
    }

    fn release(&self, class: usize, index: u32) {
        let Class { shift, links, warm, cold, warm_bytes, in_use, .. } = &self.classes[class];
        let bytes = 1 << shift;
        let within = |kept: usize| (kept + bytes <= WARM_BYTES).then_some(kept + bytes);
        if warm_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok() {
            warm.push(links, index);
        } else {
            // SAFETY: nobody holds the block: its count fell to zero and it is in no list yet.
            unsafe { sys::give_back_pages(self.address(class, index), bytes) };
            cold.push(links, index);
        }
        // After the push, so blocks that are in no list never exceed what the budget granted.
        in_use.fetch_sub(1, Ordering::Relaxed);
        self.in_use_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn address(&self, class: usize, index: u32) -> NonNull<u8> {
        let offset = class * self.area_bytes + ((index as usize) << self.classes[class].shift);
        // SAFETY: `index` is below the number of blocks in the class's area, and the mapping has
        // `area_bytes` for each class, so the offset stays inside the one mapping.
        unsafe { self.base.add(offset) }
    }
}

impl Class {
    fn new(shift: u32, blocks: usize) -> Class {
        let table = || (0..blocks).map(|_| AtomicU32::new(0)).collect();
        Class {
            shift,
            refs: table(),
            links: table(),
            fresh: AtomicU32::new(0),
            warm: FreeList::default(),
            cold: FreeList::default(),
            warm_bytes: AtomicUsize::new(0),
            in_use: AtomicUsize::new(0),
        }
    }

    fn pop(&self) -> Option<u32> {
        // Twice: a block may come back into the first list while the second is looked at.
        for _ in 0..2 {
            if let Some(index) = self.warm.pop(&self.links) {
                self.warm_bytes.fetch_sub(1 << self.shift, Ordering::Relaxed);
                return Some(index);
            }
            if let Some(index) = self.cold.pop(&self.links) {
                return Some(index);
            }
            let unused = |fresh: u32| ((fresh as usize) < self.links.len()).then(|| fresh + 1);
            if let Ok(index) = self.fresh.fetch_update(Ordering::Relaxed, Ordering::Relaxed, unused)
            {
                return Some(index);
            }
        }
        None
    }
}

/// One counted handle on a block.
struct Block {
    arena: &'static Arena,
    class: u8,
    index: u32,
}

impl Block {
    fn address(&self) -> NonNull<u8> {
        self.arena.address(usize::from(self.class), self.index)
    }

    fn bytes(&self) -> usize {
        1 << self.arena.classes[usize::from(self.class)].shift
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let class = usize::from(self.class);
        // As in `Arc`: every use of the block happens before its release.
        if self.arena.classes[class].refs[self.index as usize].fetch_sub(1, Ordering::Release) == 1
        {
            fence(Ordering::Acquire);
            self.arena.release(class, self.index);
        }
    }
}

/// An owned, immutable slice of a block, made by [`Arena::lookup`] without an allocation.
pub struct BlockSlice {
    block: Block,
    offset: u32,
    len: u32,
}

impl Deref for BlockSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies in the block (checked by `lookup`), which `self.block` holds. It was
        // seen through a `&[u8]`, so it is initialised, and written by nobody while the block is held.
        unsafe {
            let start = self.block.address().add(self.offset as usize);
            std::slice::from_raw_parts(start.as_ptr(), self.len as usize)
        }
    }
}

impl AsRef<[u8]> for BlockSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<BlockSlice> for Bytes {
    fn from(slice: BlockSlice) -> Bytes {
        Bytes::from_owner(slice)
    }
}
