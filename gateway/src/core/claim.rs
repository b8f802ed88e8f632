//! How a publisher gets a stream's name, and the stream's state comes to its core.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::oneshot;
use weir_hls::Packager;
use weir_protocol::stream_name::StreamName;

use super::CoreId;
use super::state::Core;
use crate::limits;
use crate::metrics::Closed;
use crate::stream::message::{Estate, Message};
use crate::stream::registry::Claim;
use crate::stream::{Owner, Publisher, Stream};

/// Why a name could not be had for publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// A newer session claimed the name while this one was waiting.
    Overtaken,
    Stopping,
}

/// Where a stream's state goes; `None` when there was none.
type Heir = oneshot::Sender<Option<Box<Estate>>>;

/// Names whose state is on its way from another core, and who has claimed them meanwhile.
#[derive(Default)]
pub struct Arrivals(RefCell<HashMap<StreamName, Vec<(CoreId, Heir)>>>);

impl Arrivals {
    fn expect(&self, name: &StreamName) {
        self.0.borrow_mut().insert(name.clone(), Vec::new());
    }

    /// Puts a claim in line behind the arrival; gives it back when none is expected.
    fn wait(&self, name: &StreamName, core: CoreId, heir: Heir) -> Result<(), Heir> {
        match self.0.borrow_mut().get_mut(name) {
            Some(waiting) => {
                waiting.push((core, heir));
                Ok(())
            }
            None => Err(heir),
        }
    }

    fn arrived(&self, name: &StreamName) -> Vec<(CoreId, Heir)> {
        self.0.borrow_mut().remove(name).unwrap_or_default()
    }
}

impl Core {
    /// Makes this core the owner of `name` and `publisher` its only publisher, taking over from
    /// whoever has it.
    pub async fn claim(
        &self,
        name: &StreamName,
        publisher: Publisher,
        now: Instant,
    ) -> Result<(Rc<Stream>, u64), ClaimError> {
        if self.is_stopping() {
            return Err(ClaimError::Stopping);
        }
        let claim = self.registry.claim(name, self.id);
        let elsewhere = claim.previous.filter(|previous| previous.owner != self.id);
        if let Some(previous) = elsewhere {
            let estate = self.request_estate(&claim, previous.owner).await;
            self.settle_estate(name, now, estate);
        } else {
            self.wait_for_arrival(name).await;
        }
        if self.registry.find(name).is_none_or(|entry| entry.generation != claim.generation) {
            return Err(ClaimError::Overtaken);
        }
        Ok((self.install(&claim, publisher, now), claim.generation))
    }

    fn install(&self, claim: &Claim, publisher: Publisher, now: Instant) -> Rc<Stream> {
        let known = self.stream(&claim.name);
        let last_owner = known.as_ref().filter(|stream| !stream.is_replica());
        if let Some(stream) = last_owner.filter(|stream| !stream.is_ended()) {
            self.kick_publisher(stream, Closed::TakenOver);
            stream.begin(claim.generation, publisher);
            return stream.clone();
        }
        let next_msn = last_owner.and_then(|stream| stream.window()).map_or(0, |w| w.next_msn());
        let packager = self.packager(&claim.name, next_msn);
        let owner = Owner::new(claim.generation, packager);
        let stream = Rc::new(Stream::owned(claim.name.clone(), now, owner));
        stream.begin(claim.generation, publisher);
        self.insert(&stream);
        stream
    }

    async fn request_estate(&self, claim: &Claim, from: CoreId) -> Option<Box<Estate>> {
        let (reply, answer) = oneshot::channel();
        self.arrivals.expect(&claim.name);
        let message = Message::Handover { name: claim.name.clone(), to: self.id, reply };
        self.post(from, message);
        tokio::time::timeout(limits::ATTACH_TIMEOUT, answer).await.ok()?.ok()?
    }

    /// Takes in a stream's state and passes it on at once where another core has claimed it since.
    fn settle_estate(&self, name: &StreamName, now: Instant, estate: Option<Box<Estate>>) {
        if let Some(estate) = estate {
            let known = self.stream(name).filter(|stream| stream.is_replica());
            let ended = estate.owner.is_ended();
            let stream = known.unwrap_or_else(|| {
                let stream = Rc::new(Stream::replica(name.clone(), 0, now));
                self.insert(&stream);
                stream
            });
            stream.adopt(*estate);
            if ended {
                stream.end(now);
            }
        }
        for (core, heir) in self.arrivals.arrived(name) {
            self.hand_over(name, core, heir);
        }
    }

    /// Another session here may have claimed the name first, with its state still on the way. It
    /// will see that its claim is out of date.
    async fn wait_for_arrival(&self, name: &StreamName) {
        let (heir, answer) = oneshot::channel();
        if self.arrivals.wait(name, self.id, heir).is_ok() {
            let _ = tokio::time::timeout(limits::ATTACH_TIMEOUT, answer).await;
        }
    }

    pub(super) fn hand_over(&self, name: &StreamName, to: CoreId, heir: Heir) {
        let Err(heir) = self.arrivals.wait(name, to, heir) else { return };
        let stream = self.stream(name).filter(|_| to != self.id);
        let estate = stream.and_then(|stream| {
            self.kick_publisher(&stream, Closed::TakenOver);
            let mut estate = stream.hand_over()?;
            estate.owner.followers.retain(|core| *core != to);
            estate.owner.followers.push(self.id);
            Some(Box::new(estate))
        });
        // A core that asked and has stopped since needs nothing.
        let _ = heir.send(estate);
    }

    fn packager(&self, name: &StreamName, next_msn: u64) -> Packager {
        let hls = &self.config.hls;
        let last_segment = name.url_path().to_string();
        let last_segment = last_segment.rsplit('/').next().unwrap_or_default();
        Packager::new(weir_hls::Config {
            segment: hls.segment,
            longest_segment: hls.segment * 2,
            part: hls.part,
            window: hls.window,
            prefix: random_prefix(),
            ts_base: format!("{last_segment}/"),
            first_msn: next_msn.max(msn_of_wall_clock()),
        })
    }
}

/// Length of the URI prefix of an epoch: `~` and 64 random bits.
pub const PREFIX_LEN: usize = 17;

/// A URI prefix that no other epoch of any stream has had or will have.
fn random_prefix() -> String {
    let mut bytes = [0; 8];
    // Without the system's random numbers the clock still keeps prefixes apart.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = nanoseconds_of_wall_clock().to_be_bytes();
    }
    format!("~{:016x}", u64::from_be_bytes(bytes))
}

/// Media sequence numbers begin with the seconds since 2026, so that they never go back for a URL,
/// not even when the process restarts: no stream makes more than one segment a second for long.
fn msn_of_wall_clock() -> u64 {
    const SECONDS_TO_2026: u64 = 1_767_225_600;
    (nanoseconds_of_wall_clock() / 1_000_000_000).saturating_sub(SECONDS_TO_2026)
}

fn nanoseconds_of_wall_clock() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
