use std::cell::{Cell, RefCell};
use std::net::Shutdown;
use std::rc::Rc;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use weir_protocol::rtmp::{self, Event, Output, ServerSession};
use weir_protocol::stream_name::{Query, StreamName};

use super::player::Player;
use super::publisher::Publishing;
use crate::clock;
use crate::config::Config;
use crate::core::Core;
use crate::core::connection::{Connection, Role};
use crate::io::{ArenaPool, Batch};
use crate::limits;
use crate::metrics::{Closed, Label, Refused};
use crate::relay;

/// What the two tasks of a connection share.
struct Shared {
    core: Rc<Core>,
    connection: Rc<Connection>,
    session: RefCell<ServerSession<ArenaPool>>,
    player: RefCell<Option<Player>>,
    /// Answers of the session that are not sent yet.
    replies: RefCell<Vec<Bytes>>,
    /// Wakes the sending task.
    news: Notify,
    /// Nothing more will come from the reading task.
    finished: Cell<bool>,
}

/// Why the reading task is done.
enum End {
    /// The peer left, or the connection was closed from this side.
    Left,
    Violation(rtmp::Error),
}

/// Serves a connection until the peer leaves, breaks the protocol, or is sent away.
pub async fn serve(core: Rc<Core>, connection: Rc<Connection>) {
    let limits = session_limits(&core.config);
    let pool = ArenaPool::new(core.arena);
    let session = ServerSession::new(limits, connection.id, pool, clock::now());
    let shared = Rc::new(Shared {
        core,
        connection,
        session: RefCell::new(session),
        player: RefCell::new(None),
        replies: RefCell::default(),
        news: Notify::new(),
        finished: Cell::new(false),
    });
    let sending = spawn_local(send(shared.clone()));
    let mut publishing = None;
    let end = read(&shared, &mut publishing).await;
    say_farewell(&shared, &end, publishing.as_ref());
    if let Some(publishing) = publishing {
        publishing.leave(&shared.core);
    }
    shared.finished.set(true);
    shared.news.notify_one();
    let _ = tokio::time::timeout(limits::FAREWELL, sending).await;
    shared.connection.conn.shutdown(Shutdown::Both);
}

/// What a peer may make its session do, with the operator's time limits.
fn session_limits(config: &Config) -> rtmp::Limits {
    rtmp::Limits {
        handshake_timeout: config.timeouts.handshake,
        idle_timeout: config.timeouts.handshake,
        media_timeout: config.timeouts.idle,
        ..rtmp::Limits::default()
    }
}

async fn read(shared: &Rc<Shared>, publishing: &mut Option<Publishing>) -> End {
    let Shared { connection, session, .. } = &**shared;
    loop {
        set_deadline(shared, publishing.is_some());
        let take = |bytes: &[u8]| session.borrow_mut().handle_input(clock::now(), bytes);
        let result = match connection.conn.read_with(take).await {
            Ok(Some(result)) => result,
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
                shared.news.notify_one();
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
    let Shared { core, connection, player, .. } = &**shared;
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
                connection.leave_role(Role::Rtmp);
            }
        }
        Event::Play { message_stream, name, .. } => {
            note_agent(shared);
            play(shared, message_stream, &name).await;
            shared.news.notify_one();
        }
        Event::StopPlay { message_stream } => {
            let mut player = player.borrow_mut();
            if player.as_ref().is_some_and(|player| player.message_stream == message_stream) {
                *player = None;
                connection.leave_role(Role::Rtmp);
            }
        }
        Event::Pause { paused, .. } => with_player(shared, |player| player.pause(paused)),
        Event::Receive { kind, wanted, .. } => {
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
    match Publishing::begin(core, connection, message_stream, address).await {
        Ok(begun) => match session.borrow_mut().accept_publish(message_stream) {
            Ok(()) => {
                relay::begin_pushes(core, &begun.stream);
                Ok(Some(begun))
            }
            // What came behind the command broke the protocol: the name must not stay taken.
            Err(error) => {
                begun.leave(core);
                Err(error)
            }
        },
        Err((code, description)) => {
            session.borrow_mut().reject_publish(message_stream, code, &description)?;
            Ok(None)
        }
    }
}

async fn play(shared: &Shared, message_stream: u32, name: &StreamName) {
    let Shared { core, connection, session, player, .. } = shared;
    let busy = player.borrow().is_some();
    let stream = if busy { None } else { relay::find(core, name, clock::now()).await };
    let mut session = session.borrow_mut();
    if let Some(stream) = stream.filter(|stream| !stream.is_ended()) {
        session.accept_play(message_stream);
        let begun = Player::new(stream, message_stream, session.writer());
        connection.take_role(Role::RtmpPlayer, name);
        *player.borrow_mut() = Some(begun);
        return;
    }
    let (code, description) = if busy {
        ("NetStream.Play.Failed", "This connection plays a stream already")
    } else {
        core.counters.refused.of(Refused::NoStream).increment();
        ("NetStream.Play.StreamNotFound", "Nobody publishes this stream")
    };
    session.reject_play(message_stream, code, description);
}

fn with_player(shared: &Shared, act: impl FnOnce(&mut Player)) {
    if let Some(player) = shared.player.borrow_mut().as_mut() {
        act(player);
    }
    shared.news.notify_one();
}

fn note_agent(shared: &Shared) {
    let session = shared.session.borrow();
    let version = session.connect().map(|connect| connect.flash_version.as_str()).unwrap_or("");
    if !version.is_empty() {
        let agent = version.chars().take(limits::AGENT_CHARS).collect();
        *shared.connection.agent.borrow_mut() = Some(agent);
    }
}

fn set_deadline(shared: &Shared, publishing: bool) {
    match shared.session.borrow().poll_timeout() {
        Some(at) => {
            let reason = if publishing { Closed::Idle } else { Closed::HandshakeTimeout };
            shared.connection.set_deadline(at, reason);
        }
        None => shared.connection.clear_deadline(),
    }
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
        while let Some(Output::Send(bytes)) = session.poll_output() {
            shared.replies.borrow_mut().push(bytes);
        }
    }
    match (end, reason) {
        (End::Violation(error), _) => {
            shared.core.counters.closed.of(Closed::Violation).increment();
            tracing::info!(%peer, %error, reason = error.reason(), "rtmp: connection ended");
        }
        (End::Left, Some(reason)) => {
            tracing::info!(%peer, reason = reason.value(), "rtmp: connection closed");
        }
        (End::Left, None) => tracing::debug!(%peer, "rtmp: peer left"),
    }
}

/// The sending task: what the session says, then media.
async fn send(shared: Rc<Shared>) {
    loop {
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
                () = shared.news.notified() => {}
                () = stream_news => {}
            },
            None => shared.news.notified().await,
        }
    }
}

fn fill(shared: &Shared, batch: &mut Batch) {
    for bytes in shared.replies.borrow_mut().drain(..) {
        batch.shared(bytes);
    }
    let mut player = shared.player.borrow_mut();
    let Some(playing) = player.as_mut() else { return };
    if playing.fill(&shared.core, batch) {
        return;
    }
    // The stream has ended, and this player has had all of it.
    let mut session = shared.session.borrow_mut();
    session.end_play(playing.message_stream);
    while let Some(Output::Send(bytes)) = session.poll_output() {
        batch.shared(bytes);
    }
    *player = None;
    drop(session);
    shared.connection.leave_role(Role::Rtmp);
    // The peer may ask for something else, but not stay for nothing.
    set_deadline(shared, false);
}
