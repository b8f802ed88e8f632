//! Seeded noise on real conversations: errors are fine, panics and endless work are not.

use weir_protocol::flv::TagKind;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::command::{Command, object};
use weir_protocol::rtmp::message::{MessageHeader, kind};
use weir_protocol::rtmp::{ClientSession, Event, Limits, Output, RtmpUrl, ServerSession};

use crate::Random;
use crate::peer::encode;

/// What a publisher says after the handshake.
fn conversation() -> Vec<u8> {
    let command = |stream, name, arguments| {
        let object = object([("app", "live".into()), ("tcUrl", "rtmp://h/live".into())]);
        let command = Command { object, transaction: 1.0, ..Command::new(name, arguments) };
        encode(MessageHeader::command(stream), &command.encode())
    };
    let control = |kind, value: u32| encode(MessageHeader::control(kind), &value.to_be_bytes());
    [
        command(0, "connect", vec![]),
        control(kind::WINDOW_SIZE, 5000),
        command(0, "createStream", vec![]),
        command(1, "publish", vec!["k".into()]),
        encode(MessageHeader::media(1, TagKind::Video, 0xff_ffff), &[7; 300]),
        encode(MessageHeader { kind: 22, ..MessageHeader::media(1, TagKind::Video, 0) }, &[9; 60]),
        control(kind::SET_CHUNK_SIZE, 100),
        control(kind::ABORT, 6),
        command(1, "closeStream", vec![]),
        command(1, "play", vec!["k".into()]),
    ]
    .concat()
}

fn spoil(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(8) {
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => bytes[at] = random.next() as u8,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, [0, 0xff, 0x7f, random.next() as u8][random.below(4)]),
        }
    }
}

#[test]
fn a_server_session_survives_noise() {
    let good = conversation();
    let mut accepted = 0;
    for seed in 0..4000 {
        let mut random = Random(seed);
        let mut bytes = good.clone();
        spoil(&mut bytes, &mut random);
        let now = crate::start();
        let mut server = ServerSession::new(Limits::default(), seed, HeapPool::default(), now);
        server.handle_input(now, &[3; 3073]).unwrap();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (read, later) = rest.split_at(rest.len().min(1 + random.below(200)));
            rest = later;
            if server.handle_input(now, read).is_err() {
                break;
            }
            let mut outputs = 0;
            while let Some(output) = server.poll_output() {
                outputs += 1;
                match output {
                    Output::Event(Event::Publish { message_stream, .. }) => {
                        accepted += 1;
                        if server.accept_publish(message_stream).is_err() {
                            break;
                        }
                    }
                    Output::Event(Event::Play { message_stream, .. }) => {
                        server.accept_play(message_stream);
                    }
                    _ => {}
                }
            }
            assert!(outputs <= 4 * 200);
        }
    }
    assert!(accepted > 1000, "most of the noise leaves the conversation alive: {accepted}");
}

#[test]
fn a_client_session_survives_noise() {
    let answers = [
        encode(MessageHeader::command(0), &Command::result(1.0, 1.0.into(), 1.0.into()).encode()),
        encode(MessageHeader::command(0), &Command::result(4.0, 1.0.into(), 1.0.into()).encode()),
        encode(
            MessageHeader::command(1),
            &Command::on_status("status", "NetStream.Play.Start", "").encode(),
        ),
        encode(MessageHeader::media(1, TagKind::Audio, 0), &[7; 300]),
    ]
    .concat();
    for seed in 0..2000 {
        let mut random = Random(seed);
        let mut bytes = answers.clone();
        spoil(&mut bytes, &mut random);
        let now = crate::start();
        let url = RtmpUrl::parse("rtmp://h/live/k").unwrap();
        let mut client =
            ClientSession::play(url, Limits::default(), seed, HeapPool::default(), now);
        client.handle_input(now, &[3; 3073]).unwrap();
        for read in bytes.chunks(1 + random.below(100)) {
            if client.handle_input(now, read).is_err() {
                break;
            }
            while client.poll_output().is_some() {}
        }
    }
}

#[test]
fn pure_noise_is_refused() {
    for seed in 0..500 {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..6000).map(|_| random.next() as u8).collect();
        let now = crate::start();
        let mut server = ServerSession::new(Limits::default(), seed, HeapPool::default(), now);
        if random.below(2) == 0 {
            server.handle_input(now, &[3; 3073]).unwrap();
        }
        let _ = server.handle_input(now, &bytes);
        while server.poll_output().is_some() {}
    }
}
