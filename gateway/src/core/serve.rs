//! The life of one core: accept, tick, receive, and let go at the end.

use std::net::{Shutdown, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::task::spawn_local;

use super::admission::Admission;
use super::connection::Role;
use super::control::obey;
use super::letter::Letter;
use super::mailbox::Mailbox;
use super::report;
use super::state::Core;
use crate::io::{Conn, Listener, Transport};
use crate::metrics::Closed;
use crate::{clock, http, limits, relay, rtmp};

/// What the main thread prepares for a core.
pub struct Seat {
    pub rtmp: TcpListener,
    pub rtmps: Option<(TcpListener, Arc<ServerConfig>)>,
    pub http: TcpListener,
    pub inbox: Mailbox<Letter>,
    pub admission: Arc<Admission>,
}

/// What a listener is for.
#[derive(Clone, Debug)]
pub enum Protocol {
    Rtmp,
    Rtmps(Arc<ServerConfig>),
    Http,
}

/// Runs until the control plane says stop, and then until players have had their clean end.
/// `started` is called once connections are taken.
pub async fn serve(core: Rc<Core>, seat: Seat, started: impl FnOnce()) -> std::io::Result<()> {
    core.relays.own_addresses.borrow_mut().extend(seat.rtmp.local_addr());
    let rtmp = Listener::from_std(seat.rtmp)?;
    let http = Listener::from_std(seat.http)?;
    spawn_local(accept(core.clone(), rtmp, Protocol::Rtmp, seat.admission.clone()));
    if let Some((listener, config)) = seat.rtmps {
        core.relays.own_addresses.borrow_mut().extend(listener.local_addr());
        let rtmps = Listener::from_std(listener)?;
        let protocol = Protocol::Rtmps(config);
        spawn_local(accept(core.clone(), rtmps, protocol, seat.admission.clone()));
    }
    spawn_local(accept(core.clone(), http, Protocol::Http, seat.admission));
    started();
    relay::begin_pulls(&core);
    live(core, seat.inbox).await;
    Ok(())
}

/// A core's life without its listeners.
pub async fn live(core: Rc<Core>, mut inbox: Mailbox<Letter>) {
    spawn_local(tick(core.clone()));
    let mut turn = Vec::with_capacity(limits::MAILBOX_TURN);
    while !core.is_stopping() && receive(&core, &mut inbox, &mut turn).await {}
    drain(&core, &mut inbox, &mut turn).await;
}

/// Waits for messages and acts on them; false when no more can come.
async fn receive(core: &Core, inbox: &mut Mailbox<Letter>, turn: &mut Vec<Letter>) -> bool {
    let count = inbox.next_many(turn, limits::MAILBOX_TURN).await;
    let now = clock::now();
    for letter in turn.drain(..) {
        match letter {
            Letter::Message(message) => core.receive(message, now),
            Letter::Control(control) => obey(core, control, now),
        }
    }
    count > 0
}

async fn accept(core: Rc<Core>, listener: Listener, protocol: Protocol, admission: Arc<Admission>) {
    while !core.is_stopping() {
        let (conn, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // The listener has backed off already; it says so in the log.
                tracing::debug!(%error, "accept failed");
                continue;
            }
        };
        let_in(&core, conn, peer, protocol.clone(), &admission);
    }
}

/// Serves a connection that was accepted by a task of its own, if there is room for one more.
pub fn let_in(
    core: &Rc<Core>,
    conn: Conn,
    peer: SocketAddr,
    protocol: Protocol,
    admission: &Arc<Admission>,
) {
    let permit = match admission.admit(peer.ip()) {
        Ok(permit) => permit,
        Err(refused) => {
            core.counters.refused.of(refused).increment();
            conn.shutdown(Shutdown::Both);
            return;
        }
    };
    let core = core.clone();
    spawn_local(async move {
        let (role, transport) = match &protocol {
            Protocol::Rtmp => (Role::Rtmp, Transport::Plain(conn.clone())),
            Protocol::Http => (Role::Http, Transport::Plain(conn.clone())),
            Protocol::Rtmps(config) => match Transport::server(conn.clone(), config.clone()) {
                Ok(transport) => (Role::Rtmp, transport),
                Err(error) => return tracing::error!(%peer, %error, "rtmps: no session"),
            },
        };
        let listed = core.connections.list(transport, role, clock::now());
        core.counters.accepted.of(listed.connection.transport()).increment();
        match protocol {
            Protocol::Rtmp | Protocol::Rtmps(_) => {
                rtmp::serve(core.clone(), listed.connection.clone()).await;
            }
            Protocol::Http => http::serve(core.clone(), listed.connection.clone(), conn).await,
        }
        if let Some(reason) = listed.connection.close_reason() {
            core.counters.closed.of(reason).increment();
        }
        listed.connection.account(&core.counters);
        drop(permit);
    });
}

async fn tick(core: Rc<Core>) {
    let mut ticks = tokio::time::interval(limits::TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut sampled_at = clock::now();
    while !core.is_stopping() {
        ticks.tick().await;
        let now = clock::now();
        core.tick(now);
        if now.duration_since(sampled_at) >= Duration::from_secs(1) {
            sampled_at = now;
            report::sample(&core, now);
        }
    }
}

/// Players of this core's streams have been told that it is over, those of other cores' streams are
/// told by messages; give them a moment to take it in.
async fn drain(core: &Core, inbox: &mut Mailbox<Letter>, turn: &mut Vec<Letter>) {
    let deadline = clock::now() + limits::STOP_GRACE;
    while !core.connections.is_empty() && clock::now() < deadline {
        // Nothing is lost when the wait is dropped.
        let _ = tokio::time::timeout(limits::STOP_POLL, receive(core, inbox, turn)).await;
    }
    core.connections.close_all(Closed::Stopping);
    tokio::time::sleep(limits::STOP_POLL).await;
}
