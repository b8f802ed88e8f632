//! The epoll backend: tokio's readiness, with the same calls that never wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Batch, sys};

pub(super) struct Readiness(AsyncFd<Rc<OwnedFd>>);

impl Readiness {
    /// Registers the socket with the thread's tokio runtime.
    pub(super) fn new(fd: Rc<OwnedFd>) -> io::Result<Readiness> {
        // SAFETY: the value owns a share of the descriptor, which is so open and the same file for as long
        // as it is registered.
        let registered = unsafe { AsyncFd::register(fd) };
        registered.map(Readiness).map_err(io::Error::from)
    }

    pub(super) fn poll_readable(&self, cx: &mut Context) -> Poll<io::Result<()>> {
        self.0.poll_read_ready(cx).map_ok(drop)
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        self.0.writable().await.map(drop)
    }

    /// Runs a call that reads; when it would block or has read all there is, the socket counts as not
    /// readable until the next event (epoll(7), question 9: after a short read there will be one). The
    /// peer's end is kept by the registration, also when it came with the last bytes.
    pub(super) fn try_read<T>(
        &self,
        call: impl FnOnce() -> io::Result<T>,
        drained: impl FnOnce(&T) -> bool,
    ) -> io::Result<T> {
        let mut last = None;
        let result = self.0.try_io(Interest::READABLE, |_| {
            let read = call()?;
            if !drained(&read) {
                return Ok(read);
            }
            last = Some(read);
            Err(io::ErrorKind::WouldBlock.into())
        });
        last.map_or(result, Ok)
    }

    /// Sends what fits, once anything does.
    pub(super) fn poll_send(&self, batch: &mut Batch, cx: &mut Context) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            let message = batch.message();
            // SAFETY: the batch is not touched between making the header and the call.
            let sent = guard.try_io(|fd| unsafe { sys::sendmsg(fd.get_ref().as_fd(), message) });
            if let Ok(result) = sent {
                return Poll::Ready(result);
            }
        }
    }
}
