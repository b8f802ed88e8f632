use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;

use super::*;
use weir_protocol::pool::{Pool, Region};

const MIB: usize = 1 << 20;

#[test]
fn frames_of_a_pool_share_blocks_and_hold_what_was_put() {
    let arena = Arena::reserve(64 * MIB).unwrap();
    let mut pool = ArenaPool::new(arena);
    assert_eq!(arena.usage().in_use_bytes, 0);
    let frames: Vec<_> = (0..60u8).map(|n| pool.copy(&[n; 1000]).unwrap()).collect();
    assert_eq!(arena.usage().in_use_bytes, 64 * 1024);
    // Two regions that are written in turns, as interleaved messages are.
    let (mut first, mut second) = (pool.reserve(10).unwrap(), pool.reserve(10).unwrap());
    for _ in 0..4 {
        first.put(b"abc");
        second.put(b"xyz");
    }
    assert_eq!((first.remaining(), second.remaining()), (0, 0));
    assert_eq!((first.freeze(), second.freeze()), ("abcabcabca".into(), "xyzxyzxyzx".into()));
    assert!(frames.iter().zip(0..).all(|(frame, n)| *frame == [n; 1000].as_slice()));
    drop(pool);
    assert_eq!(arena.usage().in_use_blocks, 1);
    drop(frames);
    assert_eq!((arena.usage().in_use_blocks, arena.usage().in_use_bytes), (0, 0));
}

#[test]
fn regions_of_every_size_fit_and_half_filled_ones_end_where_they_were_filled() {
    let arena = Arena::reserve(256 * MIB).unwrap();
    for shift in 0..=24 {
        for len in [(1 << shift) - 1, 1 << shift] {
            let mut region = ArenaPool::new(arena).reserve(len).unwrap();
            assert_eq!(region.remaining(), len);
            region.put(&vec![7; len / 2]);
            assert_eq!(region.freeze(), vec![7; len / 2]);
        }
    }
    assert!(ArenaPool::new(arena).reserve(MAX_REGION_BYTES + 1).is_none());
    assert_eq!(arena.usage().refused, 1);
    assert_eq!(arena.usage().in_use_blocks, 0);
    assert!(arena.usage().warm_bytes <= CLASS_SHIFTS.len() * WARM_BYTES);
}

#[test]
fn the_budget_is_kept_and_what_comes_back_is_free_again() {
    let arena = Arena::reserve(32 * MIB).unwrap();
    for _ in 0..3 {
        let mut pools: Vec<_> = (0..600).map(|_| ArenaPool::new(arena)).collect();
        let held: Vec<_> = pools.iter_mut().map_while(|pool| pool.reserve(16_000)).collect();
        assert_eq!(held.len(), 512, "64 KiB each");
        assert!(pools[599].reserve(1).is_none());
        // The open block still serves.
        assert!(pools[0].reserve(16_000).is_some());
        drop((pools, held));
        assert_eq!(arena.usage().in_use_bytes, 0);
    }
    // Where a roomy block is over the budget, one that just fits will do.
    let mut pool = ArenaPool::new(arena);
    let large: Vec<_> = (0..7).map(|_| pool.reserve(4 * MIB).unwrap()).collect();
    assert!(pool.reserve(4 * MIB).is_some() && pool.reserve(5 * MIB).is_none());
    drop(large);
}

#[test]
fn a_slice_is_found_by_its_address_and_kept_by_its_handle() {
    let arena = Arena::reserve(32 * MIB).unwrap();
    let other = Arena::reserve(16 * MIB).unwrap();
    let mut pool = ArenaPool::new(arena);
    for len in [1, 300, 70_000, 5 * MIB] {
        let frame = pool.copy(&vec![3; len]).unwrap();
        let part = &frame[len / 3..];
        let slice = arena.lookup(part).unwrap();
        assert_eq!(slice.as_ptr(), part.as_ptr());
        assert!(other.lookup(part).is_none());
        assert!(arena.lookup(&frame[len..]).is_none(), "an empty slice belongs to nobody");
        let expected = part.to_vec();
        pool = ArenaPool::new(arena);
        drop(frame);
        assert_eq!(arena.usage().in_use_blocks, 1);
        assert_eq!(Bytes::from(slice), expected);
        assert_eq!(arena.usage().in_use_blocks, 0);
    }
    assert!(arena.lookup(&[0; 100]).is_none());
    assert!(arena.lookup(b"static").is_none());
}

#[test]
fn pages_of_large_blocks_go_back_to_the_system() {
    let arena = Arena::reserve(256 * MIB).unwrap();
    let frames: Vec<_> =
        (0..10).map(|_| ArenaPool::new(arena).copy(&vec![1; 9 * MIB]).unwrap()).collect();
    assert_eq!(arena.usage().in_use_bytes, 160 * MIB);
    drop(frames);
    assert_eq!(arena.usage().warm_bytes, WARM_BYTES);
    let again = ArenaPool::new(arena).reserve(9 * MIB).unwrap();
    assert_eq!(arena.usage().warm_bytes, 0);
    drop(again);
}

