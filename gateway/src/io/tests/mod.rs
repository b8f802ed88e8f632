//! The contract of the connections, on both backends.

mod conn;
mod http;
mod listener;
mod ring;
mod tls;
mod transport;

use std::future::Future;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{Backend, Conn, uring};
use crate::core::runtime::run;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Far beyond what any test takes: it only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the test on every backend this machine allows.
pub(super) fn on_each_backend<F: Future<Output = ()>>(test: impl Fn() -> F) {
    on_backend(Backend::Epoll, test());
    match uring::probe() {
        Ok(()) => on_backend(Backend::Uring, test()),
        Err(error) => eprintln!("only on epoll: {error}"),
    }
}

fn on_backend(backend: Backend, test: impl Future<Output = ()>) {
    let bounded = async { tokio::time::timeout(PATIENCE, test).await };
    run(backend, None, bounded).unwrap().expect("the test hangs");
}

/// A connection of the core, and its peer with blocking calls.
pub(super) fn pair() -> (Conn, TcpStream) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_read_timeout(Some(PATIENCE)).unwrap();
    (Conn::new(listener.accept().unwrap().0).unwrap(), peer)
}

/// All that the peer gets until the end of the stream, in small reads.
fn read_to_end(mut peer: TcpStream) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match peer.read(&mut piece).unwrap() {
            0 => return all,
            count => all.extend(&piece[..count]),
        }
    }
}

/// Bytes that differ from their neighbours, near and far.
fn pattern(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|n| ((n ^ seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
