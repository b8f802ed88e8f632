use std::net::Shutdown;
use std::rc::Rc;

use tokio::task::spawn_local;
use weir_protocol::flv::TagKind;
use weir_protocol::rtmp::{self, Event, Output};
use weir_protocol::stream_name::{Query, StreamName};

use super::play;
use super::player::Player;
use super::publisher::Publishing;
use super::shared::{Shared, Wishes};
use super::tls;
use crate::clock;
use crate::core::Core;
use crate::core::connection::Connection;
use crate::io::Batch;
use crate::limits;
use crate::metrics::{Closed, Label, Refused};
use crate::relay;

/// Why the reading task is done.
enum End {
    /// The peer left, or the connection was closed from this side.
    Left,
    Violation(rtmp::Error),
    /// The peer speaks TLS, and this is the port without it.
    Tls,
}

/// Serves a connection until the peer leaves, breaks the protocol, or is sent away.
pub async fn serve(core: Rc<Core>, connection: Rc<Connection>) {
    if connection.conn.is_tls() && !tls::begin(&core, &connection).await {
        return;
    }
    let shared = Rc::new(Shared::new(core, connection));
    let sending = spawn_local(send(shared.clone()));
    let mut publishing = None;
    let end = read(&shared, &mut publishing).await;
    say_farewell(&shared, &end, publishing.as_ref());
    if let Some(publishing) = publishing {
        publishing.leave(&shared.core);
    }
    shared.finished.set(true);
    shared.connection.news.notify_one();
    let _ = tokio::time::timeout(limits::FAREWELL, sending).await;
    shared.connection.conn.finish(limits::FAREWELL).await;
    shared.connection.conn.shutdown(Shutdown::Both);
}

async fn read(shared: &Rc<Shared>, publishing: &mut Option<Publishing>) -> End {
    let Shared { connection, session, .. } = &**shared;
    loop {
        shared.set_deadline();
        let first = connection.conn.received().bytes == 0;
        let take = |bytes: &[u8]| match first && tls::is_spoken(bytes) {
            true => Err(End::Tls),
            false => Ok(session.borrow_mut().handle_input(clock::now(), bytes)),
        };
        let result = match connection.conn.read_with(take).await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(end))) => return end,
            Ok(None) | Err(_) => return End::Left,
        };
        if connection.close_reason().is_some() {
            return End::Left;
        }
        if let Err(error) = result.and(drain(shared, publishing).await) {
            return End::Violation(error);
        }
        if let Some(publishing) = publishing {
            publishing.flush(&shared.core);
        }
    }
}

/// Acts on everything the session has to say.
async fn drain(
    shared: &Rc<Shared>,
    publishing: &mut Option<Publishing>,
) -> Result<(), rtmp::Error> {
    loop {
        let Some(output) = shared.session.borrow_mut().poll_output() else { return Ok(()) };
        match output {
            Output::Send(bytes) => {
                shared.replies.borrow_mut().push(bytes);
                shared.connection.news.notify_one();
            }
            Output::Event(event) => handle(shared, publishing, event).await?,
        }
    }
}

async fn handle(
    shared: &Rc<Shared>,
    publishing: &mut Option<Publishing>,
    event: Event,
) -> Result<(), rtmp::Error> {
    let Shared { core, connection, .. } = &**shared;
    match event {
        Event::Media { kind, timestamp_ms, body } => {
            if let Some(publishing) = publishing {
                publishing.take(core, kind, timestamp_ms, body);
            }
        }
        Event::Publish { message_stream, name, query, .. } => {
            note_agent(shared);
            *publishing = publish(shared, message_stream, (name, query)).await?;
        }
        Event::Unpublish { .. } => {
            if let Some(publishing) = publishing.take() {
                publishing.leave(core);
                connection.end_publish();
            }
        }
        Event::Play { message_stream, name, query } => {
            note_agent(shared);
            play::play(shared, message_stream, name, &query).await;
            shared.connection.news.notify_one();
        }
        Event::StopPlay { message_stream } => play::stop(shared, message_stream),
        Event::Pause { paused, .. } => {
            shared.wishes.update(|wishes| Wishes { paused, ..wishes });
            with_player(shared, |player| player.pause(paused));
        }
        Event::Seek { .. } => with_player(shared, Player::rejoin),
        Event::Receive { kind, wanted, .. } => {
            shared.wishes.update(|wishes| match kind {
                TagKind::Audio => Wishes { audio: wanted, ..wishes },
                TagKind::Video => Wishes { video: wanted, ..wishes },
                TagKind::Script => wishes,
            });
            with_player(shared, |player| player.receive(kind, wanted));
        }
        Event::BadName(error) => {
            core.counters.refused.of(Refused::BadName).increment();
            tracing::info!(peer = %connection.peer, %error, "rtmp: refused a stream name");
        }
    }
    Ok(())
}

