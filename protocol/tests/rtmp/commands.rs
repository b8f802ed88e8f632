use std::time::Duration;

use weir_protocol::amf0::Value;
use weir_protocol::rtmp::command::{Command, object};
use weir_protocol::rtmp::message::{MessageHeader, kind};
use weir_protocol::rtmp::{Error, Event, Limits, Output, PublishMode, Waiting};
use weir_protocol::stream_name::NameError;

use crate::peer::{Peer, encode};

fn reply(name: &str, transaction: f64, code: &str) -> (String, f64, String) {
    (name.to_owned(), transaction, code.to_owned())
}

/// CH-18: every answer on the chunk stream and message stream that strict encoders expect.
#[test]
fn ch_18_where_answers_go() {
    let mut peer = Peer::connected("live");
    peer.command(0, "FCPublish", 2.0, vec!["k".into()]).unwrap();
    peer.command(0, "createStream", 3.0, vec![]).unwrap();
    peer.command(1, "publish", 4.0, vec!["k".into()]).unwrap();
    peer.server.accept_publish(1).unwrap();
    peer.drain();
    let seen: Vec<_> = (peer.answers.iter())
        .map(|m| (m.header.kind, m.header.chunk_stream, m.header.message_stream))
        .collect();
    assert_eq!(
        seen,
        [
            (kind::WINDOW_SIZE, 2, 0),
            // Set Chunk Size is taken by the reader.
            (kind::PEER_BANDWIDTH, 2, 0),
            (kind::COMMAND, 3, 0),
            (kind::COMMAND, 3, 0),
            (kind::COMMAND, 3, 0),
            (kind::COMMAND, 3, 0),
            (kind::COMMAND, 5, 1),
        ]
    );
    let connected = &peer.commands()[0].1;
    assert_eq!(connected.object.get("capsEx"), None, "only who asks is told");
}

/// CM-01: answers come in order, with the transactions of the questions, in any order of those.
#[test]
fn cm_01_transactions() {
    let release = ("releaseStream", 2.0);
    let fc = ("FCPublish", 3.0);
    let create = ("createStream", 4.5);
    for order in
        [[release, fc, create], [create, release, fc], [fc, create, release], [create, fc, release]]
    {
        let mut peer = Peer::connected("live");
        peer.answers.clear();
        let mut expected = Vec::new();
        for (name, transaction) in order {
            peer.command(0, name, transaction, vec!["unknown".into()]).unwrap();
            expected.push(reply("_result", transaction, ""));
            if name == "FCPublish" {
                expected.push(reply("onFCPublish", 0.0, "NetStream.Publish.Start"));
            }
        }
        assert_eq!(peer.replies(), expected);
    }
    let mut peer = Peer::connected("live");
    peer.answers.clear();
    peer.command(0, "releaseStream", 0.0, vec!["k".into()]).unwrap();
    assert_eq!(peer.replies(), []);
}

/// CM-02: unknown commands are answered if they ask for it, and end nothing.
#[test]
fn cm_02_unknown_commands() {
    let mut peer = Peer::connected("live");
    peer.answers.clear();
    peer.command(0, "_checkbw", 5.0, vec![]).unwrap();
    peer.command(0, "getStreamLength", 6.0, vec!["k".into()]).unwrap();
    peer.command(0, "x", 0.0, vec![]).unwrap();
    peer.command(0, "x", 9.0, vec![]).unwrap();
    peer.command(0, "_result", 1.0, vec![]).unwrap();
    peer.command(0, "onBWDone", 0.0, vec![]).unwrap();
    assert_eq!(
        peer.replies(),
        [
            reply("_result", 5.0, ""),
            reply("_result", 6.0, ""),
            reply("_error", 9.0, "NetConnection.Call.Failed"),
        ]
    );
    assert_eq!(peer.commands()[1].1.arguments, [0.0.into()]);
}

/// CM-04, CM-05: however the address is split, one stream is published.
#[test]
fn cm_04_cm_05_addresses() {
    for (app, tc_url, key) in [
        ("a/b/c", "rtmp://h/a/b/c", "k?token=t"),
        ("a/b", "rtmp://h/a/b", "c/k?token=t"),
        ("a", "rtmp://h/a?token=t", "b/c/k"),
        ("/a//b/", "rtmp://h/a/b", "/c/k/?token=t"),
        ("a/b/c/k?token=t", "rtmp://h/a/b/c/k", ""),
        ("", "rtmp://h/a/b/?token=t", "c/k"),
    ] {
        let mut peer = Peer::new();
        peer.connect(app, tc_url).unwrap();
        peer.command(1, "publish", 2.0, vec![key.into(), "APPEND".into()]).unwrap();
        let Some(Event::Publish { message_stream, name, query, mode }) = peer.events.first() else {
            panic!("no publish for {app} {key}");
        };
        assert_eq!((name.as_str(), *message_stream, *mode), ("a/b/c/k", 1, PublishMode::Append));
        assert_eq!(query.get("token"), Some("t"));
    }
}

