//! The system calls that std and socket2 do not offer, each behind one small function.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// The limit on open files, before and after [`raise_fd_limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLimit {
    pub before: u64,
    pub after: u64,
}

/// Raises the soft limit on open files to the hard one.
///
/// # Errors
/// The system's error; the limit is then unchanged.
pub fn raise_fd_limit() -> io::Result<FdLimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid `rlimit` that the call fills.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    let before = limit.rlim_cur;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is a valid `rlimit` that the call only reads.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok(FdLimit { before, after: limit.rlim_cur })
}

/// CPUs this process may run on, in rising order: the container's share, not the machine's.
///
/// # Errors
/// The system's error.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let mut mask = CpuMask::default();
    // SAFETY: the call writes at most the given size into the mask.
    check(unsafe { libc::sched_getaffinity(0, size_of::<CpuMask>(), mask.as_mut_ptr()) })?;
    Ok((0..MAX_CPUS).filter(|&cpu| mask.0[cpu / WORD] >> (cpu % WORD) & 1 == 1).collect())
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// `InvalidInput` for a CPU that the process may not use.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    let mut mask = CpuMask::default();
    let word = mask.0.get_mut(cpu / WORD).ok_or(io::ErrorKind::InvalidInput)?;
    *word |= 1 << (cpu % WORD);
    // SAFETY: the call reads at most the given size from the mask.
    check(unsafe { libc::sched_setaffinity(0, size_of::<CpuMask>(), mask.as_mut_ptr()) })
}

const MAX_CPUS: usize = 8192;
const WORD: usize = u64::BITS as usize;

/// The kernel's own form (an array of longs); `libc::cpu_set_t` ends at 1024 CPUs.
struct CpuMask([u64; MAX_CPUS / WORD]);

impl Default for CpuMask {
    fn default() -> CpuMask {
        CpuMask([0; MAX_CPUS / WORD])
    }
}

impl CpuMask {
    fn as_mut_ptr(&mut self) -> *mut libc::cpu_set_t {
        self.0.as_mut_ptr().cast()
    }
}

/// Receives what is there, without waiting; `Ok(0)` is the end of the stream.
pub(super) fn recv(fd: BorrowedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `[u8]` and `[MaybeUninit<u8>]` have one layout, and `recv_uninit` stores only bytes that
    // the kernel has written, so no byte of `buffer` becomes uninitialised.
    let buffer = unsafe { &mut *(std::ptr::from_mut(buffer) as *mut [MaybeUninit<u8>]) };
    recv_uninit(fd, buffer)
}

/// As [`recv`]; the first bytes of `buffer`, as many as returned, are initialised.
pub(super) fn recv_uninit(fd: BorrowedFd, buffer: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    // SAFETY: the call writes at most `buffer.len()` bytes into the exclusively borrowed buffer.
    let received = unsafe {
        let start = buffer.as_mut_ptr().cast();
        libc::recv(fd.as_raw_fd(), start, buffer.len(), libc::MSG_DONTWAIT)
    };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

/// Sends as much as fits into the socket's buffer, without waiting.
///
/// # Safety
/// `message` points at a header whose slices are all readable.
pub(super) unsafe fn sendmsg(fd: BorrowedFd, message: *const libc::msghdr) -> io::Result<usize> {
    // SAFETY: the caller vouches for the header; the call only reads through it.
    let sent =
        unsafe { libc::sendmsg(fd.as_raw_fd(), message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Private address space of which only written pages cost memory. Never unmapped.
pub(super) fn map_reserved(bytes: usize) -> io::Result<NonNull<u8>> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory in use.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Lets the system take the pages back; they read as zero afterwards. A refusal only keeps them.
///
/// # Safety
/// The range is whole pages of a mapping by [`map_reserved`], and nobody uses its bytes.
pub(super) unsafe fn give_back_pages(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller vouches for the range.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTNEED) };
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fd_limit_is_raised_once() {
        let first = raise_fd_limit().unwrap();
        assert!(first.after >= first.before);
        assert_eq!(raise_fd_limit().unwrap(), FdLimit { before: first.after, after: first.after });
    }

    #[test]
    fn a_thread_can_be_pinned_to_each_allowed_cpu_and_no_other() {
        for cpu in allowed_cpus().unwrap() {
            let pinned = std::thread::spawn(move || pin_to(cpu).and_then(|()| allowed_cpus()));
            assert_eq!(pinned.join().unwrap().unwrap(), [cpu]);
        }
        assert_eq!(pin_to(MAX_CPUS).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