/// xorshift64*: the same operations for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}

/// Bytes that tell one frame from every other, and each place in it.
fn fill(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|n| (seed.wrapping_mul(31).wrapping_add(n * 7 + (n >> 8)) >> 3) as u8)
        .collect()
}

/// Bytes with what they must be.
struct Held {
    bytes: Bytes,
    expected: Vec<u8>,
}

impl Held {
    fn check(&self) {
        assert!(self.bytes == self.expected, "a frame was overwritten while it was held");
    }
}

/// One core: writes frames in pieces, several at a time; keeps, looks up, passes on and drops them.
fn core(arena: &'static Arena, seed: u64, next: &mpsc::Sender<Held>, inbox: &mpsc::Receiver<Held>) {
    let mut random = Random(seed);
    let mut pool = ArenaPool::new(arena);
    let mut held: VecDeque<Held> = VecDeque::new();
    let mut writing: Vec<(ArenaRegion, Vec<u8>)> = Vec::new();
    for round in 0..6000u64 {
        match random.below(8) {
            0 | 1 => {
                let scale = if random.below(50) == 0 { 22 } else { 15 };
                let bits = random.below(scale);
                let len = 1 + random.below(1 << bits);
                if let Some(region) = pool.reserve(len) {
                    writing.push((region, fill(seed << 32 | round, len)));
                }
            }
            2..=4 if !writing.is_empty() => {
                let at = random.below(writing.len());
                let (region, expected) = &mut writing[at];
                let start = expected.len() - region.remaining();
                let count = random.below(region.remaining() + 1).max(region.remaining().min(900));
                region.put(&expected[start..start + count]);
                if region.remaining() == 0 || random.below(20) == 0 {
                    let (region, mut expected) = writing.swap_remove(at);
                    expected.truncate(expected.len() - region.remaining());
                    held.push_back(Held { bytes: region.freeze(), expected });
                }
            }
            5 if !held.is_empty() => {
                let frame = &held[random.below(held.len())];
                frame.check();
                let start = random.below(frame.bytes.len() + 1);
                let end = start + random.below(frame.bytes.len() - start + 1);
                if let Some(slice) = arena.lookup(&frame.bytes[start..end]) {
                    let expected = frame.expected[start..end].to_vec();
                    held.push_back(Held { bytes: Bytes::from(slice), expected });
                }
            }
            6 => {
                if let Some(frame) = held.pop_front() {
                    let _ = next.send(frame);
                }
            }
            _ => held.extend(inbox.try_recv()),
        }
        if held.len() > 100 {
            let gone = held.remove(random.below(held.len())).unwrap();
            gone.check();
        }
        if random.below(500) == 0 {
            pool = ArenaPool::new(arena);
        }
    }
    held.iter().for_each(Held::check);
}

#[test]
fn held_frames_never_change_whatever_the_cores_do() {
    for seed in 1..=4u64 {
        let arena = Arena::reserve(48 * MIB).unwrap();
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..4).map(|_| mpsc::channel()).unzip();
        thread::scope(|scope| {
            for (n, inbox) in inboxes.into_iter().enumerate() {
                let next = senders[(n + 1) % senders.len()].clone();
                scope.spawn(move || core(arena, seed * 1000 + n as u64, &next, &inbox));
            }
        });
        drop(senders);
        let usage = arena.usage();
        assert_eq!((usage.in_use_blocks, usage.in_use_bytes), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_free_list_neither_loses_nor_doubles_a_block() {
    const BLOCKS: u32 = 8;
    let links: Vec<_> = (0..BLOCKS).map(|_| AtomicU32::new(0)).collect();
    let owned: Vec<_> = (0..BLOCKS).map(|_| AtomicU32::new(0)).collect();
    let list = FreeList::default();
    (0..BLOCKS).for_each(|block| list.push(&links, block));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..20_000 {
                    let taken: Vec<_> = (0..round % 4).filter_map(|_| list.pop(&links)).collect();
                    for &block in &taken {
                        assert_eq!(owned[block as usize].swap(1, Ordering::SeqCst), 0);
                    }
                    for &block in &taken {
                        owned[block as usize].store(0, Ordering::SeqCst);
                        list.push(&links, block);
                    }
                }
            });
        }
    });
    let mut all: Vec<_> = std::iter::from_fn(|| list.pop(&links)).collect();
    all.sort_unstable();
    assert_eq!(all, (0..BLOCKS).collect::<Vec<_>>());
}
