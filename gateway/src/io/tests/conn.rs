use std::cell::Cell;
use std::future::poll_fn;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;

use super::super::Batch;
use super::*;

#[test]
fn bytes_are_echoed_in_order() {
    on_each_backend(|| async {
        let (conn, mut peer) = pair();
        let sent = pattern(1 << 20, 1);
        let expected = sent.clone();
        let mut reader = peer.try_clone().unwrap();
        let writing = thread::spawn(move || {
            for piece in sent.chunks(7001) {
                peer.write_all(piece).unwrap();
            }
            peer.shutdown(Shutdown::Write).unwrap();
        });
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        let mut batch = Batch::new();
        while let Some(bytes) = conn.read_with(Bytes::copy_from_slice).await.unwrap() {
            batch.shared(bytes);
            let (empty, result) = conn.send(batch).await;
            result.unwrap();
            batch = empty;
        }
        assert_eq!((conn.received().bytes, conn.sent().bytes), (1 << 20, 1 << 20));
        conn.shutdown(Shutdown::Write);
        writing.join().unwrap();
        assert!(reading.join().unwrap() == expected);
    });
}

#[test]
fn an_end_or_bytes_right_behind_a_short_read_are_seen() {
    on_each_backend(|| async {
        let (conn, mut peer) = pair();
        for _ in 0..100 {
            peer.write_all(b"few").unwrap();
            let mut buffer = [0; 64];
            conn.readable().await.unwrap();
            assert_eq!(conn.try_recv(&mut buffer).unwrap(), 3);
        }
        // Both are there before the first of them is read.
        peer.write_all(b"last").unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(conn.read_with(<[u8]>::len).await.unwrap(), Some(4));
        assert_eq!(conn.read_with(<[u8]>::len).await.unwrap(), None);
        assert_eq!(conn.read_with(<[u8]>::len).await.unwrap(), None);
    });
}

#[test]
fn a_batch_of_many_slices_reaches_a_slow_reader_whole() {
    on_each_backend(|| async {
        let (conn, peer) = pair();
        SockRef::from(&peer).set_recv_buffer_size(64 << 10).unwrap();
        let mut batch = Batch::new();
        let mut expected: Vec<u8> = Vec::new();
        for n in 0..3000 {
            let (head, body) = (pattern(11, n), pattern(257 + n as usize % 1000, n));
            expected.extend(head.iter().chain(&body));
            batch.small(&head);
            batch.shared(Bytes::from(body));
        }
        assert!(batch.pieces() > 2 * libc::UIO_MAXIOV as usize && expected.len() > 1 << 20);
        let reading = thread::spawn(move || read_to_end(peer));
        let (empty, result) = conn.send(batch).await;
        result.unwrap();
        assert!(empty.is_empty());
        drop(conn);
        assert!(reading.join().unwrap() == expected);
    });
}

#[test]
fn a_dropped_send_spoils_the_connection_but_not_the_bytes() {
    on_each_backend(|| async {
        let (conn, peer) = pair();
        let bytes = pattern(32 << 20, 2);
        let mut batch = Batch::new();
        batch.shared(Bytes::from(bytes.clone()));
        let mut sending = conn.send(batch);
        let pending = poll_fn(|cx| Poll::Ready(Pin::new(&mut sending).poll(cx).is_pending())).await;
        assert!(pending, "32 MiB do not fit into a socket");
        drop(sending);
        let mut late = Batch::new();
        late.small(b"out of order");
        let (_, result) = conn.send(late).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(conn);
        // Reading gives the kernel's send its room; the end of the stream comes with the last handle.
        let received = tokio::task::spawn_blocking(|| read_to_end(peer)).await.unwrap();
        assert!(bytes.starts_with(&received));
    });
}

