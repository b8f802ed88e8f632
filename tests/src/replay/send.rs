//! What the statements that send put on the wire.

use std::net::SocketAddr;
use std::time::Instant;

use weir_protocol::amf0::Value;
use weir_protocol::flv::TagKind;
use weir_protocol::rtmp::message::kind;

use super::actor::{Actor, Greeting};
use super::chunks::ChunkHeader;
use super::number::{Env, Number};
use super::payload::{self, PUBLISHER};
use super::step::{Chunk, CommandStep, Frames, HandshakeStep, MessageStep};
use crate::media;

/// `app/key`, the key behind the last slash.
pub(super) fn split(path: &str) -> (String, String) {
    let (app, key) = path.rsplit_once('/').unwrap_or(("", path));
    (app.to_owned(), key.to_owned())
}

pub(super) fn greeting(step: &HandshakeStep, env: &Env, seed: u64) -> Greeting {
    Greeting {
        form: step.form,
        time: step.time.u32(env),
        version: step.version.as_ref().map(|version| version.u32(env)),
        second: step.second,
        split: step.split.as_ref().map(|split| split.value(env) as usize),
        seed,
    }
}

/// Opens what is not open, and publishes or plays.
pub(super) fn begin(
    actor: &mut Actor,
    verb: &str,
    app: &str,
    key: &str,
    rtmp: SocketAddr,
    by: Instant,
) -> Result<(), String> {
    actor.open(app, &format!("rtmp://{rtmp}/{app}"), 0, by)?;
    let arguments = [Value::Null, key.into(), "live".into()];
    let count = if verb == "publish" { 3 } else { 2 };
    actor.command(verb, None, actor.message_stream, &arguments[..count]);
    actor.flush(None);
    let wanted = if verb == "publish" { "NetStream.Publish.Start" } else { "NetStream.Play.Start" };
    loop {
        let (command, _) = actor.next_command(by, |command| command.name == "onStatus")?;
        let code = command.arguments.first().and_then(|about| about.get("code"));
        match code.and_then(Value::as_str).unwrap_or_default() {
            code if code == wanted => return Ok(()),
            "NetStream.Play.Reset" => {}
            _ => return Err(format!("{:?}", command.arguments)),
        }
    }
}

pub(super) fn push_command(actor: &mut Actor, step: &CommandStep, env: &Env) {
    let name = step.name.render(env);
    let stream = step.stream.as_ref().map(|stream| stream.u32(env));
    let stream = stream.unwrap_or_else(|| usual_stream(&name, actor.message_stream));
    let values: Vec<Value> = step.values.iter().map(|value| value.value(env)).collect();
    let transaction = step.transaction.as_ref().map(|literal| literal.value(env));
    actor.command(&name, transaction, stream, &values);
}

/// The message stream that a command goes to if the script says nothing else.
fn usual_stream(command: &str, message_stream: u32) -> u32 {
    let of_a_stream = [
        "publish",
        "play",
        "play2",
        "closeStream",
        "pause",
        "pauseRaw",
        "seek",
        "receiveAudio",
        "receiveVideo",
    ];
    if of_a_stream.contains(&command) { message_stream } else { 0 }
}

pub(super) fn push_headers(actor: &mut Actor) {
    let stream = actor.message_stream;
    for tag in media::headers() {
        let (chunk_stream, kind) = chunk_stream(tag.kind);
        actor.message(chunk_stream, stream, kind, &tag.body);
    }
}

fn chunk_stream(kind: TagKind) -> (u32, u8) {
    match kind {
        TagKind::Audio => (4, kind::AUDIO),
        TagKind::Video => (6, kind::VIDEO),
        TagKind::Script => (5, kind::DATA),
    }
}

fn header(chunk: &Chunk, length: usize, actor: &Actor, env: &Env) -> ChunkHeader {
    let value = |number: &Option<Number>| number.as_ref().map(|number| number.u32(env));
    let kind = value(&chunk.kind).unwrap_or_default() as u8;
    let usual = match kind {
        1..=6 => (2, 0),
        kind::AUDIO => (4, actor.message_stream),
        kind::VIDEO | kind::AGGREGATE => (6, actor.message_stream),
        kind::DATA | kind::DATA_AMF3 => (5, actor.message_stream),
        _ => (3, 0),
    };
    ChunkHeader {
        format: value(&chunk.format).unwrap_or_default() as u8 & 3,
        chunk_stream: value(&chunk.chunk_stream).unwrap_or(usual.0),
        form: value(&chunk.form).map(|form| form as u8),
        timestamp: value(&chunk.timestamp).unwrap_or_default(),
        length: value(&chunk.length).unwrap_or(length as u32),
        kind,
        message_stream: value(&chunk.message_stream).unwrap_or(usual.1),
        repeats_extended: chunk.repeats_extended,
    }
}

pub(super) fn push_chunk(actor: &mut Actor, chunk: &Chunk, env: &Env) {
    let body = payload::bytes(&chunk.payload, env);
    let mut out = Vec::new();
    header(chunk, body.len(), actor, env).write(&mut out);
    out.extend_from_slice(&body);
    actor.push(&out);
}

pub(super) fn push_message(actor: &mut Actor, message: &MessageStep, env: &Env) {
    let body = payload::bytes(&message.chunk.payload, env);
    let header = header(&message.chunk, body.len(), actor, env);
    let sizes: Vec<u32> = message.sizes.iter().map(|size| size.u32(env)).collect();
    if sizes.len() > 1 {
        return push_flipping(actor, header, &body, &sizes, message.every.value(env));
    }
    let size = sizes.first().map_or(actor.chunk_size(), |size| *size as usize);
    let mut out = Vec::new();
    header.write_message(&body, size, &mut out);
    actor.push(&out);
}

/// A message with a Set Chunk Size after every so many of its chunks.
fn push_flipping(
    actor: &mut Actor,
    mut header: ChunkHeader,
    mut body: &[u8],
    sizes: &[u32],
    every: u64,
) {
    let mut sizes = sizes.iter().cycle();
    let mut chunks = 0;
    while !body.is_empty() {
        if chunks == every
            && let Some(size) = sizes.next()
        {
            actor.set_chunk_size(*size);
            chunks = 0;
        }
        let (now, rest) = body.split_at(body.len().min(actor.chunk_size()));
        let mut out = Vec::new();
        header.write(&mut out);
        out.extend_from_slice(now);
        actor.push(&out);
        body = rest;
        header.format = 3;
        chunks += 1;
    }
}

pub(super) fn push_frames(actor: &mut Actor, frames: &Frames, env: &Env) {
    let size = frames.size.as_ref().map(|size| size.value(env) as usize);
    for number in frames.from.u32(env)..frames.to.u32(env) {
        let sounds = [number * 2, number * 2 + 1].map(|half| media::audio(PUBLISHER, half));
        for tag in [media::video(PUBLISHER, number, size)].into_iter().chain(sounds) {
            let (usual, kind) = chunk_stream(tag.kind);
            let given = if kind == kind::VIDEO { &frames.video } else { &frames.audio };
            let header = ChunkHeader {
                format: 0,
                chunk_stream: given.as_ref().map_or(usual, |id| id.u32(env)),
                form: None,
                timestamp: tag.timestamp_ms.wrapping_add(frames.shift.u32(env)),
                length: tag.body.len() as u32,
                kind,
                message_stream: actor.message_stream,
                repeats_extended: frames.repeats_extended,
            };
            let mut out = Vec::new();
            header.write_message(&tag.body, actor.chunk_size(), &mut out);
            actor.push(&out);
        }
    }
}
