//! What a store holds when it is opened: a walk over every header, the tree from the newest mark on, and what both say about
//! how the last life ended. Changes nothing.

use std::io;
use std::ops::ControlFlow;

use super::block::{Block, BlockError};
use super::codec;
use super::frame::{Frame, FrameBody, FrameError};
use super::index::Index;
use super::kinds::daemon::FormerLog;
use super::log::Found;
use super::marks::{CEILING_AHEAD, Mark, Marks, SEQ_END, TIME_END_US};
use super::record::{Event, Kind};
use super::removed::{Numbers, RemovedBlock};
use super::retention::Removed;
use super::store::Store;
use super::stored::Fault;
use super::tree::{EMPTY_ROOT, Tree, TreeHead};
use crate::ids::{LogId, Seq, Subject};

/// What was found.
pub(super) struct Recovered {
    pub(super) marks: Marks,
    pub(super) index: Index,
    /// The log id of the last block; `None` for an empty store.
    pub(super) log: Option<LogId>,
    pub(super) last: Seq,
    pub(super) time_us: i64,
    /// The tree of that log id; as far as it is sound, when there is damage.
    pub(super) tree: Tree,
    /// The first thing that is wrong.
    pub(super) damage: Option<(Seq, String)>,
    /// The first record that decides and that this build does not know; [`Seq::NONE`] when it is no record.
    pub(super) newer: Option<Seq>,
    /// The daemon's version by the last `IncarnationStarted`.
    pub(super) written_by: Option<String>,
    /// Where it begins, when its beginning aged out.
    pub(super) removed: Option<Removed>,
}

/// Walks the store.
///
/// # Errors
/// When the store or the marks file cannot be read.
pub(super) fn recover(store: &dyn Store) -> io::Result<Recovered> {
    let marks = Marks::read(&store.read_marks()?);
    let mut walk = Walk {
        mark: marks.mark.as_ref().map(|mark| (mark.log, mark.tree.head())),
        index: Index::default(),
        log: None,
        log_first: Seq::NONE,
        size: 0,
        last: Seq::NONE,
        time_us: i64::MIN,
        last_following: 0,
        tree_from: None,
        damage: None,
        newer: None,
        written_by: None,
        removed: None,
    };
    walk.begin_behind_removed(store)?;
    store.visit(Seq::NONE, &mut |key, bytes| {
        walk.block(key, bytes);
        ControlFlow::Continue(())
    })?;
    if walk.newer.is_none() && (marks.newer || store.needs_newer()?) {
        walk.newer = Some(Seq::NONE);
    }
    if walk.last_following > 0 {
        walk.damaged(walk.last, "the last reaction is not whole");
    }
    let mut recovered = Recovered {
        index: walk.index,
        log: walk.log,
        last: walk.last,
        time_us: walk.time_us,
        tree: Tree::default(),
        damage: walk.damage,
        newer: walk.newer,
        written_by: walk.written_by,
        removed: walk.removed.filter(|removed| removed.kept > removed.to),
        marks,
    };
    // From the mark on, or, when the store has no block that begins at it and does not end there, from the first leaf.
    let mark = recovered.marks.mark.as_ref();
    let at_tail = mark.filter(|mark| Some(mark.log) == recovered.log && mark.tree.size() == walk.size);
    let from = match (walk.tree_from, at_tail) {
        (_, Some(mark)) => {
            recovered.tree = mark.tree.clone();
            None
        }
        (Some(key), None) => {
            recovered.tree = mark.map(|mark| mark.tree.clone()).unwrap_or_default();
            Some(key)
        }
        (None, None) => recovered.log.map(|_| walk.log_first),
    };
    if let Some(from) = from {
        if recovered.tree.size() == 0 {
            recovered.tree = tree_of_removed(store, recovered.log)?;
        }
        grow(store, from, &mut recovered)?;
    }
    Ok(recovered)
}

/// The tree of what aged out of that log.
fn tree_of_removed(store: &dyn Store, log: Option<LogId>) -> io::Result<Tree> {
    let mut tree = Tree::default();
    store.visit_removed(Seq::NONE, &mut |_, bytes| {
        // One that does not read shows as a root that is another.
        if let Some(block) = RemovedBlock::read(bytes)
            && Some(block.head.log) == log
        {
            block.leaves.into_iter().for_each(|leaf| tree.push(leaf));
        }
        ControlFlow::Continue(())
    })?;
    Ok(tree)
}

