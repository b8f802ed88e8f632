//! Sequences of operations through the whole gateway: what hostile peers say, in any order, while
//! another publisher and its players go on and must not notice.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};
use weir::config::Config;
use weir::core::serve::Protocol;
use weir_protocol::flv::{Tag, TagKind};
use weir_protocol::rtmp::chunk::Writer;
use weir_protocol::rtmp::command::{Command, object};
use weir_protocol::rtmp::message::{MessageHeader, kind};

use super::Random;
use crate::media;
use crate::sim::crowd::Crowd;
use crate::sim::wire::{Net, Wire, ticks};
use crate::sim::world::{World, arena};
use crate::sim::{Plan, clockwork, players, publishers};

/// The good ones publish for so long; hostile peers have as much.
const TIME: Duration = Duration::from_millis(1500);

const PLAN: Plan = Plan {
    cores: 2,
    names: 2,
    publishers: 0,
    players: 0,
    disturbers: 0,
    time: TIME,
    stop_early: false,
};

/// All is over, and everything forgotten, after so long at the latest.
const LIMIT: Duration = Duration::from_secs(300);

/// Operations of one input: beyond them it only repeats itself.
const OPERATIONS: usize = 400;

const HOSTILE: usize = 3;

const COMMANDS: [&str; 16] = [
    "connect",
    "createStream",
    "publish",
    "play",
    "deleteStream",
    "closeStream",
    "pause",
    "seek",
    "releaseStream",
    "FCPublish",
    "FCUnpublish",
    "receiveAudio",
    "receiveVideo",
    "play2",
    "getStreamLength",
    "@setDataFrame",
];

const TARGETS: [&str; 8] = [
    "/live/0.flv",
    "/live/0/index.m3u8",
    "/live/0/media.m3u8",
    "/live/0.m3u8",
    "/live/1.flv",
    "/live/1/media.m3u8?_HLS_msn=1&_HLS_part=0",
    "/live/2/media.m3u8",
    "/live/9.flv",
];

/// # Panics
/// When a task panics or never ends, a frame of the good ones is missing, or something is left.
pub(super) fn run(input: &[u8]) {
    let input = input.to_vec();
    let refused = arena().usage().refused;
    clockwork::run(LIMIT, live(input), || ());
    let usage = arena().usage();
    assert_eq!(usage.refused, refused, "the peers of one input took all memory");
    assert_eq!(usage.in_use_bytes, 0, "media is left");
}

async fn live(input: Vec<u8>) {
    let config = Config { resume_window: Duration::from_secs(1), ..Config::default() };
    let world = World::new(config, PLAN.cores);
    let crowd = Rc::new(Crowd::new(world.clone(), PLAN));
    let good = crowd.contested;
    let player = |kind| spawn_local(players::play_calmly(crowd.clone(), good, kind));
    let viewers = [player(players::Kind::Rtmp), player(players::Kind::Flv)];
    let publisher = spawn_local(publishers::publish_calmly(crowd.clone(), good));
    let hostile = spawn_local(attack(crowd.clone(), input));
    let last = publisher.await.expect("a publisher that is left in peace");
    for viewer in viewers {
        assert_eq!(viewer.await.expect("a player that is left in peace"), Some(last));
    }
    hostile.await.expect("an attack that ends");
    let rest = async {
        while !world.is_at_rest(&crowd.names) {
            sleep(ticks(100)).await;
        }
    };
    let rest = timeout(LIMIT / 2, rest).await;
    rest.unwrap_or_else(|_| panic!("left behind: {}", world.remains(&crowd.names)));
    world.stop();
}

/// Does what the input says, until it ends or time is up.
async fn attack(crowd: Rc<Crowd>, input: Vec<u8>) {
    let mut script = Script(&input);
    let mut peers: [Option<Hostile>; HOSTILE] = [None, None, None];
    let _ = timeout(TIME * 4, async {
        for _ in 0..OPERATIONS {
            let (Some(operation), Some(slot)) = (script.byte(), script.byte()) else { return };
            let peer = &mut peers[usize::from(slot) % HOSTILE];
            operate(&crowd, peer, operation % 16, &mut script).await;
        }
    })
    .await;
}

async fn operate(
    crowd: &Crowd,
    peer: &mut Option<Hostile>,
    operation: u8,
    script: &mut Script<'_>,
) {
    match operation {
        0 => *peer = Some(Hostile::rtmp(crowd, script.number()).await),
        1 => *peer = Some(Hostile::http(crowd, script.number()).await),
        2 => *peer = None,
        3 => sleep(ticks(script.number())).await,
        _ => {
            if let Some(hostile) = peer
                && hostile.say(operation, script).await.is_none()
            {
                *peer = None;
            }
        }
    }
}

/// The input as it is used up.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> usize {
        self.byte().unwrap_or(0).into()
    }

    fn word(&mut self) -> u32 {
        (0..4).fold(0, |word, _| word << 8 | u32::from(self.byte().unwrap_or(0)))
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = self.number().min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }
}

