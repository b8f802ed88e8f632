use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::io::Write;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use socket2::SockRef;
use weir_protocol::pool::Pool;

use super::super::{Arena, ArenaPool, Batch, HyperIo};
use super::*;

/// A body of several pieces, as a part is (headers, then payload slices).
struct Pieces(VecDeque<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

const MEDIA_BYTES: usize = 5_000_000;
const TEXT_BYTES: usize = 700_000;

/// `/media` lies in the arena, in one piece or many; `/text` on the heap; anything else is short.
fn body(path: &str, media: &Bytes) -> Pieces {
    Pieces(match path {
        "/media" => VecDeque::from([media.clone()]),
        "/pieces" => (0..media.len())
            .step_by(12_345)
            .map(|start| media.slice(start..media.len().min(start + 12_345)))
            .collect(),
        "/text" => VecDeque::from([Bytes::from(pattern(TEXT_BYTES, 8))]),
        _ => VecDeque::from([Bytes::from_static(b"short")]),
    })
}

async fn serve(conn: Conn, arena: &'static Arena, limit: Duration) -> hyper::Result<()> {
    let media = ArenaPool::new(arena).copy(&pattern(MEDIA_BYTES, 7)).unwrap();
    let answer = service_fn(|request: Request<_>| {
        let body = body(request.uri().path(), &media);
        let _: hyper::body::Incoming = request.into_body();
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    http1::Builder::new().serve_connection(HyperIo::new(conn, arena, limit), answer).await
}

/// The bodies of all answers until the end of the stream.
fn bodies(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut bodies = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let head = std::str::from_utf8(&bytes[..end]).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let (body, rest) = bytes[end..].split_at(length.parse().unwrap());
        bodies.push(body);
        bytes = rest;
    }
    bodies
}

#[test]
fn answers_are_exact_pipelined_and_to_a_slow_reader() {
    on_each_backend(|| async {
        let arena = Arena::reserve(32 << 20).unwrap();
        let (conn, mut peer) = pair();
        SockRef::from(&peer).set_recv_buffer_size(64 << 10).unwrap();
        let asking = thread::spawn(move || {
            for path in ["/", "/media", "/text", "/pieces", "/"] {
                write!(peer, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            }
            // A request in two halves, on a connection that is kept.
            peer.write_all(b"GET /text HTTP/1.1\r\nHo").unwrap();
            peer.write_all(b"st: a\r\nConnection: close\r\n\r\n").unwrap();
            read_to_end(peer)
        });
        serve(conn, arena, PATIENCE).await.unwrap();
        let answers = asking.join().unwrap();
        let bodies = bodies(&answers);
        let (media, text) = (pattern(MEDIA_BYTES, 7), pattern(TEXT_BYTES, 8));
        let expected: [&[u8]; 6] = [b"short", &media, &text, &media, b"short", &text];
        assert!(bodies == expected);
        assert_eq!(arena.usage().in_use_blocks, 0);
    });
}

#[test]
fn a_peer_that_takes_nothing_is_cut_off() {
    on_each_backend(|| async {
        let arena = Arena::reserve(16 << 20).unwrap();
        let (conn, mut peer) = pair();
        SockRef::from(&peer).set_recv_buffer_size(4096).unwrap();
        conn.with_socket(|socket: SockRef| socket.set_send_buffer_size(64 << 10).unwrap());
        peer.write_all(b"GET /media HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let error = serve(conn, arena, Duration::from_millis(50)).await.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap();
        let cause = cause.downcast_ref::<std::io::Error>().unwrap();
        assert_eq!(cause.kind(), std::io::ErrorKind::TimedOut);
        // What is in flight may end a moment later, never later than the core.
        while arena.usage().in_use_blocks > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_peer_that_leaves_ends_the_answer() {
    on_each_backend(|| async {
        let arena = Arena::reserve(16 << 20).unwrap();
        let (conn, mut peer) = pair();
        peer.write_all(b"GET /media HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let leaving = thread::spawn(move || {
            peer.read_exact(&mut [0; 100]).unwrap();
            peer.shutdown(Shutdown::Both).unwrap();
        });
        assert!(serve(conn, arena, PATIENCE).await.is_err());
        leaving.join().unwrap();
    });
}

#[test]
fn the_connection_can_be_taken_back_after_a_switch_of_protocols() {
    on_each_backend(|| async {
        let arena = Arena::reserve(16 << 20).unwrap();
        let (conn, mut peer) = pair();
        let request = "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nearly";
        peer.write_all(request.as_bytes()).unwrap();
        let answer = service_fn(|_| {
            let switching = Response::builder().status(101).header("connection", "upgrade");
            ready(switching.header("upgrade", "x").body(Pieces(VecDeque::new())))
        });
        let mut serving =
            http1::Builder::new().serve_connection(HyperIo::new(conn, arena, PATIENCE), answer);
        poll_fn(|cx| serving.poll_without_shutdown(cx)).await.unwrap();
        let parts = serving.into_parts();
        assert_eq!(parts.read_buf, "early");
        let conn = parts.io.into_conn();
        let mut batch = Batch::new();
        batch.small(b"raw");
        conn.send(batch).await.1.unwrap();
        drop(conn);
        let heard = read_to_end(peer);
        assert!(heard.starts_with(b"HTTP/1.1 101 ") && heard.ends_with(b"\r\n\r\nraw"));
    });
}
