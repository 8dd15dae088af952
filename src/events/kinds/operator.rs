//! Payloads about what an operator asked for. Who, and why, is in a kind of its own, which only informs and can be erased.

use serde::{Deserialize, Serialize};

use crate::ids::{HostName, RecordId, Word};

/// An operator stopped acting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Whether everything was frozen, or this subject alone.
    pub everything: bool,
}

/// An operator let it act again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thawed {
    /// Whether everything was thawed, or this subject alone.
    pub everything: bool,
}

/// An operator asked to try a failed host again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAsked {
    /// Which host.
    pub host: HostName,
}

/// An operator asked to stop the pods of an app that no want names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopAsked {}

/// Who asked, and why; in the reaction of what was asked, which is its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorSaid {
    /// The token's name.
    pub who: Word,
    /// In the operator's words, at most 1 KiB; empty when none were given.
    pub why: String,
}

/// What a record said was taken away; its header and its leaf stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordErased {
    /// Which record, perhaps of an earlier log in the same store.
    pub record: RecordId,
    /// The token's name; empty where nobody was asked for one, as on a closed folder.
    pub who: Word,
    /// In the operator's words, 1 byte to 1 KiB.
    pub why: String,
}

/// Callers of one kind were refused for want of a right, since it was last recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRefused {
    /// The token's name; empty when nobody knows the caller.
    pub who: Word,
    /// Method and path of the route, with its parameters in braces; empty for many different ones together.
    pub route: String,
    /// The code of the answer.
    pub code: Word,
    /// How often.
    pub times: u64,
}