/// SX-01: a name that is none is refused with a reason, on publish and on play.
#[test]
fn sx_01_bad_names() {
    for (key, error) in [
        ("../../../../out/pwn", NameError::Dots),
        ("..%2f..%2fx", NameError::Dots),
        ("C:\\x", NameError::BadCharacter(':')),
        ("", NameError::Incomplete),
    ] {
        let mut peer = Peer::connected("live");
        peer.command(1, "publish", 2.0, vec![key.into()]).unwrap();
        peer.command(1, "play", 3.0, vec![key.into()]).unwrap();
        assert_eq!(peer.events, [Event::BadName(error), Event::BadName(error)]);
        assert_eq!(peer.codes(), ["NetStream.Publish.BadName", "NetStream.Play.StreamNotFound"]);
    }
}

/// CM-10: neither commands nor message streams nor connects without end.
#[test]
fn cm_10_endless_commands() {
    let mut peer = Peer::connected("live");
    peer.answers.clear();
    for transaction in 2..12 {
        peer.command(0, "createStream", f64::from(transaction), vec![]).unwrap();
    }
    let errors = peer.replies().iter().filter(|(name, ..)| name == "_error").count();
    assert_eq!(errors, 2, "eight message streams at once");
    peer.connect("live", "").unwrap();
    assert_eq!(peer.replies().last().unwrap().2, "NetConnection.Connect.Rejected");
    let result = (0..1_000_000).try_for_each(|_| peer.command(0, "createStream", 3.0, vec![]));
    assert_eq!(result, Err(Error::TooManyCommands));

    // At an encoder's pace the same is no trouble.
    let mut peer = Peer::connected("live");
    for round in 0..1000_u32 {
        peer.now += Duration::from_secs(1);
        peer.command(0, "createStream", 2.0, vec![]).unwrap();
        peer.command(0, "deleteStream", 0.0, vec![f64::from(round + 1).into()]).unwrap();
    }
    assert!(peer.replies().iter().all(|(name, ..)| name == "_result"));
}

#[test]
fn nothing_is_granted_before_connect() {
    let mut peer = Peer::new();
    peer.command(0, "createStream", 2.0, vec![]).unwrap();
    peer.command(1, "publish", 3.0, vec!["live/k".into()]).unwrap();
    peer.raw(kind::COMMAND, &[]).unwrap();
    peer.send_command(0, &Command { transaction: 1.0, ..Command::new("connect", vec![]) }).unwrap();
    assert!(peer.replies().iter().all(|(name, ..)| name == "_error"));
    assert_eq!(peer.replies().len(), 3);
    assert_eq!(peer.events, []);
}

/// Enhanced RTMP v2: who says what it can do is told what Weir can do.
#[test]
fn enhanced_rtmp_capabilities() {
    let mut peer = Peer::new();
    let said = object([
        ("app", "live".into()),
        ("videoFourCcInfoMap", object([("hvc1", 7.0.into())])),
        ("capsEx", 3.0.into()),
    ]);
    let connect = Command { object: said, transaction: 1.0, ..Command::new("connect", vec![]) };
    peer.send_command(0, &connect).unwrap();
    let answer = &peer.commands()[0].1.object;
    assert_eq!(answer.get("capsEx").and_then(Value::as_number), Some(6.0));
    let hevc = answer.get("videoFourCcInfoMap").and_then(|map| map.get("hvc1"));
    assert_eq!(hevc.and_then(Value::as_number), Some(4.0));
    assert!(peer.server.connect().unwrap().enhanced);
    assert!(peer.server.request_reconnect("restart"));
    peer.drain();
    let (stream, request) = peer.commands().pop().unwrap();
    assert_eq!((stream, request.name.as_str()), (0, "onStatus"));
    assert_eq!(peer.codes(), ["NetConnection.Connect.ReconnectRequest"]);
    assert!(!Peer::connected("live").server.request_reconnect("restart"));
}

/// The AMF3 message type with AMF0 inside, as Flash sends it.
#[test]
fn amf3_commands() {
    let mut peer = Peer::connected("live");
    peer.answers.clear();
    let body = Command { transaction: 2.0, ..Command::new("createStream", vec![]) }.encode();
    peer.raw(kind::COMMAND_AMF3, &[&[0][..], &body].concat()).unwrap();
    assert_eq!(peer.replies(), [reply("_result", 2.0, "")]);
}

