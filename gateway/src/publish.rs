//! `weir publish`: an FLV file, pushed at the speed of its timestamps.

mod clip;
mod status;

use std::time::Instant;

use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_protocol::flv::Tag;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::{self, ClientEvent, ClientSession, Limits, Output, RtmpUrl};

use crate::cli::Publish;
use crate::core::runtime;
use crate::io::{Backend, Batch, ConnectError, Remote, Transport};
use crate::limits;
use crate::trust::{Trust, TrustError};
use clip::{Clip, ClipError};
use status::Status;

/// Why a publish came to nothing, as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("{0}: the address looks like rtmp://HOST/live/NAME")]
    Url(rtmp::Error),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{0} (--ca FILE names an authority, --insecure takes any certificate)")]
    Secure(ConnectError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("the connection broke: {0}")]
    Broken(#[from] std::io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server ended the publish: {0}")]
    Ended(String),
    #[error(transparent)]
    Session(#[from] rtmp::Error),
    #[error(transparent)]
    Clip(#[from] ClipError),
}

/// Publishes the file, once or for ever, until it ends or SIGINT or SIGTERM comes.
///
/// # Errors
/// When the file, the address, the server or the network does not allow it.
pub fn run(args: &Publish) -> Result<(), PublishError> {
    let url = RtmpUrl::parse(&args.url).map_err(PublishError::Url)?;
    let trust = match (&args.ca, args.insecure) {
        (Some(file), _) => Trust::File(file.clone()),
        (None, true) => Trust::Anyone,
        (None, false) => Trust::Machine,
    };
    let clip = Clip::open(&args.file, args.endless)?;
    runtime::run(Backend::Epoll, None, async {
        let transport = connect(&url, &trust).await?;
        Publisher::new(transport, url, Status::new(&args.url))?.run(clip).await
    })?
}

async fn connect(url: &RtmpUrl, trust: &Trust) -> Result<Transport, PublishError> {
    let mut remote = Remote::new(url.host.as_str(), url.port);
    if url.tls {
        remote = remote.with_tls(trust.client_config()?);
    }
    let connected = Transport::connect(&remote, limits::PUBLISH_CONNECT).await;
    connected.map_err(|error| match error {
        ConnectError::Tls { .. } => PublishError::Secure(error),
        error => error.into(),
    })
}

struct Publisher {
    transport: Transport,
    session: ClientSession<HeapPool>,
    status: Status,
    unsent: Batch,
    /// When the clip's time zero was; set once the server lets the publish begin.
    begun: Option<Instant>,
    stop: [Signal; 2],
}

/// What the publisher acts on next.
enum Turn {
    /// The session has taken what came.
    Read,
    Due,
    Late,
    Stop,
}

impl Publisher {
    fn new(transport: Transport, url: RtmpUrl, status: Status) -> Result<Self, PublishError> {
        let seed = u64::from(std::process::id());
        let pool = HeapPool::default();
        let session = ClientSession::publish(url, Limits::default(), seed, pool, Instant::now());
        let stop = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
        Ok(Self { transport, session, status, unsent: Batch::new(), begun: None, stop })
    }

    async fn run(mut self, mut clip: Clip) -> Result<(), PublishError> {
        let mut next = clip.next()?;
        loop {
            self.drain()?;
            self.send().await?;
            match self.turn(next.as_ref()).await? {
                Turn::Read => {}
                Turn::Late => self.session.handle_timeout(Instant::now())?,
                Turn::Stop => return self.finish().await,
                Turn::Due => {
                    let Some(tag) = next.take() else { return self.finish().await };
                    self.session.publish_media(tag.kind, tag.timestamp_ms, &tag.body);
                    self.status.published(&tag);
                    next = clip.next()?;
                }
            }
        }
    }

    /// Waits for whatever comes first. Without a next tag the clip is over.
    async fn turn(&mut self, next: Option<&Tag>) -> Result<Turn, PublishError> {
        let due = self.begun.map(|begun| match next {
            Some(tag) => begun + self.status.elapsed_until(tag.timestamp_ms),
            None => Instant::now(),
        });
        let late = self.session.poll_timeout();
        let [interrupt, terminate] = &mut self.stop;
        let session = &mut self.session;
        let take = |bytes: &[u8]| session.handle_input(Instant::now(), bytes);
        tokio::select! {
            _ = interrupt.recv() => Ok(Turn::Stop),
            _ = terminate.recv() => Ok(Turn::Stop),
            read = self.transport.read_with(take) => {
                read?.ok_or(PublishError::Closed)??;
                Ok(Turn::Read)
            }
            () = sleep_until(due) => Ok(Turn::Due),
            () = sleep_until(late) => Ok(Turn::Late),
        }
    }

    fn drain(&mut self) -> Result<(), PublishError> {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Send(bytes) => self.unsent.shared(bytes),
                Output::Event(ClientEvent::Published) => {
                    self.begun = Some(Instant::now());
                    self.status.begun();
                }
                Output::Event(ClientEvent::Ended { code }) => {
                    return Err(PublishError::Ended(code));
                }
                Output::Event(ClientEvent::Playing | ClientEvent::Media { .. }) => {}
            }
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), PublishError> {
        let batch = std::mem::take(&mut self.unsent);
        let (batch, sent) = self.transport.send_within(batch, limits::PUBLISH_STALL).await;
        self.unsent = batch;
        Ok(sent?)
    }

    async fn finish(mut self) -> Result<(), PublishError> {
        self.session.close();
        self.drain()?;
        self.send().await?;
        self.transport.finish(limits::FAREWELL).await;
        self.status.ended();
        Ok(())
    }
}

/// Never, without a time.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
