//! One connection of a relay to another server: what push and pull have alike.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::Shutdown;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::timeout;
use weir_protocol::rtmp::{self, ClientEvent, ClientSession, Output, RtmpUrl};

use super::failure::Failure;
use super::status::Status;
use crate::core::Core;
use crate::core::connection::{Connection, Role};
use crate::io::{ArenaPool, Batch, Remote, Transport};
use crate::metrics::Closed;
use crate::trust::Trust;
use crate::{clock, limits};

/// What a push or a pull does with the connection.
pub trait Side {
    /// Looks at the new connection before anything is said.
    ///
    /// # Errors
    /// When there is nothing to be said on it.
    fn check(&self, link: &Link) -> Result<(), Failure>;

    /// Acts on what the server says.
    fn take(&self, link: &Link, event: ClientEvent) -> impl Future<Output = Result<(), Failure>>;

    /// Every read has been taken.
    fn flush(&self) {}

    /// Appends media to send. `false` once this side has nothing more to say.
    fn fill(&self, _link: &Link, _batch: &mut Batch) -> bool {
        true
    }

    /// Ready when there may be more to send.
    fn news(&self) -> Option<OwnedNotified> {
        None
    }

    /// Ready when this side wants to end.
    fn end(&self) -> impl Future<Output = Failure> {
        std::future::pending()
    }
}

pub struct Link {
    pub core: Rc<Core>,
    pub connection: Rc<Connection>,
    pub session: RefCell<ClientSession<ArenaPool>>,
    /// What the session says and is not sent yet.
    unsent: RefCell<Vec<Bytes>>,
    /// Wakes the sender.
    pub news: Notify,
    finished: Cell<bool>,
}

/// How a connection is made.
pub struct Plan<'a> {
    pub role: Role,
    pub trust: &'a Trust,
    /// Name lookup, TCP and TLS together.
    pub connect_within: Duration,
}

/// Connects and does what `side` wants until that is over, on whichever end.
pub async fn run(
    core: &Rc<Core>,
    status: &Status,
    Plan { role, trust, connect_within }: Plan<'_>,
    new: impl FnOnce(RtmpUrl, rtmp::Limits, u64, ArenaPool, Instant) -> ClientSession<ArenaPool>,
    side: &impl Side,
) -> Result<(), Failure> {
    let url = &status.url;
    let mut remote = Remote::new(url.host.as_str(), url.port);
    if url.tls {
        let config = core.clients.get(trust).ok_or(Failure::NoTls)?;
        remote = remote.with_tls(config);
    }
    let transport = Transport::connect(&remote, connect_within).await?;
    let now = clock::now();
    let listed = core.connections.list(transport, role, now);
    let connection = listed.connection.clone();
    connection.take_role(role, &status.name);
    status.connected(&connection);
    let (seed, pool) = (connection.id, ArenaPool::new(core.arena));
    let session = new(url.clone(), session_limits(core), seed, pool, now);
    let link = Link {
        core: core.clone(),
        connection,
        session: RefCell::new(session),
        unsent: RefCell::default(),
        news: Notify::new(),
        finished: Cell::new(false),
    };
    let result = match side.check(&link) {
        Ok(()) => link.run(side).await,
        Err(failure) => Err(failure),
    };
    link.connection.conn.shutdown(Shutdown::Both);
    link.connection.account(&core.counters);
    status.disconnected();
    result
}

fn session_limits(core: &Core) -> rtmp::Limits {
    rtmp::Limits {
        handshake_timeout: limits::RELAY_CONNECT,
        idle_timeout: limits::RELAY_CONNECT,
        media_timeout: core.config.timeouts.idle,
        ..rtmp::Limits::default()
    }
}

impl Link {
    async fn run(&self, side: &impl Side) -> Result<(), Failure> {
        let (mut reading, mut sending) = (pin!(self.read(side)), pin!(self.send(side)));
        let result = tokio::select! {
            failure = reading.as_mut() => Err(failure),
            failure = side.end() => Err(failure),
            sent = sending.as_mut() => {
                if sent.is_ok() {
                    // The server takes in the goodbye and closes, if it is polite.
                    self.connection.conn.finish(limits::FAREWELL).await;
                    self.connection.conn.shutdown(Shutdown::Write);
                    let _ = timeout(limits::FAREWELL, reading).await;
                }
                return sent;
            }
        };
        self.say_goodbye();
        self.finished.set(true);
        self.news.notify_one();
        match timeout(limits::FAREWELL, sending).await {
            // A stalled send ends by a shutdown, which may have ended the reading first.
            Ok(Err(Failure::Stalled)) => return Err(Failure::Stalled),
            Ok(Ok(())) => self.connection.conn.finish(limits::FAREWELL).await,
            Ok(Err(_)) | Err(_) => {}
        }
        result
    }

    /// Queues the end of what is published or played; nothing where that has not begun.
    pub fn say_goodbye(&self) {
        self.session.borrow_mut().close();
        while let Some(output) = self.poll() {
            if let Output::Send(bytes) = output {
                self.unsent.borrow_mut().push(bytes);
            }
        }
    }

    async fn read(&self, side: &impl Side) -> Failure {
        let connection = &self.connection;
        loop {
            if let Err(failure) = self.drain(side).await {
                return failure;
            }
            side.flush();
            match self.session.borrow().poll_timeout() {
                Some(at) => connection.set_deadline(at, Closed::Idle),
                None => connection.clear_deadline(),
            }
            let take = |bytes: &[u8]| self.session.borrow_mut().handle_input(clock::now(), bytes);
            let read = connection.conn.read_with(take).await;
            if let Some(reason) = connection.close_reason() {
                return Failure::of(reason);
            }
            match read {
                Ok(Some(Ok(()))) => {}
                Ok(Some(Err(error))) => return error.into(),
                Ok(None) => return Failure::Closed,
                Err(error) => return Failure::Broken(error),
            }
        }
    }

    /// Acts on everything the session has to say.
    async fn drain(&self, side: &impl Side) -> Result<(), Failure> {
        while let Some(output) = self.poll() {
            match output {
                Output::Send(bytes) => {
                    self.unsent.borrow_mut().push(bytes);
                    self.news.notify_one();
                }
                Output::Event(event) => side.take(self, event).await?,
            }
        }
        Ok(())
    }

    fn poll(&self) -> Option<Output<ClientEvent>> {
        self.session.borrow_mut().poll_output()
    }

    async fn send(&self, side: &impl Side) -> Result<(), Failure> {
        let conn = &self.connection.conn;
        loop {
            let media_news = side.news();
            let mut batch = Batch::pooled();
            self.put_unsent(&mut batch);
            if !self.finished.get() && !side.fill(self, &mut batch) {
                self.say_goodbye();
                self.put_unsent(&mut batch);
                self.finished.set(true);
            }
            if batch.is_empty() {
                batch.recycle();
                if self.finished.get() {
                    return Ok(());
                }
                match media_news {
                    Some(media_news) => tokio::select! {
                        () = self.news.notified() => {}
                        () = media_news => {}
                    },
                    None => self.news.notified().await,
                }
                continue;
            }
            let stall = self.core.config.timeouts.send_stall;
            let (batch, sent) = conn.send_within(batch, stall).await;
            batch.recycle();
            sent.map_err(|error| match error.kind() {
                std::io::ErrorKind::TimedOut => Failure::Stalled,
                _ => Failure::Broken(error),
            })?;
        }
    }

    fn put_unsent(&self, batch: &mut Batch) {
        for bytes in self.unsent.borrow_mut().drain(..) {
            batch.shared(bytes);
        }
    }
}