#[test]
fn shutdown_ends_a_wait_and_the_peer_sees_what_was_sent_before() {
    on_each_backend(|| async {
        let (conn, peer) = pair();
        let mut batch = Batch::new();
        batch.small(b"last words");
        conn.send(batch).await.1.unwrap();
        let waiting = {
            let conn = conn.clone();
            tokio::task::spawn_local(async move { conn.read_with(<[u8]>::len).await })
        };
        tokio::task::yield_now().await;
        let weak = conn.downgrade();
        weak.shutdown(Shutdown::Both);
        assert_eq!(waiting.await.unwrap().unwrap(), None);
        assert_eq!(read_to_end(peer), b"last words");
        drop(conn);
        assert!(weak.upgrade().is_none());
        weak.shutdown(Shutdown::Both);
    });
}

#[test]
fn waits_that_are_dropped_lose_nothing() {
    on_each_backend(|| async {
        let (conn, mut peer) = pair();
        for n in 0..2000u32 {
            let polled = poll_fn(|cx| Poll::Ready(conn.poll_readable(cx).is_ready())).await;
            assert!(!polled);
            if n % 100 == 0 {
                tokio::time::sleep(Duration::from_micros(1)).await;
            }
        }
        peer.write_all(b"still here").unwrap();
        let read = conn.read_with(<[u8]>::to_vec).await.unwrap();
        assert_eq!(read.as_deref(), Some(b"still here".as_slice()));
        let empty = conn.try_recv(&mut [0; 8]).unwrap_err();
        assert_eq!(empty.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_send_that_nobody_takes_ends_at_its_limit() {
    on_each_backend(|| async {
        let (conn, _peer) = pair();
        let reading = {
            let conn = conn.clone();
            tokio::task::spawn_local(async move { conn.read_with(<[u8]>::len).await })
        };
        let mut batch = Batch::new();
        batch.shared(Bytes::from(vec![0; 32 << 20]));
        let (_, result) = conn.send_within(batch, Duration::from_millis(50)).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(reading.await.unwrap().unwrap(), None);
        let (_, result) = conn.send_within(Batch::new(), Duration::from_secs(1)).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn an_error_of_the_peer_ends_reading_and_sending() {
    on_each_backend(|| async {
        let (conn, peer) = pair();
        SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        assert_eq!(
            conn.read_with(<[u8]>::len).await.unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );
        let mut batch = Batch::new();
        batch.small(b"anybody?");
        assert_eq!(conn.send(batch).await.1.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn one_task_reads_while_another_sends() {
    on_each_backend(|| async {
        let (conn, peer) = pair();
        let turns = Rc::new(Cell::new(0));
        let mut writer = peer.try_clone().unwrap();
        let talking = thread::spawn(move || {
            writer.write_all(&pattern(4 << 20, 3)).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let listening = thread::spawn(move || read_to_end(peer));
        let reading = {
            let (conn, turns) = (conn.clone(), Rc::clone(&turns));
            tokio::task::spawn_local(async move {
                let mut all = Vec::<u8>::new();
                while conn.read_with(|bytes: &[u8]| all.extend(bytes)).await.unwrap().is_some() {
                    turns.set(turns.get() + 1);
                }
                all
            })
        };
        let mut batch = Batch::new();
        for _ in 0..64 {
            batch.shared(Bytes::from(pattern(64 << 10, 4)));
            let (empty, result) = conn.send(batch).await;
            result.unwrap();
            batch = empty;
        }
        conn.shutdown(Shutdown::Write);
        assert!(reading.await.unwrap() == pattern(4 << 20, 3));
        assert!(turns.get() >= (4 << 20) / (128 << 10));
        talking.join().unwrap();
        assert!(listening.join().unwrap() == pattern(64 << 10, 4).repeat(64));
    });
}

#[test]
fn the_reason_reaches_a_peer_that_still_talks() {
    on_each_backend(|| async {
        let (conn, mut peer) = pair();
        peer.write_all(&pattern(100_000, 5)).unwrap();
        let mut batch = Batch::new();
        batch.small(b"not welcome");
        conn.send(batch).await.1.unwrap();
        let hearing = thread::spawn(move || {
            let said = read_to_end(peer.try_clone().unwrap());
            peer.write_all(b"but").unwrap();
            said
        });
        conn.close(PATIENCE).await;
        assert_eq!(hearing.join().unwrap(), b"not welcome");
    });
}