/// AM-02: a client of ActionScript 3 says everything in AMF3, in messages of its own types.
#[test]
fn am_02_commands_in_amf3() {
    let mut peer = Peer::new();
    let text = |text: &str| [&[6, (text.len() as u8) << 1 | 1][..], text.as_bytes()].concat();
    let name = |name: &str| text(name).split_off(1);
    let connect = [
        &b"\0\x02\0\x07connect\0\x3f\xf0\0\0\0\0\0\0\x11\x0a\x0b\x01"[..],
        &[name("app"), text("live")].concat(),
        &[name("objectEncoding"), vec![4, 3]].concat(),
        &[name("tcUrl"), text("rtmp://h/live"), vec![1]].concat(),
    ];
    peer.raw(kind::COMMAND_AMF3, &connect.concat()).unwrap();
    let (_, answer) = &peer.commands()[0];
    assert_eq!(answer.name, "_result");
    assert_eq!(answer.arguments[0].get("objectEncoding"), Some(&Value::Number(3.0)));
    let create = b"\0\x02\0\x0ccreateStream\0\x40\0\0\0\0\0\0\0\x11\x01";
    peer.raw(kind::COMMAND_AMF3, create).unwrap();
    let publish = [b"\0\x02\0\x07publish\0\0\0\0\0\0\0\0\0\x05\x11".to_vec(), text("k")].concat();
    peer.message(MessageHeader { kind: kind::COMMAND_AMF3, ..MessageHeader::command(1) }, &publish)
        .unwrap();
    peer.server.accept_publish(1).unwrap();
    peer.drain();
    assert!(matches!(&peer.events[..], [Event::Publish { name, .. }] if name.as_str() == "live/k"));
    let metadata =
        b"\0\x02\0\x0d@setDataFrame\x02\0\x0aonMetaData\x11\x0a\x0b\x01\x03w\x04\x01\x01";
    peer.message(MessageHeader { kind: kind::DATA_AMF3, ..MessageHeader::command(1) }, metadata)
        .unwrap();
    assert_eq!(peer.media_events()[0].2, metadata[17..]);
}

/// AM-01: hostile values end the session with an error.
#[test]
fn am_01_hostile_connect() {
    let start = &Command::new("connect", vec![]).encode()[..19];
    let nested = [0x0a, 0, 0, 0, 1].repeat(5000);
    let mut peer = Peer::new();
    let result = peer.raw(kind::COMMAND, &[start, &nested].concat());
    assert!(matches!(result, Err(Error::Command(_))), "{result:?}");
    let mut peer = Peer::new();
    let result = peer.raw(kind::COMMAND, &[start, &nested.repeat(2)].concat());
    assert!(matches!(result, Err(Error::MessageTooLong { limit: 32_768, .. })));
}

#[test]
fn time_limits_before_a_request() {
    let limits = Limits::default();
    let mut peer = Peer::silent(limits.clone());
    peer.bytes(&[3]).unwrap();
    let timeout = limits.handshake_timeout;
    assert_eq!(peer.server.poll_timeout(), Some(peer.now + timeout));
    assert_eq!(peer.pass(timeout / 2), Ok(()));
    peer.bytes(&[0; 3000]).unwrap();
    assert_eq!(peer.pass(timeout / 2), Err(Error::Timeout(Waiting::Handshake, timeout)));

    // Commands do not prolong the time to begin something.
    let mut peer = Peer::connected("live");
    for transaction in 0..19 {
        assert_eq!(peer.pass(Duration::from_secs(1)), Ok(()));
        peer.command(0, "_checkbw", f64::from(transaction), vec![]).unwrap();
    }
    let timeout = limits.idle_timeout;
    assert_eq!(peer.pass(Duration::from_secs(1)), Err(Error::Timeout(Waiting::Request, timeout)));
}

