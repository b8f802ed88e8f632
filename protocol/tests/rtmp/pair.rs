//! Client session and server session on a pipe that cuts reads anywhere.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use weir_protocol::flv::TagKind;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::message::MessageHeader;
use weir_protocol::rtmp::{
    ClientEvent, ClientSession, Error, Event, Limits, Output, PeerCodecs, RtmpUrl, ServerSession,
    Waiting,
};

use crate::Random;

struct Pair {
    client: ClientSession<HeapPool>,
    server: ServerSession<HeapPool>,
    now: Instant,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    client_events: Vec<ClientEvent>,
    server_events: Vec<Event>,
    random: Random,
    longest_read: usize,
}

impl Pair {
    fn new(seed: u64, longest_read: usize, publishes: bool, url: &str) -> Self {
        let now = crate::start();
        let url = RtmpUrl::parse(url).unwrap();
        let (limits, pool) = (Limits::default, HeapPool::default);
        let new = if publishes { ClientSession::publish } else { ClientSession::play };
        Self {
            client: new(url, limits(), seed, pool(), now),
            server: ServerSession::new(limits(), !seed, pool(), now),
            now,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            client_events: Vec::new(),
            server_events: Vec::new(),
            random: Random(seed),
            longest_read,
        }
    }

    /// Moves bytes both ways until both ends are silent.
    fn run(&mut self) -> Result<(), Error> {
        loop {
            while let Some(output) = self.client.poll_output() {
                match output {
                    Output::Send(bytes) => self.to_server.extend(bytes),
                    Output::Event(event) => self.client_events.push(event),
                }
            }
            while let Some(output) = self.server.poll_output() {
                match output {
                    Output::Send(bytes) => self.to_client.extend(bytes),
                    Output::Event(event) => self.server_events.push(event),
                }
            }
            if self.to_server.is_empty() && self.to_client.is_empty() {
                return Ok(());
            }
            self.now += Duration::from_micros(1);
            let most = 1 + self.random.below(self.longest_read);
            let read: Vec<u8> = self.to_server.drain(..most.min(self.to_server.len())).collect();
            self.server.handle_input(self.now, &read)?;
            let most = 1 + self.random.below(self.longest_read);
            let read: Vec<u8> = self.to_client.drain(..most.min(self.to_client.len())).collect();
            self.client.handle_input(self.now, &read)?;
        }
    }
}

fn frames(random: &mut Random) -> Vec<(TagKind, u32, Bytes)> {
    let mut timestamp = 0xff_ff00_u32;
    (0..40)
        .map(|number| {
            timestamp += random.below(50) as u32;
            let len = 1 + random.below([10, 600, 70_000, 140_000][number % 4]);
            let kind = if number % 3 == 0 { TagKind::Audio } else { TagKind::Video };
            (kind, timestamp, vec![number as u8; len].into())
        })
        .collect()
}

#[test]
fn publish_over_reads_cut_anywhere() {
    for (seed, longest_read) in [(1, 1), (2, 2), (3, 7), (4, 100), (5, 5000), (6, 1 << 20)] {
        let mut pair = Pair::new(seed, longest_read, true, "rtmp://h/live/k?token=t");
        pair.run().unwrap();
        let [Event::Publish { message_stream, name, query, .. }] = &pair.server_events[..] else {
            panic!("{:?}", pair.server_events);
        };
        let stream = *message_stream;
        assert_eq!((name.as_str(), query.get("token")), ("live/k", Some("t")));
        assert_eq!(pair.client_events, []);
        pair.server_events.clear();
        pair.server.accept_publish(stream).unwrap();
        pair.run().unwrap();
        assert_eq!(pair.client_events, [ClientEvent::Published]);

        let script = Bytes::from_static(b"\x02\x00\x0aonMetaData\x05");
        pair.client.publish_media(TagKind::Script, 0, &script);
        let frames = frames(&mut pair.random);
        for (kind, timestamp, body) in &frames {
            pair.client.publish_media(*kind, *timestamp, body);
        }
        pair.client.close();
        pair.run().unwrap();
        let script = Event::Media { kind: TagKind::Script, timestamp_ms: 0, body: script };
        let media = frames.into_iter().map(|(kind, timestamp_ms, body)| Event::Media {
            kind,
            timestamp_ms,
            body,
        });
        let expected: Vec<_> = std::iter::once(script)
            .chain(media)
            .chain([Event::Unpublish { message_stream: stream }])
            .collect();
        assert_eq!(pair.server_events, expected);
    }
}

