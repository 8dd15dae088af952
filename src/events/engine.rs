//! The log over any store: opening, the one way a commit becomes durable, and the readers. Knows neither disk nor encoding.

use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::assemble::{Commit, Position, assemble};
use super::cache::Cache;
use super::erase::{self, Erasure, NotErased, WHY_MAX};
use super::index::Index;
use super::kinds::daemon::{LogBefore, LogRestarted, RestartReason};
use super::kinds::operator::RecordErased;
use super::log::{
    Acknowledged, AppendError, Beginning, EventLog, Found, Gap, LogReader, OpenError, OpenOptions, Opened, ReadError, StoredSize,
};
use super::marks::{CEILING_AHEAD, Ceiling, Mark, Marks};
use super::record::{Draft, Event, Header, Reaction, Record};
use super::recover::{Recovered, recover};
use super::retention::{self, Base, NotRemoved, Removed};
use super::seal::Sealer;
use super::store::Store;
use super::stored::{Payloads, Visit, each_item};
use super::tree::{Tree, TreeHead};
use crate::clock::{Clock, Entropy};
use crate::ids::{LogId, RecordId, Seq, Subject};

/// A log that is written.
pub(super) struct Engine<S: Store> {
    shared: Arc<Shared<S>>,
    position: Position,
    marks: Marks,
    entropy: Entropy,
    sealer: Sealer,
    /// An append failed: nothing is written any more, not even a mark.
    failed: bool,
}

/// What the writer and its readers share.
pub(super) struct Shared<S: Store> {
    pub(super) store: S,
    /// Written by the writer after each commit, and by nobody else.
    state: RwLock<State>,
    mark: Option<Mark>,
}

struct State {
    acknowledged: Acknowledged,
    /// The last key that readers see: what a commit in progress has stored is not acknowledged.
    visible: Seq,
    index: Index,
    removed: Option<Removed>,
}

