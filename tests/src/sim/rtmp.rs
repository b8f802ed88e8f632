//! A peer that speaks RTMP.

use std::collections::VecDeque;

use weir::clock;
use weir_protocol::flv::Tag;
use weir_protocol::limits::Limits;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::{ClientEvent, ClientSession, Output, RtmpUrl};
use weir_protocol::stream_name::StreamName;

use super::wire::Wire;

pub struct RtmpPeer {
    wire: Wire,
    session: ClientSession<HeapPool>,
    events: VecDeque<ClientEvent>,
}

/// The gateway has ended the connection, or refused what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// What a peer is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Publish,
    Play,
}

impl RtmpPeer {
    /// Connects and asks to publish or play.
    ///
    /// # Errors
    /// When it may not.
    pub async fn begin(wire: Wire, name: &StreamName, purpose: Purpose) -> Result<Self, Gone> {
        let url = RtmpUrl::parse(&format!("rtmp://weir.test/{name}")).expect("an address");
        let pool = HeapPool::default();
        let now = clock::now();
        let session = match purpose {
            Purpose::Publish => ClientSession::publish(url, Limits::default(), 1, pool, now),
            Purpose::Play => ClientSession::play(url, Limits::default(), 1, pool, now),
        };
        let mut peer = Self { wire, session, events: VecDeque::new() };
        let begun = match purpose {
            Purpose::Publish => ClientEvent::Published,
            Purpose::Play => ClientEvent::Playing,
        };
        while peer.next().await? != begun {}
        Ok(peer)
    }

    /// What comes next.
    ///
    /// # Errors
    /// When nothing more comes.
    pub async fn next(&mut self) -> Result<ClientEvent, Gone> {
        loop {
            self.send().await?;
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let bytes = self.wire.receive().await;
            if bytes.is_empty() {
                return Err(Gone);
            }
            self.session.handle_input(clock::now(), bytes).map_err(|_| Gone)?;
        }
    }

    /// Publishes, and takes in what the gateway has said meanwhile.
    ///
    /// # Errors
    /// When the gateway takes no more.
    pub async fn publish(&mut self, tag: &Tag) -> Result<(), Gone> {
        self.session.publish_media(tag.kind, tag.timestamp_ms, &tag.body);
        self.send().await?;
        let bytes = self.wire.receive_now().ok_or(Gone)?;
        self.session.handle_input(clock::now(), bytes).map_err(|_| Gone)
    }

    /// Says goodbye as encoders do.
    pub async fn close(mut self) {
        self.session.close();
        let _ = self.send().await;
        self.wire.finish().await;
        while !self.wire.receive().await.is_empty() {}
    }

    #[must_use]
    pub fn into_wire(self) -> Wire {
        self.wire
    }

    async fn send(&mut self) -> Result<(), Gone> {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Send(bytes) => self.wire.send(&bytes).await.map_err(|_| Gone)?,
                Output::Event(event) => self.events.push_back(event),
            }
        }
        Ok(())
    }
}
