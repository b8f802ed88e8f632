use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use socket2::SockRef;

use super::{Backend, epoll, uring};

/// A socket on the core's backend. The descriptor closes when the last operation on it is over.
pub(super) struct Socket {
    fd: Rc<OwnedFd>,
    readiness: Readiness,
}

pub(super) enum Readiness {
    Uring(uring::Readiness),
    Epoll(epoll::Readiness),
}

impl Socket {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Socket> {
        let fd = Rc::new(fd);
        let readiness = match Backend::current() {
            Backend::Uring => Readiness::Uring(uring::Readiness::default()),
            Backend::Epoll => Readiness::Epoll(epoll::Readiness::new(Rc::clone(&fd))?),
        };
        Ok(Socket { fd, readiness })
    }

    pub(super) fn fd(&self) -> &Rc<OwnedFd> {
        &self.fd
    }

    pub(super) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// One waiter at a time: the last one to poll is woken.
    pub(super) fn poll_readable(&self, cx: &mut Context) -> Poll<io::Result<()>> {
        match &self.readiness {
            Readiness::Uring(readiness) => readiness.poll_readable(&self.fd, cx),
            Readiness::Epoll(readiness) => readiness.poll_readable(cx),
        }
    }

    /// Waits until a connection that has begun is there, or has failed.
    pub(super) async fn connected(&self) -> io::Result<()> {
        match &self.readiness {
            Readiness::Uring(_) => uring::writable(&self.fd).await?,
            Readiness::Epoll(readiness) => readiness.writable().await?,
        }
        let socket = SockRef::from(self.fd.as_ref());
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        // A ring's send on a non-blocking socket would not wait for room. All other calls say
        // themselves that they do not wait.
        socket.set_nonblocking(false)
    }

    /// Runs a call that reads without waiting. `drained` tells from what it read that nothing is left,
    /// which saves the epoll backend a call that finds this out.
    pub(super) fn try_read<T>(
        &self,
        mut call: impl FnMut(BorrowedFd) -> io::Result<T>,
        drained: impl FnOnce(&T) -> bool,
    ) -> io::Result<T> {
        let mut uninterrupted = || loop {
            match call(self.fd.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        };
        match &self.readiness {
            Readiness::Uring(_) => uninterrupted(),
            Readiness::Epoll(readiness) => readiness.try_read(uninterrupted, drained),
        }
    }

    /// Ends the given directions; operations in flight then end too. A socket that is not connected
    /// any more has nothing to end.
    pub(super) fn shutdown(&self, how: Shutdown) {
        let _ = SockRef::from(self.fd.as_ref()).shutdown(how);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Readiness::Uring(readiness) = &mut self.readiness {
            readiness.abandon();
            // An operation in flight holds the descriptor open until it ends, which it does now.
            if Rc::strong_count(&self.fd) > 1 {
                self.shutdown(Shutdown::Both);
            }
        }
    }
}
