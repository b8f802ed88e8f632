//! What one send carries: small copied heads between shared payload slices.

use std::cell::RefCell;
use std::fmt;

use bytes::Bytes;
use weir_protocol::rtmp::chunk::Sink;

use super::arena::BlockSlice;

/// Bytes to send with one system call, in order. Small pieces are copied and lie together; large ones
/// are shared. After [`Batch::clear`] it is used again without an allocation.
#[derive(Default)]
pub struct Batch {
    pieces: Vec<Piece>,
    /// The copied pieces' bytes.
    staging: Vec<u8>,
    unsent: usize,
    /// The first piece that is not sent wholly, and how much of it is.
    next: usize,
    next_sent: usize,
    wire: Option<Box<Wire>>,
}

enum Piece {
    Staged { start: usize, len: usize },
    Shared(Bytes),
    Block(BlockSlice),
}

/// The kernel's view of the unsent bytes. On the heap, so that it stays where it is while the batch
/// moves into an operation.
struct Wire {
    header: libc::msghdr,
    slices: Vec<libc::iovec>,
}

/// Below this size a copy is cheaper than a slice of its own (its count, its entry, its end).
const SHARE_FROM_BYTES: usize = 256;

/// What a cleared batch keeps for its next use.
const KEPT_STAGING_BYTES: usize = 16 * 1024;
const KEPT_PIECES: usize = 256;

/// What all batches hold together that a core keeps for [`Batch::pooled`]. One access unit goes to all
/// players of a stream before the first of those sends ends, and such a batch holds about 1 KiB: this
/// is enough for some thousand players.
const SPARE_BYTES: usize = 4 << 20;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare { batches: Vec::new(), bytes: 0 }) };
}

struct Spare {
    batches: Vec<Batch>,
    bytes: usize,
}

impl Batch {
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// An empty batch that was used before, if the core has one. An idle connection so needs none.
    #[must_use]
    pub fn pooled() -> Batch {
        SPARE
            .with_borrow_mut(|spare| {
                let batch = spare.batches.pop()?;
                spare.bytes -= batch.held_bytes();
                Some(batch)
            })
            .unwrap_or_default()
    }

    /// Clears the batch and keeps it for [`Batch::pooled`].
    pub fn recycle(mut self) {
        self.clear();
        SPARE.with_borrow_mut(|spare| {
            let bytes = spare.bytes + self.held_bytes();
            if bytes <= SPARE_BYTES {
                spare.bytes = bytes;
                spare.batches.push(self);
            }
        });
    }

    /// Memory that the batch itself takes. It only changes by use, so it is the same on the way in and
    /// out of the spare ones.
    fn held_bytes(&self) -> usize {
        let slices = self.wire.as_ref().map_or(0, |wire| wire.slices.capacity());
        size_of::<Batch>()
            + size_of::<Wire>()
            + self.staging.capacity()
            + self.pieces.capacity() * size_of::<Piece>()
            + slices * size_of::<libc::iovec>()
    }

    /// Appends a copy of `bytes`.
    pub fn small(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = self.staging.len();
        self.staging.extend_from_slice(bytes);
        self.unsent += bytes.len();
        // Staged bytes only grow at the end, so this piece goes on where the last staged one ended.
        match self.pieces.last_mut() {
            Some(Piece::Staged { len, .. }) => *len += bytes.len(),
            _ => self.pieces.push(Piece::Staged { start, len: bytes.len() }),
        }
    }

    /// Appends `bytes` without copying them, unless they are few.
    pub fn shared(&mut self, bytes: Bytes) {
        if bytes.len() < SHARE_FROM_BYTES {
            return self.small(&bytes);
        }
        self.unsent += bytes.len();
        self.pieces.push(Piece::Shared(bytes));
    }

    /// Appends a slice of an arena block, found by its address.
    pub fn block(&mut self, slice: BlockSlice) {
        self.unsent += slice.len();
        self.pieces.push(Piece::Block(slice));
    }

    /// Bytes not sent yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.unsent
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unsent == 0
    }

    /// Slices the kernel would be given, at most: the measure of the batch's own size.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes that were copied into the batch.
    #[must_use]
    pub fn staged_bytes(&self) -> usize {
        self.staging.len()
    }

    /// Forgets all bytes and lets go of the shared ones; moderate buffers stay for the next use.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.pieces.shrink_to(KEPT_PIECES);
        self.staging.clear();
        self.staging.shrink_to(KEPT_STAGING_BYTES);
        (self.unsent, self.next, self.next_sent) = (0, 0, 0);
    }

    /// Makes room for so many copied bytes at once.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.staging.reserve(bytes);
    }

    /// The unsent bytes, piece by piece.
    pub(super) fn unsent(&self) -> impl Iterator<Item = &[u8]> {
        let mut sent = self.next_sent;
        let pieces = self.pieces.iter().skip(self.next);
        pieces.map(move |piece| &piece.bytes(&self.staging)[std::mem::take(&mut sent)..])
    }

    /// Notes that the first `sent` unsent bytes are on their way.
    pub(super) fn advance(&mut self, sent: usize) {
        self.unsent = self.unsent.saturating_sub(sent);
        let mut left = self.next_sent + sent;
        while let Some(piece) = self.pieces.get(self.next) {
            let len = piece.bytes(&self.staging).len();
            if left < len {
                break;
            }
            left -= len;
            self.next += 1;
        }
        self.next_sent = left;
    }

    /// A header over the unsent bytes, as many slices as one call takes. It stays valid while the
    /// batch is not changed, also when the batch is moved.
    pub(super) fn message(&mut self) -> *const libc::msghdr {
        let wire = self.wire.get_or_insert_default();
        let unsent = self.pieces.iter().skip(self.next).take(libc::UIO_MAXIOV as usize);
        wire.slices.clear();
        wire.slices.extend(unsent.map(|piece| {
            let bytes = piece.bytes(&self.staging);
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
        }));
        if let Some(first) = wire.slices.first_mut() {
            first.iov_base = first.iov_base.wrapping_byte_add(self.next_sent);
            first.iov_len -= self.next_sent;
        }
        wire.header.msg_iov = wire.slices.as_mut_ptr();
        wire.header.msg_iovlen = wire.slices.len();
        &raw const wire.header
    }
}

