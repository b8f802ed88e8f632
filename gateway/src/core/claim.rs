//! How a publisher gets a stream's name, and the stream's state comes to its core.

use std::rc::Rc;
use std::time::Instant;

use tokio::sync::oneshot;
use weir_hls::{Packager, Window};
use weir_protocol::stream_name::StreamName;

use super::inheritance::Heir;
use super::state::Core;
use crate::clock;
use crate::config::Conflict;
use crate::limits;
use crate::metrics::Closed;
use crate::stream::message::{Estate, Message};
use crate::stream::owner::PublisherRole;
use crate::stream::registry::{Claim, Entry};
use crate::stream::{Owner, Publisher, Stream};

/// Why a name could not be had for publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// A newer session claimed the name while this one was waiting.
    Overtaken,
    /// Somebody publishes under this name. A pull stands back for them, and so does a publisher
    /// where the operator wants it.
    Occupied,
    Stopping,
}

impl Core {
    /// Makes this core the owner of `name` and `publisher` its only publisher, taking over from
    /// whoever has it as far as `publish.conflict` allows.
    pub async fn claim(
        &self,
        name: &StreamName,
        publisher: Publisher,
        now: Instant,
    ) -> Result<(Rc<Stream>, Claim), ClaimError> {
        if self.is_stopping() {
            return Err(ClaimError::Stopping);
        }
        let claim = match publisher.role {
            PublisherRole::Publisher => match self.config.publish.conflict {
                Conflict::Takeover => Some(self.registry.claim(name, self.id, now)),
                Conflict::Refuse => self.registry.claim_unless_busy(name, self.id, now),
            },
            PublisherRole::Pull => self.registry.claim_if_vacant(name, self.id, now),
        };
        let claim = claim.ok_or(ClaimError::Occupied)?;
        let Some(previous) = claim.previous.filter(|previous| !self.has_state_of(*previous)) else {
            // A newer claim takes the stream from here as from any publisher.
            return Ok((self.install(&claim, publisher, now), claim));
        };
        let estate = self.inherit(&claim, previous).await;
        let (heir, followers) = self.inheritances.arrived(claim.generation);
        let newest = self.registry.find(name).map(|entry| entry.generation);
        let result = if newest == Some(claim.generation) {
            if let Some(estate) = estate {
                self.adopt(name, now, *estate);
            }
            Ok((self.install(&claim, publisher, now), claim))
        } else {
            match heir {
                // A core that asked and has stopped since needs nothing.
                Some(heir) => drop(heir.send(estate)),
                None => self.inheritances.park(claim.generation, estate),
            }
            Err(ClaimError::Overtaken)
        };
        // Players here have the stream itself now, unless it has moved on.
        let others = followers.into_iter().filter(|core| *core != self.id || result.is_err());
        others.for_each(|core| self.on_attach(name.clone(), core));
        result
    }

    /// Whatever this claim has left is here.
    fn has_state_of(&self, entry: Entry) -> bool {
        entry.owner == self.id && !self.inheritances.knows(entry.generation)
    }

    /// The state of the stream, which another core or an earlier claim has.
    async fn inherit(&self, claim: &Claim, previous: Entry) -> Option<Box<Estate>> {
        let (heir, answer) = oneshot::channel();
        self.inheritances.expect(claim);
        let waiting = Waiting { core: self, claim };
        let (name, generation) = (claim.name.clone(), previous.generation);
        if previous.owner == self.id {
            self.hand_over(&name, generation, heir);
        } else {
            self.post_surely(previous.owner, Message::Handover { name, generation, heir });
        }
        let answer = tokio::time::timeout(limits::ATTACH_TIMEOUT, answer).await;
        // It has waited; what comes now is its caller's.
        std::mem::forget(waiting);
        answer.ok()?.ok()?
    }

    /// Whoever claimed is gone: nobody is to wait for it, nor the name to stay taken by nobody.
    fn give_up(&self, claim: &Claim) {
        let (heir, followers) = self.inheritances.arrived(claim.generation);
        if let Some(heir) = heir {
            // A core that asked and has stopped since needs nothing.
            let _ = heir.send(None);
        }
        self.registry.release(&claim.name, claim.generation);
        followers.into_iter().for_each(|core| self.on_attach(claim.name.clone(), core));
    }

    fn adopt(&self, name: &StreamName, now: Instant, mut estate: Estate) {
        let known = self.stream(name).filter(|stream| stream.is_replica());
        let stream = known.unwrap_or_else(|| {
            let stream = Rc::new(Stream::replica(name.clone(), 0, now));
            self.insert(&stream);
            stream
        });
        let ended = estate.owner.is_ended();
        estate.owner.followers.retain(|core| *core != self.id);
        stream.adopt(estate);
        if ended {
            stream.end(now);
        }
    }

