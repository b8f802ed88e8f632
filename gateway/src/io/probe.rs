//! Which kernel interface carries the sockets, decided once at start and said plainly.

use std::cell::Cell;
use std::{fmt, fs, io};

use super::uring;
use crate::config::IoChoice;

/// What carries the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Uring,
    Epoll,
}

impl Backend {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Uring => "uring",
            Backend::Epoll => "epoll",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

thread_local! {
    static CURRENT: Cell<Backend> = const { Cell::new(Backend::Epoll) };
}

impl Backend {
    /// The backend of the calling thread's runtime; epoll on a plain tokio runtime.
    #[must_use]
    pub fn current() -> Backend {
        CURRENT.get()
    }

    /// Makes this the thread's backend until the value is dropped.
    pub(crate) fn enter(self) -> Entered {
        Entered(CURRENT.replace(self))
    }
}

pub(crate) struct Entered(Backend);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// io_uring was demanded and cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProbeError(String);

/// Chooses the backend. With `Auto`, the second value says why it is not io_uring; log it.
///
/// # Errors
/// `Uring` was asked for and a ring cannot be set up; the text says what to do.
pub fn select(choice: IoChoice) -> Result<(Backend, Option<String>), ProbeError> {
    decide(choice, uring::probe)
}

fn decide(
    choice: IoChoice,
    probe: impl FnOnce() -> io::Result<()>,
) -> Result<(Backend, Option<String>), ProbeError> {
    if choice == IoChoice::Epoll {
        return Ok((Backend::Epoll, None));
    }
    match probe() {
        Ok(()) => Ok((Backend::Uring, None)),
        Err(error) if choice == IoChoice::Auto => Ok((Backend::Epoll, Some(why_not(&error)))),
        Err(error) => Err(ProbeError(why_not(&error))),
    }
}

/// One sentence: what is wrong, and what lets io_uring work.
fn why_not(error: &io::Error) -> String {
    let sysctl = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let remedy = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if matches!(sysctl.trim(), "1" | "2") => {
            "the sysctl kernel.io_uring_disabled forbids it: set it to 0"
        }
        Some(libc::EPERM | libc::EACCES) => {
            "a seccomp filter forbids it, as Docker's default profile does: run the container with \
             --security-opt seccomp=docker/seccomp.json"
        }
        Some(libc::ENOSYS) => {
            "this kernel (or a seccomp filter, or gVisor) does not have it: Linux 6.0 or later is needed"
        }
        Some(libc::EINVAL | libc::EOPNOTSUPP) => {
            "this kernel is too old for the flags in use: Linux 6.0 or later is needed"
        }
        Some(libc::ENOMEM) => {
            "no memory may be locked for it: raise RLIMIT_MEMLOCK (ulimit -l, systemd LimitMEMLOCK=) or \
             the container's memory limit"
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "no file descriptor is left for it: raise RLIMIT_NOFILE"
        }
        _ => "the ring could not be set up; io = \"epoll\" does without it",
    };
    format!("io_uring is not available ({error}): {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(code: i32) -> impl FnOnce() -> io::Result<()> {
        move || Err(io::Error::from_raw_os_error(code))
    }

    #[test]
    fn auto_falls_back_with_a_remedy_and_uring_fails_with_the_same() {
        for (code, remedy) in [
            (libc::EPERM, "seccomp"),
            (libc::ENOSYS, "Linux 6.0"),
            (libc::EINVAL, "Linux 6.0"),
            (libc::ENOMEM, "RLIMIT_MEMLOCK"),
            (libc::EMFILE, "RLIMIT_NOFILE"),
            (libc::EIO, "epoll"),
        ] {
            let (backend, reason) = decide(IoChoice::Auto, failing(code)).unwrap();
            let reason = reason.unwrap();
            assert_eq!(backend, Backend::Epoll);
            assert!(reason.contains(remedy) && reason.lines().count() == 1, "{reason}");
            let refused = decide(IoChoice::Uring, failing(code)).unwrap_err();
            assert_eq!(refused.to_string(), reason);
        }
    }

    #[test]
    fn a_working_ring_is_taken_unless_epoll_is_asked_for() {
        let epoll = decide(IoChoice::Epoll, || panic!("no need to probe")).unwrap();
        assert_eq!(epoll, (Backend::Epoll, None));
        for choice in [IoChoice::Auto, IoChoice::Uring] {
            assert_eq!(decide(choice, || Ok(())).unwrap(), (Backend::Uring, None));
        }
    }
}
