//! Bounds of the process, each with the reason for its size.
//!
//! What an operator may want to change is a key in [`crate::config`]; here is what protects the
//! process whatever the configuration says.

use std::time::Duration;

/// A configuration is about a kilobyte. A wrong path (a video, `/dev/zero`) is refused, not read.
pub const CONFIG_FILE_BYTES: u64 = 1 << 20;

/// A few people, a metrics scraper and a health checker, each with the six connections that a
/// browser opens; 64 leave room and cost at most 64 file descriptors.
pub const ADMIN_CONNECTIONS: usize = 64;

/// A core answers within one turn of its loop, well under a millisecond. One that has not answered
/// after 2 s is stuck, and the operator should learn that now: kubelet's and Prometheus's own
/// default limits are 1 s and 10 s.
pub const ADMIN_ANSWER_WAIT: Duration = Duration::from_secs(2);

/// A request's head on the admin listener, and the pause between two requests. Longer than the 15 s
/// between Prometheus's scrapes, so that a scraper keeps its connection.
pub const ADMIN_HEADER_WAIT: Duration = Duration::from_secs(30);

/// The head of an admin request: a path, a Host, a browser's cookies for localhost.
pub const ADMIN_HEAD_BYTES: usize = 16 * 1024;

/// Requests in flight on the admin listener get this long to end when the process stops. The whole
/// process has 1 s.
pub const ADMIN_STOP_WAIT: Duration = Duration::from_millis(300);

/// After a failed accept (mostly: no file descriptor left) the next try waits so long. It neither
/// spins nor keeps a peer waiting noticeably once descriptors are free.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);
