use std::time::Duration;

use weir_protocol::amf0::{self, Value};
use weir_protocol::flv::TagKind;
use weir_protocol::rtmp::command::object;
use weir_protocol::rtmp::message::{MessageHeader, kind};
use weir_protocol::rtmp::{Error, Event, Limits, Waiting};

use crate::peer::{Peer, encode};

const BAD_NAME: &str = "NetStream.Publish.BadName";

fn data(name: &[&str], metadata: Value) -> Vec<u8> {
    let mut values: Vec<Value> = name.iter().map(|&name| name.into()).collect();
    values.push(metadata);
    amf0::encode_all(&values)
}

/// CM-08: what comes in one write with the publish waits for the answer, and then follows in
/// order; after a refusal it is gone.
#[test]
fn cm_08_media_before_the_answer() {
    let frames: Vec<Vec<u8>> = (0..50_u8).map(|i| vec![i; 5000]).collect();
    let mut write = encode(
        MessageHeader::media(1, TagKind::Script, 0),
        &data(&["@setDataFrame", "onMetaData"], object([("width", 1.0.into())])),
    );
    for (number, frame) in frames.iter().enumerate() {
        write.extend(encode(MessageHeader::media(1, TagKind::Video, number as u32 * 40), frame));
    }
    for accept in [true, false] {
        let mut peer = Peer::connected("live");
        let publish = encode(
            MessageHeader::command(1),
            &weir_protocol::rtmp::command::Command::new("publish", vec!["k".into()]).encode(),
        );
        let (now, later) = write.split_at(write.len() / 3);
        peer.bytes(&[&publish, now].concat()).unwrap();
        assert!(!peer.server.wants_input());
        peer.bytes(later).unwrap();
        assert!(matches!(&peer.events[..], [Event::Publish { .. }]));
        peer.events.clear();
        if accept {
            peer.server.accept_publish(1).unwrap();
            peer.drain();
            let media = peer.media_events();
            assert_eq!(media.len(), 51);
            assert_eq!(media[0].2, data(&["onMetaData"], object([("width", 1.0.into())])));
            assert!(media[1..].iter().map(|(_, _, body)| body).eq(&frames));
            assert_eq!(peer.codes(), ["NetStream.Publish.Start"]);
        } else {
            peer.server.reject_publish(1, BAD_NAME, "busy").unwrap();
            peer.drain();
            assert_eq!(peer.events, []);
            assert_eq!(peer.codes(), [BAD_NAME]);
            assert_eq!(peer.server.ignored_messages(), 51);
        }
        assert!(peer.server.wants_input());
    }
}

#[test]
fn what_is_held_is_bounded() {
    let mut peer = Peer::connected("live");
    peer.command(1, "publish", 0.0, vec!["k".into()]).unwrap();
    let limit = Limits::default().held_bytes;
    let result = (0..=limit / 1000).try_for_each(|_| peer.bytes(&[0; 1000]));
    assert_eq!(result, Err(Error::TooMuchHeld(limit)));
}

/// CM-09: five ways to stop, in any number and order, end the publish once; then another may
/// begin.
#[test]
fn cm_09_ways_to_stop() {
    fn stop(peer: &mut Peer, stream: u32, way: usize) {
        let key: Value = "k".into();
        match way {
            0 => peer.command(stream, "closeStream", 0.0, vec![]),
            1 => peer.command(0, "FCUnpublish", 6.0, vec![key]),
            2 => peer.command(0, "deleteStream", 7.0, vec![f64::from(stream).into()]),
            3 => peer.command(stream, "publish", 0.0, vec![false.into()]),
            _ => peer.command(stream, "deleteStream", 0.0, vec![]),
        }
        .unwrap();
    }
    for first in 0..5 {
        for second in 0..5 {
            let mut peer = Peer::publishing();
            peer.media(TagKind::Video, 0, b"frame").unwrap();
            stop(&mut peer, 1, first);
            stop(&mut peer, 1, second);
            peer.media(TagKind::Video, 40, b"late").unwrap();
            assert!(matches!(
                &peer.events[..],
                [Event::Media { .. }, Event::Unpublish { message_stream: 1 }]
            ));
            peer.events.clear();
            peer.answers.clear();
            peer.command(0, "createStream", 8.0, vec![]).unwrap();
            let stream = peer.commands()[0].1.arguments[0].as_number().unwrap() as u32;
            peer.command(stream, "publish", 0.0, vec!["k".into()]).unwrap();
            assert!(matches!(&peer.events[..], [Event::Publish { .. }]), "{first} {second}");
            peer.server.accept_publish(stream).unwrap();
            peer.media(TagKind::Video, 0, &[7; 100_000]).unwrap();
            assert_eq!(peer.media_events().len(), 1);
        }
    }
}

