//! A log that remembers how long each of its commits took. Changes nothing of what it wraps.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock;
use crate::events::log::{AppendError, EventLog, LogReader};
use crate::events::record::{Reaction, Record};

/// How long commits took, microseconds, in order; cheap to clone, all clones are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Commits(Arc<Mutex<Vec<u64>>>);

impl Commits {
    /// Takes what was noted so far.
    pub(super) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The log.
pub(super) struct TimedLog {
    log: Box<dyn EventLog>,
    commits: Commits,
}

impl TimedLog {
    pub(super) fn new(log: impl EventLog + 'static, commits: Commits) -> Self {
        Self { log: Box::new(log), commits }
    }
}

impl EventLog for TimedLog {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        let begun = clock::now();
        let appended = self.log.append(reactions);
        let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.commits.0.lock().unwrap_or_else(PoisonError::into_inner).push(took_us);
        appended
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.log.reader()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.log.close()
    }
}