/// Why an I/O error keeps a log from being opened.
pub(super) fn open_error(error: io::Error) -> OpenError {
    use io::ErrorKind::{InvalidData, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let kind = error.kind();
    if kind == StorageFull || kind == QuotaExceeded {
        OpenError::Full(error)
    } else if kind == ReadOnlyFilesystem || kind == PermissionDenied {
        OpenError::ReadOnly(error)
    } else if kind == InvalidData {
        OpenError::Damaged { seq: Seq::NONE, what: error.to_string() }
    } else {
        OpenError::Io(error)
    }
}

fn append_error(error: io::Error) -> AppendError {
    match error.kind() {
        kind if kind == io::ErrorKind::StorageFull || kind == io::ErrorKind::QuotaExceeded => AppendError::Full(error),
        _ => AppendError::Io(error),
    }
}

/// Opens a log for reading alone: nothing is appended, no mark and no ceiling is written.
pub(super) fn open_for_reading<S: Store>(store: S) -> Result<Arc<Shared<S>>, OpenError> {
    let found = recover(&store).map_err(open_error)?;
    let log = found.log.ok_or(OpenError::Missing)?;
    let acknowledged = Acknowledged { log, head: found.last, tree: found.tree.head() };
    let state = State { acknowledged, visible: Seq(u64::MAX), index: found.index, removed: found.removed };
    Ok(Arc::new(Shared { store, state: RwLock::new(state), mark: found.marks.mark }))
}

impl<S: Store> Engine<S> {
    /// Opens a log for writing; where a log id begins, its first record is appended.
    pub(super) fn open(store: S, clock: &Clock, entropy: Entropy, options: &OpenOptions) -> Result<(Self, Opened), OpenError> {
        let recovered = recover(&store).map_err(open_error)?;
        // First, because what a newer build keeps otherwise can look like damage.
        if let Some(seq) = recovered.newer {
            return Err(OpenError::NeedsVersion { seq, written_by: recovered.written_by });
        }
        if let Some((seq, what)) = recovered.damage {
            return Err(OpenError::Damaged { seq, what });
        }
        // What was read may be in the page cache alone, written by a life that ended before its sync: from here on it is acted on.
        store.sync().map_err(open_error)?;
        clock.raise(recovered.time_us);

        let found = recovered.found();
        let next = match found {
            Found::Fresh => Seq(1),
            Found::Clean => Seq(recovered.last.0 + 1),
            Found::Unclean | Found::LostTail(_) => Seq(recovered.highest_used().0 + 1),
        };
        let begin = options.begin.clone().or_else(|| beginning(&found));
        let (log, tree) = match (&begin, recovered.log) {
            (None, Some(log)) => (log, recovered.tree.clone()),
            _ => (LogId(entropy.bytes()), Tree::default()),
        };
        let before = recovered.log.map(|id| {
            let TreeHead { size, root } = recovered.tree.head();
            LogBefore { id, last: recovered.last, size, root }
        });
        let begin = begin.map(|Beginning { reason, former }| LogRestarted { log, reason, former, before });
        let gap = (next.0 > recovered.last.0 + 1).then_some(Gap { after: recovered.last, before: next });
        let mut engine = Self::over(store, recovered, entropy, Position { log, last: Seq::NONE, next, floor_us: i64::MIN, tree });
        engine.start(begin, clock, options).map_err(|error| match error {
            AppendError::Full(error) | AppendError::Io(error) => open_error(error),
            other @ (AppendError::Refused { .. } | AppendError::Stopped) => OpenError::Io(io::Error::other(other)),
        })?;
        let opened = Opened { log, head: engine.position.last, found, gap };
        Ok((engine, opened))
    }

    fn over(store: S, recovered: Recovered, entropy: Entropy, mut position: Position) -> Self {
        (position.last, position.floor_us) = (recovered.last, recovered.time_us);
        let mut index = recovered.index;
        if recovered.log != Some(position.log) {
            index.begin_log();
        }
        let mark = recovered.marks.mark.clone();
        let acknowledged = Acknowledged { log: position.log, head: position.last, tree: position.tree.head() };
        let state = State { acknowledged, visible: position.last, index, removed: recovered.removed };
        let shared = Arc::new(Shared { store, state: RwLock::new(state), mark });
        Self { shared, position, marks: recovered.marks, entropy, sealer: Sealer::new(S::pack), failed: false }
    }

    /// The ceiling, then the first record of a new log id, then the mark: in this order, so that a crash between two of them
    /// is told from a lost tail (docs/log-format.md, "Opening").
    fn start(&mut self, begin: Option<LogRestarted>, clock: &Clock, options: &OpenOptions) -> Result<(), AppendError> {
        self.raise_ceiling(Seq(self.position.next.0 - 1)).map_err(append_error)?;
        if let Some(event) = begin {
            let drafts = vec![Draft::input(Event::LogRestarted(event))];
            let (subject, time_us) = (options.daemon.clone(), clock.now_us());
            self.append(&[Reaction { subject, time_us, rules: 0, settings: Seq::NONE, drafts }])?;
        }
        self.put_mark(false).and_then(|()| self.put_mark(false)).and_then(|()| self.shared.store.sync_marks()).map_err(append_error)
    }

    fn raise_ceiling(&mut self, above: Seq) -> io::Result<()> {
        let seq = Seq(above.0.saturating_add(CEILING_AHEAD));
        let seq = self.marks.ceiling.map_or(seq, |ceiling| ceiling.seq.max(seq));
        let slot = self.marks.set_ceiling(Ceiling { log: self.position.log, seq });
        self.shared.store.write_mark(&slot)?;
        self.shared.store.sync_marks()
    }

    fn put_mark(&mut self, clean: bool) -> io::Result<()> {
        let Position { log, last, ref tree, .. } = self.position;
        let slot = self.marks.set_mark(Mark { log, last, clean, tree: tree.clone() });
        self.shared.store.write_mark(&slot)
    }

    /// Makes a commit durable and then known.
    fn commit(&mut self, commit: Commit) -> io::Result<Vec<Vec<Header>>> {
        let last = commit.after.last;
        let ceiling = self.marks.ceiling.map_or(Seq::NONE, |ceiling| ceiling.seq);
        if last.0.saturating_add(CEILING_AHEAD / 2) > ceiling.0 {
            self.raise_ceiling(last)?;
        }
        // A block that is rewritten is counted already.
        let blocks = commit.batches.iter().flatten().filter(|(key, _)| *key > self.position.last).count();
        for batch in commit.batches {
            self.shared.store.put(batch)?;
        }
        self.shared.store.sync()?;
        self.position = commit.after;
        self.put_mark(false)?;
        let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        for (subject, added) in commit.added {
            state.index.extend(subject, added);
        }
        state.index.blocks += blocks as u64;
        state.index.bytes += commit.block_bytes as u64;
        state.visible = last;
        (state.acknowledged.head, state.acknowledged.tree) = (last, self.position.tree.head());
        Ok(commit.headers)
    }

    /// Makes the reactions durable and gives their records' places.
    fn place(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Header>>, AppendError> {
        if self.failed {
            return Err(AppendError::Stopped);
        }
        let entropy = self.entropy.clone();
        let commit = assemble(&self.position, &self.shared.state().index, reactions, &mut || entropy.bytes(), &mut self.sealer)?;
        if commit.batches.is_empty() {
            return Ok(commit.headers);
        }
        self.commit(commit).map_err(|error| {
            self.failed = true;
            append_error(error)
        })
    }
}

fn beginning(found: &Found) -> Option<Beginning> {
    match found {
        Found::Fresh => Some(Beginning { reason: RestartReason::NewFolder, former: None }),
        Found::LostTail(former) => Some(Beginning { reason: RestartReason::LostTail, former: Some(former.clone()) }),
        Found::Clean | Found::Unclean => None,
    }
}

impl<S: Store> EventLog for Engine<S> {
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError> {
        let headers = self.place(reactions)?;
        let record = |(header, draft): (Header, &Draft)| Record { header, event: draft.event.clone() };
        let records = |(headers, reaction): (Vec<Header>, &Reaction)| headers.into_iter().zip(&reaction.drafts).map(record).collect();
        Ok(headers.into_iter().zip(reactions).map(records).collect())
    }

    fn append_taking(&mut self, reactions: &mut Vec<Reaction>) -> Result<Vec<Vec<Record>>, AppendError> {
        let headers = self.place(reactions)?;
        let record = |(header, draft): (Header, Draft)| Record { header, event: draft.event };
        let records = |(headers, reaction): (Vec<Header>, Reaction)| headers.into_iter().zip(reaction.drafts).map(record).collect();
        Ok(headers.into_iter().zip(reactions.drain(..)).map(records).collect())
    }

    fn erase(&mut self, erasure: &Erasure) -> Result<Record, NotErased> {
        let (seq, why) = (erasure.seq, erasure.why.clone());
        if why.is_empty() || why.len() > WHY_MAX {
            return Err(NotErased::Why(why.len()));
        }
        if self.failed {
            return Err(AppendError::Stopped.into());
        }
        let mut without = Err(NotErased::NoSuchRecord(seq));
        let visit = &mut |key: Seq, bytes: &[u8]| {
            without = erase::without(bytes, seq).map(|(log, block)| (log, key, block));
            ControlFlow::Break(())
        };
        self.shared.store.visit(seq, visit).map_err(NotErased::Read)?;
        let (log, key, block) = without?;
        let erased = Event::RecordErased(RecordErased { record: RecordId { log, seq }, who: erasure.who.clone(), why });
        let (subject, time_us) = (erasure.daemon.clone(), erasure.time_us);
        let drafts = vec![Draft::input(erased.clone())];
        let reaction = Reaction { subject, time_us, rules: 0, settings: Seq::NONE, drafts };
        let entropy = self.entropy.clone();
        let mut commit = assemble(&self.position, &self.shared.state().index, &[reaction], &mut || entropy.bytes(), &mut self.sealer)?;
        // With the record of it, all or nothing.
        if let Some(batch) = commit.batches.last_mut() {
            batch.push((key, S::pack(block)));
        }
        let headers = self.commit(commit).map_err(|error| {
            self.failed = true;
            append_error(error)
        })?;
        let header = headers.into_iter().flatten().next().expect("the reaction has one event");
        Ok(Record { header, event: erased })
    }

    fn remove(&mut self, upto: Seq) -> Result<Option<Removed>, NotRemoved> {
        if self.failed {
            return Err(AppendError::Stopped.into());
        }
        let Some(planned) = retention::plan(&self.shared.store, upto)? else { return Ok(None) };
        let (blocks, subjects) = (planned.removal.blocks.len(), planned.subjects);
        self.shared.store.remove(planned.removal).and_then(|()| self.shared.store.sync()).map_err(|error| {
            self.failed = true;
            append_error(error)
        })?;
        let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        state.index.remove(subjects.keys(), planned.removed.kept);
        state.index.blocks -= blocks as u64;
        state.index.bytes -= planned.bytes;
        state.index.records -= planned.records;
        state.removed = Some(planned.removed);
        Ok(state.removed)
    }

    fn reader(&self) -> Arc<dyn LogReader> {
        self.shared.clone()
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other(AppendError::Stopped));
        }
        self.shared.store.sync()?;
        self.put_mark(true)?;
        self.shared.store.sync_marks()
    }
}

