//! A publish: from the claim of its name to the end of its session.

use std::rc::Rc;

use bytes::Bytes;
use weir_protocol::flv::{Demuxer, Event, TagKind};
use weir_protocol::media::{Repairs, TrackId, TrackKind};
use weir_protocol::stream_name::StreamName;

use crate::clock;
use crate::core::connection::{Connection, Role};
use crate::core::{ClaimError, Core};
use crate::metrics::{MediaKind, TimeRepair};
use crate::stream::owner::PublisherRole;
use crate::stream::{Publisher, Stream};

/// A session that owns a stream's name.
pub struct Publishing {
    pub stream: Rc<Stream>,
    pub message_stream: u32,
    generation: u64,
    demuxer: Demuxer,
    counted: Repairs,
    /// Of the tracks that the session has declared.
    kinds: Vec<(TrackId, TrackKind)>,
}

/// Status code and sentence for an encoder that was refused.
type Refusal = (&'static str, &'static str);

impl Publishing {
    /// For a peer that wants to publish, and is told why not.
    pub async fn begin(
        core: &Core,
        connection: &Connection,
        message_stream: u32,
        name: StreamName,
    ) -> Result<Self, Refusal> {
        let role = PublisherRole::Publisher;
        let begun = Self::claim(core, connection, role, name).await;
        let begun = begun.map_err(|error| match error {
            ClaimError::Overtaken | ClaimError::Occupied => {
                ("NetStream.Publish.BadName", "Another publisher has just taken this name")
            }
            ClaimError::Stopping => ("NetStream.Publish.Rejected", "The gateway is stopping"),
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
            since: now,
        };
        let (stream, generation) = core.claim(&name, publisher, now).await?;
        tracing::info!(stream = %name, peer = %connection.peer, "publish begins");
        let role = match role {
            PublisherRole::Publisher => Role::RtmpPublisher,
            PublisherRole::Pull => Role::Pull,
        };
        connection.take_role(role, &name);
        Ok(Self {
            stream,
            message_stream: 0,
            generation,
            demuxer: Demuxer::default(),
            counted: Repairs::default(),
            kinds: Vec::new(),
        })
    }

    /// Takes one media message. Players learn of it with the next flush, once per read.
    pub fn take(&mut self, core: &Core, kind: TagKind, timestamp_ms: u32, body: Bytes) {
        let now = clock::now();
        self.demuxer.push(kind, timestamp_ms, body, &mut *core.pool.borrow_mut());
        while let Some(event) = self.demuxer.poll() {
            self.count(core, &event);
            self.stream.take(now, event);
        }
    }

    /// Tells players what the last read brought, and the metrics what was repaired in it.
    pub fn flush(&mut self, core: &Core) {
        let repairs = self.demuxer.repairs();
        if repairs != self.counted {
            let counted = std::mem::replace(&mut self.counted, repairs);
            for (kind, now, before) in [
                (TimeRepair::Wrap, repairs.wraps, counted.wraps),
                (TimeRepair::Jitter, repairs.jitter, counted.jitter),
                (TimeRepair::Outlier, repairs.outliers, counted.outliers),
                (TimeRepair::NewTimeline, repairs.new_timelines, counted.new_timelines),
                (TimeRepair::Aligned, repairs.aligned, counted.aligned),
                (TimeRepair::Resync, repairs.resyncs, counted.resyncs),
            ] {
                core.counters.time_repairs.of(kind).add(now - before);
            }
            self.stream.with_owner(|owner| owner.repairs = repairs);
        }
        core.flush(&self.stream);
    }

    fn count(&mut self, core: &Core, event: &Event) {
        let counters = &core.counters;
        match event {
            Event::Unit(unit) => {
                let video = self.kinds.contains(&(unit.track, TrackKind::Video));
                let kind = if video { MediaKind::Video } else { MediaKind::Audio };
                counters.access_units.of(kind).increment();
            }
            Event::Skipped(reason) => counters.skipped.of((*reason).into()).increment(),
            Event::Track(track) => {
                let declared = (track.id, track.kind());
                if !self.kinds.contains(&declared) {
                    self.kinds.push(declared);
                }
            }
            Event::Metadata(_) | Event::NewTimeline => {}
        }
    }

    /// The stream goes on without this session, for the resume window.
    pub fn leave(self, core: &Core) {
        tracing::info!(stream = %self.stream.name, "publish ends");
        core.leave(&self.stream, self.generation, clock::now());
    }
}
