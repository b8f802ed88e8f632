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

fn empty(generation: u64) -> Stream {
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
    Stream::owned(name(), Instant::now(), owner)
}

/// A session begins and tells of its tracks.
fn declare(stream: &Stream, generation: u64) {
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
}

/// A stream whose publisher's first frames are a keyframe and a sound.
fn begun(generation: u64) -> Stream {
    let stream = empty(generation);
    declare(&stream, generation);
    send(&stream, VIDEO, 0, true);
    send(&stream, AUDIO, 5, true);
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
    let first = begun(1);
    send(&first, VIDEO, 100_000, true);
    send(&first, AUDIO, 100_005, true);
    let replica = replica_of(&first);
    let mut cursor = replica.join();
    assert_eq!(drain(&replica, &mut cursor), [100_000, 100_005]);
    let second = begun(2);
    replica.apply_snapshot(second.snapshot().unwrap(), Instant::now());
    assert_eq!(drain(&replica, &mut cursor), [0, 5]);
    assert_eq!(drain(&replica, &mut replica.join()), [0, 5]);
    // The same once more, as where news got lost, repeats nothing.
    replica.apply_snapshot(second.snapshot().unwrap(), Instant::now());
    assert!(drain(&replica, &mut cursor).is_empty());
}

#[test]
fn a_replica_that_becomes_the_owner_lacks_none_of_what_was_sent() {
    let owner = begun(1);
    let replica = replica_of(&owner);
    let mut cursor = replica.join();
    assert_eq!(drain(&replica, &mut cursor), [0, 5]);
    // The message with this one comes behind the stream's state.
    send(&owner, VIDEO, 40, false);
    replica.adopt(owner.hand_over().unwrap());
    assert_eq!(drain(&replica, &mut cursor), [40]);
}

/// Sound that is ahead of the pictures comes first: nothing stands before the start, nor before what an
/// earlier session has sent.
#[test]
fn the_earliest_track_of_a_session_begins_at_its_start() {
    let stream = empty(1);
    let session = |generation| {
        declare(&stream, generation);
        send(&stream, AUDIO, 3000, true);
        send(&stream, VIDEO, 0, true);
        drain(&stream, &mut stream.join())[0]
    };
    assert_eq!(session(1), 0);
    assert!(session(2) > 3000, "the picture comes behind the last session's sound");
}