impl<S: Store> Shared<S> {
    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> LogReader for Shared<S> {
    fn acknowledged(&self) -> Acknowledged {
        self.state().acknowledged
    }

    fn mark(&self) -> Option<Mark> {
        self.mark.clone()
    }

    fn blocks(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> Result<(), ReadError> {
        let visible = self.state().visible;
        self.store.visit(from, &mut |key, bytes| if key <= visible { visit(key, bytes) } else { ControlFlow::Break(()) })?;
        Ok(())
    }

    fn subject(&self, subject: &Subject, from: Seq, visit: &mut Visit<'_>) -> Result<(), ReadError> {
        let keys = self.state().index.blocks_of(subject, from);
        let text = subject.to_string();
        let mut ended = ControlFlow::Continue(());
        for key in keys {
            self.store.visit(key, &mut |found, bytes| {
                // One that aged out meanwhile is not there: another one is in its place.
                if found == key {
                    ended = each_item(found, bytes, from, Some(&text), Payloads::All, visit);
                }
                ControlFlow::Break(())
            })?;
            if ended.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn subjects(&self) -> Vec<Subject> {
        self.state().index.subjects()
    }

    fn is_part(&self) -> bool {
        self.store.is_part()
    }

    fn cache(&self) -> Option<&dyn Cache> {
        self.store.cache()
    }

    fn stored(&self) -> StoredSize {
        let size = self.store.size().unwrap_or_default();
        let state = self.state();
        StoredSize { blocks: state.index.blocks, block_bytes: state.index.bytes, records: state.index.records, ..size }
    }

    fn removed(&self) -> Option<Removed> {
        self.state().removed
    }

    fn base(&self) -> Option<Base> {
        self.store.base()
    }

    fn removed_blocks(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> Result<(), ReadError> {
        Ok(self.store.visit_removed(from, visit)?)
    }

    fn removed_numbers(&self, visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>) -> Result<(), ReadError> {
        Ok(self.store.visit_numbers(visit)?)
    }

    fn cut_subjects(&self) -> Vec<Subject> {
        self.state().index.cut_subjects()
    }

    fn subjects_before(&self, kept: Seq) -> Vec<Subject> {
        self.state().index.subjects_before(kept)
    }
}
