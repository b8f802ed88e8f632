//! What servers say to relays: to a push, and to a pull with all its media.

use std::time::Instant;

use bytes::Bytes;
use weir_protocol::flv::TagKind;
use weir_protocol::limits::Limits;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::message::MessageHeader;
use weir_protocol::rtmp::{ClientEvent, ClientSession, Event, Output, RtmpUrl, ServerSession};

use crate::media;

type Client = ClientSession<HeapPool>;

const URL: &str = "rtmp://127.0.0.1/live/name";
/// Both ends' handshakes follow from it, so that what is recorded fits the client that reads it.
const SEED: u64 = 1;
/// Of the test media.
const FRAMES: u32 = 12;

fn publisher(now: Instant) -> Client {
    ClientSession::publish(url(), Limits::default(), SEED, HeapPool::default(), now)
}

fn player(now: Instant) -> Client {
    ClientSession::play(url(), Limits::default(), SEED, HeapPool::default(), now)
}

fn url() -> RtmpUrl {
    RtmpUrl::parse(URL).expect("an address")
}

/// All that a server says to a publisher, and to a player.
pub fn corpus() -> Vec<Vec<u8>> {
    [publisher, player].map(recorded).into()
}

fn recorded(new: fn(Instant) -> Client) -> Vec<u8> {
    let now = Instant::now();
    let mut client = new(now);
    let mut server = ServerSession::new(Limits::default(), !SEED, HeapPool::default(), now);
    let mut said = Vec::new();
    loop {
        let mut moved = false;
        while let Some(output) = client.poll_output() {
            if let Output::Send(bytes) = output {
                server.handle_input(now, &bytes).expect("a polite client");
                moved = true;
            }
        }
        let mut asked = None;
        let from = said.len();
        while let Some(output) = server.poll_output() {
            match output {
                Output::Send(bytes) => said.extend_from_slice(&bytes),
                Output::Event(event) => asked = Some(event),
            }
        }
        match asked {
            Some(Event::Publish { message_stream, .. }) => {
                server.accept_publish(message_stream).expect("one publish");
            }
            Some(Event::Play { message_stream, .. }) => {
                server.accept_play(message_stream);
                while let Some(output) = server.poll_output() {
                    if let Output::Send(bytes) = output {
                        said.extend_from_slice(&bytes);
                    }
                }
                play(&server, message_stream, &mut said);
                server.end_play(message_stream);
            }
            _ if !moved && from == said.len() => return said,
            _ => {}
        }
        client.handle_input(now, &said[from..]).expect("a polite server");
    }
}

fn play(server: &ServerSession<HeapPool>, message_stream: u32, said: &mut Vec<u8>) {
    let tags = [media::headers(), media::frames(1, 0, FRAMES)].concat();
    for tag in tags {
        let header = MessageHeader::media(message_stream, tag.kind, tag.timestamp_ms);
        let (head, payload) = (tag.body.slice(..1), tag.body.slice(1..));
        server.writer().write(header, &head, &payload, said);
    }
}

/// What a client understands of `input` in portions of `portion` bytes.
fn heard(new: fn(Instant) -> Client, input: &[u8], portion: usize) -> Vec<String> {
    let now = Instant::now();
    let mut client = new(now);
    let mut events = Vec::new();
    for bytes in input.chunks(portion.max(1)) {
        let outcome = client.handle_input(now, bytes);
        while let Some(output) = client.poll_output() {
            match output {
                Output::Send(_) => {}
                Output::Event(ClientEvent::Media { kind, timestamp_ms, body }) => {
                    events.push(format!("{kind:?} {timestamp_ms} {}", body.len()));
                }
                Output::Event(event) => events.push(format!("{event:?}")),
            }
        }
        if let Err(error) = outcome {
            events.push(error.to_string());
            break;
        }
        client.publish_media(TagKind::Audio, 0, &Bytes::from_static(b"\xaf\x01\x00"));
    }
    events
}

pub fn run(input: &[u8]) {
    for new in [publisher, player] {
        let whole = heard(new, input, input.len());
        let portions = heard(new, input, 1 + input.len() % 1409);
        assert_eq!(whole, portions, "portions change what is understood");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_gets_through_to_media() {
        let [published, played] = corpus().try_into().expect("two");
        let events = heard(publisher, &published, 100);
        assert_eq!(events, ["Published"]);
        let events = heard(player, &played, 100);
        let pictures = events.iter().filter(|event| event.starts_with("Video")).count();
        assert!(pictures > FRAMES as usize, "{events:?}");
        assert!(events.last().is_some_and(|event| event.starts_with("Ended")), "{events:?}");
    }
}
