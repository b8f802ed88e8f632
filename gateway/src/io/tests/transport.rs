use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::super::transport::ConnectError;
use super::super::{Batch, Remote, Transport};
use super::*;

#[test]
fn an_outgoing_connection_carries_bytes_both_ways() {
    on_each_backend(|| async {
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let port = listener.local_addr().unwrap().port();
        let echo = thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut bytes = vec![0; 8 << 20];
            peer.read_exact(&mut bytes).unwrap();
            peer.write_all(&bytes).unwrap();
        });
        // The name may have an IPv6 address as well, where nobody listens.
        let remote = Remote::new("localhost", port);
        let transport = Transport::connect(&remote, PATIENCE).await.unwrap();
        assert_eq!(transport.peer_addr().port(), port);
        let sent = pattern(8 << 20, 9);
        let mut batch = Batch::new();
        batch.shared(sent.clone().into());
        let (_, result) = transport.send_within(batch, PATIENCE).await;
        result.unwrap();
        let mut got: Vec<u8> = Vec::new();
        while transport.read_with(|bytes| got.extend(bytes)).await.unwrap().is_some() {}
        assert!(got == sent);
        assert_eq!((transport.sent().bytes, transport.received().bytes), (8 << 20, 8 << 20));
        echo.join().unwrap();
    });
}

#[test]
fn what_fails_is_named() {
    on_each_backend(|| async {
        let free = TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
        let refused = Transport::connect(&Remote::new("127.0.0.1", free.port()), PATIENCE).await;
        let error = refused.err().unwrap();
        assert!(matches!(error, ConnectError::Connect { address, .. } if address == free));
        assert!(error.to_string().contains("refused"), "{error}");
        // RFC 2606: nobody has this name.
        let error = Transport::connect(&Remote::new("weir.invalid", 1), PATIENCE).await.err();
        assert!(matches!(error, Some(ConnectError::Lookup { .. })), "{error:?}");
    });
}

#[test]
fn an_attempt_without_an_answer_ends_at_its_limit() {
    on_each_backend(|| async {
        // A full queue of connections: the kernel drops what comes on top.
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&LOOPBACK.into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        let remote = Remote::new(address.ip().to_string(), address.port());
        let mut waiting = Vec::new();
        let error = loop {
            match Transport::connect(&remote, Duration::from_millis(200)).await {
                Ok(transport) => waiting.push(transport),
                Err(error) => break error,
            }
            assert!(waiting.len() < 16, "the queue takes no end");
        };
        assert!(matches!(error, ConnectError::Late { .. }), "{error}");
    });
}
