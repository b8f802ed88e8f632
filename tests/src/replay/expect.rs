//! What the `expect` statements demand.

use std::time::Instant;

use weir_protocol::amf0::Value;
use weir_protocol::flv::TagKind;
use weir_protocol::rtmp::command::Command;
use weir_protocol::rtmp::message::{Message, UserControl, kind};

use super::actor::Actor;
use super::amf::Literal;
use super::number::{Env, Number};
use super::payload;
use super::step::{Expectation, Wanted};
use super::watch::Watch;
use crate::rtmp_peer::ACKNOWLEDGEMENT_BYTES;

/// # Errors
/// Says what came instead.
pub(super) fn expect(
    actor: &mut Actor,
    watch: Option<&mut Watch>,
    what: &Expectation,
    env: &Env,
    by: Instant,
) -> Result<(), String> {
    actor.flush(None);
    let watched = || "nothing is watched yet".to_owned();
    match what {
        Expectation::Status(code) => status(actor, code, by),
        Expectation::Answer(name, transaction) => {
            answer(actor, name, transaction.as_ref(), env, by)
        }
        Expectation::Command(name) => {
            actor.next_command(by, |command| command.name == *name).map(drop)
        }
        Expectation::Message(wanted) => {
            let wants_acks = wanted.kind.as_ref().is_some_and(|kind| kind.value(env) == 3);
            let message = actor.next_message(wants_acks, by)?;
            message_is(wanted, &message, env)
        }
        Expectation::Pong(stamp) => pong(actor, stamp.u32(env), by),
        Expectation::Pongs(most) => {
            actor.sync(by)?;
            while actor.next_message(false, Instant::now()).is_ok() {}
            let few = actor.pongs <= most.value(env);
            few.then_some(()).ok_or_else(|| format!("{} pongs", actor.pongs))
        }
        Expectation::Acknowledgements(percent) => {
            actor.sync(by)?;
            let bytes = actor.peer().acknowledgements() * ACKNOWLEDGEMENT_BYTES;
            let came = bytes as f64 * 100.0 / actor.peer().sent_bytes() as f64;
            (came <= *percent).then_some(()).ok_or_else(|| format!("{came:.3}%"))
        }
        Expectation::Closed => {
            actor.end_was_expected = true;
            let ended = actor.peer_mut().read_to_the_end(by);
            let ended = ended.map_err(|error| error.to_string())?;
            ended.then_some(()).ok_or_else(|| "the connection is still open".into())
        }
        Expectation::Open => actor.sync(by),
        Expectation::Nothing => {
            actor.sync(by)?;
            let message = actor.next_message(false, Instant::now());
            message.map_or(Ok(()), |message| Err(format!("{message:?}")))
        }
        Expectation::Video(wanted) => {
            watch.ok_or_else(watched)?.compare(TagKind::Video, wanted, env, by)
        }
        Expectation::Audio(wanted) => {
            watch.ok_or_else(watched)?.compare(TagKind::Audio, wanted, env, by)
        }
        Expectation::Ended => watch.ok_or_else(watched)?.expect_end(by),
    }
}

fn status(actor: &mut Actor, code: &str, by: Instant) -> Result<(), String> {
    let (command, _) = actor.next_command(by, |command| command.name == "onStatus")?;
    let came = command.arguments.first().and_then(|about| about.get("code"));
    let right = came.and_then(Value::as_str) == Some(code);
    right.then_some(()).ok_or_else(|| format!("{:?}", command.arguments))
}

fn answer(
    actor: &mut Actor,
    name: &str,
    transaction: Option<&Literal>,
    env: &Env,
    by: Instant,
) -> Result<(), String> {
    let is_answer = |command: &Command| ["_result", "_error"].contains(&command.name.as_str());
    let (command, _) = actor.next_command(by, is_answer)?;
    let wanted = transaction.map(|literal| literal.value(env));
    let right = wanted.is_none_or(|it| it.as_number() == Some(command.transaction));
    (command.name == name && right).then_some(()).ok_or_else(|| format!("{command:?}"))
}

fn pong(actor: &mut Actor, stamp: u32, by: Instant) -> Result<(), String> {
    let wanted = UserControl::Pong(stamp).encode();
    loop {
        let message = actor.next_message(false, by)?;
        if message.header.kind == kind::USER_CONTROL && message.body == wanted {
            return Ok(());
        }
    }
}

fn message_is(wanted: &Wanted, message: &Message, env: &Env) -> Result<(), String> {
    let differs = |wanted: &Option<Number>, came: u32| {
        wanted.as_ref().is_some_and(|wanted| wanted.u32(env) != came)
    };
    let header = message.header;
    let wrong = differs(&wanted.kind, header.kind.into())
        || differs(&wanted.chunk_stream, header.chunk_stream)
        || differs(&wanted.message_stream, header.message_stream);
    let payload = wanted.payload.as_ref().map(|items| payload::bytes(items, env));
    let begins = payload.is_none_or(|bytes| message.body.starts_with(&bytes));
    (!wrong && begins).then_some(()).ok_or_else(|| format!("{message:?}"))
}
