//! What the operator wants relayed.

use std::time::Duration;

use weir_protocol::stream_name::StreamName;

use super::address::Address;
use crate::stream::Pattern;
use crate::trust::Trust;

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
    /// For rtmps://.
    pub trust: Trust,
}

/// Have the streams that match from another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRule {
    pub stream: Pattern,
    pub url: Address,
    /// For rtmps://.
    pub trust: Trust,
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
            trust: Trust::default(),
            when: When::Demand,
            linger: Duration::from_secs(10),
        }
    }
}

impl Rules {
    /// Whom connections to other servers must be able to trust.
    pub fn trusts(&self) -> impl Iterator<Item = &Trust> {
        let push = self.push.iter().map(|rule| (&rule.url, &rule.trust));
        let pull = self.pull.iter().map(|rule| (&rule.url, &rule.trust));
        push.chain(pull).filter(|(url, _)| url.is_tls()).map(|(_, trust)| trust)
    }

    /// The rule by which a player's demand for this stream is met: the first that matches.
    #[must_use]
    pub fn on_demand(&self, name: &StreamName) -> Option<&PullRule> {
        self.pull.iter().find(|rule| rule.when == When::Demand && rule.stream.matches(name))
    }
}