impl Sink for Batch {
    fn small(&mut self, bytes: &[u8]) {
        Batch::small(self, bytes);
    }

    fn shared(&mut self, bytes: Bytes) {
        Batch::shared(self, bytes);
    }
}

impl Piece {
    fn bytes<'a>(&'a self, staging: &'a [u8]) -> &'a [u8] {
        match self {
            Piece::Staged { start, len } => &staging[*start..start + len],
            Piece::Shared(bytes) => bytes,
            Piece::Block(slice) => slice,
        }
    }
}

impl Default for Wire {
    fn default() -> Wire {
        // SAFETY: a `msghdr` of zeros (no name, no slices, no control data) is a valid value.
        Wire { header: unsafe { std::mem::zeroed() }, slices: Vec::new() }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Batch")
            .field("unsent", &self.unsent)
            .field("pieces", &self.pieces.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would read.
    fn unsent(batch: &mut Batch) -> Vec<u8> {
        let message = batch.message();
        // SAFETY: the header and its slices are valid while the batch is not changed.
        let slices = unsafe {
            std::slice::from_raw_parts((*message).msg_iov.cast_const(), (*message).msg_iovlen)
        };
        let bytes = |slice: &libc::iovec| {
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(slice.iov_base.cast::<u8>(), slice.iov_len) }
        };
        slices.iter().flat_map(bytes).copied().collect()
    }

    #[test]
    fn bytes_keep_their_order_and_small_neighbours_share_a_slice() {
        let mut batch = Batch::new();
        let large = Bytes::from(vec![7; 1000]);
        batch.small(b"head");
        batch.small(b"er");
        batch.shared(large.clone());
        batch.shared(Bytes::from_static(b"few"));
        batch.small(b"");
        assert_eq!((batch.len(), batch.pieces(), batch.staged_bytes()), (1009, 3, 9));
        assert_eq!(unsent(&mut batch), [b"header".as_slice(), &large, b"few"].concat());
    }

    #[test]
    fn a_short_send_goes_on_at_any_byte() {
        let mut whole = Vec::new();
        let mut batch = Batch::new();
        for n in 0..40u8 {
            batch.small(&[n; 3]);
            batch.shared(Bytes::from(vec![n; 256 + usize::from(n)]));
            whole.extend(vec![n; 3 + 256 + usize::from(n)]);
        }
        for step in [1, 2, 3, 255, 256, 257, 258, 259, 260, 700, 1, 5000] {
            batch.advance(step);
            whole.drain(..step);
            assert_eq!(batch.len(), whole.len());
            assert_eq!(unsent(&mut batch), whole);
        }
        batch.advance(whole.len());
        assert!(batch.is_empty() && unsent(&mut batch).is_empty());
    }

    #[test]
    fn a_recycled_batch_is_empty_and_keeps_little() {
        let mut batch = Batch::new();
        batch.small(&vec![1; 1 << 20]);
        batch.recycle();
        let mut again = Batch::pooled();
        assert!(again.is_empty() && unsent(&mut again).is_empty());
        assert!(again.staging.capacity() <= KEPT_STAGING_BYTES);
    }

    #[test]
    fn spare_batches_are_many_when_small_and_bounded_in_bytes() {
        let batches = |len: usize| {
            let mut batches: Vec<Batch> = (0..5000).map(|_| Batch::pooled()).collect();
            batches.iter_mut().for_each(|batch| batch.small(&vec![1; len]));
            batches.into_iter().for_each(Batch::recycle);
            SPARE.with_borrow(|spare| (spare.batches.len(), spare.bytes))
        };
        assert_eq!(batches(100).0, 5000);
        let (count, bytes) = batches(10_000);
        assert!(bytes <= SPARE_BYTES && count < 1000, "{count} of {bytes} bytes");
        let all: Vec<Batch> = (0..count).map(|_| Batch::pooled()).collect();
        assert_eq!((all.len(), SPARE.with_borrow(|spare| spare.bytes)), (count, 0));
    }
}