#[test]
fn play_over_reads_cut_anywhere() {
    for (seed, longest_read) in [(1, 1), (2, 3), (3, 1000), (4, 1 << 20)] {
        let mut pair = Pair::new(seed, longest_read, false, "rtmp://h/live/k");
        pair.run().unwrap();
        assert!(matches!(&pair.server_events[..], [Event::Play { message_stream: 1, .. }]));
        pair.server.accept_play(1);
        pair.run().unwrap();
        assert_eq!(pair.client_events[0], ClientEvent::Playing);
        pair.client_events.clear();

        // The gateway sends media itself.
        let frames = frames(&mut pair.random);
        for (kind, timestamp, body) in &frames {
            let (head, payload) = (&body[..1], body.slice(1..));
            let header = MessageHeader::media(1, *kind, *timestamp);
            let mut bytes = Vec::new();
            pair.server.writer().write(header, head, &payload, &mut bytes);
            pair.to_client.extend(bytes);
        }
        pair.run().unwrap();
        pair.server.end_play(1);
        pair.run().unwrap();
        let mut expected: Vec<_> = frames
            .into_iter()
            .map(|(kind, timestamp_ms, body)| ClientEvent::Media { kind, timestamp_ms, body })
            .collect();
        expected.push(ClientEvent::Ended { code: "NetStream.Play.UnpublishNotify".into() });
        let media = |event: &ClientEvent| match event {
            ClientEvent::Media { kind, .. } => *kind != TagKind::Script,
            _ => true,
        };
        pair.client_events.retain(media);
        assert_eq!(pair.client_events, expected);
    }
}

/// What a relay does: it puts media behind what the session sends, without the session.
#[test]
fn a_client_may_write_its_media_itself() {
    let mut pair = Pair::new(1, 1000, true, "rtmp://h/live/k");
    pair.run().unwrap();
    pair.server.accept_publish(1).unwrap();
    pair.run().unwrap();
    pair.server_events.clear();
    let frames = frames(&mut pair.random);
    let (stream, writer) = (pair.client.message_stream(), pair.client.writer());
    for (kind, timestamp, body) in &frames {
        let (head, payload) = (&body[..1], body.slice(1..));
        let mut bytes = Vec::new();
        let header = MessageHeader::media(stream, *kind, *timestamp);
        writer.write(header, head, &payload, &mut bytes);
        pair.to_server.extend(bytes);
    }
    pair.run().unwrap();
    let sent = frames.into_iter();
    let sent = sent.map(|(kind, timestamp_ms, body)| Event::Media { kind, timestamp_ms, body });
    assert_eq!(pair.server_events, sent.collect::<Vec<_>>());
}

/// Bytes are counted past 2^32, and acknowledged modulo 2^32 (RTMP 1.0 §5.4.3), at either end.
#[test]
fn acknowledgements_go_on_past_four_gibibytes() {
    let mut pair = Pair::new(1, 1000, true, "rtmp://h/live/k");
    pair.run().unwrap();
    pair.server.accept_publish(1).unwrap();
    pair.run().unwrap();
    // Both windows are set; a message of an unknown type is counted and skipped.
    let window = window_of(64 << 20);
    let long = unknown_message(8 << 20);
    pair.server.handle_input(pair.now, &window).unwrap();
    pair.client.handle_input(pair.now, &window).unwrap();
    let (mut of_server, mut of_client) = (Vec::new(), Vec::new());
    for _ in 0..(5_u64 << 30) / long.len() as u64 {
        pair.server.handle_input(pair.now, &long).unwrap();
        pair.client.handle_input(pair.now, &long).unwrap();
        of_server.extend(std::iter::from_fn(|| pair.server.poll_output()).filter_map(acknowledged));
        of_client.extend(std::iter::from_fn(|| pair.client.poll_output()).filter_map(acknowledged));
    }
    for sequences in [of_server, of_client] {
        let steps = sequences.windows(2).map(|two| two[1].wrapping_sub(two[0]));
        assert!(
            sequences.len() > 70 && steps.clone().all(|step| (64 << 20..73 << 20).contains(&step))
        );
        assert!(sequences.windows(2).any(|two| two[1] < two[0]), "the sequence number wraps");
    }
}

