//! The owner's side of a stream: what the publisher's access units become.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use weir_hls::{Dropped, Packager, Window};
use weir_protocol::flv::{ColorInfo, Event, Metadata};
use weir_protocol::media::{AccessUnit, Repairs, Ticks, Track, TrackId};

use super::gate::{Flow, Gate};
use super::left_out;
use super::left_out::{LeftOut, Losses};
use super::log::{Item, Log};
use super::meter::Meters;
use super::track_set::{Colors, SharedTracks, TrackSet};
use crate::clock;
use crate::core::CoreId;

/// State that exists once per stream, on the core where its publisher landed. It moves as a whole
/// when the next publisher of the name lands on another core.
pub struct Owner {
    pub generation: u64,
    /// The claim that this state began with. As long as it goes from claim to claim, its timeline rises.
    pub began_as: u64,
    pub state: State,
    pub publisher: Option<Publisher>,
    /// Its pushes to other servers were begun; they last as long as the stream.
    pub pushed: bool,
    /// Cores that follow this stream with a replica.
    pub followers: Vec<CoreId>,
    pub meters: Meters,
    /// Of the session that publishes.
    pub repairs: Repairs,
    /// Of the session that publishes.
    pub losses: Losses,
    packager: Packager,
    gate: Gate,
    /// The session has sent its first access unit.
    heard: bool,
    metadata: Metadata,
    colors: Colors,
    tracks: SharedTracks,
    timeline: Timeline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Live,
    /// The publisher left; the same name may go on until then.
    Resuming {
        until: Instant,
    },
    /// Ended for good; players may fetch what is left until then.
    Ended {
        until: Instant,
    },
}

/// The session that publishes, as the API shows it.
#[derive(Clone, Debug)]
pub struct Publisher {
    pub client_id: u64,
    pub role: PublisherRole,
    pub address: SocketAddr,
    /// What the encoder calls itself (`flashVer`), if it does.
    pub encoder: Option<String>,
    /// Places that the stream has come by before this one, see [`crate::relay::is_circle`].
    pub via: Vec<u64>,
    pub since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublisherRole {
    /// A peer that came by itself.
    Publisher,
    /// A connection to another server that the gateway opened.
    Pull,
}

/// One rising timeline over all sessions that publish the stream in turn.
#[derive(Default)]
struct Timeline {
    shift: Ticks,
    last: Option<Last>,
}

struct Last {
    dts: Ticks,
    at: Instant,
}

impl Owner {
    pub fn new(generation: u64, packager: Packager) -> Self {
        Self {
            generation,
            began_as: generation,
            state: State::Live,
            publisher: None,
            pushed: false,
            followers: Vec::new(),
            meters: Meters::default(),
            repairs: Repairs::default(),
            losses: Losses::default(),
            packager,
            gate: Gate::default(),
            heard: false,
            metadata: Metadata::default(),
            colors: Colors::new(),
            tracks: Arc::default(),
            timeline: Timeline::default(),
        }
    }

    /// A session takes the stream: the first one, one that resumes, or one that takes over.
    pub fn begin(&mut self, generation: u64, publisher: Publisher) {
        self.generation = generation;
        self.state = State::Live;
        self.publisher = Some(publisher);
        self.gate = Gate::default();
        self.heard = false;
        self.losses = Losses::default();
        self.metadata = Metadata::default();
        self.colors.clear();
        if self.timeline.last.is_some() {
            self.packager.discontinuity();
        }
    }

    /// Takes what the publisher sent and puts what comes of it into the log, and into `items` when
    /// other cores follow.
    pub fn take(&mut self, now: Instant, event: Event, log: &mut Log, items: &mut Vec<Item>) {
        match event {
            Event::Metadata(metadata) => self.take_metadata(metadata, items),
            Event::Track(track) => self.gate.declare(track),
            Event::Unit(unit) => {
                self.anchor_wall_clock();
                self.losses.heal(unit.track);
                self.gate.push(unit);
            }
            Event::Color(track, color) => self.take_color(track, color, items),
            Event::NewTimeline => self.packager.restarted(),
            Event::Skipped(_) => {}
        }
        self.pass_gate(now, log, items);
    }

    /// The publisher left. What it sent is whole; a resumed session starts on its own.
    pub fn leave(&mut self, now: Instant, until: Instant, log: &mut Log, items: &mut Vec<Item>) {
        self.gate.finish();
        self.pass_gate(now, log, items);
        self.packager.discontinuity();
        self.publisher = None;
        self.state = State::Resuming { until };
    }

