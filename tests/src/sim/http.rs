//! A peer that speaks HTTP.

use weir_protocol::flv::{FileReader, Tag};

use super::rtmp::Gone;
use super::wire::Wire;

pub struct HttpPeer {
    wire: Wire,
    received: Vec<u8>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl HttpPeer {
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        Self { wire, received: Vec::new() }
    }

    /// A whole exchange; the connection can be used again.
    ///
    /// # Errors
    /// When the connection ends in it.
    pub async fn get(&mut self, target: &str) -> Result<Answer, Gone> {
        self.ask(target, "1.1").await?;
        let head = self.head().await?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|length| length.parse().ok()).expect("a length");
        while self.received.len() < length {
            self.more().await?;
        }
        let body = self.received.drain(..length).collect();
        Ok(Answer { status: status(&head), body })
    }

    /// Asks for a live stream.
    ///
    /// # Errors
    /// When the connection ends before, or the answer is not 200.
    pub async fn flv(mut self, target: &str) -> Result<FlvPeer, Gone> {
        // A body that only the end of the connection ends is the whole of what follows.
        self.ask(target, "1.0").await?;
        let head = self.head().await?;
        if status(&head) != 200 {
            return Err(Gone);
        }
        let mut reader = FileReader::default();
        reader.push(&self.received);
        Ok(FlvPeer { wire: self.wire, reader })
    }

    async fn ask(&mut self, target: &str, version: &str) -> Result<(), Gone> {
        let request = format!("GET {target} HTTP/{version}\r\nHost: weir.test\r\n\r\n");
        self.wire.send(request.as_bytes()).await.map_err(|_| Gone)
    }

    async fn head(&mut self) -> Result<String, Gone> {
        let end = loop {
            let end = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            match end {
                Some(end) => break end + 4,
                None => self.more().await?,
            }
        };
        let head = self.received.drain(..end).collect();
        Ok(String::from_utf8(head).expect("a head in ASCII"))
    }

    async fn more(&mut self) -> Result<(), Gone> {
        let bytes = self.wire.receive().await;
        if bytes.is_empty() {
            return Err(Gone);
        }
        self.received.extend_from_slice(bytes);
        Ok(())
    }
}

fn status(head: &str) -> u16 {
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.expect("a status line")
}

/// The player of a live stream over HTTP.
pub struct FlvPeer {
    wire: Wire,
    reader: FileReader,
}

impl FlvPeer {
    /// The next tag; `None` at the end.
    ///
    /// # Panics
    /// When what comes is no FLV.
    pub async fn next(&mut self) -> Option<Tag> {
        loop {
            if let Some(tag) = self.reader.next().expect("an FLV stream") {
                return Some(tag);
            }
            let bytes = self.wire.receive().await;
            if bytes.is_empty() {
                return None;
            }
            self.reader.push(bytes);
        }
    }
}
