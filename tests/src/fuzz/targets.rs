//! What is fuzzed, and with what it begins.

use std::fs;
use std::time::Instant;

use bytes::Bytes;
use weir_protocol::codec::{aac, ac3, av1, avc, flac, hevc, mp3, nal, opus, vp9};
use weir_protocol::flv::{ColorInfo, FileReader, Tag, TagKind};
use weir_protocol::limits::Limits;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::{Event, Output, ServerSession};
use weir_protocol::{amf0, amf3};

use super::{client, sequence, stream};
use crate::tools;

/// A parser to fuzz.
#[derive(Debug)]
pub struct Target {
    pub name: &'static str,
    pub corpus: Vec<Vec<u8>>,
    /// Inputs before the next target has its turn.
    pub turns: u32,
    /// Panics on a defect.
    pub run: fn(&[u8]),
}

/// Of targets that take some microseconds.
const TURNS: u32 = 50;

/// All targets with their corpora.
#[must_use]
pub fn all() -> Vec<Target> {
    let rtmp = committed("rtmp");
    let flv = committed("flv");
    // A file begins with its metadata and its tracks' configurations.
    let beginnings = || flv.iter().flat_map(|file| tags(file, file.len()).into_iter().take(20));
    let is_script = |tag: &Tag| tag.kind == TagKind::Script;
    let scripts = beginnings().filter(is_script).map(|tag| tag.body.to_vec()).collect();
    // Records and payloads begin behind the one, two or five bytes of their tag's header.
    let records = beginnings()
        .filter(|tag| !is_script(tag))
        .flat_map(|tag| [1, 2, 5].map(|head| tag.body.get(head..).unwrap_or_default().to_vec()));
    let records = records.collect();
    vec![
        Target { name: "amf0", corpus: scripts, turns: TURNS, run: amf0 },
        Target { name: "amf3", corpus: amf3_values(), turns: TURNS, run: amf3 },
        Target { name: "codec", corpus: records, turns: TURNS, run: codec },
        Target { name: "flv", corpus: flv.clone(), turns: TURNS, run: flv_file },
        Target {
            name: "stream",
            corpus: flv,
            turns: TURNS,
            run: |input| {
                packaged(input);
            },
        },
        Target { name: "rtmp server", corpus: rtmp.clone(), turns: TURNS, run: rtmp_server },
        Target { name: "rtmp client", corpus: client::corpus(), turns: TURNS, run: client::run },
        Target { name: "sequence", corpus: committed("sequence"), turns: 2, run: sequence::run },
    ]
}

fn committed(kind: &str) -> Vec<Vec<u8>> {
    let directory = tools::root().join("tests/corpus").join(kind);
    let mut files: Vec<_> = fs::read_dir(&directory)
        .expect("the committed corpus")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file")).collect()
}

fn amf0(input: &[u8]) {
    for mut reader in [amf0::Reader::new(input), amf0::Reader::lenient(input)] {
        let mut values = Vec::new();
        while let Ok(Some(value)) = reader.next() {
            values.push(value);
        }
        // What was read can be written, and is understood again.
        let written = amf0::encode_all(&values);
        let mut reader = amf0::Reader::new(&written);
        while reader.next().expect("its own encoding").is_some() {}
    }
}

fn amf3(input: &[u8]) {
    let mut reader = amf3::Reader::new(input);
    while let Ok(Some(value)) = reader.next() {
        let written = amf0::encode_all(&[value]);
        amf0::Reader::new(&written).next().expect("what AMF0 can say");
    }
}

/// Every marker once, with strings and classes that are referred to.
fn amf3_values() -> Vec<Vec<u8>> {
    let object = b"\x0a\x1b\x03C\x03a\x04\x01\x03b\x01\x01\x0a\x01\x02\x03\x06\x02";
    let array = b"\x09\x05\x07key\x06\x05ok\x01\x05\x3f\xf0\0\0\0\0\0\0\x04\xff\xff\xff\xff";
    let vectors =
        b"\x0d\x03\0\0\0\0\x01\x0f\x03\0\0\0\0\0\0\0\0\0\x10\x05\0\x01\x02\x03\x11\x03\0\x04\x01\0";
    let texts = b"\x06\x07abc\x06\0\x07\x09<a/>\x08\x01\0\0\0\0\0\0\0\0\x0c\x05xy";
    [&object[..], array, vectors, texts].map(<[u8]>::to_vec).into()
}

