use super::*;
use crate::limits::OUT_CHUNK_SIZE;
use crate::pool::HeapPool;
use crate::rtmp::chunk::Writer;

mod bounds;

fn reader() -> Reader<HeapPool> {
    let mut reader = Reader::new(&Limits::default(), HeapPool::default());
    reader.store_media(true);
    reader.set_max_unfinished(Limits::default().unfinished_bytes_publishing);
    reader
}

fn read_all(reader: &mut Reader<impl Pool>, mut input: &[u8]) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    while let Some(message) = reader.read(&mut input)? {
        messages.push(message);
    }
    assert!(input.is_empty());
    Ok(messages)
}

/// Bytes of one message in one chunk, with a format 0 header.
fn whole(chunk_stream: u8, kind: u8, timestamp: u32, body: &[u8]) -> Vec<u8> {
    let [_, t2, t1, t0] = timestamp.to_be_bytes();
    let [_, l2, l1, l0] = (body.len() as u32).to_be_bytes();
    [&[chunk_stream, t2, t1, t0, l2, l1, l0, kind, 1, 0, 0, 0], body].concat()
}

fn set_chunk_size(size: u32) -> Vec<u8> {
    whole(2, kind::SET_CHUNK_SIZE, 0, &size.to_be_bytes())
}

fn body(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8 ^ seed).collect()
}

fn timestamps(input: &[u8]) -> Vec<u32> {
    read_all(&mut reader(), input).unwrap().iter().map(|m| m.header.timestamp).collect()
}

/// CH-01: accepted, and as good as the longest message; nothing is allocated for it.
#[test]
fn ch_01_greatest_chunk_size() {
    for size in [0x7fff_ffff, 0xff_ffff, u32::MAX] {
        let input = [set_chunk_size(size), whole(3, 20, 0, &body(1000, 0))].concat();
        assert_eq!(read_all(&mut reader(), &input).unwrap()[0].body, body(1000, 0));
    }
}

/// CH-02, CH-12: any chunk size, changed at any time, on a body that is cut anywhere.
#[test]
fn ch_02_ch_12_chunk_sizes() {
    let body = body(200_000, 1);
    for size in [1, 2, 127, 128, 129, 4096, 65_535, 65_536, 65_537, 1_000_000] {
        let mut input = set_chunk_size(size);
        let header = MessageHeader { chunk_stream: 6, message_stream: 1, kind: 9, timestamp: 5 };
        Writer::new(size).write(header, &body[..7], &body[7..].to_vec().into(), &mut input);
        let messages = read_all(&mut reader(), &input).unwrap();
        assert_eq!(messages, [Message { header, body: body.clone().into() }], "{size}");
    }
    for size in [0, 1, 2, 3] {
        let limits = Limits { min_chunk_size: 2, ..Limits::default() };
        let mut reader = Reader::new(&limits, HeapPool::default());
        let result = read_all(&mut reader, &set_chunk_size(size));
        assert_eq!(result.is_err(), size == 1, "0 is ignored");
    }
}

/// CH-12: the new size holds for the rest of a half-done message, and control may come anywhere.
#[test]
fn ch_12_chunk_size_within_a_message() {
    let body = body(10_000, 2);
    let mut input = whole(6, 9, 0, &body[..128]);
    input[4..7].copy_from_slice(&[0, 0x27, 0x10]);
    let mut sent = 128;
    let mut current = 128;
    for size in [128, 128, 4096, 1, 2, 1000, 60_000] {
        let header = MessageHeader::control(kind::SET_CHUNK_SIZE);
        let announced = (size as u32).to_be_bytes();
        Writer::new(current).write(header, &announced, &Bytes::new(), &mut input);
        current = size as u32;
        input.push(0xc6);
        let end = body.len().min(sent + size);
        input.extend(&body[sent..end]);
        sent = end;
    }
    for portion in [1, 3, 100, input.len()] {
        let mut reader = reader();
        let mut messages = Vec::new();
        for portion in input.chunks(portion) {
            messages.extend(read_all(&mut reader, portion).unwrap());
        }
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].body, body);
        assert_eq!((reader.unfinished, reader.ahead), (0, 0));
    }
}

