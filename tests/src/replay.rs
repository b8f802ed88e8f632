//! Replay: a raw RTMP client that does what a small script says.
//!
//! It sends what no encoder sends (odd headers, half messages, wrong lengths, any order) and checks
//! what comes back, and what comes out over HTTP-FLV. The program is `replay`; tests run the same
//! code in process. [`LANGUAGE`] describes the scripts.

pub mod actor;
pub mod amf;
pub mod chunks;
pub mod edit;
mod expect;
pub mod flv;
pub mod handshake;
mod language;
pub mod number;
mod parse;
pub mod payload;
mod run;
pub mod scan;
mod send;
pub mod step;
pub mod watch;

use std::fmt;
use std::net::SocketAddr;

pub use language::LANGUAGE;
pub use parse::parse;
pub use run::case;
pub use step::{Case, Step};

/// Where a script is run.
#[derive(Clone, Debug)]
pub struct Target {
    pub rtmp: SocketAddr,
    /// For `watch`.
    pub http: Option<SocketAddr>,
    /// The stream that a script means when it names none.
    pub app: String,
    pub key: String,
}

impl Target {
    /// `app/key`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.app, self.key)
    }
}

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// From 1; 0 where no connection could be made at all.
    pub line: usize,
    /// The statement as it stands in the script.
    pub expected: String,
    pub came: String,
}

impl Failure {
    fn new(step: Option<&Step>, came: String) -> Self {
        let (line, expected) = match step {
            Some(step) => (step.line, step.text.clone()),
            None => (0, "a connection".to_owned()),
        };
        Self { line, expected, came }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}\n  came: {}", self.line, self.expected, self.came)
    }
}
