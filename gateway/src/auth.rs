//! Who may publish and play.

mod secret;

pub use secret::Secret;

use crate::stream::Pattern;

/// A secret, and the streams that whoever has it may publish.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishKey {
    pub key: Secret,
    pub stream: Pattern,
}