fn window_of(bytes: u32) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 0, 4, 5, 0, 0, 0, 0][..], &bytes.to_be_bytes()].concat()
}

/// In one chunk, after a Set Chunk Size that lets it be one.
fn unknown_message(len: u32) -> Vec<u8> {
    let [_, l2, l1, l0] = len.to_be_bytes();
    let size = [2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff];
    let header = [7, 0, 0, 0, l2, l1, l0, 19, 0, 0, 0, 0];
    [&size[..], &header, &vec![0; len as usize]].concat()
}

/// The sequence number of an acknowledgement that is sent alone.
fn acknowledged<E>(output: Output<E>) -> Option<u32> {
    let Output::Send(bytes) = output else { return None };
    let sequence = bytes.strip_prefix(&[2, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0])?;
    Some(u32::from_be_bytes(sequence.try_into().ok()?))
}

#[test]
fn both_ends_say_that_they_speak_enhanced_rtmp() {
    let mut pair = Pair::new(1, 100, true, "rtmp://h/live/k");
    pair.client = pair.client.coming_via(vec![1, u64::MAX]);
    assert_eq!(pair.client.peer_codecs(), &PeerCodecs::default());
    pair.run().unwrap();
    let connect = pair.server.connect().unwrap();
    assert!(connect.enhanced && connect.via == [1, u64::MAX]);
    assert_ne!(pair.client.peer_codecs(), &PeerCodecs::default());
}

#[test]
fn a_refusal_reaches_the_client() {
    let mut pair = Pair::new(1, 100, true, "rtmp://h/live/k");
    pair.run().unwrap();
    pair.server.reject_publish(1, "NetStream.Publish.BadName", "busy").unwrap();
    let rejected =
        Error::Rejected { code: "NetStream.Publish.BadName".into(), description: "busy".into() };
    assert_eq!(pair.run(), Err(rejected));

    let mut pair = Pair::new(1, 100, true, "rtmp://h/live/..");
    assert!(matches!(pair.run(), Err(Error::Rejected { .. })));
}

#[test]
fn a_client_waits_so_long_and_no_longer() {
    let mut pair = Pair::new(1, 100, true, "rtmp://h/live/k");
    let timeout = Limits::default().handshake_timeout;
    let error = pair.client.handle_timeout(pair.now + timeout);
    assert_eq!(error, Err(Error::Timeout(Waiting::Handshake, timeout)));
    pair.run().unwrap();
    let deadline = pair.client.poll_timeout().unwrap();
    assert_eq!(pair.client.handle_timeout(deadline - Duration::from_millis(1)), Ok(()));
    let error = pair.client.handle_timeout(deadline);
    assert!(matches!(error, Err(Error::Timeout(Waiting::Answer, _))));
    pair.server.accept_publish(1).unwrap();
    pair.run().unwrap();
    assert_eq!(pair.client.poll_timeout(), None);
}

#[test]
fn media_before_published_goes_nowhere() {
    let mut pair = Pair::new(1, 100, true, "rtmp://h/live/k");
    pair.client.publish_media(TagKind::Video, 0, &Bytes::from_static(b"early"));
    pair.run().unwrap();
    pair.server.accept_publish(1).unwrap();
    pair.run().unwrap();
    assert_eq!(pair.server_events.len(), 1);
}
