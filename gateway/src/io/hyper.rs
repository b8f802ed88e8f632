//! A connection as hyper wants it, without copying media.

use std::future::Future;
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::{Instant, Sleep};

use super::conn::Sending;
use super::{Arena, Batch, Conn};

/// hyper's view of a [`Conn`]. It takes slices into a queue (those of arena blocks by handle, others by
/// copy), which goes out with one send per flush; while that is under way a second queue fills.
pub struct HyperIo {
    conn: Conn,
    arena: &'static Arena,
    /// An idle connection has none.
    queue: Option<Batch>,
    sending: Option<Sending>,
    deadline: Deadline,
}

/// Bytes in one queue. With the deadline this is the slowest peer that is served.
const QUEUE_BYTES: usize = 1 << 20;

/// Copied bytes in one queue: below the size from which malloc maps memory anew for each use.
const COPIED_BYTES: usize = 64 * 1024;

/// Slices in one queue: no more than one call takes.
const QUEUE_PIECES: usize = 1000;

/// Arena slices below this size are copied.
const SHARE_FROM_BYTES: usize = 1024;

impl HyperIo {
    /// `send_limit` is how long the peer may take for one queue of at most 1 MiB; then the connection
    /// ends. Await [`Conn::readable`] before: hyper has a buffer from its first read on.
    #[must_use]
    pub fn new(conn: Conn, arena: &'static Arena, send_limit: Duration) -> HyperIo {
        let deadline = Deadline::new(send_limit);
        HyperIo { conn, arena, queue: None, sending: None, deadline }
    }

    /// The connection itself, when hyper is done with it (after a switch of protocols). What hyper has
    /// not flushed is lost.
    #[must_use]
    pub fn into_conn(self) -> Conn {
        self.conn
    }

    /// Takes as much as the queue has room for.
    fn enqueue(&mut self, slices: &[IoSlice]) -> usize {
        let queue = self.queue.get_or_insert_with(Batch::pooled);
        let mut taken = 0;
        for slice in slices {
            let room = QUEUE_BYTES.saturating_sub(queue.len());
            let wanted = &slice[..slice.len().min(room)];
            let count = if queue.pieces() < QUEUE_PIECES {
                enqueue_one(queue, self.arena, wanted)
            } else {
                0
            };
            taken += count;
            if count < slice.len() {
                break;
            }
        }
        taken
    }

    /// Begins to send the queue, when nothing is under way.
    fn start(&mut self) {
        if self.sending.is_none()
            && let Some(queue) = self.queue.take()
        {
            self.sending = Some(self.conn.send(queue));
            self.deadline.begin();
        }
    }

    /// Ready when nothing is under way.
    fn poll_sent(&mut self, cx: &mut Context) -> Poll<io::Result<()>> {
        let Some(sending) = &mut self.sending else {
            return Poll::Ready(Ok(()));
        };
        let Poll::Ready((batch, result)) = Pin::new(sending).poll(cx) else {
            self.deadline.poll(&self.conn, cx);
            return Poll::Pending;
        };
        self.sending = None;
        batch.recycle();
        Poll::Ready(result.map_err(|error| self.deadline.explain(error)))
    }
}

fn enqueue_one(queue: &mut Batch, arena: &'static Arena, bytes: &[u8]) -> usize {
    if bytes.len() >= SHARE_FROM_BYTES
        && let Some(slice) = arena.lookup(bytes)
    {
        queue.block(slice);
        return bytes.len();
    }
    let room = COPIED_BYTES.saturating_sub(queue.staged_bytes());
    let count = bytes.len().min(room);
    queue.small(&bytes[..count]);
    count
}

impl Read for HyperIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context,
        mut cursor: ReadBufCursor,
    ) -> Poll<io::Result<()>> {
        if cursor.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            ready!(self.conn.poll_readable(cx))?;
            // The end that the missed deadline made is not the peer's.
            if self.deadline.missed {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            // SAFETY: nothing in the buffer is made uninitialised: only received bytes are stored.
            let unfilled = unsafe { cursor.as_mut() };
            match self.conn.try_recv_uninit(unfilled) {
                Ok(count) => {
                    // SAFETY: the kernel has written the first `count` bytes of the unfilled part.
                    unsafe { cursor.advance(count) };
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Write for HyperIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context,
        slices: &[IoSlice],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            let taken = this.enqueue(slices);
            if taken > 0 || slices.iter().all(|slice| slice.is_empty()) {
                return Poll::Ready(Ok(taken));
            }
            // The queue is full: it goes out once the one before has.
            ready!(this.poll_sent(cx))?;
            this.start();
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            ready!(this.poll_sent(cx))?;
            if this.queue.is_none() {
                return Poll::Ready(Ok(()));
            }
            this.start();
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        self.conn.shutdown(Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}

/// How long one send may take. It acts by shutting the connection down.
///
/// The timer is not set anew for each send, of which a live player has many a second: it looks when it
/// fires whether the send that it finds began long enough ago.
struct Deadline {
    limit: Duration,
    began: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    missed: bool,
}

impl Deadline {
    fn new(limit: Duration) -> Deadline {
        Deadline { limit, began: Instant::now(), timer: None, missed: false }
    }

    fn begin(&mut self) {
        self.began = Instant::now();
    }

    fn poll(&mut self, conn: &Conn, cx: &mut Context) {
        let end = self.began + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        while !self.missed && timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() < end {
                timer.as_mut().reset(end);
            } else {
                self.missed = true;
                conn.shutdown(Shutdown::Both);
            }
        }
    }

    fn explain(&self, error: io::Error) -> io::Error {
        if self.missed { io::ErrorKind::TimedOut.into() } else { error }
    }
}

#[cfg(test)]
mod tests {
    use weir_protocol::pool::Pool;

    use super::*;
    use crate::io::ArenaPool;
    use crate::io::tests::{on_each_backend, pair};

    #[test]
    fn media_is_queued_uncopied_and_the_rest_within_bounds() {
        on_each_backend(|| async {
            let arena = Arena::reserve(16 << 20).unwrap();
            let media = ArenaPool::new(arena).copy(&vec![1; 3 << 20]).unwrap();
            let heap = vec![2; 1 << 20];
            let mut io = HyperIo::new(pair().0, arena, Duration::from_secs(1));
            let head = [3; 200];
            assert_eq!(
                io.enqueue(&[IoSlice::new(&head), IoSlice::new(&media[..500_000])]),
                500_200
            );
            assert_eq!(io.queue.as_ref().unwrap().staged_bytes(), 200);
            // The slice it had no room for counts in part, and nothing after it.
            let rest = [IoSlice::new(&heap), IoSlice::new(&media)];
            assert_eq!(io.enqueue(&rest), COPIED_BYTES - 200);
            assert_eq!(io.enqueue(&[IoSlice::new(&heap)]), 0);
            assert_eq!(io.enqueue(&[IoSlice::new(&media)]), QUEUE_BYTES - 500_000 - COPIED_BYTES);
            let queue = io.queue.as_ref().unwrap();
            assert_eq!((queue.len(), queue.staged_bytes()), (QUEUE_BYTES, COPIED_BYTES));
            assert_eq!(io.enqueue(&[IoSlice::new(&media)]), 0);
        });
    }
}
