//! Who may publish and play: what every publish and play passes before anything else is done for it.
//!
//! Validate, authorise, claim, start: a name is not claimed before its publisher is let in, so
//! nobody loses a stream to somebody who may not have it.

mod guesses;
mod secret;

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use weir_protocol::stream_name::{Query, StreamName};

pub use guesses::Guesses;
pub use secret::Secret;

use crate::stream::Pattern;

/// A secret, and the streams that whoever has it may publish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishKey {
    pub key: Secret,
    pub stream: Pattern,
}

/// Decides who is let in. One for all cores; asked once per publish and play.
pub struct Door {
    keys: Vec<PublishKey>,
    guesses: Mutex<Guesses>,
}

/// Who wants to publish or play what. The name may hold a secret until it is let in.
pub struct Visit<'a> {
    pub address: IpAddr,
    pub name: &'a StreamName,
    pub query: &'a Query,
}

/// Why a peer is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the stream name and the publish key do not fit: check both; the key goes behind the name \
         as in name?key=KEY"
    )]
    WrongKey,
    #[error("too many wrong publish keys came from this address: try again in {} s", .0.as_secs() + 1)]
    Throttled(Duration),
}

/// The parameters that a key may come in.
const PARAMETERS: [&str; 2] = ["key", "token"];

impl Door {
    pub fn new(keys: Vec<PublishKey>) -> Self {
        Self { keys, guesses: Mutex::default() }
    }

    /// Nobody is asked for a key.
    pub fn is_open(&self) -> bool {
        self.keys.is_empty()
    }

    /// Lets a publisher in, and gives the name that the stream has for everybody else.
    ///
    /// The verdict is awaited, so that it may come from elsewhere; the publisher's media is held
    /// back meanwhile, within the session's bounds.
    ///
    /// # Errors
    /// Says what to check. While an address is throttled its key is not even looked at: an answer
    /// to the right one would be an answer to a guess.
    pub async fn publish(&self, visit: &Visit<'_>, now: Instant) -> Result<StreamName, Refusal> {
        if self.is_open() {
            return Ok(visit.name.clone());
        }
        let mut guesses = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = guesses.throttled(visit.address, now) {
            return Err(Refusal::Throttled(left));
        }
        match self.public_name(visit) {
            Some(name) => {
                guesses.right(visit.address);
                Ok(name)
            }
            None => {
                guesses.wrong(visit.address, (visit.name, sent_keys(visit.query)), now);
                Err(Refusal::WrongKey)
            }
        }
    }

    /// Lets a player in: there is no key for playing yet.
    ///
    /// # Errors
    /// None so far.
    pub async fn play(&self, _visit: &Visit<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Whether a part of the name is a key: people take the stream key of an encoder for the name to
    /// watch. Nobody may be shown such a name, and the player must not be told.
    pub fn holds_key(&self, name: &StreamName) -> bool {
        let parts = || name.as_str().split('/');
        self.keys
            .iter()
            .fold(false, |any, entry| parts().fold(any, |any, part| any | entry.key.is(part)))
    }

    /// The name that the first fitting key gives. Every key is compared with all that was sent,
    /// so the time that it takes tells nothing.
    fn public_name(&self, visit: &Visit<'_>) -> Option<StreamName> {
        let sent = sent_keys(visit.query);
        let mut found = None;
        for entry in &self.keys {
            let by_parameter = sent.iter().fold(false, |any, key| any | entry.key.is(key));
            let by_name = entry.key.is(visit.name.name());
            let name = if by_parameter && entry.stream.matches(visit.name) {
                Some(visit.name.clone())
            } else if by_name {
                entry.stream.single().filter(|name| name.app() == visit.name.app())
            } else {
                None
            };
            found = found.or(name);
        }
        found
    }
}

fn sent_keys(query: &Query) -> Vec<&str> {
    let keys = query.iter().filter(|(name, _)| PARAMETERS.contains(name));
    keys.map(|(_, key)| key).collect()
}

#[cfg(test)]
mod tests;