/// CH-05: continuations with and without the extended timestamp, in any portions. The second and
/// later payloads look like the timestamp where that would confuse.
#[test]
fn ch_05_extended_timestamps() {
    for repeats in [true, false] {
        for portion in [1, 2, 5, 4000] {
            let mut input = Vec::new();
            let mut bodies = Vec::new();
            for number in 0..4_u32 {
                let timestamp = 0xff_ffff + number * 40;
                let mut body = body(500, number as u8);
                if number > 0 {
                    body[128..132].copy_from_slice(&timestamp.to_be_bytes());
                    body[256..260].copy_from_slice(&timestamp.to_be_bytes());
                }
                input.extend([6, 0xff, 0xff, 0xff, 0, 1, 0xf4, 9, 1, 0, 0, 0]);
                input.extend(timestamp.to_be_bytes());
                input.extend(&body[..128]);
                for chunk in body[128..].chunks(128) {
                    input.push(0xc6);
                    if repeats {
                        input.extend(timestamp.to_be_bytes());
                    }
                    input.extend(chunk);
                }
                bodies.push((timestamp, body));
            }
            let mut reader = reader();
            let mut messages = Vec::new();
            for portion in input.chunks(portion) {
                messages.extend(read_all(&mut reader, portion).unwrap());
            }
            let messages: Vec<_> =
                messages.iter().map(|m| (m.header.timestamp, m.body.to_vec())).collect();
            assert_eq!(messages, bodies, "{repeats} {portion}");
        }
    }
}

/// CH-05: a peer that is known to repeat the timestamp is believed to do so, even where it repeats
/// the absolute one behind a delta.
#[test]
fn ch_05_the_choice_is_remembered() {
    let mut input = vec![6, 0xff, 0xff, 0xff, 0, 0, 200, 9, 1, 0, 0, 0, 1, 0, 0, 0];
    input.extend([&body(128, 0)[..], &[0xc6, 1, 0, 0, 0], &body(72, 0)].concat());
    input.extend([0x46, 0xff, 0xff, 0xff, 0, 0, 200, 9, 1, 0, 0, 5]);
    input.extend([&body(128, 1)[..], &[0xc6, 2, 0, 0, 5], &body(72, 1)].concat());
    let messages = read_all(&mut reader(), &input).unwrap();
    assert_eq!(messages[1].header.timestamp, 0x0200_0005);
    assert_eq!(messages[1].body, [body(128, 1), body(72, 1)].concat());
}

/// CH-05: bytes that could have been the timestamp until the input went on are read as what they are,
/// wherever the input was cut: body, and the headers behind it.
#[test]
fn ch_05_what_looked_like_a_timestamp_is_kept() {
    let timestamp = 0x01c6_0304_u32.to_be_bytes();
    for (length, look) in [(130, 1), (129, 1), (131, 2), (132, 3), (300, 3)] {
        let mut one = body(length, 7);
        one[128..128 + look.min(length - 128)].copy_from_slice(&timestamp[..look]);
        let begin = [6, 0xff, 0xff, 0xff, 0, (length >> 8) as u8, length as u8, 9, 1, 0, 0, 0];
        let mut input = [&begin[..], &timestamp, &one[..128]].concat();
        for chunk in one[128..].chunks(128) {
            input.push(0xc6);
            input.extend(chunk);
        }
        input.extend(whole(5, 8, 3, b"behind"));
        for cut in 0..input.len() {
            let mut reader = reader();
            let mut messages = read_all(&mut reader, &input[..cut]).unwrap();
            messages.extend(read_all(&mut reader, &input[cut..]).unwrap());
            let bodies: Vec<_> = messages.iter().map(|message| &message.body[..]).collect();
            assert_eq!(bodies, [&one[..], b"behind"], "{length} {look} cut at {cut}");
        }
    }
}

