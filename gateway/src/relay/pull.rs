//! A pull: a stream of another server, published here.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::spawn_local;
use weir_protocol::flv::TagKind;
use weir_protocol::rtmp::{ClientEvent, ClientSession};
use weir_protocol::stream_name::StreamName;

use super::backoff::Backoff;
use super::demand::Attempt;
use super::failure::Failure;
use super::rules::{PullRule, When};
use super::session::{self, Link, Plan, Side};
use super::status::Status;
use crate::admin::model::{RelayDirection, RelayState};
use crate::core::connection::Role;
use crate::core::{ClaimError, Core};
use crate::rtmp::Publishing;
use crate::stream::owner::PublisherRole;
use crate::stream::{Stream, spans};
use crate::{clock, limits};

/// Starts those pulls of `when = "always"` that are this core's share, for as long as it runs.
pub fn begin_always(core: &Rc<Core>) {
    for rule in &core.config.relays.pull {
        let Some(name) = rule.stream.single().filter(|_| rule.when == When::Always) else {
            continue;
        };
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&name);
        if hash % core.count() as u64 == core.id.0 as u64 {
            spawn_local(always(core.clone(), rule.clone(), name));
        }
    }
}

async fn always(core: Rc<Core>, rule: PullRule, name: StreamName) {
    let Ok(url) = rule.url.of(&name) else { return };
    let listed = core.relays.list(RelayDirection::Pull, &name, &url, clock::now());
    let status = &listed.status;
    let mut backoff = Backoff::new(super::seed(&name), limits::PULL_RETRY_MOST);
    while !core.is_stopping() {
        while !core.registry.is_vacant(&name) {
            status.enter(RelayState::Standby, clock::now());
            tokio::time::sleep(limits::PULL_STANDBY_LOOK).await;
        }
        let pull = Pull::new(&core, &rule, status, None);
        let failure = pull.run().await;
        if pull.has_lasted() {
            backoff.reset();
        }
        if matches!(failure, Failure::Loop) {
            backoff.be_patient();
        }
        let wait = backoff.next();
        super::note_failure(&core, status, &failure, wait);
        tokio::time::sleep(wait).await;
        status.count_reconnect();
    }
}

/// Pulls `name` because a player has asked for it, until nobody watches it any more.
pub async fn on_demand(core: Rc<Core>, rule: PullRule, name: StreamName, attempt: Arc<Attempt>) {
    follow_demand(&core, &rule, &name, &attempt).await;
    core.demand.end(&name, clock::now());
}

async fn follow_demand(core: &Rc<Core>, rule: &PullRule, name: &StreamName, attempt: &Attempt) {
    let Ok(url) = rule.url.of(name) else { return };
    let listed = core.relays.list(RelayDirection::Pull, name, &url, clock::now());
    let status = &listed.status;
    let mut backoff = Backoff::new(super::seed(name), limits::PULL_RETRY_MOST);
    loop {
        let pull = Pull::new(core, rule, status, Some(attempt));
        let failure = pull.run().await;
        if pull.has_lasted() {
            backoff.reset();
        }
        let over = matches!(failure, Failure::Unwatched | Failure::Occupied | Failure::Loop);
        let wait = backoff.next();
        super::note_failure(core, status, &failure, wait);
        // Before the first frame nothing is here that would be worth another try: who still wants the
        // stream asks for it again.
        if over || !attempt.has_begun() || core.is_stopping() {
            return;
        }
        tokio::time::sleep(wait).await;
        let waited_for = core.stream(name).filter(|stream| !stream.is_ended());
        if !waited_for.is_some_and(|stream| is_watched(&stream)) {
            return;
        }
        status.count_reconnect();
    }
}

/// Whether anybody on any core plays the stream, or has a moment ago.
fn is_watched(stream: &Stream) -> bool {
    let live = stream.players.flv.get() + stream.players.rtmp.get() > 0;
    // HLS players are between two requests, or wait for their first playlist.
    let asked = clock::now().saturating_duration_since(stream.used_at());
    let span = spans::viewer(stream.window().as_deref());
    let elsewhere = stream.with_owner(|owner| !owner.followers.is_empty()) == Some(true);
    live || asked <= span || elsewhere
}

/// One connection of a pull.
struct Pull<'a> {
    core: &'a Rc<Core>,
    rule: &'a PullRule,
    status: &'a Status,
    /// Of a pull on demand.
    attempt: Option<&'a Attempt>,
    since: Instant,
    publishing: RefCell<Option<Publishing>>,
    /// The last script data before the first frame.
    script: RefCell<Option<ClientEvent>>,
    live_since: Cell<Option<Instant>>,
}

