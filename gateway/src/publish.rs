//! `weir publish`: an FLV file, pushed at the speed of its timestamps.

mod clip;
mod status;

use std::io;
use std::time::Instant;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_protocol::flv::Tag;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::{self, ClientEvent, ClientSession, Limits, Output, RtmpUrl};

use crate::cli::Publish;
use crate::limits;
use clip::{Clip, ClipError};
use status::Status;

/// Why a publish came to nothing, as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("{0}: the address looks like rtmp://HOST/live/NAME")]
    Url(rtmp::Error),
    #[error("rtmps:// is not spoken by this version; use rtmp://")]
    Tls,
    #[error("cannot connect to {address}: {error}")]
    Connect { address: String, error: io::Error },
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
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
    if url.tls {
        return Err(PublishError::Tls);
    }
    let clip = Clip::open(&args.file, args.endless)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let publisher = Publisher::connect(url, Status::new(&args.url)).await?;
        publisher.run(clip).await
    })
}

struct Publisher {
    stream: TcpStream,
    session: ClientSession<HeapPool>,
    status: Status,
    unsent: Vec<Bytes>,
    /// When the clip's time zero was; set once the server lets the publish begin.
    begun: Option<Instant>,
    stop: [Signal; 2],
}

/// What the publisher acts on next.
enum Turn {
    Readable,
    Due,
    Late,
    Stop,
}

impl Publisher {
    async fn connect(url: RtmpUrl, status: Status) -> Result<Self, PublishError> {
        let address = format!("{}:{}", url.host, url.port);
        let connecting = TcpStream::connect((url.host.as_str(), url.port));
        let stream = tokio::time::timeout(limits::PUBLISH_CONNECT, connecting)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(|error| PublishError::Connect { address, error })?;
        stream.set_nodelay(true)?;
        let seed = u64::from(std::process::id());
        let pool = HeapPool::default();
        let session = ClientSession::publish(url, Limits::default(), seed, pool, Instant::now());
        let stop = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
        Ok(Self { stream, session, status, unsent: Vec::new(), begun: None, stop })
    }

    async fn run(mut self, mut clip: Clip) -> Result<(), PublishError> {
        let mut next = clip.next()?;
        loop {
            self.drain()?;
            self.send().await?;
            match self.turn(next.as_ref()).await {
                Turn::Readable => self.receive()?,
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
    async fn turn(&mut self, next: Option<&Tag>) -> Turn {
        let due = self.begun.map(|begun| match next {
            Some(tag) => begun + self.status.elapsed_until(tag.timestamp_ms),
            None => Instant::now(),
        });
        let late = self.session.poll_timeout();
        let [interrupt, terminate] = &mut self.stop;
        tokio::select! {
            _ = interrupt.recv() => Turn::Stop,
            _ = terminate.recv() => Turn::Stop,
            _ = self.stream.readable() => Turn::Readable,
            () = sleep_until(due) => Turn::Due,
            () = sleep_until(late) => Turn::Late,
        }
    }

    fn receive(&mut self) -> Result<(), PublishError> {
        let mut bytes = [0; 16 * 1024];
        match self.stream.try_read(&mut bytes) {
            Ok(0) => Err(PublishError::Closed),
            Ok(count) => Ok(self.session.handle_input(Instant::now(), &bytes[..count])?),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn drain(&mut self) -> Result<(), PublishError> {
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Send(bytes) => self.unsent.push(bytes),
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
        for bytes in self.unsent.drain(..) {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                tokio::time::timeout(limits::PUBLISH_STALL, self.stream.writable())
                    .await
                    .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
                match self.stream.try_write(rest) {
                    Ok(count) => rest = &rest[count..],
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<(), PublishError> {
        self.session.close();
        self.drain()?;
        self.send().await?;
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
