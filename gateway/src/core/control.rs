//! What the control plane asks of a core.

use std::time::Instant;

use super::letter::Control;
use super::report::report;
use super::state::Core;
use crate::metrics::Closed;

pub fn obey(core: &Core, control: Control, now: Instant) {
    match control {
        Control::Report(reply) => {
            let _ = reply.send(report(core, now));
        }
        Control::KickClient { id, reply } => {
            let _ = reply.send(core.connections.close(id, Closed::Kicked));
        }
        Control::KickStream { name, reply } => {
            let owned = core.stream(&name).filter(|s| !s.is_replica() && !s.is_ended());
            if let Some(stream) = &owned {
                core.kick_publisher(stream, Closed::Kicked);
                core.end(stream, now);
            }
            let _ = reply.send(owned.is_some());
        }
        Control::Stop => core.stop(now),
    }
}
