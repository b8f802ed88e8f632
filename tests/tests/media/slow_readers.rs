//! Two hundred readers at 100 kbit/s of a stream of 5 Mbit/s.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use bytes::Bytes;
use socket2::{Domain, Socket, Type};
use weir_e2e::media::{self, marks, pictures};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, publish};
use weir_e2e::{Backend, Gateway, wait_until};
use weir_protocol::flv::Tag;

const SLOW: usize = 200;
const STOPPED: usize = 20;
/// Those of the slow ones whose bytes are looked at.
const WATCHED: usize = 8;
/// What a slow reader takes in a second of the stream, however long that takes here.
const BYTES_PER_SECOND: usize = 12_000;
const PICTURES_PER_SECOND: u32 = 20;
const PICTURE_BYTES: usize = 31_000;
/// Ten seconds.
const GOP: u32 = 200;
/// Until what the gateway keeps of the stream grows no more.
const ALONE_SECONDS: u32 = 70;
const SECONDS: u32 = 40;

/// The frames of one second, with a keyframe only each ten.
fn second(second: u32) -> Vec<Tag> {
    let numbers = second * PICTURES_PER_SECOND..(second + 1) * PICTURES_PER_SECOND;
    let mut tags: Vec<Tag> =
        numbers.flat_map(|number| media::frame(1, number, PICTURE_BYTES)).collect();
    for (tag, number) in tags.iter_mut().step_by(3).zip(second * PICTURES_PER_SECOND..) {
        if number % GOP != 0 {
            let mut body = tag.body.to_vec();
            (body[0], body[9]) = (0x27, 0x41);
            tag.body = Bytes::from(body);
        }
    }
    tags
}

/// A player with little room in its socket.
struct Reader {
    socket: TcpStream,
    bytes: Vec<u8>,
}

impl Reader {
    fn start(address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(64 << 10).expect("a socket option");
        socket.connect(&address.into()).expect("it listens");
        let mut socket = TcpStream::from(socket);
        socket.write_all(b"GET /live/a.flv HTTP/1.1\r\nHost: weir.test\r\n\r\n").expect("sent");
        socket.set_nonblocking(true).expect("a socket option");
        Self { socket, bytes: Vec::new() }
    }

    /// What is there, but no more than this.
    fn take(&mut self, most: usize) -> usize {
        let mut buffer = vec![0; most];
        match self.socket.read(&mut buffer) {
            Ok(0) => panic!("a slow reader was cut off"),
            Ok(length) => {
                self.bytes.extend_from_slice(&buffer[..length]);
                length
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("a slow reader was cut off: {error}"),
        }
    }

    /// Reads as fast as it can up to this picture, and gives all pictures on the way.
    fn catch_up(mut self, number: u32) -> Vec<u32> {
        wait_until("the newest picture at a slow reader", SOON, || {
            while self.take(256 << 10) > 0 {}
            let tail = self.bytes.len().saturating_sub(4 * PICTURE_BYTES);
            pictures(&marks(&self.bytes[tail..]), 1).contains(&number).then_some(())
        });
        pictures(&marks(&self.bytes), 1)
    }
}

/// Publishes a second and waits until the fast player has all of it.
fn play(publisher: &mut RtmpClient, fast: &mut FlvPlayer, number: u32) {
    publisher.send(&second(number));
    let numbers = number * PICTURES_PER_SECOND..(number + 1) * PICTURES_PER_SECOND;
    let seen = pictures(&fast.marks_to(1, numbers.end - 1), 1);
    assert_eq!(seen, numbers.collect::<Vec<_>>(), "the fast player has a gap");
}

#[test]
fn fl_03_slow_readers_cost_little_and_nobody_waits_for_them() {
    for backend in Backend::ALL {
        let arguments = ["--cores", "2", "--timeouts-send-stall", "10m", "--hls-window", "3"];
        let gateway = Gateway::start(backend, &[&QUICK[..], &arguments].concat());
        let mut publisher = gateway.rtmp_on_core(0);
        publish(&mut publisher, "a");
        let mut fast = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
        for number in 0..ALONE_SECONDS {
            play(&mut publisher, &mut fast, number);
        }
        let rss = || gateway.api("server")["memory"]["rss"].as_u64().expect("a number");
        let before = rss();
        let address = gateway.socket_addr("http");
        let mut slow: Vec<Reader> = (0..SLOW).map(|_| Reader::start(address)).collect();
        let stopped: Vec<Reader> = (0..STOPPED).map(|_| Reader::start(address)).collect();
        wait_until("all readers in the API", SOON, || {
            (gateway.stream("live/a")?["players"]["flv"] == 1 + SLOW + STOPPED).then_some(())
        });
        let mut most = 0;
        let end = ALONE_SECONDS + SECONDS;
        for number in ALONE_SECONDS..end {
            play(&mut publisher, &mut fast, number);
            for (index, reader) in slow.iter_mut().enumerate() {
                reader.take(BYTES_PER_SECOND);
                if index >= WATCHED {
                    reader.bytes.clear();
                }
            }
            most = most.max(rss().saturating_sub(before));
        }
        // A batch of 256 KiB for each, and room for what the allocator keeps.
        let bound = ((SLOW + STOPPED) as u64 * 256 + (32 << 10)) << 10;
        assert!(most < bound, "{backend:?}: {most} bytes more, not {bound}");
        let players = gateway.stream("live/a").expect("the stream")["players"]["flv"].clone();
        assert_eq!(players, 1 + SLOW + STOPPED);
        for reader in slow.drain(..WATCHED) {
            let seen = reader.catch_up(end * PICTURES_PER_SECOND - 1);
            let steps = seen.windows(2).filter(|pair| pair[1] != pair[0] + 1);
            let jumps: Vec<u32> = steps.map(|pair| pair[1]).collect();
            assert!(!jumps.is_empty(), "this reader was not slow: {} pictures", seen.len());
            assert!(jumps.iter().all(|number| number % GOP == 0), "{jumps:?}");
        }
        drop(stopped);
    }
}