#[test]
fn a_play_may_be_interrupted_and_go_on() {
    let mut peer = Peer::connected("live");
    peer.command(0, "createStream", 2.0, vec![]).unwrap();
    peer.command(1, "seek", 0.0, vec![1000.0.into()]).unwrap();
    assert_eq!(peer.codes(), ["NetStream.Seek.Failed"], "nothing is played yet");
    peer.command(1, "play", 3.0, vec!["k".into()]).unwrap();
    peer.server.accept_play(1);
    peer.drain();
    peer.answers.clear();
    peer.server.interrupt_play(1);
    peer.server.resume_play(1);
    peer.server.interrupt_play(1);
    peer.server.abandon_play(1);
    // Nothing is left that could be resumed or ended.
    peer.server.resume_play(1);
    peer.server.end_play(1);
    peer.server.ping(77);
    peer.drain();
    let [out, back, over] = ["Play.UnpublishNotify", "Play.PublishNotify", "Play.Stop"]
        .map(|code| format!("NetStream.{code}"));
    assert_eq!(peer.codes(), [&out, &back, &out, &over].map(String::as_str));
    let last = peer.answers.last().unwrap();
    assert_eq!((last.header.kind, &last.body[..]), (kind::USER_CONTROL, &[0, 6, 0, 0, 0, 77][..]));
    assert!(peer.server.poll_timeout().is_some(), "it may not stay for nothing");
}

/// Whoever only sends never takes an event from whoever acts on it.
#[test]
fn what_is_sent_stays_behind_the_event_before_it() {
    let mut peer = Peer::connected("live");
    peer.drain();
    let play = Command::new("play", vec!["k".into()]).encode();
    let bytes = encode(MessageHeader::command(1), &play);
    peer.server.handle_input(peer.now, &bytes).unwrap();
    peer.server.ping(1);
    assert_eq!(peer.server.poll_send(), None, "the play comes first");
    assert!(matches!(peer.server.poll_output(), Some(Output::Event(Event::Play { .. }))));
    assert!(peer.server.poll_send().is_some());
    assert_eq!(peer.server.poll_send(), None);
}

#[test]
fn a_player_is_served() {
    let mut peer = Peer::connected("live");
    peer.command(0, "createStream", 2.0, vec![]).unwrap();
    peer.answers.clear();
    peer.command(1, "play", 3.0, vec!["k?token=t".into(), (-2.0).into()]).unwrap();
    assert!(matches!(&peer.events[..], [Event::Play { message_stream: 1, name, query }]
        if name.as_str() == "live/k" && query.get("token") == Some("t")));
    peer.server.accept_play(1);
    peer.drain();
    let kinds: Vec<_> = peer.answers.iter().map(|m| m.header.kind).collect();
    use kind::{COMMAND, DATA, USER_CONTROL};
    assert_eq!(kinds, [USER_CONTROL, COMMAND, COMMAND, DATA, DATA]);
    assert_eq!(peer.codes(), ["NetStream.Play.Reset", "NetStream.Play.Start"]);
    assert_eq!(peer.server.poll_timeout(), None, "a player may be silent");

    peer.events.clear();
    peer.answers.clear();
    peer.command(1, "pause", 0.0, vec![true.into(), 0.0.into()]).unwrap();
    peer.command(1, "pause", 0.0, vec![false.into(), 0.0.into()]).unwrap();
    peer.command(1, "seek", 0.0, vec![1000.0.into()]).unwrap();
    peer.command(1, "receiveVideo", 0.0, vec![false.into()]).unwrap();
    let options = object([("streamName", "other".into())]);
    peer.command(1, "play2", 0.0, vec![options]).unwrap();
    peer.server.reject_play(1, "NetStream.Play.StreamNotFound", "no such stream");
    peer.command(1, "closeStream", 0.0, vec![]).unwrap();
    assert_eq!(
        peer.codes(),
        [
            "NetStream.Pause.Notify",
            "NetStream.Unpause.Notify",
            "NetStream.Seek.Notify",
            "NetStream.Play.StreamNotFound",
        ]
    );
    assert!(matches!(
        &peer.events[..],
        [
            Event::Pause { paused: true, .. },
            Event::Pause { paused: false, .. },
            Event::Seek { message_stream: 1 },
            Event::Receive { wanted: false, .. },
            Event::StopPlay { message_stream: 1 },
            Event::Play { message_stream: 1, .. },
        ]
    ));
    assert!(peer.server.poll_timeout().is_some());
}

#[test]
fn the_end_of_a_stream_reaches_its_player() {
    let mut peer = Peer::connected("live");
    peer.command(1, "play", 0.0, vec!["k".into()]).unwrap();
    peer.server.accept_play(1);
    peer.drain();
    peer.answers.clear();
    peer.server.end_play(1);
    peer.server.end_play(1);
    peer.drain();
    assert_eq!(peer.answers[0].body, [0, 1, 0, 0, 0, 1][..]);
    assert_eq!(peer.answers[0].header, MessageHeader::control(kind::USER_CONTROL));
    assert_eq!(peer.codes(), ["NetStream.Play.UnpublishNotify"]);
    peer.command(0, "deleteStream", 0.0, vec![1.0.into()]).unwrap();
    assert_eq!(peer.events.len(), 1, "no StopPlay after it");
}