/// Adds the leaves of every block from `from` on, and compares each block's tree with ours.
fn grow(store: &dyn Store, from: Seq, recovered: &mut Recovered) -> io::Result<()> {
    let mut tree = std::mem::take(&mut recovered.tree);
    let mut wrong = None;
    store.visit(from, &mut |key, bytes| {
        let Ok(block) = Block::read(bytes) else { return ControlFlow::Break(()) };
        if block.head.before != tree.head() {
            wrong = Some((key, "the tree before the block is another than its records give".to_owned()));
            return ControlFlow::Break(());
        }
        for (_, frame) in block.records() {
            let Ok(frame) = frame else { return ControlFlow::Break(()) };
            tree.push(frame.leaf());
        }
        ControlFlow::Continue(())
    })?;
    recovered.tree = tree;
    recovered.damage = recovered.damage.take().or(wrong);
    Ok(())
}

struct Walk {
    mark: Option<(LogId, TreeHead)>,
    index: Index,
    log: Option<LogId>,
    /// The first block of the current log id.
    log_first: Seq,
    /// Records of the current log id.
    size: u64,
    last: Seq,
    time_us: i64,
    last_following: u16,
    /// The block that begins where the mark ends.
    tree_from: Option<Seq>,
    damage: Option<(Seq, String)>,
    newer: Option<Seq>,
    written_by: Option<String>,
    removed: Option<Removed>,
}

impl Walk {
    /// Stands behind the last block that aged out, and knows where the numbers of each subject stand.
    fn begin_behind_removed(&mut self, store: &dyn Store) -> io::Result<()> {
        let mut last = None;
        store.visit_removed(Seq(u64::MAX), &mut |key, bytes| {
            last = Some((key, RemovedBlock::read(bytes)));
            ControlFlow::Break(())
        })?;
        match (store.base(), last) {
            (Some(base), _) => (self.log, self.last, self.size) = (Some(base.log), base.last, base.tree.size()),
            (None, Some((_, Some(last)))) => {
                (self.log, self.last) = (Some(last.head.log), last.last());
                self.size = last.head.before.size.saturating_add(last.leaves.len() as u64);
            }
            (None, Some((key, None))) => {
                self.damaged(key, "what stays of the block does not read");
                return Ok(());
            }
            (None, None) => return Ok(()),
        }
        self.removed = Some(Removed { to: self.last, kept: Seq::NONE });
        store.visit_numbers(&mut |subject, bytes| {
            match Numbers::read(bytes) {
                Some(numbers) => {
                    let last_seq = if Some(numbers.log) == self.log { numbers.last } else { 0 };
                    self.index.cut(subject, (last_seq, numbers.time_us));
                    self.time_us = self.time_us.max(numbers.time_us);
                }
                None => self.damaged(self.last, format_args!("the numbers of {} do not read", crate::ids::shown(subject, 80))),
            }
            ControlFlow::Continue(())
        })
    }

    fn damaged(&mut self, seq: Seq, what: impl ToString) {
        if self.damage.is_none() {
            self.damage = Some((seq, what.to_string()));
        }
    }

    fn block(&mut self, key: Seq, bytes: &[u8]) {
        let block = match Block::read(bytes) {
            Ok(block) => block,
            Err(BlockError::Newer(_)) => {
                self.newer = self.newer.or(Some(key));
                return;
            }
            Err(error) => return self.damaged(key, error),
        };
        let head = block.head;
        if let Some(removed) = self.removed.as_mut().filter(|removed| removed.kept == Seq::NONE) {
            (removed.kept, self.log_first) = (key, key);
        }
        if self.log != Some(head.log) {
            (self.log, self.log_first, self.size) = (Some(head.log), key, 0);
            self.index.begin_log();
            if head.before != (TreeHead { size: 0, root: EMPTY_ROOT }) {
                self.damaged(key, "a log begins in the middle");
            }
        }
        if head.first != key || head.previous != self.last || head.first <= self.last || block.last().0 >= SEQ_END {
            self.damaged(key, format!("the block does not follow record {}", self.last));
        }
        if head.before.size != self.size {
            self.damaged(key, format!("{} records before the block, not {}", self.size, head.before.size));
        }
        if let Some((_, mark)) = self.mark.filter(|(log, mark)| *log == head.log && mark.size == head.before.size) {
            self.tree_from = Some(key);
            if mark.root != head.before.root {
                self.damaged(key, "the mark has another root");
            }
        }
        self.index.blocks += 1;
        self.index.bytes += bytes.len() as u64;
        self.size = head.before.size;
        for (seq, frame) in block.records() {
            self.size = self.size.saturating_add(1);
            self.last = seq;
            match frame {
                Ok(frame) => self.record(key, seq, &frame),
                Err(FrameError::Newer { .. }) => self.newer = self.newer.or(Some(seq)),
                Err(error) => self.damaged(seq, error),
            }
        }
    }