fn codec(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    let mut pool = HeapPool::default();
    if let Ok((config, _)) = avc::Config::parse(input) {
        let _ = (config.rfc6381(), config.covers(input));
    }
    if let Ok((config, _)) = hevc::Config::parse(input) {
        let _ = (config.rfc6381(), config.covers(input));
    }
    if let Ok(config) = av1::Config::parse(input) {
        let _ = (config.rfc6381(), config.covers(input));
    }
    if let Ok(config) = aac::Config::parse(input) {
        let _ = (config.rfc6381(), config.adts_header(input.len()));
    }
    let record = vp9::Record::parse(input).ok();
    let _ = vp9::Config::from_access_unit(input, record).map(|config| config.rfc6381());
    let _ = opus::Config::parse(input);
    let _ = opus::packet_samples(input);
    let _ = avc::Config::from_access_unit(input).map(|config| config.rfc6381());
    let _ = hevc::Config::from_access_unit(input).map(|config| config.rfc6381());
    let _ = av1::Config::from_access_unit(input).map(|config| config.rfc6381());
    let _ = mp3::Config::from_access_unit(input);
    let _ = mp3::samples(input);
    let _ = (flac::Config::parse(input), flac::samples(input));
    let _ = ac3::Config::from_access_unit(input).map(|config| config.covers(input));
    let _ = ac3::samples(input);
    let _ = ColorInfo::parse(input);
    let _ = (avc::is_keyframe(input, true), avc::has_picture(input));
    let _ = (hevc::is_keyframe(input, true), hevc::has_picture(input));
    let _ = (av1::is_keyframe(input), av1::has_picture(input), vp9::is_keyframe(input));
    let _ = (aac::without_adts(bytes.clone()), av1::without_temporal_delimiter(bytes.clone()));
    let _ = aac::frames(bytes.clone()).count();
    for size in [nal::LengthSize::One, nal::LengthSize::Two, nal::LengthSize::Four] {
        let _ = nal::to_payload(bytes.clone(), size, &mut pool);
    }
}

/// All tags of an FLV file that is read in portions of `portion` bytes, up to the first error.
fn tags(file: &[u8], portion: usize) -> Vec<Tag> {
    let mut reader = FileReader::default();
    let mut tags = Vec::new();
    for bytes in file.chunks(portion.max(1)) {
        reader.push(bytes);
        while let Ok(Some(tag)) = reader.next() {
            tags.push(tag);
        }
    }
    tags
}

fn flv_file(input: &[u8]) {
    let whole = tags(input, input.len());
    let portions = tags(input, 1 + input.len() % 97);
    assert_eq!(whole.len(), portions.len(), "portions change what is read");
}

/// Bytes of HLS that come of an FLV file.
fn packaged(input: &[u8]) -> u64 {
    stream::run(tags(input, input.len()))
}

/// All that a server says to and reads from `input` in portions of `portion` bytes. Media is told
/// by its length.
fn served(input: &[u8], portion: usize) -> (Vec<u8>, Vec<String>) {
    let now = Instant::now();
    let mut session = ServerSession::new(Limits::default(), 1, HeapPool::default(), now);
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    for bytes in input.chunks(portion.max(1)) {
        let mut outcome = session.handle_input(now, bytes);
        while let Some(output) = session.poll_output() {
            match output {
                Output::Send(bytes) => sent.extend_from_slice(&bytes),
                Output::Event(Event::Media { kind, timestamp_ms, body }) => {
                    events.push(format!("{kind:?} {timestamp_ms} {}", body.len()));
                }
                Output::Event(event) => {
                    if let Event::Publish { message_stream, .. } = event {
                        outcome = outcome.and(session.accept_publish(message_stream));
                    }
                    if let Event::Play { message_stream, .. } = event {
                        session.accept_play(message_stream);
                    }
                    events.push(format!("{event:?}"));
                }
            }
        }
        if let Err(error) = outcome {
            events.push(error.to_string());
            break;
        }
    }
    (sent, events)
}

fn rtmp_server(input: &[u8]) {
    let (_, whole) = served(input, input.len());
    // Acknowledgements depend on the portions, what was understood does not.
    let (_, portions) = served(input, 1 + input.len() % 1409);
    assert_eq!(whole, portions, "portions change what is understood");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_gets_through_to_media() {
        for file in committed("flv") {
            assert!(packaged(&file) > 5000);
        }
        for connection in committed("rtmp") {
            let (_, events) = served(&connection, connection.len());
            assert!(events.iter().any(|event| event.starts_with("Publish")), "{events:?}");
            assert!(
                events.iter().filter(|event| event.starts_with("Video")).count() > 2,
                "{events:?}"
            );
        }
        let mut config = 0;
        for target in all().iter().filter(|target| target.name == "codec") {
            config +=
                target.corpus.iter().filter(|bytes| avc::Config::parse(bytes).is_ok()).count();
            config +=
                target.corpus.iter().filter(|bytes| aac::Config::parse(bytes).is_ok()).count();
            config +=
                target.corpus.iter().filter(|bytes| hevc::Config::parse(bytes).is_ok()).count();
        }
        assert!(config > 2, "no codec record in the corpus");
    }
}