/// A connection that says anything.
struct Hostile {
    wire: Wire,
    writer: Writer,
    frame: u32,
}

impl Hostile {
    async fn rtmp(crowd: &Crowd, core: usize) -> Self {
        let mut wire = crowd.wire(core, Protocol::Rtmp, Net::Calm);
        // C0, C1 and a C2 that nobody compares.
        let _ = wire.send(&[&[3][..], &[0; 2 * 1536]].concat()).await;
        Self { wire, writer: Writer::new(128), frame: 0 }
    }

    async fn http(crowd: &Crowd, target: usize) -> Self {
        let mut wire = crowd.wire(target / TARGETS.len(), Protocol::Http, Net::Calm);
        let target = TARGETS[target % TARGETS.len()];
        let _ = wire.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await;
        Self { wire, writer: Writer::new(128), frame: 0 }
    }

    /// `None` when the gateway has closed the connection.
    async fn say(&mut self, operation: u8, script: &mut Script<'_>) -> Option<()> {
        let mut out = Vec::new();
        match operation {
            4 => out = script.bytes(),
            5 => self.control(kind::SET_CHUNK_SIZE, script.word(), &mut out),
            6 | 7 => self.command(script, &mut out),
            8..=10 => self.frame(script, &mut out),
            11 => self.odd_media(script, &mut out),
            12 => self.odd_message(script, &mut out),
            13 => self.control(kind::ABORT, script.word(), &mut out),
            14 => return self.wire.receive_now().map(drop),
            _ => self.wire.finish().await,
        }
        // A gateway that takes nothing for so long has stopped reading.
        let sent = timeout(Duration::from_secs(5), self.wire.send(&out)).await;
        sent.expect("the gateway reads").ok()
    }

    fn control(&mut self, kind: u8, value: u32, out: &mut Vec<u8>) {
        self.writer.write(MessageHeader::control(kind), &value.to_be_bytes(), &Bytes::new(), out);
        if kind == weir_protocol::rtmp::message::kind::SET_CHUNK_SIZE {
            self.writer = Writer::new(value.clamp(1, 1 << 20));
        }
    }

    fn command(&mut self, script: &mut Script<'_>, out: &mut Vec<u8>) {
        let name = COMMANDS[script.number() % COMMANDS.len()];
        let (stream, argument) = (script.number() as u32 % 4, script.number() % 6);
        let arguments = match argument {
            // Never the name of the good publisher: to take that over is no attack.
            0..3 => vec![["0", "1", "9"][argument].into(), "live".into()],
            3 => vec![f64::from(stream).into(), (-2.0).into()],
            4 => vec![true.into(), 0.0.into()],
            _ => Vec::new(),
        };
        let about = object([("app", "live".into()), ("tcUrl", "rtmp://a/live".into())]);
        let command = Command { transaction: 1.0, object: about, ..Command::new(name, arguments) };
        let header = MessageHeader::command(stream);
        self.writer.write(header, &command.encode(), &Bytes::new(), out);
    }

    /// The next frame of a good publisher, or the configurations before it.
    fn frame(&mut self, script: &mut Script<'_>, out: &mut Vec<u8>) {
        let stream = script.number() as u32 % 4;
        let tags = match self.frame {
            0 => media::headers(),
            number => media::frame(7, number - 1, 100 + script.number()),
        };
        self.frame += 1;
        tags.iter().for_each(|tag| self.tag(stream, tag, out));
    }

    fn tag(&mut self, stream: u32, tag: &Tag, out: &mut Vec<u8>) {
        let header = MessageHeader::media(stream, tag.kind, tag.timestamp_ms);
        self.writer.write(header, &[], &tag.body, out);
    }

    fn odd_media(&mut self, script: &mut Script<'_>, out: &mut Vec<u8>) {
        let kinds = [TagKind::Audio, TagKind::Video, TagKind::Script];
        let kind = kinds[script.number() % kinds.len()];
        let (stream, timestamp_ms) = (script.number() as u32 % 4, script.word());
        let mut body = script.bytes();
        if body.is_empty() {
            // A good one with some bits changed.
            let tags = media::frame(7, self.frame, 100);
            let mut random = Random::new(timestamp_ms.into());
            body = random.mutated(&[tags[usize::from(kind == TagKind::Audio)].body.to_vec()]);
        }
        self.tag(stream, &Tag { kind, timestamp_ms, body: body.into() }, out);
    }

    fn odd_message(&mut self, script: &mut Script<'_>, out: &mut Vec<u8>) {
        let header = MessageHeader {
            chunk_stream: 2 + script.number() as u32 % 70,
            message_stream: script.number() as u32 % 4,
            kind: script.byte().unwrap_or(kind::AGGREGATE),
            timestamp: script.word(),
        };
        let body = Bytes::from(script.bytes());
        self.writer.write(header, &[], &body, out);
    }
}
