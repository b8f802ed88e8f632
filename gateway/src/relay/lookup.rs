//! How a player finds a stream that may have to be pulled first.

use std::rc::Rc;
use std::time::Instant;

use tokio::task::spawn_local;
use weir_protocol::stream_name::StreamName;

use super::demand::Asked;
use super::pull;
use crate::core::Core;
use crate::metrics::PullRefused;
use crate::stream::Stream;
use crate::{clock, limits};

/// The stream with this name; where nobody publishes it and a rule says so, it is pulled, and waited
/// for, but not for long. An absent stream leaves a note of its absence, for seconds, and nothing else.
pub async fn find(core: &Rc<Core>, name: &StreamName, now: Instant) -> Option<Rc<Stream>> {
    let found = core.find(name, now).await;
    if found.as_ref().is_some_and(|stream| !stream.is_ended()) {
        return found;
    }
    // A key that was taken for a name is nothing to tell another server.
    let rule = core.config.relays.on_demand(name).filter(|_| !core.door.holds_key(name));
    let Some(rule) = rule else { return found };
    let attempt = match core.demand.ask(name, now) {
        Asked::Join(attempt) => attempt,
        Asked::Begin(attempt) => {
            spawn_local(pull::on_demand(core.clone(), rule.clone(), name.clone(), attempt.clone()));
            attempt
        }
        refused => {
            let absent = matches!(refused, Asked::Absent);
            let reason = if absent { PullRefused::Absent } else { PullRefused::Busy };
            core.counters.pulls_refused.of(reason).increment();
            return found;
        }
    };
    match tokio::time::timeout(limits::PULL_WAIT, attempt.settled()).await {
        Ok(true) => core.find(name, clock::now()).await.or(found),
        _ => found,
    }
}
