//! A push: a live stream, published at another server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::futures::OwnedNotified;
use tokio::task::spawn_local;
use weir_protocol::rtmp::{ClientEvent, ClientSession, RtmpUrl};

use super::backoff::Backoff;
use super::failure::Failure;
use super::rules::PushRule;
use super::session::{self, Link, Plan, Side};
use super::status::Status;
use crate::admin::model::{RelayDirection, RelayState};
use crate::core::Core;
use crate::core::connection::Role;
use crate::io::Batch;
use crate::rtmp::Player;
use crate::stream::Stream;
use crate::{clock, limits};

/// Starts the pushes of a stream that has just begun. They follow it until its end, whichever core
/// owns it meanwhile, so a publisher that takes over or comes back changes nothing for them.
pub fn begin(core: &Rc<Core>, stream: &Rc<Stream>) {
    let begun = |owner: &mut crate::stream::Owner| std::mem::replace(&mut owner.pushed, true);
    if stream.with_owner(begun) != Some(false) {
        return;
    }
    let mut urls = Vec::new();
    for rule in core.config.relays.push.iter().filter(|rule| rule.stream.matches(&stream.name)) {
        // Two connections that publish the same would put each other out.
        if let Ok(url) = rule.url.of(&stream.name)
            && !urls.contains(&url)
        {
            urls.push(url.clone());
            spawn_local(follow(core.clone(), stream.clone(), rule.clone(), url));
        }
    }
}

async fn follow(core: Rc<Core>, stream: Rc<Stream>, rule: PushRule, url: RtmpUrl) {
    let now = clock::now();
    let listed = core.relays.list(RelayDirection::Push, &stream.name, &url, now);
    let status = &listed.status;
    let mut backoff = Backoff::new(super::seed(&stream.name), limits::RELAY_RETRY_MOST);
    // A replica stays attached for this player.
    let _follower = Follower::new(&stream);
    let mut path = Vec::new();
    loop {
        until(&stream, |stream| stream.is_ended() || stream.can_be_joined()).await;
        if stream.is_ended() {
            return;
        }
        status.enter(RelayState::Connecting, clock::now());
        let push = Push::new(&core, &stream, &rule, status);
        if let Some(via) = via_of(&stream) {
            path = via;
        }
        let via = [&path[..], &[super::place(&stream.name)]].concat();
        let new = |url, limits, seed, pool, now| {
            ClientSession::publish(url, limits, seed, pool, now).coming_via(via)
        };
        let plan =
            Plan { role: Role::Push, trust: &rule.trust, connect_within: limits::RELAY_CONNECT };
        let result = session::run(&core, status, plan, new, &push).await;
        let Err(failure) = result else { return };
        if push.live_for() >= limits::RELAY_HEALTHY {
            backoff.reset();
        }
        if failure.is_refusal() {
            backoff.be_patient();
        }
        let wait = backoff.next();
        super::note_failure(&core, status, &failure, wait);
        let ended = until(&stream, Stream::is_ended);
        if tokio::time::timeout(wait, ended).await.is_ok() {
            return;
        }
        status.count_reconnect();
    }
}

/// The places that the stream has come by before this one, as far as this core knows.
fn via_of(stream: &Stream) -> Option<Vec<u64>> {
    stream.with_owner(|owner| owner.publisher.as_ref().map(|by| by.via.clone())).flatten()
}

/// Waits until the stream is as wanted.
async fn until(stream: &Stream, wanted: impl Fn(&Stream) -> bool) {
    loop {
        let news = stream.log_news.notified();
        if wanted(stream) {
            return;
        }
        news.await;
    }
}

struct Follower<'a>(&'a Stream);

impl<'a> Follower<'a> {
    fn new(stream: &'a Stream) -> Self {
        stream.players.pushes.set(stream.players.pushes.get() + 1);
        Self(stream)
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.0.players.pushes.set(self.0.players.pushes.get() - 1);
    }
}

/// One connection of a push.
struct Push<'a> {
    core: &'a Core,
    stream: &'a Rc<Stream>,
    rule: &'a PushRule,
    status: &'a Status,
    player: RefCell<Option<Player>>,
    live_since: Cell<Option<Instant>>,
}

impl<'a> Push<'a> {
    fn new(core: &'a Core, stream: &'a Rc<Stream>, rule: &'a PushRule, status: &'a Status) -> Self {
        let (player, live_since) = (RefCell::default(), Cell::default());
        Self { core, stream, rule, status, player, live_since }
    }

    /// Says once which codecs the server does not get.
    fn note_left_out(&self, player: &Player) {
        let left_out = player.left_out();
        let is_news = self.status.leave_out(&left_out);
        if is_news && !left_out.is_empty() {
            let (stream, to) = (&self.stream.name, &self.status.url);
            tracing::warn!(%stream, %to, ?left_out, "the server does not take these codecs");
        }
    }

    fn live_for(&self) -> Duration {
        self.live_since
            .get()
            .map_or(Duration::ZERO, |since| clock::now().saturating_duration_since(since))
    }
}

impl Side for Push<'_> {
    async fn take(&self, link: &Link, event: ClientEvent) -> Result<(), Failure> {
        match event {
            ClientEvent::Published => {
                let now = clock::now();
                let session = link.session.borrow();
                let player = Player::for_server(
                    self.stream.clone(),
                    session.message_stream(),
                    session.writer(),
                    session.peer_codecs().clone(),
                );
                *self.player.borrow_mut() = Some(player);
                self.live_since.set(Some(now));
                self.status.enter(RelayState::Live, now);
                tracing::info!(stream = %self.stream.name, to = %self.status.url, "push is live");
                link.news.notify_one();
                Ok(())
            }
            ClientEvent::Ended { code } => Err(Failure::Ended(code)),
            ClientEvent::Playing | ClientEvent::Media { .. } => Ok(()),
        }
    }

    fn check(&self, link: &Link) -> Result<(), Failure> {
        let leads_back = super::leads_back(link, self.status, &self.rule.stream);
        if leads_back { Err(Failure::Loop) } else { Ok(()) }
    }

    fn fill(&self, _: &Link, batch: &mut Batch) -> bool {
        let mut player = self.player.borrow_mut();
        let Some(player) = player.as_mut() else { return !self.stream.is_ended() };
        let more = player.fill(self.core, batch);
        self.note_left_out(player);
        more
    }

    fn news(&self) -> Option<OwnedNotified> {
        Some(self.stream.log_news.clone().notified_owned())
    }
}
