//! What a peer that declares much and sends little can hold.

use std::cell::Cell;
use std::rc::Rc;

use super::*;

/// CH-11: half-done messages share a small budget before a publish.
#[test]
fn ch_11_budget_for_half_done_messages() {
    let limits = Limits::default();
    let mut reader = Reader::new(&limits, HeapPool::default());
    let mut half_done = |id: u8, kind: u8, length: [u8; 3]| {
        let mut chunk = whole(id, kind, 0, &body(128, 0));
        chunk[4..7].copy_from_slice(&length);
        read_all(&mut reader, &chunk).map(drop)
    };
    assert_eq!(half_done(3, 20, [0, 0x40, 0]), Ok(()));
    assert_eq!(half_done(4, 17, [0, 0x40, 0]), Ok(()));
    assert_eq!(half_done(5, 9, [0x7f, 0xff, 0xff]), Ok(()), "unwanted media costs nothing");
    assert_eq!(half_done(9, 19, [0x7f, 0xff, 0xff]), Ok(()), "nor do unknown types");
    assert_eq!(half_done(3, 20, [0, 0x70, 0]), Ok(()), "replaces the first");
    assert_eq!(half_done(7, 20, [0, 0x50, 0]), Ok(()));
    assert_eq!(half_done(8, 20, [0, 0, 200]), Err(Error::TooMuchUnfinished(65_536)));
    let too_long = |length, limit| Err(Error::MessageTooLong { length, limit });
    assert_eq!(half_done(8, 9, [0xff, 0xff, 0xff]), too_long(0xff_ffff, limits.message_bytes));
    assert_eq!(half_done(8, 4, [0, 0x80, 1]), too_long(0x8001, limits.command_bytes));
}

/// CH-11: what is reserved follows what has arrived, not what was declared; a long message is whole
/// all the same.
#[test]
fn ch_11_memory_follows_what_arrives() {
    let reserved = Rc::new(Cell::new(0));
    let mut reader =
        Reader::new(&Limits::default(), Counting(HeapPool::default(), reserved.clone()));
    reader.store_media(true);
    reader.set_max_unfinished(Limits::default().unfinished_bytes_publishing);
    let mut begin = |id: u8| {
        let mut chunk = whole(id, 9, 0, &body(128, 0));
        chunk[4..7].copy_from_slice(&[0x03, 0, 0]);
        read_all(&mut reader, &chunk).unwrap();
    };
    (3..60).for_each(&mut begin);
    let bound = RESERVED_AHEAD + 57 * (FIRST_RESERVE + 128);
    assert!(reserved.get() <= bound, "{} reserved", reserved.get());

    let abort = |id: u8| whole(2, kind::ABORT, 0, &[0, 0, 0, id]);
    (3..60).for_each(|id| assert!(read_all(&mut reader, &abort(id)).unwrap().is_empty()));
    assert_eq!((reader.ahead, reader.unfinished), (0, 0));
    let long = body(5_000_000, 3);
    reserved.set(0);
    read_all(&mut reader, &set_chunk_size(100_000)).unwrap();
    let mut message = whole(6, 9, 0, &long[..100_000]);
    message[4..7].copy_from_slice(&(long.len() as u32).to_be_bytes()[1..]);
    long[100_000..].chunks(100_000).for_each(|chunk| {
        message.push(0xc6);
        message.extend(chunk);
    });
    let (front, back) = message.split_at(1_000_000);
    assert!(read_all(&mut reader, front).unwrap().is_empty());
    assert!(reserved.get() < 4 * front.len(), "{} reserved", reserved.get());
    assert_eq!(read_all(&mut reader, back).unwrap()[0].body, long);
    assert_eq!((reader.ahead, reader.unfinished), (0, 0));
}

/// Counts the bytes that were ever reserved.
struct Counting(HeapPool, Rc<Cell<usize>>);

impl Pool for Counting {
    type Region = <HeapPool as Pool>::Region;

    fn reserve(&mut self, len: usize) -> Option<Self::Region> {
        self.1.set(self.1.get() + len);
        self.0.reserve(len)
    }
}
