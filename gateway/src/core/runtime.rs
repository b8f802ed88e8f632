//! The runtime of one core.

use std::future::Future;
use std::io;

use tokio::task::LocalSet;

use crate::io::uring::Ring;
use crate::io::{Backend, pin_to};

/// Runs a core on the calling thread until `future` is ready; tasks by `tokio::task::spawn_local` end
/// with it, and so do their sockets. With a CPU given, the thread is bound to it.
///
/// A task that is always ready starves the others of I/O: completions are looked for when the core has
/// nothing else to do. Await a socket, a timer or a mailbox; do not yield in a loop.
///
/// # Errors
/// The CPU is not among [`crate::io::allowed_cpus`], or the ring or the epoll instance cannot be had.
pub fn run<F: Future>(backend: Backend, cpu: Option<usize>, future: F) -> io::Result<F::Output> {
    if let Some(cpu) = cpu {
        pin_to(cpu)?;
    }
    match backend {
        Backend::Uring => {
            let ring = Ring::new()?;
            let _entered = backend.enter();
            Ok(ring.block_on(future))
        }
        Backend::Epoll => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let _entered = backend.enter();
            Ok(LocalSet::new().block_on(&runtime, future))
        }
    }
}
