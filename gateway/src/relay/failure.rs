//! Why a relay's connection ended, for the log, the API and the metrics.

use std::io;

use weir_protocol::rtmp::{self, RtmpUrl, Waiting};

use crate::io::ConnectError;
use crate::limits;
use crate::metrics::{Closed, RelayFailure};

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("TLS was not set up at the start")]
    NoTls,
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server takes nothing")]
    Stalled,
    #[error("the server is silent")]
    Silent,
    #[error(transparent)]
    Session(#[from] rtmp::Error),
    #[error("the server has ended the stream ({0})")]
    Ended(String),
    #[error("the address leads back to this gateway and this stream")]
    Loop,
    #[error("somebody publishes this stream here")]
    Occupied,
    #[error("nobody watches")]
    Unwatched,
    #[error("ended by request")]
    Kicked,
    #[error("the gateway is stopping")]
    Stopping,
}

impl Failure {
    /// Why this side has closed the connection.
    pub fn of(reason: Closed) -> Self {
        match reason {
            Closed::TakenOver => Self::Occupied,
            Closed::SendStall => Self::Stalled,
            Closed::HandshakeTimeout | Closed::NoRequest | Closed::Idle => Self::Silent,
            Closed::Stopping => Self::Stopping,
            _ => Self::Kicked,
        }
    }

    /// The server knows what this side wants, and does not: trying again soon would not help.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Session(rtmp::Error::Rejected { .. }) | Self::Loop)
    }

    /// `None` for what is no fault.
    pub fn label(&self) -> Option<RelayFailure> {
        Some(match self {
            Self::Connect(_) | Self::NoTls => RelayFailure::Connect,
            Self::Broken(_) | Self::Closed => RelayFailure::Closed,
            Self::Stalled => RelayFailure::Stalled,
            Self::Silent | Self::Session(rtmp::Error::Timeout(Waiting::Answer, _)) => {
                RelayFailure::Silent
            }
            Self::Session(rtmp::Error::Rejected { .. }) => RelayFailure::Refused,
            Self::Session(_) => RelayFailure::Violation,
            Self::Ended(_) => RelayFailure::Ended,
            Self::Loop => RelayFailure::Loop,
            Self::Occupied | Self::Unwatched | Self::Kicked | Self::Stopping => return None,
        })
    }

    /// One line without the key, which servers like to repeat in what they say.
    pub fn text(&self, url: &RtmpUrl) -> String {
        let mut text = self.to_string();
        let (name, query) = url.key.split_once('?').unwrap_or((&url.key, ""));
        let values = query.split('&').filter_map(|pair| pair.split_once('=')).map(|pair| pair.1);
        for secret in [url.key.as_str(), name, query].into_iter().chain(values) {
            if secret.len() >= limits::RELAY_SECRET_CHARS {
                text = text.replace(secret, "…");
            }
        }
        text.chars().filter(|char| !char.is_control()).take(limits::RELAY_ERROR_CHARS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_told_without_the_key() {
        let url = RtmpUrl::parse("rtmp://h/live/abcd-1234?token=sesame&x=y").unwrap();
        for said in [
            "abcd-1234?token=sesame&x=y",
            "no stream abcd-1234",
            "token sesame is wrong",
            "a\nb",
            &"long ".repeat(1000),
        ] {
            let code = "NetStream.Publish.BadName".to_owned();
            let error = rtmp::Error::Rejected { code, description: said.to_owned() };
            let text = Failure::from(error).text(&url);
            assert!(text.contains("NetStream.Publish.BadName"), "{text}");
            assert!(!text.contains("abcd-1234") && !text.contains("sesame"), "{text}");
            assert!(!text.contains('\n') && text.chars().count() <= limits::RELAY_ERROR_CHARS);
        }
    }
}
