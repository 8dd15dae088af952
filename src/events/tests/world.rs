//! Where a log under test lives: a folder or a memory disk, opened again and again, and what is read back from it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::clock::{Clock, Entropy};
use crate::events::check::{Report, check};
use crate::events::log::{EventLog, LogReader, OpenError, OpenOptions, Opened};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Reaction, Record};
use crate::events::sled_log::SledLog;
use crate::events::stored::{Body, Item, StoredRecord};
use crate::ids::{LogId, Seq, Subject};

pub(super) const START_US: i64 = 1_700_000_000_000_000;

/// A place for a log.
pub(super) trait World {
    fn try_open(&self, options: &OpenOptions) -> Result<(Box<dyn EventLog>, Opened), OpenError>;

    fn read(&self) -> Result<Arc<dyn LogReader>, OpenError>;

    fn open(&self) -> (Box<dyn EventLog>, Opened) {
        self.try_open(&options()).expect("the log opens")
    }
}

pub(super) struct OnDisk(tempfile::TempDir);

impl OnDisk {
    pub(super) fn new() -> Self {
        // In memory where that is possible: what a real sync is worth is tested by tests/it/power_cut.
        let memory = std::path::Path::new("/dev/shm");
        let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self(made.expect("a temporary folder"))
    }

    pub(super) fn path(&self) -> std::path::PathBuf {
        self.0.path().join("data/log")
    }
}

impl World for OnDisk {
    fn try_open(&self, options: &OpenOptions) -> Result<(Box<dyn EventLog>, Opened), OpenError> {
        let (log, opened) = SledLog::open(&self.path(), &Clock::simulated(START_US), Entropy::os(), options)?;
        Ok((Box::new(log), opened))
    }

    fn read(&self) -> Result<Arc<dyn LogReader>, OpenError> {
        SledLog::open_for_reading(&self.path())
    }
}

pub(super) struct InMemory(pub(super) MemDisk);

impl InMemory {
    pub(super) fn new() -> Self {
        Self(MemDisk::new())
    }
}

impl World for InMemory {
    fn try_open(&self, options: &OpenOptions) -> Result<(Box<dyn EventLog>, Opened), OpenError> {
        let (log, opened) = MemLog::open(&self.0, &Clock::simulated(START_US), Entropy::os(), options)?;
        Ok((Box::new(log), opened))
    }

    fn read(&self) -> Result<Arc<dyn LogReader>, OpenError> {
        MemLog::open_for_reading(&self.0)
    }
}

pub(super) fn options() -> OpenOptions {
    OpenOptions::new(Subject::daemon("world").expect("a name"))
}

pub(super) fn app(name: &str) -> Subject {
    Subject::parse(&format!("app/acme/{name}")).expect("a subject")
}

pub(super) fn reaction(subject: &Subject, events: Vec<Event>) -> Reaction {
    let drafts = events.into_iter().map(Draft::input).collect();
    Reaction { subject: subject.clone(), time_us: START_US + 10, rules: 1, settings: Seq(1), drafts }
}

/// Every item from `from` on.
pub(super) fn items(reader: &dyn LogReader, from: Seq) -> Vec<Item> {
    let mut items = Vec::new();
    let push = &mut |item| {
        items.push(item);
        ControlFlow::Continue(())
    };
    reader.scan(from, push).expect("the store answers");
    items
}

/// Every record; none may be damaged.
pub(super) fn stored(reader: &dyn LogReader) -> Vec<StoredRecord> {
    items(reader, Seq::NONE).into_iter().map(|item| item.expect("sound")).collect()
}

/// The leaves of one log, or of all.
pub(super) fn leaves_of(reader: &dyn LogReader, log: Option<LogId>) -> Vec<[u8; 32]> {
    let mut leaves = Vec::new();
    let read = reader.leaves(Seq::NONE, &mut |of, leaf| {
        leaves.extend(log.is_none_or(|log| log == of).then_some(leaf));
        ControlFlow::Continue(())
    });
    read.expect("it can be read");
    leaves
}

/// As what was appended is known to the writer.
pub(super) fn records(stored: &[StoredRecord]) -> Vec<Record> {
    let record = |record: &StoredRecord| match &record.body {
        Body::Known(event) => Record { header: record.header.clone(), event: event.clone() },
        other @ (Body::Opaque(_) | Body::NeedsVersion(_) | Body::Withheld) => panic!("not an event: {other:?}"),
    };
    stored.iter().map(record).collect()
}

/// The report of a log without a difference.
pub(super) fn sound(reader: &dyn LogReader) -> Report {
    let report = check(reader).expect("the store answers");
    assert_eq!(report.difference, None, "{report:?}");
    report
}