impl<'a> Pull<'a> {
    fn new(
        core: &'a Rc<Core>,
        rule: &'a PullRule,
        status: &'a Status,
        attempt: Option<&'a Attempt>,
    ) -> Self {
        Self {
            core,
            rule,
            status,
            attempt,
            since: clock::now(),
            publishing: RefCell::default(),
            script: RefCell::default(),
            live_since: Cell::new(None),
        }
    }

    async fn run(&self) -> Failure {
        self.status.enter(RelayState::Connecting, clock::now());
        let plan = Plan {
            role: Role::Pull,
            trust: &self.rule.trust,
            connect_within: match self.attempt {
                Some(_) => limits::PULL_WAIT,
                None => limits::RELAY_CONNECT,
            },
        };
        let result = session::run(self.core, self.status, plan, ClientSession::play, self).await;
        let failure = result.err().unwrap_or(Failure::Closed);
        if let Some(publishing) = self.publishing.take() {
            let stream = publishing.stream.clone();
            let is_ours = publishing.leave(self.core);
            if is_ours && matches!(failure, Failure::Unwatched) {
                self.core.end(&stream, clock::now());
            }
        }
        failure
    }

    fn has_lasted(&self) -> bool {
        self.live_since.get().is_some_and(|since| {
            clock::now().saturating_duration_since(since) >= limits::RELAY_HEALTHY
        })
    }

    /// The first frame has come: the stream begins here, or goes on.
    async fn begin(&self, link: &Link) -> Result<(), Failure> {
        let (role, name) = (PublisherRole::Pull, self.status.name.clone());
        let claimed = Publishing::claim(self.core, &link.connection, role, name).await;
        let mut publishing = claimed.map_err(|error| match error {
            ClaimError::Occupied | ClaimError::Overtaken => Failure::Occupied,
            ClaimError::Stopping => Failure::Stopping,
        })?;
        super::begin_pushes(self.core, &publishing.stream);
        if let Some(ClientEvent::Media { kind, timestamp_ms, body }) = self.script.take() {
            publishing.take(self.core, kind, timestamp_ms, body);
        }
        *self.publishing.borrow_mut() = Some(publishing);
        let now = clock::now();
        self.live_since.set(Some(now));
        self.status.enter(RelayState::Live, now);
        if let Some(attempt) = self.attempt {
            attempt.begun();
        }
        tracing::info!(stream = %self.status.name, from = %self.status.url, "pull is live");
        Ok(())
    }
}

impl Side for Pull<'_> {
    fn check(&self, link: &Link) -> Result<(), Failure> {
        let leads_back = super::leads_back(link, self.status, &self.rule.stream);
        if leads_back { Err(Failure::Loop) } else { Ok(()) }
    }

    async fn take(&self, link: &Link, event: ClientEvent) -> Result<(), Failure> {
        match event {
            ClientEvent::Media { kind, timestamp_ms, body } => {
                if self.publishing.borrow().is_none() {
                    if kind == TagKind::Script {
                        let script = ClientEvent::Media { kind, timestamp_ms, body };
                        *self.script.borrow_mut() = Some(script);
                        return Ok(());
                    }
                    self.begin(link).await?;
                }
                if let Some(publishing) = self.publishing.borrow_mut().as_mut() {
                    publishing.take(self.core, kind, timestamp_ms, body);
                }
                Ok(())
            }
            ClientEvent::Ended { code } => Err(Failure::Ended(code)),
            ClientEvent::Playing | ClientEvent::Published => Ok(()),
        }
    }

    fn flush(&self) {
        if let Some(publishing) = self.publishing.borrow_mut().as_mut() {
            publishing.flush(self.core);
        }
    }

    /// On demand: when no frame comes, or nobody watches any more.
    async fn end(&self) -> Failure {
        if self.attempt.is_none() {
            return std::future::pending().await;
        }
        let linger = self.rule.linger;
        let mut watched_at = clock::now();
        loop {
            tokio::time::sleep(limits::PULL_AUDIENCE_LOOK).await;
            let now = clock::now();
            match self.publishing.borrow().as_ref() {
                Some(publishing) if is_watched(&publishing.stream) => watched_at = now,
                Some(_) if now.duration_since(watched_at) >= linger => return Failure::Unwatched,
                Some(_) => {}
                None if now.duration_since(self.since) >= limits::PULL_WAIT => {
                    return Failure::Silent;
                }
                None => watched_at = now,
            }
        }
    }
}
