//! A log that remembers how long each of its commits took. Changes nothing of what it wraps.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::{self, Clock};
use crate::events::erase::{Erasure, NotErased};
use crate::events::log::{AppendError, EventLog, LogReader};
use crate::events::record::{Reaction, Record};
use crate::events::retention::{NotRemoved, Removed};
use crate::ids::Seq;

/// One group commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Commit {
    /// Its last record.
    pub(super) last: Seq,
    /// When it was durable, log time.
    pub(super) at_us: i64,
    /// How long it took, microseconds.
    pub(super) took_us: u64,
}

/// The commits so far, in order; cheap to clone, all clones are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Commits(Arc<Mutex<Vec<Commit>>>);

impl Commits {
    /// Takes what was noted so far.
    pub(super) fn take(&self) -> Vec<Commit> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

type Appended = Result<Vec<Vec<Record>>, AppendError>;

/// The log.
pub(super) struct TimedLog {
    log: Box<dyn EventLog>,
    clock: Clock,
    commits: Commits,
}

impl TimedLog {
    pub(super) fn new(log: impl EventLog + 'static, clock: Clock, commits: Commits) -> Self {
        Self { log: Box::new(log), clock, commits }
    }

    fn timed(&mut self, append: impl FnOnce(&mut dyn EventLog) -> Appended) -> Appended {
        let begun = clock::now();
        let appended = append(&mut *self.log);
        let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        if let Some(last) = appended.iter().flatten().flatten().last() {
            let commit = Commit { last: last.header.seq, at_us: self.clock.now_us(), took_us };
            self.commits.0.lock().unwrap_or_else(PoisonError::into_inner).push(commit);
        }
        appended
    }
}

impl EventLog for TimedLog {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        self.timed(|log| log.append(reactions))
    }

    fn append_taking(&mut self, reactions: &mut Vec<Reaction>) -> Result<Vec<Vec<Record>>, AppendError> {
        self.timed(|log| log.append_taking(reactions))
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<Record, NotErased> {
        self.log.erase(erasure)
    }

    fn remove(&mut self, upto: Seq) -> Result<Option<Removed>, NotRemoved> {
        self.log.remove(upto)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.log.reader()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        self.log.close()
    }
}
