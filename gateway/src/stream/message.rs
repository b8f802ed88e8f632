//! What cores tell each other about streams.

use std::sync::Arc;

use tokio::sync::oneshot;
use weir_hls::Window;
use weir_protocol::stream_name::StreamName;

use super::log::Item;
use super::owner::Owner;
use crate::core::CoreId;

/// Messages between two cores arrive in the order in which they were sent, which is what makes a
/// replica's log equal to its owner's.
pub enum Message {
    /// A core has players for a stream that the receiver owns.
    Attach { name: StreamName, core: CoreId },
    /// It has none any more.
    Detach { name: StreamName, core: CoreId },
    /// The answer to `Attach`: everything a replica needs to begin with.
    Snapshot(Box<Snapshot>),
    /// The answer to `Attach` where there is nothing to follow.
    Absent { name: StreamName },
    /// News of a stream, once per core and read batch.
    Update(Update),
    /// A publisher of the sender has claimed the stream after `generation`; hand its state over.
    Handover { name: StreamName, generation: u64, heir: oneshot::Sender<Option<Box<Estate>>> },
}

pub struct Snapshot {
    pub name: StreamName,
    pub generation: u64,
    /// As [`Owner::began_as`].
    pub began_as: u64,
    pub items: Vec<Item>,
    pub window: Option<Arc<Window>>,
    pub ended: bool,
}

#[derive(Clone)]
pub struct Update {
    pub name: StreamName,
    pub generation: u64,
    pub items: Arc<Vec<Item>>,
    pub window: Option<Arc<Window>>,
    pub ended: bool,
}

/// A stream's state as it moves from its old owner to its new one.
pub struct Estate {
    pub owner: Owner,
    pub items: Vec<Item>,
}
