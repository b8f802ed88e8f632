//! The operator's side: API, metrics and health checks on a listener of their own.
//!
//! It runs on an ordinary tokio runtime in its own thread and touches no frame. What it wants to
//! know or do goes to the cores as messages, behind [`Control`]; every wait is bounded.

mod api;
mod guard;
pub mod model;
mod server;

use std::future::Future;

use weir_protocol::stream_name::StreamName;

use crate::metrics::Exporter;
use crate::process::Process;
use model::CoreReport;
pub use server::{Running, start};

/// The cores, as the admin side asks them.
pub trait Control: Send + Sync + 'static {
    /// One report of each core.
    fn reports(&self) -> impl Future<Output = Result<Vec<CoreReport>, Unanswered>> + Send;

    /// Ends a connection. `false` when there is none with this id.
    fn kick_client(&self, id: u64) -> impl Future<Output = Result<bool, Unanswered>> + Send;

    /// Ends a stream and the session that publishes it. `false` when there is no such stream.
    fn kick_stream(
        &self,
        name: StreamName,
    ) -> impl Future<Output = Result<bool, Unanswered>> + Send;

    /// All cores listen, and the process is not about to stop.
    fn ready(&self) -> bool;
}

/// A core has stopped, or its mailbox is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered;

/// What the admin listener serves.
pub struct Admin<C> {
    pub control: C,
    pub process: std::sync::Arc<Process>,
    pub exporter: Exporter,
}

#[cfg(test)]
mod tests;
