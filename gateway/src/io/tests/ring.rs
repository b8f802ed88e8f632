//! Where io_uring is forbidden, and where it ends.

use weir_protocol::pool::Pool;

use super::super::probe::select;
use super::super::{Arena, ArenaPool, Batch};
use super::*;
use crate::config::IoChoice;

/// Lets `io_uring_setup` fail with `code`, in this thread for good.
fn forbid_io_uring(code: i32) {
    let filter = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        filter((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0, 0),
        filter(
            (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            0,
            1,
            libc::SYS_io_uring_setup as u32,
        ),
        filter((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, libc::SECCOMP_RET_ERRNO | code as u32),
        filter((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is valid for the call, and both calls change this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program), 0);
    }
}

#[test]
fn a_seccomp_filter_is_named_as_the_reason() {
    for (code, word) in [(libc::EPERM, "forbids"), (libc::ENOSYS, "Linux 6.0")] {
        std::thread::spawn(move || {
            forbid_io_uring(code);
            let (backend, reason) = select(IoChoice::Auto).unwrap();
            assert_eq!(backend, Backend::Epoll);
            assert!(reason.as_ref().unwrap().contains(word), "{reason:?}");
            assert_eq!(select(IoChoice::Uring).unwrap_err().to_string(), reason.unwrap());
            assert!(run(Backend::Uring, None, async {}).is_err());
            on_backend(Backend::Epoll, async {
                let (conn, peer) = pair();
                drop(peer);
                assert_eq!(conn.read_with(<[u8]>::len).await.unwrap(), None);
            });
        })
        .join()
        .unwrap();
    }
}

#[test]
fn a_core_may_end_in_the_middle_of_everything() {
    let mut peers = Vec::new();
    for backend in [Backend::Epoll, Backend::Uring] {
        if backend == Backend::Uring && uring::probe().is_err() {
            continue;
        }
        let arena = Arena::reserve(64 << 20).unwrap();
        on_backend(backend, async {
            let bytes = ArenaPool::new(arena).copy(&[9; 8 << 20]).unwrap();
            let mut batch = Batch::new();
            batch.shared(bytes);
            let (conn, peer) = pair();
            peers.push(peer);
            let reading = conn.clone();
            tokio::task::spawn_local(async move { conn.send(batch).await.1 });
            tokio::task::spawn_local(async move { reading.readable().await });
            // Both are in the kernel once the core has waited.
            tokio::time::sleep(Duration::from_millis(5)).await;
        });
        // The bytes of a send that was cut off on a ring are never handed out again.
        let left = usize::from(backend == Backend::Uring);
        assert_eq!(arena.usage().in_use_blocks, left, "{backend}");
        on_backend(backend, async {});
    }
}
