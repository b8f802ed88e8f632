//! A play: from the request, perhaps by way of a wait, to the end of the stream or of the player.

use std::rc::Rc;

use weir_protocol::flv::TagKind;
use weir_protocol::stream_name::{Query, StreamName};

use super::player::Player;
use super::shared::{Awaited, Shared, Wishes};
use crate::auth::Visit;
use crate::clock;
use crate::config::Absent;
use crate::core::connection::Role;
use crate::limits;
use crate::metrics::{Closed, Refused};
use crate::relay;
use crate::stream::Stream;

const FAILED: &str = "NetStream.Play.Failed";
const NOT_FOUND: &str = "NetStream.Play.StreamNotFound";

/// How many looks without a sign of life there are in `timeouts.player_silence`.
const LOOKS: u32 = 3;

/// Answers a request to play, unless the stream is to be waited for.
pub async fn play(shared: &Shared, message_stream: u32, name: StreamName, query: &Query) {
    let Shared { core, connection, .. } = shared;
    if shared.player.borrow().is_some() || shared.awaited.borrow().is_some() {
        return reject(shared, message_stream, FAILED, "This connection plays a stream already");
    }
    let visit = Visit { address: connection.peer.ip(), name: &name, query };
    if let Err(refusal) = core.door.play(&visit).await {
        return reject(shared, message_stream, FAILED, &refusal.to_string());
    }
    shared.wishes.set(Wishes::default());
    let now = clock::now();
    let found = relay::find(core, &name, now).await.filter(|stream| !stream.is_ended());
    if let Some(stream) = found {
        begin(shared, stream, message_stream, false);
    } else if may_wait(shared) {
        wait(shared, Awaited { message_stream, name, until: now, interrupted: false });
    } else {
        core.counters.refused.of(Refused::NoStream).increment();
        reject(shared, message_stream, NOT_FOUND, "Nobody publishes this stream");
    }
}

fn reject(shared: &Shared, message_stream: u32, code: &str, description: &str) {
    shared.session.borrow_mut().reject_play(message_stream, code, description);
}

fn begin(shared: &Shared, stream: Rc<Stream>, message_stream: u32, interrupted: bool) {
    let mut session = shared.session.borrow_mut();
    if interrupted {
        session.resume_play(message_stream);
    } else {
        session.accept_play(message_stream);
    }
    shared.connection.take_role(Role::RtmpPlayer, &stream.name);
    let mut player = Player::new(stream, message_stream, session.writer());
    let Wishes { paused, audio, video } = shared.wishes.get();
    player.receive(TagKind::Audio, audio);
    player.receive(TagKind::Video, video);
    if paused {
        player.pause(true);
    }
    *shared.player.borrow_mut() = Some(player);
    look_again(shared);
}

/// Notes when the sending task has to see whether the player is still there.
fn look_again(shared: &Shared) {
    let span = shared.core.config.timeouts.player_silence / LOOKS;
    shared.connection.wake_at(clock::now() + span);
}

fn may_wait(shared: &Shared) -> bool {
    let Shared { core, connection, .. } = shared;
    core.config.rtmp_play.absent == Absent::Wait
        && !core.is_stopping()
        && core.connections.waiting_from(connection.peer.ip()) < limits::WAITING_PLAYERS_PER_ADDRESS
}

fn wait(shared: &Shared, awaited: Awaited) {
    let until = clock::now() + shared.core.config.rtmp_play.wait;
    if shared.core.door.holds_key(&awaited.name) {
        shared.connection.leave_role(Role::RtmpWaiting);
    } else {
        shared.connection.take_role(Role::RtmpWaiting, &awaited.name);
    }
    // The name may have been claimed between the look and now, or be about to come back.
    shared.connection.wake_at(clock::now() + limits::TICK);
    *shared.awaited.borrow_mut() = Some(Awaited { until, ..awaited });
}

/// Ends the play of a stream that is over, or the wait for it.
pub fn stop(shared: &Shared, message_stream: u32) {
    let mut player = shared.player.borrow_mut();
    let mut awaited = shared.awaited.borrow_mut();
    if player.as_ref().is_some_and(|player| player.message_stream == message_stream) {
        *player = None;
    } else if awaited.as_ref().is_some_and(|awaited| awaited.message_stream == message_stream) {
        *awaited = None;
    } else {
        return;
    }
    shared.connection.leave_role(Role::Rtmp);
}

/// The stream has ended, and its player has had all of it.
pub fn ended(shared: &Shared, player: Player) {
    let (message_stream, name) = (player.message_stream, player.stream_name().clone());
    drop(player);
    shared.connection.leave_role(Role::Rtmp);
    let mut session = shared.session.borrow_mut();
    if may_wait(shared) {
        session.interrupt_play(message_stream);
        wait(shared, Awaited { message_stream, name, until: clock::now(), interrupted: true });
        return;
    }
    session.end_play(message_stream);
    drop(session);
    // The peer may ask for something else, but not stay for nothing.
    shared.set_deadline();
}

/// Does what the sending task was woken for by the core's clock.
pub async fn attend(shared: &Shared) {
    let awaited = shared.awaited.borrow().as_ref().map(|awaited| awaited.name.clone());
    match awaited {
        Some(name) => look_for(shared, &name).await,
        None if shared.player.borrow().is_some() => feel_pulse(shared),
        None => {}
    }
    shared.send_answers();
}

/// Sees whether the stream that is waited for has come.
async fn look_for(shared: &Shared, name: &StreamName) {
    let Shared { core, connection, .. } = shared;
    let now = clock::now();
    let found = core.find(name, now).await.filter(|stream| !stream.is_ended());
    // The peer may have thought otherwise meanwhile.
    let Some(awaited) = shared.awaited.borrow_mut().take_if(|awaited| awaited.name == *name) else {
        return;
    };
    let Awaited { message_stream, until, interrupted, .. } = awaited;
    if let Some(stream) = found {
        return begin(shared, stream, message_stream, interrupted);
    }
    if now < until {
        // A name that is known has a publisher who is about to be let in, or had one.
        let known = core.registry.find(name).is_some();
        connection.wake_at(if known { now + limits::TICK } else { until });
        *shared.awaited.borrow_mut() = Some(awaited);
        return;
    }
    connection.leave_role(Role::Rtmp);
    if interrupted {
        shared.session.borrow_mut().abandon_play(message_stream);
    } else {
        core.counters.refused.of(Refused::NoStream).increment();
        reject(shared, message_stream, NOT_FOUND, "Nobody has come to publish this stream");
    }
    shared.set_deadline();
}

/// Asks a player that says nothing for a sign of life, and gives up one that never gives any.
fn feel_pulse(shared: &Shared) {
    let Shared { connection, pulse, .. } = shared;
    let received = connection.conn.received().bytes;
    let spoke = pulse.received_bytes.replace(received) != received;
    let alive = pulse.fed.replace(false) || spoke;
    pulse.quiet.set(if alive { 0 } else { pulse.quiet.get() + 1 });
    if pulse.quiet.get() >= LOOKS {
        return connection.close(Closed::Idle);
    }
    if !spoke {
        let age = clock::now().saturating_duration_since(connection.since);
        shared.session.borrow_mut().ping(age.as_millis() as u32);
    }
    look_again(shared);
}