/// CH-06: an extended timestamp of formats 1 and 2 is a delta.
#[test]
fn ch_06_extended_deltas() {
    let mut input = whole(6, 9, 11_000, b"a");
    input.extend([0x46, 0xff, 0xff, 0xff, 0, 0, 1, 9, 0, 0xff, 0xfc, 0x18, b'b']);
    input.extend([0x86, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, b'c']);
    assert_eq!(timestamps(&input), [11_000, 11_000 + 16_776_216, 11_000 + 16_776_215]);
}

#[test]
fn formats_inherit_what_they_leave_out() {
    let mut input = whole(6, 9, 40, b"a");
    input.extend([0xc6, b'b']); // the timestamp again as delta
    input.extend([0x46, 0, 0, 33, 0, 0, 2, 8, b'c', b'd']);
    input.extend([0x86, 0, 0, 7, b'e', b'f']);
    input.extend([0xc6, b'g', b'h']);
    let messages = read_all(&mut reader(), &input).unwrap();
    let seen: Vec<_> =
        messages.iter().map(|m| (m.header.kind, m.header.timestamp, &m.body[..])).collect();
    assert_eq!(
        seen,
        [(9, 40, &b"a"[..]), (9, 80, b"b"), (8, 113, b"cd"), (8, 120, b"ef"), (8, 127, b"gh"),]
    );
    assert!(messages.iter().all(|m| m.header.message_stream == 1));
}

/// CH-09: format 1 may come first, formats 2 and 3 may not.
#[test]
fn ch_09_first_header_of_a_chunk_stream() {
    let ping = [0x42, 0, 0, 0, 0, 0, 6, 4, 0, 6, 0, 0, 0, 0];
    let messages = read_all(&mut reader(), &ping).unwrap();
    assert_eq!((messages[0].header.message_stream, messages[0].header.timestamp), (0, 0));
    for first in [0x82, 0xc2] {
        let result = read_all(&mut reader(), &[first, 0, 0, 0, 0]);
        assert_eq!(result, Err(Error::NoHeader(2)));
    }
}

/// CH-10: all three forms of chunk stream ids, and a bound on how many are in use.
#[test]
fn ch_10_chunk_stream_ids() {
    for (basic, id) in [
        (&[3_u8][..], 3),
        (&[63], 63),
        (&[0, 0], 64),
        (&[0, 255], 319),
        (&[1, 0, 1], 320),
        (&[1, 255, 255], 65_599),
        (&[1, 0, 0], 64),
    ] {
        let mut input = [basic, &whole(0, 9, 1, &body(200, 0)[..128])[1..]].concat();
        input[basic.len() + 3..basic.len() + 6].copy_from_slice(&[0, 0, 200]);
        input.extend([&[basic[0] | 0xc0][..], &basic[1..], &body(200, 0)[128..]].concat());
        let messages = read_all(&mut reader(), &input).unwrap();
        assert_eq!(messages[0].header.chunk_stream, id);
        assert_eq!(messages[0].body, body(200, 0));
    }
    let mut reader = reader();
    let result = (0..70_000_u32).try_for_each(|id| {
        let [low, high, ..] = id.to_le_bytes();
        let chunk = [&[1, low, high][..], &whole(0, 9, 1, b"x")[1..]].concat();
        read_all(&mut reader, &chunk).map(drop)
    });
    assert_eq!(result, Err(Error::TooManyChunkStreams(64)));
}

/// CH-14: an abort frees the half-done message and nothing else.
#[test]
fn ch_14_abort() {
    let mut reader = reader();
    let mut half = whole(6, 9, 0, &body(128, 0));
    half[4..7].copy_from_slice(&[0, 4, 0]);
    let abort = |id: u8| whole(2, kind::ABORT, 0, &[0, 0, 0, id]);
    for _ in 0..10_000 {
        read_all(&mut reader, &[half.clone(), abort(6), abort(7)].concat()).unwrap();
        assert_eq!((reader.unfinished, reader.ahead), (0, 0));
    }
    assert_eq!(reader.skipped(), 10_000);
    let frame = whole(6, 9, 40, &body(100, 3));
    assert_eq!(read_all(&mut reader, &frame).unwrap()[0].body, body(100, 3));
    // A header within a message gives the half-done one up.
    let messages = read_all(&mut reader, &[half, frame].concat()).unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].body, body(100, 3));
}

