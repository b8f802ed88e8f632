//! What only a process of its own can show: descriptors are counted per process.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use weir::config::IoChoice;
use weir::core::runtime::run;
use weir::io::probe::select;
use weir::io::{Backend, Batch, Listener};
use weir::process::open_fds;

const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until as many descriptors are open as before: closing is a matter of completions.
async fn settle(before: u64) {
    let settled = async {
        while open_fds().unwrap() != before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let last = tokio::time::timeout(PATIENCE, settled).await;
    last.unwrap_or_else(|_| panic!("{before} descriptors became {:?}", open_fds()));
}

/// Connections that end in every way: served, idle, mid-send, reset; and the peer's side of them.
async fn two_hundred_connections(listener: &Listener) {
    for n in 0..200 {
        let mut peer = TcpStream::connect(listener.local_addr()).unwrap();
        peer.set_nonblocking(n % 4 != 0).unwrap();
        let (conn, _) = listener.accept().await.unwrap();
        let mut batch = Batch::new();
        match n % 4 {
            0 => {
                peer.write_all(b"hello").unwrap();
                let hello = conn.read_with(Bytes::copy_from_slice).await.unwrap().unwrap();
                batch.shared(hello);
                conn.send(batch).await.1.unwrap();
                peer.read_exact(&mut [0; 5]).unwrap();
            }
            1 => {
                let idle = conn.clone();
                let waiting = tokio::task::spawn_local(async move { idle.readable().await });
                tokio::task::yield_now().await;
                waiting.abort();
            }
            2 => {
                batch.shared(Bytes::from(vec![0; 16 << 20]));
                let sending = tokio::time::timeout(Duration::from_millis(1), conn.send(batch));
                assert!(sending.await.is_err());
            }
            _ => {
                batch.shared(Bytes::from(vec![0; 16 << 20]));
                let (_, result) = conn.send_within(batch, Duration::from_millis(1)).await;
                result.unwrap_err();
            }
        }
    }
}

/// With no descriptor left, accepting fails, and goes on where it stopped when there is one again.
async fn exhaustion(listener: &Listener) {
    let mut peer = TcpStream::connect(listener.local_addr()).unwrap();
    let all: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let error = listener.accept().await.err().expect("no descriptor is left");
    drop(all);
    assert_eq!(error.raw_os_error(), Some(24), "EMFILE");
    let (conn, _) = listener.accept().await.unwrap();
    peer.write_all(b"!").unwrap();
    assert_eq!(conn.read_with(<[u8]>::len).await.unwrap(), Some(1));
}

#[test]
fn descriptors_come_back() {
    let (best, _) = select(IoChoice::Auto).unwrap();
    for backend in [Backend::Epoll, best] {
        let core = async {
            let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let (_, mut group) = Listener::bind_group(loopback, 1).unwrap();
            let listener = Listener::from_std(group.pop().unwrap()).unwrap();
            let before = open_fds().unwrap();
            two_hundred_connections(&listener).await;
            settle(before).await;
            exhaustion(&listener).await;
            settle(before).await;
        };
        run(backend, None, core).unwrap();
    }
}
