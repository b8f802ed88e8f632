//! A peer's end of a connection, with the net between it and the gateway.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::sleep;

use crate::fuzz::Random;

/// How good the net is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Net {
    Calm,
    /// Splits what is sent, delays it, loses it for a while and brings it again.
    Rough,
    /// As `Rough`, and brings to the peer less than live media takes.
    Narrow,
}

/// Timers of peers fire at multiples of this, so that there are fewer moments to look at.
const GRAIN: Duration = Duration::from_millis(5);

/// A peer reads as much at once at most.
const READ_BYTES: usize = 16 * 1024;

pub struct Wire {
    stream: UnixStream,
    net: Net,
    random: Random,
    buffer: Vec<u8>,
}

impl Wire {
    #[must_use]
    pub fn new(stream: UnixStream, net: Net, random: Random) -> Self {
        Self { stream, net, random, buffer: vec![0; READ_BYTES] }
    }

    /// # Errors
    /// When the gateway has closed the connection.
    pub async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut count = bytes.len();
            if self.net != Net::Calm {
                if self.random.below(8) == 0 {
                    count = 1 + self.random.below(count);
                }
                self.trouble().await;
            }
            self.stream.write_all(&bytes[..count]).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// What has come, after waiting for it. Nothing is the end, or the connection's error.
    pub async fn receive(&mut self) -> &[u8] {
        let room = match self.net {
            Net::Calm => READ_BYTES,
            Net::Rough => {
                self.trouble().await;
                1 + self.random.below(READ_BYTES)
            }
            Net::Narrow => {
                sleep(ticks(self.random.below(60))).await;
                1 + self.random.below(1500)
            }
        };
        let count = self.stream.read(&mut self.buffer[..room]).await.unwrap_or(0);
        &self.buffer[..count]
    }

    /// What has come by now; `None` at the end.
    pub fn receive_now(&mut self) -> Option<&[u8]> {
        match self.stream.try_read(&mut self.buffer) {
            Ok(0) => None,
            Ok(count) => Some(&self.buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(&[]),
            Err(_) => None,
        }
    }

    /// Ends sending; the other way stays open.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// A loss now and then, which TCP repairs after a while; rarely, one that takes long.
    async fn trouble(&mut self) {
        match self.random.below(3000) {
            0 => sleep(ticks(self.random.below(800))).await,
            1..20 => sleep(ticks(self.random.below(60))).await,
            20..100 => sleep(ticks(1 + self.random.below(6))).await,
            _ => {}
        }
    }
}

/// So many of the smallest waits.
#[must_use]
pub fn ticks(count: usize) -> Duration {
    GRAIN * u32::try_from(count).unwrap_or(u32::MAX)
}