/// CM-07: a second publish is a stop, a repetition or an error, and never a second stream.
#[test]
fn cm_07_second_publish() {
    let mut peer = Peer::publishing();
    peer.command(1, "publish", 0.0, vec!["/k/".into()]).unwrap();
    peer.command(1, "publish", 0.0, vec!["other".into()]).unwrap();
    peer.command(2, "publish", 0.0, vec!["other".into()]).unwrap();
    assert_eq!(peer.events, []);
    assert_eq!(peer.codes(), ["NetStream.Publish.Start", BAD_NAME, BAD_NAME]);
    peer.command(1, "publish", 0.0, vec!["".into()]).unwrap();
    peer.command(1, "publish", 0.0, vec![false.into()]).unwrap();
    peer.command(0, "deleteStream", 0.0, vec![1.0.into()]).unwrap();
    assert_eq!(peer.events, [Event::Unpublish { message_stream: 1 }]);
    assert_eq!(peer.codes().last().unwrap(), "NetStream.Unpublish.Success");
}

/// CH-15: an aggregate is its inner messages, on the aggregate's clock; another one inside is
/// skipped.
#[test]
fn ch_15_aggregate() {
    let inner = |kind: u8, timestamp: u8, body: &[u8]| {
        let mut tag = vec![kind, 0, 0, body.len() as u8, 0, 0, timestamp, 0, 0, 0, 0];
        tag.extend(body);
        tag.extend([0, 0, 0, 11 + body.len() as u8]);
        tag
    };
    let script = data(&["onMetaData"], Value::Null);
    let wrapped = data(&["@setDataFrame", "onMetaData"], Value::Null);
    let body = [
        inner(9, 100, b"v"),
        inner(8, 120, b"a"),
        inner(22, 125, b"nested"),
        inner(18, 133, &wrapped),
        inner(9, 140, b"cut")[..12].to_vec(),
    ]
    .concat();
    let mut peer = Peer::publishing();
    let header =
        MessageHeader { kind: kind::AGGREGATE, ..MessageHeader::media(1, TagKind::Video, 50_000) };
    peer.message(header, &body).unwrap();
    assert_eq!(
        peer.media_events(),
        [
            (TagKind::Video, 50_000, b"v".to_vec()),
            (TagKind::Audio, 50_020, b"a".to_vec()),
            (TagKind::Script, 50_033, script),
        ]
    );
    assert_eq!(peer.server.ignored_messages(), 1);
}

/// AM-02, AM-05: data is passed on as it came and never read here, so nothing in it can end the
/// session.
#[test]
fn am_02_data_is_opaque() {
    let mut peer = Peer::publishing();
    let junk = [&data(&["onMetaData"], Value::Null)[..], &[0x11, 0xff, 0x0a]].concat();
    peer.media(TagKind::Script, 0, &junk).unwrap();
    let header =
        MessageHeader { kind: kind::DATA_AMF3, ..MessageHeader::media(1, TagKind::Script, 5) };
    peer.message(header, &[&[0][..], &data(&["@setDataFrame"], Value::Null)].concat()).unwrap();
    peer.media(TagKind::Script, 0, &data(&["@clearDataFrame"], "onMetaData".into())).unwrap();
    peer.media(TagKind::Script, 0, &[]).unwrap();
    peer.media(TagKind::Video, 0, &[]).unwrap();
    assert_eq!(
        peer.media_events(),
        [(TagKind::Script, 0, junk), (TagKind::Script, 5, data(&[], Value::Null))]
    );
    assert_eq!(peer.server.ignored_messages(), 3);
}

/// SE-01, in part: a publisher that falls silent loses its session.
#[test]
fn se_01_silent_publisher() {
    let timeout = Limits::default().media_timeout;
    let mut peer = Peer::publishing();
    for _ in 0..100 {
        assert_eq!(peer.pass(timeout / 2), Ok(()));
        peer.media(TagKind::Audio, 0, b"a").unwrap();
    }
    assert_eq!(peer.pass(timeout / 2), Ok(()));
    peer.raw(kind::USER_CONTROL, &[0, 6, 0, 0, 0, 0]).unwrap();
    assert_eq!(peer.pass(timeout / 2), Err(Error::Timeout(Waiting::Media, timeout)));

    let mut peer = Peer::publishing();
    peer.command(1, "closeStream", 0.0, vec![]).unwrap();
    let idle = Limits::default().idle_timeout;
    assert_eq!(peer.pass(idle - Duration::from_millis(1)), Ok(()));
    assert_eq!(peer.pass(Duration::from_millis(1)), Err(Error::Timeout(Waiting::Request, idle)));
}

/// SE-02, in part: who is put out is told why.
#[test]
fn se_02_publisher_is_ended() {
    let mut peer = Peer::publishing();
    peer.server.end_publish(1, BAD_NAME, "taken over");
    peer.media(TagKind::Video, 0, b"late").unwrap();
    assert_eq!(peer.codes(), [BAD_NAME]);
    assert_eq!(peer.events, []);
}
