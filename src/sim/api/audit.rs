//! The cluster's own history: one entry a request, as the API server's audit log has it. For tests and oracles.

use std::sync::{Arc, Mutex, PoisonError};

use super::object::Object;

/// One answered (or faulted) request.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When it arrived, microseconds of the API server's clock.
    pub asked_us: i64,
    /// When it was answered, microseconds of the API server's clock.
    pub time_us: i64,
    /// Whose client sent it.
    pub user: String,
    /// `create`, `delete`, ...
    pub verb: &'static str,
    /// Plural; empty when the path is unknown.
    pub resource: &'static str,
    /// `status`, `log`, ...; empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-wide kinds and all namespaces.
    pub namespace: String,
    /// Empty for collections; of a create the name in the body.
    pub name: String,
    /// The request's `Audit-ID`, or the one made for it.
    pub audit_id: String,
    /// The uid a delete was bound to.
    pub uid_precondition: Option<String>,
    /// The resourceVersion a delete or update was bound to.
    pub version_precondition: Option<String>,
    /// The grace a delete asked for, seconds.
    pub grace_s: Option<i64>,
    /// Whether nothing was to be stored.
    pub dry_run: bool,
    /// The HTTP status the server came to; 0 when a fault kept the request from it. The caller may have seen another.
    pub code: u16,
    /// The fault the request met, if any.
    pub fault: Option<&'static str>,
    /// Fields the kind does not have, which were dropped: typing errors of the caller.
    pub unknown_fields: Vec<String>,
    /// The object a write was about, as it was then: of a delete, what was deleted. Not kept for patches: nodes send them by the
    /// thousand.
    pub object: Option<Arc<Object>>,
}

impl Entry {
    /// Whether the request changed something.
    #[must_use]
    pub fn changed(&self) -> bool {
        let writes = !matches!(self.verb, "get" | "list" | "watch" | "");
        writes && !self.dry_run && (200..300).contains(&self.code)
    }

    /// The uid of the object a write was about.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.object.as_ref().and_then(|object| object["metadata"]["uid"].as_str()).unwrap_or_default()
    }
}

/// All entries since the start, or since the oldest that is kept.
#[derive(Debug)]
pub struct Audit {
    entries: Mutex<Kept>,
    max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    dropped: usize,
    entries: Vec<Entry>,
}

impl Audit {
    /// Keeps at least the newest `max` entries.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { entries: Mutex::default(), max }
    }

    pub(super) fn push(&self, entry: Entry) {
        let mut kept = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entries.push(entry);
        // Half as much again may pile up, so that the move is paid for by many pushes.
        let surplus = kept.entries.len().saturating_sub(self.max);
        if surplus > self.max / 2 {
            kept.entries.drain(..surplus);
            kept.dropped += surplus;
        }
    }

    /// How many entries there have been.
    #[must_use]
    pub fn len(&self) -> usize {
        let kept = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        kept.dropped + kept.entries.len()
    }

    /// Whether nothing was asked yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries from the `from`th on that are still kept.
    #[must_use]
    pub fn since(&self, from: usize) -> Vec<Entry> {
        let kept = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entries.iter().skip(from.saturating_sub(kept.dropped)).cloned().collect()
    }

    /// All kept entries of a user that changed something.
    #[must_use]
    pub fn writes_of(&self, user: &str) -> Vec<Entry> {
        self.since(0).into_iter().filter(|entry| entry.user == user && entry.changed()).collect()
    }
}
