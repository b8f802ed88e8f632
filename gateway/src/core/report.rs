//! What a core tells the control plane: reports for the API, and its share of the metrics.

use std::time::Instant;

use weir_protocol::media::TrackKind;

use super::connection::{Connection, Role};
use super::state::Core;
use crate::admin::model::{
    Audience, ClientInfo, ClientKind, CoreReport, Players, PublisherInfo, StreamInfo, StreamState,
    TrackInfo, wall_clock,
};
use crate::metrics::{Label as _, PlayerProtocol, Transport};
use crate::stream::owner::{Owner, State};
use crate::stream::{Publisher, Stream, spans};

pub fn report(core: &Core, now: Instant) -> CoreReport {
    let mut report = CoreReport { core: core.id.0, ..CoreReport::default() };
    for stream in core.streams() {
        let players = players(&stream, now);
        let bytes_out = stream.bytes_out.get();
        match stream.with_owner(|owner| stream_info(core, &stream, owner, players, bytes_out)) {
            Some(info) => report.streams.push(info),
            None => {
                report.audiences.push(Audience { name: stream.name.clone(), players, bytes_out });
            }
        }
    }
    report.relays = core.relays.report(core.id.0, now);
    core.connections.for_each(|connection| report.clients.push(client_info(core, connection)));
    report
}

/// Brings gauges and byte counts up to date. Called about once a second.
pub fn sample(core: &Core, now: Instant) {
    let counters = &core.counters;
    let (mut owned, mut publishers, mut all) = (0, 0, Players::default());
    for stream in core.streams() {
        all += players(&stream, now);
        stream.with_owner(|owner| {
            owned += 1;
            publishers += u64::from(owner.publisher.is_some());
            owner.meters.sample(now);
        });
    }
    counters.streams.set(owned);
    counters.publishers.set(publishers);
    for (protocol, count) in [
        (PlayerProtocol::Hls, all.hls),
        (PlayerProtocol::LlHls, all.ll_hls),
        (PlayerProtocol::Flv, all.flv),
        (PlayerProtocol::Rtmp, all.rtmp),
    ] {
        counters.players.of(protocol).set(count as u64);
    }
    core.relays.sample(counters);
    let mut open = [0; Transport::COUNT];
    core.connections.for_each(|connection| {
        open[connection.transport().index()] += 1;
        connection.account(counters);
    });
    for (transport, count) in Transport::ALL.iter().zip(open) {
        counters.connections.of(*transport).set(count);
    }
}

fn players(stream: &Stream, now: Instant) -> Players {
    let (hls, ll_hls) =
        stream.viewers.borrow_mut().count(now, || spans::viewer(stream.window().as_deref()));
    Players { hls, ll_hls, flv: stream.players.flv.get(), rtmp: stream.players.rtmp.get() }
}

fn stream_info(
    core: &Core,
    stream: &Stream,
    owner: &mut Owner,
    players: Players,
    bytes_out: u64,
) -> StreamInfo {
    let tracks: Vec<TrackInfo> = owner
        .tracks()
        .tracks
        .iter()
        .map(|track| {
            let rate = owner.meters.rate(track.id);
            let color = owner.tracks().color(track.id);
            TrackInfo::new(track, rate.bits_per_second, rate.units_per_second).with_color(color)
        })
        .collect();
    let has_video = owner.tracks().has(TrackKind::Video);
    let gop = owner.meters.gop().filter(|_| has_video);
    StreamInfo {
        name: stream.name.clone(),
        state: match owner.state {
            State::Live => StreamState::Live,
            State::Resuming { .. } => StreamState::Resuming,
            State::Ended { .. } => StreamState::Ended,
        },
        core: core.id.0,
        publisher: owner.publisher.as_ref().map(publisher_info),
        gop_ms: gop.map(|gop| u64::try_from(gop.as_ms()).unwrap_or(0)),
        bitrate: tracks.iter().map(|track| track.bitrate).sum(),
        tracks,
        players,
        bytes_in: owner.meters.bytes_in,
        bytes_out,
        time_repairs: owner.repairs.into(),
        cuts_without_keyframe: owner.cuts_without_keyframe(),
        hls_dropped: owner.hls_dropped().into(),
        left_out: owner.left_out(),
    }
}

fn publisher_info(publisher: &Publisher) -> PublisherInfo {
    PublisherInfo {
        id: publisher.client_id,
        role: publisher.role,
        address: publisher.address,
        protocol: "rtmp",
        encoder: publisher.encoder.clone(),
        since: wall_clock(publisher.since),
    }
}

fn client_info(core: &Core, connection: &Connection) -> ClientInfo {
    let transport = connection.transport().value();
    let (kind, protocol) = match connection.role() {
        Role::Rtmp | Role::RtmpWaiting => (ClientKind::Connection, transport),
        Role::RtmpPublisher => (ClientKind::Publisher, transport),
        Role::RtmpPlayer => (ClientKind::Player, transport),
        Role::Push => (ClientKind::Push, transport),
        Role::Pull => (ClientKind::Pull, transport),
        Role::Http => (ClientKind::Connection, "http"),
        Role::FlvPlayer => (ClientKind::Player, "flv"),
    };
    ClientInfo {
        id: connection.id,
        core: core.id.0,
        kind,
        protocol,
        address: connection.peer,
        stream: connection.stream(),
        since: wall_clock(connection.since),
        bytes_in: connection.conn.received().bytes,
        bytes_out: connection.conn.sent().bytes,
        user_agent: connection.agent.borrow().clone(),
    }
}
