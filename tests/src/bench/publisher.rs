//! Publishers: the protocol crate's client session on a blocking socket.

use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use socket2::SockRef;
use weir_protocol::flv::Tag;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::{ClientEvent, ClientSession, Limits, Output, RtmpUrl};

use super::media::{self, Media, Units};

/// A peer that takes nothing for so long is stuck.
const STALL: Duration = Duration::from_secs(20);

/// One accepted publish.
pub struct Publisher {
    socket: TcpStream,
    session: ClientSession<HeapPool>,
    units: Units,
    unsent: Vec<Bytes>,
    /// Bytes written to the socket.
    pub sent: u64,
}

impl Publisher {
    /// Connects and waits until media may be sent; sends none.
    ///
    /// # Panics
    /// When the gateway does not accept it.
    #[must_use]
    pub fn connect(url: &str, media: &Media) -> Self {
        let url = RtmpUrl::parse(url).expect("an RTMP address");
        let socket = TcpStream::connect((url.host.as_str(), url.port)).expect("the gateway");
        socket.set_nodelay(true).expect("a socket");
        socket.set_read_timeout(Some(STALL)).expect("a socket");
        socket.set_write_timeout(Some(STALL)).expect("a socket");
        let pool = HeapPool::default();
        let session = ClientSession::publish(url, Limits::default(), 1, pool, Instant::now());
        let mut publisher =
            Self { socket, session, units: media.units(), unsent: Vec::new(), sent: 0 };
        let mut bytes = [0; 8192];
        while !publisher.flush() {
            let count = publisher.socket.read(&mut bytes).expect("the gateway's answer");
            assert!(count > 0, "the gateway closed the connection of a publisher");
            publisher.session.handle_input(Instant::now(), &bytes[..count]).expect("an acceptance");
        }
        publisher
    }

    /// Ends the connection by a reset, as a peer whose machine has failed.
    ///
    /// # Panics
    /// When the system does not let it.
    pub fn reset(self) {
        SockRef::from(&self.socket).set_linger(Some(Duration::ZERO)).expect("a socket");
    }

    /// Metadata and codec configurations.
    pub fn send_headers(&mut self, media: &Media) {
        media.headers().iter().for_each(|tag| self.send(tag));
    }

    /// All access units before this time of the stream, as fast as they are taken.
    pub fn send_until(&mut self, time: Duration) {
        while self.units.next_at() < time {
            let unit = self.units.next();
            self.send(&unit);
        }
    }

    /// Sends those access units that are due at this time of the stream, with a stamp in each
    /// picture, and tells when the next one is.
    fn send_due(&mut self, time: Duration, epoch: Instant) -> Duration {
        while self.units.next_at() <= time {
            let mut unit = self.units.next();
            if media::is_picture(&unit) {
                unit.body = media::stamped(&unit.body, epoch);
            }
            self.send(&unit);
        }
        self.units.next_at()
    }

    fn send(&mut self, tag: &Tag) {
        self.session.publish_media(tag.kind, tag.timestamp_ms, &tag.body);
        self.flush();
    }

    /// Sends what the session has to say; `true` when media may follow.
    fn flush(&mut self) -> bool {
        let mut published = false;
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Send(bytes) => self.unsent.push(bytes),
                Output::Event(event) => published |= event == ClientEvent::Published,
            }
        }
        let mut slices: Vec<IoSlice> =
            self.unsent.iter().map(|bytes| IoSlice::new(bytes)).collect();
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match self.socket.write_vectored(rest) {
                Ok(count) => {
                    self.sent += count as u64;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("the gateway does not take what is published: {error}"),
            }
        }
        self.unsent.clear();
        published
    }
}

/// Streams that are published at their own speed, by one thread, until this is dropped.
pub struct Live {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
    /// Stamps count from here.
    pub epoch: Instant,
}

impl Live {
    /// One stream at `url`, of which `ahead` is sent at once: enough for a playlist.
    #[must_use]
    pub fn one(url: &str, ahead: Duration) -> Self {
        let media = Media::new();
        let mut publisher = Publisher::connect(url, &media);
        publisher.send_headers(&media);
        publisher.send_until(ahead);
        Self::start(vec![publisher])
    }

    /// All of them from now on, evenly spread over the time of a frame.
    #[must_use]
    pub fn start(mut publishers: Vec<Publisher>) -> Self {
        let epoch = Instant::now();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let count = publishers.len() as u32;
        let begins: Vec<Duration> = publishers.iter().map(|one| one.units.next_at()).collect();
        let run = move || {
            let before: u64 = publishers.iter().map(|one| one.sent).sum();
            while !stopped.load(Ordering::Relaxed) {
                let mut pause = Duration::from_millis(5);
                for (index, publisher) in publishers.iter_mut().enumerate() {
                    // A round that the gateway is too slow for can take long.
                    if stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    let offset = Duration::from_millis(33) * index as u32 / count;
                    let Some(elapsed) = epoch.elapsed().checked_sub(offset) else { continue };
                    let time = begins[index] + elapsed;
                    pause = pause.min(publisher.send_due(time, epoch).saturating_sub(time));
                }
                thread::sleep(pause);
            }
            publishers.iter().map(|one| one.sent).sum::<u64>() - before
        };
        Self { stop, thread: Some(thread::spawn(run)), epoch }
    }

    /// Ends them, and gives the bytes that were sent since the start.
    ///
    /// # Panics
    /// When the gateway had stopped to take them.
    #[must_use]
    pub fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map_or(0, |thread| thread.join().expect("a publishing thread"))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