async fn publish(
    shared: &Shared,
    message_stream: u32,
    address: (StreamName, Query),
) -> Result<Option<Publishing>, rtmp::Error> {
    let Shared { core, connection, session, .. } = shared;
    let begun = match Publishing::begin(core, connection, message_stream, address).await {
        Ok(begun) => begun,
        Err((code, description)) => {
            session.borrow_mut().reject_publish(message_stream, code, &description)?;
            return Ok(None);
        }
    };
    let accepted = session.borrow_mut().accept_publish(message_stream);
    if let Err(error) = accepted {
        // What came behind the command broke the protocol: the name must not stay taken.
        begun.leave(core);
        return Err(error);
    }
    relay::begin_pushes(core, &begun.stream);
    Ok(Some(begun))
}

fn with_player(shared: &Shared, act: impl FnOnce(&mut Player)) {
    if let Some(player) = shared.player.borrow_mut().as_mut() {
        act(player);
    }
    shared.connection.news.notify_one();
}

fn note_agent(shared: &Shared) {
    let session = shared.session.borrow();
    let Some(connect) = session.connect() else { return };
    if !connect.flash_version.is_empty() {
        let agent = connect.flash_version.chars().take(limits::AGENT_CHARS).collect();
        *shared.connection.agent.borrow_mut() = Some(agent);
    }
    *shared.connection.via.borrow_mut() = connect.via.clone();
}

/// Says why, to the peer and in the log.
fn say_farewell(shared: &Shared, end: &End, publishing: Option<&Publishing>) {
    let peer = shared.connection.peer;
    let reason = shared.connection.close_reason();
    if let Some(publishing) = publishing {
        let (code, description) = match reason {
            Some(Closed::TakenOver) => {
                ("NetStream.Publish.BadName", "Another publisher has taken over this stream")
            }
            Some(Closed::Idle) => ("NetStream.Publish.Idle", "No media came for too long"),
            Some(_) => ("NetStream.Publish.Rejected", "The gateway has ended this publish"),
            None => ("NetStream.Publish.Failed", "The publish ended by an error"),
        };
        let mut session = shared.session.borrow_mut();
        session.end_publish(publishing.message_stream, code, description);
        // Nobody acts on events any more.
        while let Some(output) = session.poll_output() {
            if let Output::Send(bytes) = output {
                shared.replies.borrow_mut().push(bytes);
            }
        }
    }
    match (end, reason) {
        (End::Violation(error), _) => {
            shared.core.counters.closed.of(Closed::Violation).increment();
            tracing::info!(%peer, %error, reason = error.reason(), "rtmp: connection ended");
        }
        (End::Tls, _) => tls::refuse(&shared.core, peer),
        (End::Left, Some(reason)) => {
            tracing::info!(%peer, reason = reason.value(), "rtmp: connection closed");
        }
        (End::Left, None) => tracing::debug!(%peer, "rtmp: peer left"),
    }
}

/// The sending task: what the session says, then media.
async fn send(shared: Rc<Shared>) {
    loop {
        if shared.connection.is_woken() {
            play::attend(&shared).await;
        }
        let stream_news = shared.player.borrow().as_ref().map(Player::news);
        let mut batch = Batch::pooled();
        fill(&shared, &mut batch);
        if !batch.is_empty() {
            let stall = shared.core.config.timeouts.send_stall;
            let (batch, result) = shared.connection.conn.send_within(batch, stall).await;
            batch.recycle();
            if let Err(error) = result {
                let stalled = error.kind() == std::io::ErrorKind::TimedOut;
                if stalled {
                    shared.connection.close(Closed::SendStall);
                } else {
                    // The peer is gone; the reading task must not wait for it.
                    shared.connection.conn.shutdown(Shutdown::Both);
                }
                return;
            }
            continue;
        }
        batch.recycle();
        if shared.finished.get() {
            return;
        }
        match stream_news {
            Some(stream_news) => tokio::select! {
                biased;
                () = shared.connection.news.notified() => {}
                () = stream_news => {}
            },
            None => shared.connection.news.notified().await,
        }
    }
}

fn fill(shared: &Shared, batch: &mut Batch) {
    let put_replies = |batch: &mut Batch| {
        shared.replies.borrow_mut().drain(..).for_each(|bytes| batch.shared(bytes));
    };
    put_replies(batch);
    let mut player = shared.player.borrow_mut();
    let Some(playing) = player.as_mut() else { return };
    let before = batch.len();
    let goes_on = playing.fill(&shared.core, batch);
    if batch.len() > before {
        shared.pulse.fed.set(true);
    }
    if let Some(player) = player.take_if(|_| !goes_on) {
        play::ended(shared, player);
        shared.send_answers();
        put_replies(batch);
    }
}
