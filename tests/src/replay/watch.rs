//! What comes out over HTTP-FLV while a script sends.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use weir_protocol::flv::{Tag, TagKind};

use super::number::Env;
use super::payload::PUBLISHER;
use super::step::{Pictures, Times};
use crate::http_connection::{HttpConnection, Piece};
use crate::media;
use crate::script::FlvPlayer;

/// A player in a thread of its own, so that it never is what the gateway waits for.
pub struct Watch {
    tags: Receiver<Tag>,
    end: Receiver<Option<Piece>>,
    socket: TcpStream,
    /// What came and was not compared yet, by kind.
    pending: Vec<Tag>,
}

impl Watch {
    /// Plays `/PATH.flv`.
    ///
    /// # Errors
    /// When there is no such stream.
    pub fn start(address: SocketAddr, path: &str) -> Result<Self, String> {
        let socket = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let connection = HttpConnection::over(socket.try_clone().expect("a socket"));
        socket.set_read_timeout(None).map_err(|error| error.to_string())?;
        let mut player = FlvPlayer::try_start(connection, &format!("/{path}.flv"))
            .map_err(|status| format!("HTTP {status}"))?;
        let (sender, tags) = mpsc::channel();
        let (said, end) = mpsc::channel();
        thread::spawn(move || {
            while let Some(tag) = player.next_tag() {
                if sender.send(tag).is_err() {
                    return;
                }
            }
            let _ = said.send(player.end);
        });
        Ok(Self { tags, end, socket, pending: Vec::new() })
    }

    /// Waits for the first picture, so that all behind it comes out as well.
    ///
    /// # Errors
    /// When none comes.
    pub fn begin(&mut self, deadline: Instant) -> Result<(), String> {
        let first = self.next(TagKind::Video, deadline)?;
        self.pending.insert(0, first);
        Ok(())
    }

    /// Waits for these frames and compares them with what was sent, byte by byte.
    ///
    /// # Errors
    /// Says what came instead.
    pub fn compare(
        &mut self,
        kind: TagKind,
        wanted: &Pictures,
        env: &Env,
        deadline: Instant,
    ) -> Result<(), String> {
        let range = wanted.from.u32(env)..wanted.to.u32(env);
        let size = wanted.size.as_ref().map(|size| size.value(env) as usize);
        let mut first = None;
        for (index, number) in range.clone().enumerate() {
            let expected = match kind {
                TagKind::Audio => media::audio(PUBLISHER, number),
                _ => media::video(PUBLISHER, number, size),
            };
            let came = self.next(kind, deadline).map_err(|why| format!("{why} at {number}"))?;
            if came.body != expected.body {
                let marks = media::marks(&came.body);
                let bytes = came.body.len();
                return Err(format!("{bytes} bytes with {marks:?} in place of {number}"));
            }
            // Sounds are counted in samples, so their time is only near to what was sent.
            if kind == TagKind::Audio {
                continue;
            }
            let (sent_first, came_first) =
                *first.get_or_insert((expected.timestamp_ms, came.timestamp_ms));
            let came_after = came.timestamp_ms.wrapping_sub(came_first);
            let after = match &wanted.times {
                Times::Own => expected.timestamp_ms.wrapping_sub(sent_first),
                Times::Listed(times) => times.get(index).map_or(0, |time| time.u32(env)),
                Times::Any => came_after,
            };
            if came_after != after {
                return Err(format!("{number} after {came_after} ms in place of {after} ms"));
            }
        }
        Ok(())
    }

    fn next(&mut self, kind: TagKind, deadline: Instant) -> Result<Tag, String> {
        loop {
            if let Some(at) = self.pending.iter().position(|tag| tag.kind == kind) {
                return Ok(self.pending.remove(at));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.tags.recv_timeout(left) {
                // Behind the codec id: 1 is media, 0 a sequence header, 2 the end of a sequence.
                Ok(tag) if tag.kind != TagKind::Script && tag.body.get(1) == Some(&1) => {
                    self.pending.push(tag);
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err("nothing came out in time".into()),
                Err(RecvTimeoutError::Disconnected) => return Err("the stream ended".into()),
            }
        }
    }

    /// Waits for the end of the stream; what comes before it is not looked at.
    ///
    /// # Errors
    /// When it does not end, or not as HTTP ends a body.
    pub fn expect_end(&mut self, deadline: Instant) -> Result<(), String> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.end.recv_timeout(left) {
            Ok(Some(Piece::End)) => Ok(()),
            Ok(end) => Err(format!("the body ended with {end:?}")),
            Err(_) => Err("the stream did not end in time".into()),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
