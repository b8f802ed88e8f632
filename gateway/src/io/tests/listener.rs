use std::io::{ErrorKind, Write};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

use super::super::Listener;
use super::*;

#[test]
fn a_group_shares_one_port_that_nobody_else_gets() {
    let (address, group) = Listener::bind_group(LOOPBACK, 3).unwrap();
    assert!(address.port() != 0 && group.len() == 3);
    assert!(group.iter().all(|one| one.local_addr().unwrap() == address));
    let taken = Listener::bind_group(address, 2).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    drop(group);
    Listener::bind_group(address, 1).expect("free again");
}

#[test]
fn a_port_that_another_shares_is_in_use() {
    let other = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    other.set_reuse_address(true).unwrap();
    other.set_reuse_port(true).unwrap();
    other.bind(&LOOPBACK.into()).unwrap();
    other.listen(1).unwrap();
    let address = other.local_addr().unwrap().as_socket().unwrap();
    assert_eq!(Listener::bind_group(address, 2).unwrap_err().kind(), ErrorKind::AddrInUse);
}

#[test]
fn connections_are_spread_over_the_group() {
    let (address, group) = Listener::bind_group(LOOPBACK, 2).unwrap();
    let clients: Vec<_> = (0..64).map(|_| TcpStream::connect(address).unwrap()).collect();
    let waiting = |listener: &TcpListener| {
        listener.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| listener.accept().ok()).count()
    };
    let counts: Vec<_> = group.iter().map(waiting).collect();
    assert_eq!(counts.iter().sum::<usize>(), clients.len());
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

#[test]
fn a_burst_is_accepted_whole_though_waits_are_dropped() {
    on_each_backend(|| async {
        let (address, group) = Listener::bind_group(LOOPBACK, 1).unwrap();
        let listener = Listener::from_std(group.into_iter().next().unwrap()).unwrap();
        assert_eq!(listener.local_addr(), address);
        let connecting = std::thread::spawn(move || {
            let connect = |n: u32| {
                let mut peer = TcpStream::connect(address).unwrap();
                peer.write_all(&n.to_be_bytes()).unwrap();
                peer
            };
            (0..300).map(connect).collect::<Vec<_>>()
        });
        let mut seen = Vec::new();
        let mut conns = Vec::new();
        while conns.len() < 300 {
            // The wait is dropped every millisecond, whatever it was about to yield.
            tokio::select! {
                biased;
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
                accepted = listener.accept() => conns.push(accepted.unwrap()),
            }
        }
        for (conn, peer) in &conns {
            assert_eq!(conn.peer_addr(), *peer);
            assert_eq!(conn.local_addr().unwrap(), address);
            let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
            seen.push(conn.read_with(number).await.unwrap().unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..300).collect::<Vec<_>>());
        connecting.join().unwrap();
    });
}

#[test]
fn accepted_sockets_do_not_delay_and_notice_dead_peers() {
    let (address, group) = Listener::bind_group(LOOPBACK, 1).unwrap();
    let waiting = group[0].try_clone().unwrap();
    on_each_backend(|| async {
        let listener = Listener::from_std(waiting.try_clone().unwrap()).unwrap();
        let _peer = TcpStream::connect(address).unwrap();
        let (conn, _) = listener.accept().await.unwrap();
        conn.with_socket(|socket: SockRef| {
            assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
        });
    });
}
