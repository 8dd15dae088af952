//! Payloads about what an operator asked for: who, and why in a kind of its own words.

use serde::{Deserialize, Serialize};

use crate::ids::{HostName, Word};

/// An operator stopped acting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// The token's name.
    pub who: Word,
}

/// An operator let it act again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thawed {
    /// The token's name.
    pub who: Word,
}

/// An operator asked to try a failed host again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAsked {
    /// The token's name.
    pub who: Word,
    /// Which host.
    pub host: HostName,
}

/// An operator asked to stop the pods of an app that no want names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAsked {
    /// The token's name.
    pub who: Word,
}
