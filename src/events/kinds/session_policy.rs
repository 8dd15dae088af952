//! Payloads about the NetworkPolicy of sessions: the daemon's own records, for the reader.

use serde::{Deserialize, Serialize};

use crate::ids::Word;

/// The NetworkPolicy of sessions is to be repaired, though no pod waits for it; its writes bear this record's number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPolicyRepairIssued {
    /// Its name.
    pub name: Word,
    /// Whether it is gone, rather than changed.
    pub missing: bool,
}

/// Other NetworkPolicies select pods of sessions: what they allow is allowed besides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPolicyWidened {
    /// The first 16 of them by name.
    pub policies: Vec<Word>,
}
