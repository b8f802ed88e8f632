use std::time::Duration;

use weir_protocol::flv::TagKind;
use weir_protocol::rtmp::message::kind;
use weir_protocol::rtmp::{Error, Limits};

use crate::peer::Peer;

/// HS-03: a C2 of zeros, as every test here sends, is no obstacle; a wrong first byte is refused
/// before anything is sent.
#[test]
fn hs_03_handshake() {
    assert!(Peer::connected("live").server.connect().is_some());
    let mut peer = Peer::silent(Limits::default());
    assert_eq!(peer.bytes(b"GET / HTTP/1.1\r\n"), Err(Error::NotRtmp(b'G')));
    assert_eq!(peer.sent_by_server, 0);
}

/// CH-16: tiny windows make few acknowledgements, none makes none.
#[test]
fn ch_16_acknowledgement_windows() {
    for window in [0_u32, 1, 2, 4096, 1_000_000] {
        let mut peer = Peer::publishing();
        peer.raw(kind::WINDOW_SIZE, &window.to_be_bytes()).unwrap();
        peer.answers.clear();
        let before = (peer.sent_by_server, peer.server.received_bytes());
        for _ in 0..4000 {
            peer.media(TagKind::Video, 0, &[1; 1000]).unwrap();
        }
        let received = peer.server.received_bytes() - before.1;
        let acks = peer.answers.iter().filter(|m| m.header.kind == kind::ACKNOWLEDGEMENT);
        let (acks, last) = (acks.clone().count(), acks.last());
        if window == 0 {
            assert_eq!(acks, 0);
        } else {
            assert!(((peer.sent_by_server - before.0) as u64) < received / 100);
            assert!(acks as u64 >= received / u64::from(window.max(8192)) - 1);
            let sequence = u32::from_be_bytes(last.unwrap().body[..].try_into().unwrap());
            assert!(peer.server.received_bytes() - u64::from(sequence) < 1_010_000);
        }
    }
    // One read of many bytes is one acknowledgement.
    let mut peer = Peer::publishing();
    peer.raw(kind::WINDOW_SIZE, &[0, 0, 0, 1]).unwrap();
    peer.answers.clear();
    peer.media(TagKind::Video, 0, &[1; 1_000_000]).unwrap();
    assert_eq!(peer.answers.len(), 1);
}

/// CH-19: pings are answered at a bounded rate, the rest is ignored.
#[test]
fn ch_19_user_control_and_unknown_types() {
    let mut peer = Peer::publishing();
    for event in [3_u8, 7, 26, 27, 31, 32] {
        peer.raw(kind::USER_CONTROL, &[0, event, 0, 0, 0, 1, 0, 0, 0, 5]).unwrap();
    }
    for kind in [0, 7, 10, 12, 16, 19, 23, 255] {
        peer.raw(kind, &[1; 300]).unwrap();
    }
    assert!(peer.answers.is_empty());
    peer.raw(kind::USER_CONTROL, &[0, 6, 1, 2, 3, 4]).unwrap();
    assert_eq!(peer.answers[0].body, [0, 7, 1, 2, 3, 4][..]);
    for _ in 0..10_000 {
        peer.raw(kind::USER_CONTROL, &[0, 6, 0, 0, 0, 0]).unwrap();
    }
    assert_eq!(peer.answers.len(), 64);
    peer.now += Duration::from_secs(10);
    peer.raw(kind::USER_CONTROL, &[0, 6, 0, 0, 0, 0]).unwrap();
    assert_eq!(peer.answers.len(), 65);
    peer.media(TagKind::Video, 0, b"frame").unwrap();
    assert_eq!(peer.media_events().len(), 1);
}

/// CH-04: every control type with every short length, before and while publishing.
#[test]
fn ch_04_short_bodies() {
    for kind in [1, 2, 3, 4, 5, 6, 15, 17, 18, 20, 22] {
        for len in 0..17 {
            for mut peer in [Peer::new(), Peer::publishing()] {
                // Errors are fine, panics are not.
                let _ = peer.raw(kind, &vec![0; len]);
            }
        }
    }
}

/// CH-01: the greatest chunk size and a connect in one chunk.
#[test]
fn ch_01_connect_in_one_chunk() {
    let mut peer = Peer::new();
    peer.bytes(&[2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]).unwrap();
    let body = {
        use weir_protocol::rtmp::command::{Command, object};
        let said = object([("app", "live".into()), ("filler", "x".repeat(3000).as_str().into())]);
        Command { object: said, transaction: 1.0, ..Command::new("connect", vec![]) }.encode()
    };
    let [_, l2, l1, l0] = (body.len() as u32).to_be_bytes();
    peer.bytes(&[&[3, 0, 0, 0, l2, l1, l0, 20, 0, 0, 0, 0], &body[..]].concat()).unwrap();
    assert!(peer.server.connect().is_some());
}