    /// Whether nobody publishes although the stream counted as live until now.
    pub fn resume_if_deserted(&mut self, until: Instant) -> bool {
        let deserted = self.state == State::Live && self.publisher.is_none();
        if deserted {
            self.state = State::Resuming { until };
        }
        deserted
    }

    pub fn end(&mut self, until: Instant) {
        self.packager.end();
        self.publisher = None;
        self.state = State::Ended { until };
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }

    pub fn window(&mut self) -> Arc<Window> {
        self.packager.window()
    }

    pub fn version(&self) -> u64 {
        self.packager.version()
    }

    /// Over all sessions, see [`Packager::cuts_without_keyframe`].
    pub fn cuts_without_keyframe(&self) -> u64 {
        self.packager.cuts_without_keyframe()
    }

    /// Access units that no HLS part holds, over all sessions.
    pub fn hls_dropped(&self) -> Dropped {
        self.packager.dropped()
    }

    /// What the publisher sends and players do not get.
    pub fn left_out(&mut self) -> Vec<LeftOut> {
        left_out::list(&self.losses, &self.tracks, &self.packager.window())
    }

    pub fn tracks(&self) -> &SharedTracks {
        &self.tracks
    }

    /// Dates the session's first access unit, for EXT-X-PROGRAM-DATE-TIME.
    fn anchor_wall_clock(&mut self) {
        if !std::mem::replace(&mut self.heard, true)
            && let Ok(since_unix_epoch) = clock::wall().duration_since(SystemTime::UNIX_EPOCH)
        {
            self.packager.set_wall_clock(since_unix_epoch);
        }
    }

    fn take_metadata(&mut self, metadata: Metadata, items: &mut Vec<Item>) {
        if metadata == self.metadata {
            return;
        }
        self.metadata = metadata;
        self.tell_again(items);
    }

    /// What takes back an earlier colour is kept like any other: there are few tracks.
    fn take_color(&mut self, track: TrackId, color: ColorInfo, items: &mut Vec<Item>) {
        self.colors.retain(|(known, _)| *known != track);
        self.colors.push((track, color));
        self.tell_again(items);
    }

    /// The same tracks, of which something else is known.
    fn tell_again(&mut self, items: &mut Vec<Item>) {
        if !self.tracks.tracks.is_empty() {
            self.tell(self.tracks.tracks.clone(), items);
        }
    }

    fn pass_gate(&mut self, now: Instant, log: &mut Log, items: &mut Vec<Item>) {
        while let Some(flow) = self.gate.poll() {
            match flow {
                Flow::Tracks(tracks) => {
                    self.packager.set_tracks(&tracks);
                    self.tell(tracks, items);
                    log.forget_join_point();
                }
                Flow::Begin(earliest) => self.timeline.begin(now, earliest),
                Flow::Unit(unit) => {
                    let unit = self.timeline.place(now, unit);
                    self.meters.count(&unit, &self.tracks);
                    self.packager.push(&unit);
                    if !self.followers.is_empty() {
                        items.push(Item::Unit(unit.clone()));
                    }
                    log.push(unit, &self.tracks);
                }
            }
        }
    }

    fn tell(&mut self, tracks: Vec<Track>, items: &mut Vec<Item>) {
        let tracks = TrackSet::new(tracks, self.metadata.clone()).with_colors(self.colors.clone());
        if *self.tracks == tracks {
            return;
        }
        self.tracks = Arc::new(tracks);
        if !self.followers.is_empty() {
            items.push(Item::Tracks(self.tracks.clone()));
        }
    }
}

impl Timeline {
    /// A session begins, whose clock has nothing to do with the last one's. Whichever track comes first,
    /// the earliest one is put at the start, or behind all that was.
    fn begin(&mut self, now: Instant, earliest: Ticks) {
        let start = self.last.as_ref().map_or(Ticks::ZERO, |last| {
            // The pause is part of the timeline, so that it keeps pace with the clock on the wall.
            let pause = Ticks::from(now.saturating_duration_since(last.at));
            last.dts + pause.max(Ticks::from_ms(1))
        });
        self.shift = start - earliest;
    }

    fn place(&mut self, now: Instant, mut unit: AccessUnit) -> AccessUnit {
        unit.dts += self.shift;
        let latest = self.last.as_ref().map_or(unit.dts, |last| last.dts.max(unit.dts));
        self.last = Some(Last { dts: latest, at: now });
        unit
    }
}
