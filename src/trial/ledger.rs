//! The log of one life: the log in memory, whose every commit is noted when it is durable and may be the last thing that happens.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::history::{Happening, History};
use super::line::{At, Line};
use crate::clock::Clock;
use crate::clock::Entropy;
use crate::events::erase::{Erasure, NotErased};
use crate::events::log::{AppendError, EventLog, LogReader, OpenError, OpenOptions};
use crate::events::mem_log::{MemDisk, MemFault, MemLog};
use crate::events::record::{Reaction, Record};
use crate::events::retention::{NotRemoved, Removed};
use crate::events::stored::Body;
use crate::ids::{LogId, Seq};

/// The log of one life.
pub(super) struct Ledger {
    log: MemLog,
    id: LogId,
    disk: MemDisk,
    line: Arc<Line>,
    history: History,
    clock: Clock,
}

/// What its opening found.
pub(super) struct Found {
    /// The log id.
    pub(super) log: LogId,
    /// The last record.
    pub(super) head: Seq,
}

impl Ledger {
    /// Opens it; what became durable and was not noted, is. `noted`: the last record that was; `clock` is the world's.
    pub(super) fn open(
        disk: &MemDisk,
        (life_clock, entropy): (&Clock, Entropy),
        options: &OpenOptions,
        line: &Arc<Line>,
        (history, clock): (&History, &Clock),
        noted: Seq,
    ) -> Result<(Self, Found), OpenError> {
        let (log, opened) = MemLog::open(disk, life_clock, entropy, options)?;
        let mut records = Vec::new();
        let read = log.reader().scan(Seq(noted.0 + 1), &mut |item| {
            if let Ok(stored) = item
                && let Body::Known(event) = stored.body
            {
                records.push(Record { header: stored.header, event });
            }
            ControlFlow::Continue(())
        });
        read.map_err(|error| OpenError::Io(error.0))?;
        if !records.is_empty() {
            history.note(clock.now_us(), Happening::Durable { log: opened.log, records });
        }
        let (line, history, clock) = (Arc::clone(line), history.clone(), clock.clone());
        Ok((Self { log, id: opened.log, disk: disk.clone(), line, history, clock }, Found { log: opened.log, head: opened.head }))
    }
}

impl EventLog for Ledger {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        if self.line.is_cut() {
            return Err(AppendError::Stopped);
        }
        if self.line.pass(At::Unsynced) {
            // Written, and never synced: what a crash leaves of it, the disk decides.
            self.disk.fail(MemFault::Sync);
        }
        let before = self.log.reader().head();
        let appended = self.log.append(reactions).inspect_err(|_| {
            let events: u64 = reactions.iter().map(|reaction| reaction.drafts.len() as u64).sum();
            self.history.note(self.clock.now_us(), Happening::Attempted { log: self.id, last: Seq(before.0 + events) });
        })?;
        let records = appended.iter().flatten().cloned().collect();
        self.history.note(self.clock.now_us(), Happening::Durable { log: self.id, records });
        self.line.pass(At::Durable);
        Ok(appended)
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
        Box::new(self.log).close()
    }
}
