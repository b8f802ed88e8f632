//! An owner and a replica of it, without the cores between them.

use bytes::Bytes;
use weir_hls::{Config, Packager};
use weir_protocol::media::{AccessUnit, Ticks, TrackId};

use super::owner::PublisherRole;
use super::track_set::tests::{AUDIO, VIDEO, audio_track, video_track};
use super::*;

fn name() -> StreamName {
    StreamName::from_path("live/a").unwrap()
}

/// A stream whose publisher's first frames, a keyframe and a sound, are at `ms`.
fn begun(generation: u64, ms: i64) -> Stream {
    let config = Config {
        segment: Duration::from_secs(2),
        segment_max: Duration::from_secs(4),
        part: Duration::from_millis(200),
        window: 5,
        prefix: String::new(),
        ts_base: String::new(),
        first_msn: 0,
        first_discontinuity: 0,
    };
    let owner = Owner::new(generation, Packager::new(config));
    let stream = Stream::owned(name(), Instant::now(), owner);
    let publisher = Publisher {
        client_id: 1,
        role: PublisherRole::Publisher,
        address: ([127, 0, 0, 1], 1).into(),
        encoder: None,
        via: Vec::new(),
        since: Instant::now(),
    };
    stream.begin(generation, publisher);
    for track in [video_track(), audio_track()] {
        stream.take(Instant::now(), Event::Track(track));
    }
    send(&stream, VIDEO, ms, true);
    send(&stream, AUDIO, ms + 5, true);
    stream
}

fn send(stream: &Stream, track: TrackId, ms: i64, keyframe: bool) {
    let unit = AccessUnit {
        track,
        dts: Ticks::from_ms(ms),
        composition_offset: Ticks::ZERO,
        keyframe,
        payload: Bytes::from_static(b"frame"),
    };
    stream.take(Instant::now(), Event::Unit(unit));
}

fn replica_of(owner: &Stream) -> Stream {
    let replica = Stream::replica(name(), owner.generation.get(), Instant::now());
    replica.apply_snapshot(owner.snapshot().unwrap(), Instant::now());
    replica
}

fn drain(stream: &Stream, cursor: &mut Cursor) -> Vec<i64> {
    let next = |log: &Log, cursor: &mut Cursor| log.next(cursor).map(|e| e.unit.dts.as_ms());
    std::iter::from_fn(|| stream.with_log(|log| next(log, cursor))).collect()
}

/// The core of the first owner did not give its state away in time, so another began anew.
#[test]
fn players_go_on_with_an_owner_whose_clock_is_far_behind_the_last_ones() {
    let replica = replica_of(&begun(1, 100_000));
    let mut cursor = replica.join();
    assert_eq!(drain(&replica, &mut cursor), [100_000, 100_005]);
    let second = begun(2, 0);
    replica.apply_snapshot(second.snapshot().unwrap(), Instant::now());
    assert_eq!(drain(&replica, &mut cursor), [0, 5]);
    assert_eq!(drain(&replica, &mut replica.join()), [0, 5]);
    // The same once more, as where news got lost, repeats nothing.
    replica.apply_snapshot(second.snapshot().unwrap(), Instant::now());
    assert!(drain(&replica, &mut cursor).is_empty());
}

#[test]
fn a_replica_that_becomes_the_owner_lacks_none_of_what_was_sent() {
    let owner = begun(1, 0);
    let replica = replica_of(&owner);
    let mut cursor = replica.join();
    assert_eq!(drain(&replica, &mut cursor), [0, 5]);
    // The message with this one comes behind the stream's state.
    send(&owner, VIDEO, 40, false);
    replica.adopt(owner.hand_over().unwrap());
    assert_eq!(drain(&replica, &mut cursor), [40]);
}
