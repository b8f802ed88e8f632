//! What comes into a core's mailbox.

use tokio::sync::oneshot;
use weir_protocol::stream_name::StreamName;

use crate::admin::model::CoreReport;
use crate::stream::message::Message;

pub enum Letter {
    /// From another core.
    Message(Message),
    /// From the control plane.
    Control(Control),
}

/// What the control plane asks of a core.
pub enum Control {
    Report(oneshot::Sender<CoreReport>),
    KickClient { id: u64, reply: oneshot::Sender<bool> },
    KickStream { name: StreamName, reply: oneshot::Sender<bool> },
    Stop,
}
