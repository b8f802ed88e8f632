//! A publish: from the claim of its name to the end of its session.

use std::rc::Rc;

use bytes::Bytes;
use weir_protocol::flv::{Demuxer, Event, Skipped, TagKind};
use weir_protocol::media::TrackKind;
use weir_protocol::stream_name::{Query, StreamName};

use super::tally::Tally;
use crate::auth::{self, Visit};
use crate::clock;
use crate::core::connection::{Connection, Role};
use crate::core::{ClaimError, Core};
use crate::metrics::{MediaKind, Refused};
use crate::relay;
use crate::stream::left_out::LeftOut;
use crate::stream::owner::PublisherRole;
use crate::stream::registry::Heard;
use crate::stream::{Publisher, Stream};

/// A session that owns a stream's name.
pub struct Publishing {
    pub stream: Rc<Stream>,
    pub message_stream: u32,
    generation: u64,
    heard: Heard,
    demuxer: Demuxer,
    tally: Tally,
}

/// Status code and sentence for an encoder that was refused.
type Refusal = (&'static str, String);

const BAD_NAME: &str = "NetStream.Publish.BadName";
const REJECTED: &str = "NetStream.Publish.Rejected";

/// Asks at the door; gives the public name. What was sent may hold a secret, also in the name, so the
/// log has none of it.
async fn let_in(
    core: &Core,
    connection: &Connection,
    name: &StreamName,
    query: &Query,
) -> Result<StreamName, Refusal> {
    let visit = Visit { address: connection.peer.ip(), name, query };
    core.door.publish(&visit, clock::now()).await.map_err(|refusal| {
        let counted = match refusal {
            auth::Refusal::WrongKey => {
                tracing::info!(peer = %connection.peer, "refused a publisher without the key");
                Refused::WrongKey
            }
            // Whoever guesses must not fill the log.
            auth::Refusal::Throttled(_) => Refused::Throttled,
        };
        core.counters.refused.of(counted).increment();
        (REJECTED, refusal.to_string())
    })
}

impl Publishing {
    /// For a peer that wants to publish, and is told why not.
    pub async fn begin(
        core: &Core,
        connection: &Connection,
        message_stream: u32,
        (name, query): (StreamName, Query),
    ) -> Result<Self, Refusal> {
        let name = let_in(core, connection, &name, &query).await?;
        if relay::is_circle(&connection.via.borrow(), &name) {
            core.counters.refused.of(Refused::Loop).increment();
            tracing::warn!(stream = %name, peer = %connection.peer, "refused a push in a circle");
            return Err((BAD_NAME, "The stream has come through this gateway before".into()));
        }
        let role = PublisherRole::Publisher;
        let begun = Self::claim(core, connection, role, name).await;
        let begun = begun.map_err(|error| match error {
            ClaimError::Overtaken => {
                (BAD_NAME, "Another publisher has just taken this name".into())
            }
            ClaimError::Occupied => {
                core.counters.refused.of(Refused::InUse).increment();
                tracing::info!(peer = %connection.peer, "refused a publisher: the name is in use");
                (
                    BAD_NAME,
                    "Another publisher sends this stream: stop it, or use another name".into(),
                )
            }
            ClaimError::Stopping => (REJECTED, "The gateway is stopping".into()),
        })?;
        Ok(Self { message_stream, ..begun })
    }

    /// Makes the connection the one that publishes `name`.
    pub async fn claim(
        core: &Core,
        connection: &Connection,
        role: PublisherRole,
        name: StreamName,
    ) -> Result<Self, ClaimError> {
        let now = clock::now();
        let publisher = Publisher {
            client_id: connection.id,
            role,
            address: connection.peer,
            encoder: connection.agent.borrow().clone(),
            via: connection.via.borrow().clone(),
            since: now,
        };
        let (stream, claim) = core.claim(&name, publisher, now).await?;
        tracing::info!(stream = %name, peer = %connection.peer, "publish begins");
        match role {
            PublisherRole::Publisher => connection.begin_publish(&name),
            PublisherRole::Pull => connection.take_role(Role::Pull, &name),
        }
        Ok(Self {
            tally: Tally::begin(&stream),
            stream,
            message_stream: 0,
            generation: claim.generation,
            heard: claim.heard,
            demuxer: Demuxer::default(),
        })
    }

    /// Takes one media message. Players learn of it with the next flush, once per read.
    pub fn take(&mut self, core: &Core, kind: TagKind, timestamp_ms: u32, body: Bytes) {
        if self.stream.generation.get() != self.generation {
            // Taken over: the new session's stream is not to get the rest of this one.
            return;
        }
        let now = clock::now();
        self.heard.note(now);
        if kind != TagKind::Script {
            let bytes = body.len() as u64;
            self.stream.with_owner(|owner| owner.meters.bytes_in += bytes);
        }
        self.demuxer.push(kind, timestamp_ms, body, &mut *core.pool.borrow_mut());
        while let Some(event) = self.demuxer.poll() {
            self.count(core, &event);
            self.stream.take(now, event);
        }
    }

    /// Tells players what the last read brought, and the metrics what was repaired in it or lost.
    pub fn flush(&mut self, core: &Core) {
        if self.stream.generation.get() == self.generation {
            self.tally.catch_up(core, &self.stream, self.demuxer.repairs());
        }
        core.flush(&self.stream);
    }

    fn count(&self, core: &Core, event: &Event) {
        let counters = &core.counters;
        match event {
            Event::Unit(unit) => {
                let kind = match unit.track.kind() {
                    TrackKind::Video => MediaKind::Video,
                    TrackKind::Audio => MediaKind::Audio,
                };
                counters.access_units.of(kind).increment();
            }
            Event::Skipped(skipped) => {
                counters.skipped.of(skipped.reason.into()).increment();
                self.note_loss(*skipped);
            }
            Event::Track(_) | Event::Metadata(_) | Event::Color(..) | Event::NewTimeline => {}
        }
    }

    /// One line in the log, whatever number of frames is dropped.
    fn note_loss(&self, skipped: Skipped) {
        let news = self.stream.with_owner(|owner| owner.losses.note(skipped)).flatten();
        if let Some(LeftOut { kind, track, codec, reason, .. }) = news {
            tracing::warn!(stream = %self.stream.name, kind, track, codec, "left out: {reason}");
        }
    }

    /// The stream goes on without this session, for the resume window. `false` where another session
    /// has it already.
    pub fn leave(self, core: &Core) -> bool {
        tracing::info!(stream = %self.stream.name, "publish ends");
        core.leave(&self.stream, self.generation, clock::now())
    }
}