    fn record(&mut self, block: Seq, seq: Seq, frame: &Frame<'_>) {
        let (last, time_us) = self.index.add(frame.subject, (frame.subject_seq(), frame.time_us()), block);
        if frame.seq() != seq {
            self.damaged(seq, Fault::Misplaced(frame.seq()));
        } else if frame.subject_seq() != last.saturating_add(1) {
            self.damaged(seq, format_args!("it is number {} of its subject, after {last}", frame.subject_seq()));
        } else if frame.time_us() < time_us {
            self.damaged(seq, "its time is before the last record of its subject");
        } else if frame.time_us().unsigned_abs() >= TIME_END_US {
            self.damaged(seq, "no clock shows its time");
        } else if frame.decides() && matches!(frame.body, FrameBody::Withheld(_)) {
            self.damaged(seq, "it decides, and what it says was taken out");
        }
        self.time_us = self.time_us.max(frame.time_us());
        self.last_following = frame.following();
        let kind = Kind::from_number(frame.kind());
        let known = kind.is_some_and(|kind| frame.kind_version() <= kind.version()) && frame.codec() == codec::BINCODE_2_STANDARD;
        if (frame.decides() && !known) || Subject::parse(frame.subject).is_err() {
            self.newer = self.newer.or(Some(seq));
        }
        if let (Some(Kind::IncarnationStarted), FrameBody::Whole { payload, .. }) = (kind, frame.body)
            && let Ok(Event::IncarnationStarted(started)) = codec::decode(Kind::IncarnationStarted, frame.kind_version(), payload)
        {
            self.written_by = Some(started.version);
        }
    }
}

impl Recovered {
    /// How the last life ended.
    pub(super) fn found(&self) -> Found {
        let size = self.tree.size();
        match (self.log, &self.marks.mark) {
            (None, None) => Found::Fresh,
            (None, Some(mark)) => {
                Found::LostTail(FormerLog { id: mark.log, last: Seq::NONE, acknowledged: mark.last, size: 0, root: EMPTY_ROOT })
            }
            (Some(log), Some(mark)) if mark.log == log && mark.last <= self.last => {
                if mark.clean && mark.last == self.last {
                    Found::Clean
                } else {
                    Found::Unclean
                }
            }
            // A life ended between the first record of this log id and its first mark: nothing was acknowledged after it.
            (Some(log), mark)
                if size == 1
                    && mark.as_ref().is_none_or(|mark| mark.log != log)
                    && self.marks.ceiling.is_some_and(|ceiling| ceiling.log == log) =>
            {
                Found::Unclean
            }
            (Some(log), mark) => Found::LostTail(self.former(log, mark.as_ref())),
        }
    }

    fn former(&self, log: LogId, mark: Option<&Mark>) -> FormerLog {
        let acknowledged = mark.map_or(self.last, |mark| mark.last);
        match mark {
            Some(mark) if mark.log != log => FormerLog { id: mark.log, last: Seq::NONE, acknowledged, size: 0, root: EMPTY_ROOT },
            _ => FormerLog { id: log, last: self.last, acknowledged, size: self.tree.size(), root: self.tree.root() },
        }
    }

    /// The highest number that may have been given to anybody. Without a readable ceiling, twice as far as one could have
    /// been above what is known.
    pub(super) fn highest_used(&self) -> Seq {
        let known = self.marks.mark.as_ref().map_or(self.last, |mark| mark.last.max(self.last));
        match self.marks.ceiling {
            Some(ceiling) => ceiling.seq.max(known),
            None if known == Seq::NONE => Seq::NONE,
            None => Seq(known.0.saturating_add(2 * CEILING_AHEAD)),
        }
    }
}