/// CH-04: too short control messages are ignored.
#[test]
fn ch_04_short_control() {
    for kind in [kind::SET_CHUNK_SIZE, kind::ABORT] {
        for len in 0..16 {
            let input = [whole(2, kind, 0, &vec![0; len]), whole(6, 9, 0, &body(128, 0))].concat();
            assert_eq!(read_all(&mut reader(), &input).unwrap().len(), 1);
        }
    }
}

#[test]
fn interleaved_chunk_streams_in_any_portions() {
    let video = body(3000, 1);
    let audio = body(700, 2);
    let mut input = Vec::new();
    let mut video_chunks = chunks(6, 9, &video);
    let mut audio_chunks = chunks(4, 8, &audio);
    video_chunks.reverse();
    audio_chunks.reverse();
    while !video_chunks.is_empty() || !audio_chunks.is_empty() {
        input.extend(video_chunks.pop().unwrap_or_default());
        input.extend(audio_chunks.pop().unwrap_or_default());
    }
    for portion in 1..=300 {
        let mut reader = reader();
        let mut messages = Vec::new();
        for portion in input.chunks(portion) {
            messages.extend(read_all(&mut reader, portion).unwrap());
        }
        assert_eq!(messages[0].body, audio);
        assert_eq!(messages[1].body, video);
    }
}

fn chunks(chunk_stream: u8, kind: u8, body: &[u8]) -> Vec<Vec<u8>> {
    let mut first = whole(chunk_stream, kind, 0, &body[..128]);
    first[4..7].copy_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
    let rest = body[128..].chunks(128).map(|chunk| [&[0xc0 | chunk_stream][..], chunk].concat());
    std::iter::once(first).chain(rest).collect()
}

/// What is written with Weir's own chunk size costs no copy of the payload and two slices per
/// 64 KiB.
#[test]
fn payloads_are_shared() {
    #[derive(Default)]
    struct Slices(Vec<(bool, Bytes)>);
    impl crate::rtmp::chunk::Sink for Slices {
        fn small(&mut self, bytes: &[u8]) {
            self.0.push((false, Bytes::copy_from_slice(bytes)));
        }
        fn shared(&mut self, bytes: Bytes) {
            self.0.push((true, bytes));
        }
    }
    let payload = Bytes::from(body(150_000, 0));
    let header =
        MessageHeader { chunk_stream: 6, message_stream: 1, kind: 9, timestamp: 0x0100_0000 };
    let mut slices = Slices::default();
    Writer::new(OUT_CHUNK_SIZE).write(header, b"head!", &payload, &mut slices);
    let shared: Vec<_> = slices.0.iter().filter(|(shared, _)| *shared).collect();
    assert_eq!(shared.len(), 3);
    assert!(shared.iter().all(|(_, slice)| payload.as_ptr_range().contains(&slice.as_ptr())));
    let wire: Vec<u8> = slices.0.iter().flat_map(|(_, slice)| slice.to_vec()).collect();
    let mut reader = reader();
    reader.chunk_size = OUT_CHUNK_SIZE as usize;
    let messages = read_all(&mut reader, &wire).unwrap();
    assert_eq!(messages[0].body, [&b"head!"[..], &payload].concat());
    assert_eq!(messages[0].header, header);
}

/// Seeded noise, and true messages with a few bytes changed: errors, never a panic.
#[test]
fn noise_never_panics() {
    let mut state = 1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let good = [set_chunk_size(300), whole(6, 9, 0xff_ffff, &body(128, 0))].concat();
    for round in 0..3000 {
        let mut bytes = good.repeat(3);
        if round % 2 == 0 {
            bytes.iter_mut().for_each(|byte| *byte = random() as u8);
        }
        for _ in 0..4 {
            let at = random() as usize % bytes.len();
            bytes[at] = random() as u8;
        }
        let mut reader = reader();
        for portion in bytes.chunks(1 + random() as usize % 50) {
            if read_all(&mut reader, portion).is_err() {
                break;
            }
        }
    }
}