    fn install(&self, claim: &Claim, publisher: Publisher, now: Instant) -> Rc<Stream> {
        let known = self.stream(&claim.name);
        let last_owner = known.as_ref().filter(|stream| !stream.is_replica());
        if let Some(stream) = last_owner.filter(|stream| !stream.is_ended()) {
            self.kick_publisher(stream, Closed::TakenOver);
            stream.begin(claim.generation, publisher);
            return stream.clone();
        }
        let last_window = known.as_ref().and_then(|stream| stream.window());
        let packager = self.packager(&claim.name, last_window.as_deref());
        let owner = Owner::new(claim.generation, packager);
        let stream = Rc::new(Stream::owned(claim.name.clone(), now, owner));
        stream.begin(claim.generation, publisher);
        if let Some(replica) = known.filter(|stream| stream.is_replica()) {
            // Its owner is gone without a word.
            replica.abandon();
        }
        self.insert(&stream);
        stream
    }

    /// Gives the state that belongs to the claim `generation` to the claim that came next.
    pub(super) fn hand_over(&self, name: &StreamName, generation: u64, heir: Heir) {
        let Err(heir) = self.inheritances.name_heir(generation, heir) else { return };
        let stream = self.stream(name).filter(|stream| stream.generation.get() == generation);
        let estate = stream.and_then(|stream| {
            self.kick_publisher(&stream, Closed::TakenOver);
            let mut estate = stream.hand_over()?;
            estate.owner.followers.push(self.id);
            Some(Box::new(estate))
        });
        // A core that asked and has stopped since needs nothing.
        let _ = heir.send(estate);
    }

    /// Goes on counting where the last window at this address has ended, if it is still known.
    fn packager(&self, name: &StreamName, last_window: Option<&Window>) -> Packager {
        let hls = &self.config.hls;
        let last_segment = name.url_path().to_string();
        let last_segment = last_segment.rsplit('/').next().unwrap_or_default();
        Packager::new(weir_hls::Config {
            segment: hls.segment,
            segment_max: hls.segment_max,
            part: hls.part,
            window: hls.window,
            prefix: random_prefix(),
            ts_base: format!("{last_segment}/"),
            first_msn: last_window.map_or(0, Window::next_msn).max(msn_of_wall_clock()),
            first_discontinuity: last_window.map_or(0, Window::next_discontinuity),
        })
    }
}

/// A claim that waits for the stream's state. A relay may end meanwhile, and its claim with it.
struct Waiting<'a> {
    core: &'a Core,
    claim: &'a Claim,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.core.give_up(self.claim);
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
    let since = clock::wall().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::LocalSet;

    use super::super::CoreId;
    use super::super::letter::Letter;
    use super::super::mailbox::{Handle, mailbox};
    use super::*;
    use crate::config::Config;
    use crate::io::Arena;
    use crate::stream::Registry;

    fn core(registry: Arc<Registry>, handles: Vec<Handle<Letter>>) -> Core {
        let arena = Arena::reserve(1 << 20).unwrap();
        let config = Arc::new(Config::default());
        Core::new(CoreId(0), config, registry, Arc::default(), arena, handles)
    }

    fn publisher() -> Publisher {
        Publisher {
            client_id: 1,
            role: PublisherRole::Publisher,
            address: ([127, 0, 0, 1], 1).into(),
            encoder: None,
            via: Vec::new(),
            since: Instant::now(),
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    }

    /// Otherwise no pull could have the name ever again.
    #[test]
    fn a_claim_that_ends_while_it_waits_leaves_the_name_to_others() {
        let name = StreamName::from_path("live/a").unwrap();
        let registry = Arc::new(Registry::default());
        registry.claim(&name, CoreId(1), Instant::now());
        let (handles, _inboxes): (Vec<_>, Vec<_>) = (0..2).map(|_| mailbox(8)).unzip();
        let core = core(registry.clone(), handles);
        LocalSet::new().block_on(&runtime(), async {
            let claim = core.claim(&name, publisher(), Instant::now());
            let early = tokio::time::timeout(limits::ATTACH_TIMEOUT / 2, claim).await;
            assert!(early.is_err(), "it waits for the other core");
            assert!(core.inheritances.is_empty(), "nobody waits for it");
            assert_eq!(registry.find(&name), None);
        });
    }

    /// Otherwise its publisher would go on there, next to the new one.
    #[test]
    fn a_core_that_is_behind_still_learns_that_it_has_lost_a_name() {
        let name = StreamName::from_path("live/a").unwrap();
        let registry = Arc::new(Registry::default());
        let first = registry.claim(&name, CoreId(1), Instant::now());
        let (handles, mut inboxes): (Vec<_>, Vec<_>) = (0..2).map(|_| mailbox(1)).unzip();
        let full = Letter::Message(Message::Detach { name: name.clone(), core: CoreId(0) });
        assert!(handles[1].post(full).is_ok());
        let core = core(registry, handles);
        LocalSet::new().block_on(&runtime(), async {
            let claimed = core.claim(&name, publisher(), Instant::now()).await;
            assert!(claimed.is_ok(), "it does not wait for ever");
            let mut letters = Vec::new();
            while letters.len() < 2 {
                let more = inboxes[1].next_many(&mut letters, 2);
                tokio::time::timeout(limits::ATTACH_TIMEOUT, more).await.expect("no handover");
            }
            let Some(Letter::Message(Message::Handover { generation, .. })) = letters.pop() else {
                panic!("no handover");
            };
            assert_eq!(generation, first.generation);
        });
    }
}
