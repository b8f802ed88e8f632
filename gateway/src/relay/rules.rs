//! What the operator wants relayed.

use std::time::Duration;

use weir_protocol::stream_name::StreamName;

use super::address::Address;
use crate::stream::Pattern;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub push: Vec<PushRule>,
    pub pull: Vec<PullRule>,
}

/// Send every stream that matches, while it is live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushRule {
    pub stream: Pattern,
    pub url: Address,
}

/// Have the streams that match from another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRule {
    pub stream: Pattern,
    pub url: Address,
    pub when: When,
    /// Without a player, before a pull on demand ends.
    pub linger: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// While a player wants it.
    Demand,
    Always,
}

impl When {
    pub const ALL: [Self; 2] = [Self::Demand, Self::Always];
    pub const NAMES: [&'static str; 2] = ["demand", "always"];
}

impl Default for PullRule {
    fn default() -> Self {
        Self {
            stream: Pattern::default(),
            url: Address::default(),
            when: When::Demand,
            linger: Duration::from_secs(10),
        }
    }
}

impl Rules {
    /// The rule by which a player's demand for this stream is met: the first that matches.
    #[must_use]
    pub fn on_demand(&self, name: &StreamName) -> Option<&PullRule> {
        self.pull.iter().find(|rule| rule.when == When::Demand && rule.stream.matches(name))
    }
}
