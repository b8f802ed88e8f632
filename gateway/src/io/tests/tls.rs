//! The contract of [`Transport`] with TLS, against rustls's blocking streams.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
    SupportedProtocolVersion,
};

use super::super::tls::TlsError;
use super::super::transport::ConnectError;
use super::super::{Batch, Remote, Transport};
use super::*;

type Version = &'static SupportedProtocolVersion;
type Peer = StreamOwned<ClientConnection, TcpStream>;

/// A server's configuration, and that of clients that trust it.
fn configs(version: Version) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

/// The server's side after its handshake, and its peer with blocking calls.
async fn tls_pair(version: Version) -> (Transport, Peer) {
    let (server, client) = configs(version);
    let (conn, stream) = pair();
    let transport = Transport::server(conn, server).unwrap();
    let peer = thread::spawn(move || {
        let name = ServerName::try_from("localhost").unwrap();
        let mut peer = StreamOwned::new(ClientConnection::new(client, name).unwrap(), stream);
        while peer.conn.is_handshaking() {
            peer.conn.complete_io(&mut peer.sock).unwrap();
        }
        peer
    });
    transport.handshake(PATIENCE).await.unwrap();
    (transport, peer.join().unwrap())
}

fn batch(bytes: impl Into<Bytes>) -> Batch {
    let mut batch = Batch::new();
    batch.shared(bytes.into());
    batch
}

async fn read_all(transport: &Transport) -> Vec<u8> {
    let mut all: Vec<u8> = Vec::new();
    while transport.read_with(|bytes| all.extend(bytes)).await.unwrap().is_some() {}
    all
}

/// What a blocking handshake attempt with these first bytes comes to.
async fn greet(bytes: &'static [u8]) -> (Result<(), TlsError>, Vec<u8>) {
    let (server, _) = configs(&TLS13);
    let (conn, mut peer) = pair();
    let transport = Transport::server(conn, server).unwrap();
    peer.write_all(bytes).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let result = transport.handshake(PATIENCE).await;
    drop(transport);
    (result, read_to_end(peer))
}

#[test]
fn bytes_go_both_ways_at_once_in_order_and_however_they_are_split() {
    for version in [&TLS12, &TLS13] {
        on_each_backend(|| async {
            let (transport, mut peer) = tls_pair(version).await;
            let (upward, downward) = (pattern(3 << 20, 1), pattern(5 << 20, 2));
            let (to_send, to_get) = (upward.clone(), downward.clone());
            let talking = thread::spawn(move || {
                let (mut sent, mut got) = (to_send.as_slice(), vec![0; to_get.len()]);
                let mut room = got.as_mut_slice();
                while !sent.is_empty() || !room.is_empty() {
                    let (piece, rest) = sent.split_at(sent.len().min(7001));
                    peer.write_all(piece).unwrap();
                    sent = rest;
                    let piece = room.len().min(11_003);
                    peer.read_exact(&mut room[..piece]).unwrap();
                    room = &mut room[piece..];
                }
                peer.conn.send_close_notify();
                peer.conn.complete_io(&mut peer.sock).unwrap();
                assert!(got == to_get);
            });
            let sending = {
                let transport = transport.clone();
                tokio::task::spawn_local(async move {
                    let mut batch = Batch::new();
                    for (n, piece) in downward.chunks(100_003).enumerate() {
                        // Heads between shared bodies, as a player's batch has them.
                        for body in piece.chunks(1 + n * 977) {
                            let (head, body) = body.split_at(body.len().min(12));
                            batch.small(head);
                            batch.shared(Bytes::copy_from_slice(body));
                        }
                        let (empty, result) = transport.send_within(batch, PATIENCE).await;
                        result.unwrap();
                        assert!(empty.is_empty());
                        batch = empty;
                    }
                })
            };
            assert!(read_all(&transport).await == upward);
            sending.await.unwrap();
            talking.join().unwrap();
            assert!(transport.received().bytes > 3 << 20 && transport.sent().bytes > 5 << 20);
        });
    }
}

#[test]
fn a_peer_may_change_its_keys_and_ask_for_others_while_nobody_sends() {
    on_each_backend(|| async {
        let (transport, mut peer) = tls_pair(&TLS13).await;
        for round in 0..3u8 {
            peer.conn.refresh_traffic_keys().unwrap();
            peer.write_all(&[round; 100]).unwrap();
            let read = transport.read_with(<[u8]>::to_vec).await.unwrap();
            assert_eq!(read, Some(vec![round; 100]));
            let (_, result) = transport.send_within(batch(vec![round; 300]), PATIENCE).await;
            result.unwrap();
            let mut got = [0; 300];
            peer.read_exact(&mut got).unwrap();
            assert_eq!(got, [round; 300]);
        }
    });
}

