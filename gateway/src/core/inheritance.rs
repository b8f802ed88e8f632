//! Streams whose state is on its way from one claim to the next.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tokio::sync::oneshot;
use weir_protocol::stream_name::StreamName;

use super::CoreId;
use crate::stream::message::Estate;
use crate::stream::registry::Claim;

/// Where a stream's state goes; `None` when there was none.
pub type Heir = oneshot::Sender<Option<Box<Estate>>>;

/// Claims of this core whose stream's state is on its way, by generation.
///
/// All claims of a name stand in one line, and the state goes from each to the next. Nobody waits
/// for a later claim, so however many publishers race on however many cores, none waits in a
/// circle, and the state gets to the newest.
#[derive(Default)]
pub struct Inheritances(RefCell<BTreeMap<u64, Inheritance>>);

enum Inheritance {
    Expected {
        name: StreamName,
        /// The claim that came next.
        heir: Option<Heir>,
        /// Cores that have asked to follow the stream meanwhile.
        followers: Vec<CoreId>,
    },
    /// It came for a claim that was out of date by then; the next one is about to ask for it.
    Parked(Option<Box<Estate>>),
}

impl Inheritances {
    pub fn expect(&self, claim: &Claim) {
        let name = claim.name.clone();
        let expected = Inheritance::Expected { name, heir: None, followers: Vec::new() };
        self.0.borrow_mut().insert(claim.generation, expected);
    }

    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub fn knows(&self, generation: u64) -> bool {
        self.0.borrow().contains_key(&generation)
    }

    /// Names the next in line; gives it back where this claim waits for nothing.
    pub fn name_heir(&self, generation: u64, next: Heir) -> Result<(), Heir> {
        let mut all = self.0.borrow_mut();
        match all.get_mut(&generation) {
            Some(Inheritance::Expected { heir, .. }) => *heir = Some(next),
            Some(Inheritance::Parked(estate)) => {
                let _ = next.send(estate.take());
                all.remove(&generation);
            }
            None => return Err(next),
        }
        Ok(())
    }

    /// Lets `core` follow once the state is here; false where none is expected.
    pub fn follow_later(&self, name: &StreamName, core: CoreId) -> bool {
        let mut all = self.0.borrow_mut();
        let expected = all.values_mut().find_map(|inheritance| match inheritance {
            Inheritance::Expected { name: of, followers, .. } if of == name => Some(followers),
            _ => None,
        });
        expected.map(|followers| followers.push(core)).is_some()
    }

    pub fn arrived(&self, generation: u64) -> (Option<Heir>, Vec<CoreId>) {
        match self.0.borrow_mut().remove(&generation) {
            Some(Inheritance::Expected { heir, followers, .. }) => (heir, followers),
            _ => (None, Vec::new()),
        }
    }

    pub fn park(&self, generation: u64, estate: Option<Box<Estate>>) {
        self.0.borrow_mut().insert(generation, Inheritance::Parked(estate));
    }
}