#[test]
fn the_end_is_seen_with_and_without_close_notify() {
    on_each_backend(|| async {
        let (transport, mut peer) = tls_pair(&TLS13).await;
        peer.write_all(b"last").unwrap();
        peer.conn.send_close_notify();
        peer.conn.complete_io(&mut peer.sock).unwrap();
        // The connection is still open below.
        assert_eq!(read_all(&transport).await, b"last");

        let (transport, mut peer) = tls_pair(&TLS13).await;
        peer.write_all(b"cut").unwrap();
        peer.sock.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_all(&transport).await, b"cut");

        let (transport, mut peer) = tls_pair(&TLS13).await;
        let hearing = thread::spawn(move || {
            let mut said = Vec::new();
            peer.read_to_end(&mut said).map(|_| said)
        });
        transport.send_within(batch("farewell"), PATIENCE).await.1.unwrap();
        transport.close(PATIENCE).await;
        // A cut would be an error here.
        assert_eq!(hearing.join().unwrap().unwrap(), b"farewell");
    });
}

#[test]
fn bytes_that_no_key_has_made_end_the_connection_with_an_alert() {
    on_each_backend(|| async {
        let (transport, mut peer) = tls_pair(&TLS13).await;
        let mut record = vec![23, 3, 3, 0, 64];
        record.extend([0xa5; 64]);
        peer.sock.write_all(&record).unwrap();
        let error = transport.read_with(<[u8]>::len).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        let heard = tokio::task::spawn_blocking(move || peer.read(&mut [0; 8])).await.unwrap();
        assert!(heard.unwrap_err().to_string().contains("BadRecordMac"));
        let (_, result) = transport.send_within(batch("late"), PATIENCE).await;
        assert!(result.is_err());
    });
}

#[test]
fn what_is_no_handshake_is_told_apart() {
    on_each_backend(|| async {
        let (plain, answer) = greet(&[3; 1537]).await;
        assert!(matches!(plain, Err(TlsError::Plain)), "{plain:?}");
        assert_eq!(answer, b"", "an RTMP peer makes nothing of an alert");
        let (garbage, answer) = greet(b"GET / HTTP/1.1\r\n\r\n").await;
        assert!(matches!(garbage, Err(TlsError::Protocol(_))), "{garbage:?}");
        assert_eq!(answer.first(), Some(&21), "an alert");
        let (half, _) = greet(&[22, 3, 1, 2, 0, 1, 0]).await;
        assert!(matches!(half, Err(TlsError::Left)), "{half:?}");
        // A message of 16 MiB is announced, which is refused before it is kept.
        let (large, _) = greet(&[22, 3, 1, 0, 4, 1, 255, 255, 255]).await;
        assert!(matches!(large, Err(TlsError::Protocol(_))), "{large:?}");
    });
}

#[test]
fn a_silent_peer_holds_a_handshake_until_it_is_shut_down() {
    on_each_backend(|| async {
        let (conn, _peer) = pair();
        let transport = Transport::server(conn, configs(&TLS13).0).unwrap();
        let waiting = {
            let transport = transport.clone();
            tokio::task::spawn_local(async move { transport.handshake(PATIENCE).await })
        };
        tokio::task::yield_now().await;
        transport.shutdown(Shutdown::Read);
        assert!(matches!(waiting.await.unwrap(), Err(TlsError::Left)));
    });
}

#[test]
fn a_send_that_nobody_takes_ends_at_its_limit_and_is_not_encrypted_ahead() {
    on_each_backend(|| async {
        let (transport, _peer) = tls_pair(&TLS13).await;
        let large = batch(vec![0; 64 << 20]);
        let (empty, result) = transport.send_within(large, Duration::from_millis(100)).await;
        assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        assert!(empty.is_empty());
        assert!(transport.sent().bytes < 32 << 20);
    });
}

#[test]
fn outgoing_connections_verify_the_server() {
    on_each_backend(|| async {
        let (server, client) = configs(&TLS13);
        let (_, stranger) = configs(&TLS13);
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = thread::spawn(move || {
            for _ in 0..3 {
                let (stream, _) = listener.accept().unwrap();
                let session = rustls::ServerConnection::new(server.clone()).unwrap();
                let mut stream = StreamOwned::new(session, stream);
                let mut bytes = [0; 5];
                if stream.read_exact(&mut bytes).is_ok() {
                    stream.write_all(&bytes).unwrap();
                }
            }
        });
        let remote = |host: &str, config: &Arc<ClientConfig>| {
            Remote::new(host, port).with_tls(config.clone())
        };
        let transport = Transport::connect(&remote("localhost", &client), PATIENCE).await.unwrap();
        transport.send_within(batch("hello"), PATIENCE).await.1.unwrap();
        assert_eq!(read_all(&transport).await, b"hello");
        drop(transport);
        for refused in [remote("localhost", &stranger), remote("127.0.0.1", &client)] {
            let error = Transport::connect(&refused, PATIENCE).await.err().unwrap();
            assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
            assert!(error.to_string().contains("certificate"), "{error}");
        }
        serving.join().unwrap();
    });
}
