//! Whether a log is what it says: every checksum, number, time and root, block by block, and the mark. Knows no meaning; that
//! planning again gives the same decisions is checked elsewhere.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::block::{Block, BlockHead};
use super::codec::{self, BINCODE_2_STANDARD, CodecError};
use super::frame::{Frame, FrameBody};
use super::kinds::daemon::{LogBefore, LogRestarted};
use super::log::{Acknowledged, Gap, LogReader, ReadError};
use super::marks::{Mark, SEQ_END, TIME_END_US};
use super::record::{Event, Kind};
use super::removed::{Numbers, RemovedBlock};
use super::retention::Removed;
use super::tree::{EMPTY_ROOT, Tree, TreeHead};
use crate::ids::{LogId, Seq};

/// One log id in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    /// Which.
    pub log: LogId,
    /// Its first record.
    pub first: Seq,
    /// Its last record.
    pub last: Seq,
    /// Its tree, recomputed.
    pub tree: TreeHead,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Blocks that were read.
    pub blocks: u64,
    /// Records that were read.
    pub records: u64,
    /// Records whose payload was erased or left out.
    pub withheld: u64,
    /// Where it begins, when its beginning aged out: of that the leaves alone are there.
    pub removed: Option<Removed>,
    /// Records that aged out.
    pub aged_out: u64,
    /// The log ids, in order.
    pub logs: Vec<LogPart>,
    /// The named gaps, in order.
    pub gaps: Vec<Gap>,
    /// How far the mark says that the log was acknowledged, when there is one: without it a missing end is not seen.
    pub marked: Option<Seq>,
    /// The first thing that is not as it says; the check ends there.
    pub difference: Option<Difference>,
}

/// Something that is not as it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {seq}: {what}")]
pub struct Difference {
    /// The record, or the block's first.
    pub seq: Seq,
    /// What, in words.
    pub what: String,
}

/// Checks the whole log, up to its first difference.
///
/// # Errors
/// When the store does not answer.
pub fn check(reader: &dyn LogReader) -> Result<Report, ReadError> {
    let mark = reader.mark();
    let mut state = Check {
        report: Report { marked: mark.as_ref().map(|mark| mark.last), removed: reader.removed(), ..Report::default() },
        tree: Tree::default(),
        last: None,
        subjects: BTreeMap::new(),
        mark,
        restarted: Vec::new(),
        // Taken now, and compared where the records reach it: a log that is being written goes on meanwhile.
        claim: Some(reader.acknowledged()),
    };
    let mut difference = state.aged_out(reader)?.err();
    if difference.is_some() {
        return Ok(Report { difference, ..state.report });
    }
    reader.blocks(Seq::NONE, &mut |key, bytes| match state.block(key, bytes) {
        Ok(()) => ControlFlow::Continue(()),
        Err(found) => {
            difference = Some(found);
            ControlFlow::Break(())
        }
    })?;
    let difference = difference.or_else(|| state.end().err());
    Ok(Report { difference, ..state.report })
}

/// What the following record must continue.
#[derive(Clone)]
struct Last {
    seq: Seq,
    reaction: Seq,
    following: u16,
    /// The header's bytes that all records of a reaction share: rules, reaction, settings; and the subject.
    shared: Vec<u8>,
}

struct Check {
    report: Report,
    tree: Tree,
    last: Option<Last>,
    /// Of each its last subject seq in this log, and its last time in the store.
    subjects: BTreeMap<String, (u64, i64)>,
    /// How each log began, as far as this build can read it.
    restarted: Vec<LogRestarted>,
    /// Taken when it was compared.
    mark: Option<Mark>,
    /// The reader's own tree; taken when it was compared.
    claim: Option<Acknowledged>,
}

fn differs<T>(seq: Seq, what: impl Into<String>) -> Result<T, Difference> {
    Err(Difference { seq, what: what.into() })
}

impl Check {
    /// What aged out: its chain and its tree, by the leaves that stay.
    fn aged_out(&mut self, reader: &dyn LogReader) -> Result<Result<(), Difference>, ReadError> {
        if let Some(base) = reader.base() {
            // Believed, because nobody has what is before it; the next segment, or a checkpoint, says whether it is so.
            let part = LogPart { log: base.log, first: Seq(base.last.0 + 1), last: base.last, tree: base.tree.head() };
            self.report.logs.push(part);
            self.last = Some(Last { seq: base.last, reaction: base.last, following: 0, shared: Vec::new() });
            self.tree = base.tree;
        }
        let mut found = Ok(());
        let stop = |found: &Result<(), Difference>| if found.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        reader.removed_blocks(Seq::NONE, &mut |key, bytes| {
            found = self.removed_block(key, bytes);
            stop(&found)
        })?;
        let log = self.report.logs.last().map(|part| part.log);
        if found.is_ok() {
            reader.removed_numbers(&mut |subject, bytes| {
                match Numbers::read(bytes) {
                    Some(numbers) => {
                        let count = if Some(numbers.log) == log { numbers.last } else { 0 };
                        self.subjects.insert(subject.to_owned(), (count, numbers.time_us));
                    }
                    None => found = differs(self.seq(), format!("the numbers of {} do not read", crate::ids::shown(subject, 80))),
                }
                stop(&found)
            })?;
        }
        Ok(found)
    }

    fn removed_block(&mut self, key: Seq, bytes: &[u8]) -> Result<(), Difference> {
        let Some(block) = RemovedBlock::read(bytes) else { return differs(key, "what stays of the block does not read") };
        self.follows(key, block.head, None)?;
        block.leaves.iter().for_each(|leaf| self.tree.push(*leaf));
        self.report.aged_out += block.leaves.len() as u64;
        self.last = Some(Last { seq: block.last(), reaction: block.last(), following: 0, shared: Vec::new() });
        self.passed(block.head.log, block.last())
    }

    fn block(&mut self, key: Seq, bytes: &[u8]) -> Result<(), Difference> {
        let block = Block::read(bytes).or_else(|error| differs(key, error.to_string()))?;
        self.follows(key, block.head, Some(&block))?;
        if block.last().0 >= SEQ_END {
            return differs(key, "no log comes this far");
        }
        self.report.blocks += 1;
        for (seq, frame) in block.records() {
            self.record(seq, &frame.or_else(|error| differs(seq, error.to_string()))?)?;
        }
        self.passed(block.head.log, block.last())
    }

    fn passed(&mut self, log: LogId, last: Seq) -> Result<(), Difference> {
        let tree = self.tree.head();
        if let Some(part) = self.report.logs.last_mut() {
            (part.last, part.tree) = (last, tree);
        }
        self.compare(log)
    }

    /// Whether a block, or what stays of it, follows what came before.
    fn follows(&mut self, key: Seq, head: BlockHead, block: Option<&Block<'_>>) -> Result<(), Difference> {
        let previous = self.seq();
        if head.first != key {
            return differs(key, format!("its block says that it begins at {}", head.first));
        }
        if head.previous != previous || head.first <= previous {
            return differs(key, format!("its block says that it follows {}, not {previous}", head.previous));
        }
        if self.report.logs.last().is_none_or(|part| part.log != head.log) {
            if self.report.logs.iter().any(|part| part.log == head.log) {
                return differs(key, "its log id came before");
            }
            if self.last.as_ref().is_some_and(|last| last.following > 0) {
                return differs(key, "another log begins within a reaction");
            }
            if let Some(block) = block {
                self.begins(key, block)?;
            }
            self.tree = Tree::default();
            self.subjects.values_mut().for_each(|(count, _)| *count = 0);
            let tree = TreeHead { size: 0, root: EMPTY_ROOT };
            self.report.logs.push(LogPart { log: head.log, first: key, last: key, tree });
        }
        if head.before != self.tree.head() {
            return differs(key, format!("its block says that {} records with another root come before it", head.before.size));
        }
        if head.first.0 - previous.0 > 1 {
            self.report.gaps.push(Gap { after: previous, before: head.first });
        }
        Ok(())
    }

    /// A log begins with what names it and, by tree, all that is before it in the store.
    fn begins(&mut self, key: Seq, block: &Block<'_>) -> Result<(), Difference> {
        let first = block.records().next().and_then(|(_, frame)| frame.ok());
        let Some(Frame { body: FrameBody::Whole { payload, .. }, .. }) = first else {
            return differs(key, "what the log began with cannot be read");
        };
        let began = first.filter(|first| first.kind() == Kind::LogRestarted.number() && first.codec() == BINCODE_2_STANDARD);
        match began.map(|first| codec::decode(Kind::LogRestarted, first.kind_version(), payload)) {
            Some(Ok(Event::LogRestarted(began))) => {
                let before = self.report.logs.last();
                let before = before.map(|part| LogBefore { id: part.log, last: part.last, size: part.tree.size, root: part.tree.root });
                if began.log != block.head.log || began.before != before {
                    return differs(key, "the log says that it is another, or that another is before it");
                }
                self.restarted.push(began);
                Ok(())
            }
            Some(Err(CodecError::NewerVersion { .. })) => Ok(()),
            Some(Ok(_) | Err(_)) | None => differs(key, "the log does not begin with LogRestarted"),
        }
    }

    fn record(&mut self, seq: Seq, frame: &Frame<'_>) -> Result<(), Difference> {
        if frame.seq() != seq {
            return differs(seq, format!("it says that it is {}", frame.seq()));
        }
        let (count, time_us) = match self.subjects.get_mut(frame.subject) {
            Some(last) => last,
            None => self.subjects.entry(frame.subject.to_owned()).or_insert((0, i64::MIN)),
        };
        *count += 1;
        if frame.subject_seq() != *count {
            return differs(seq, format!("it says that it is number {} of its subject, not {count}", frame.subject_seq()));
        }
        if frame.time_us() < std::mem::replace(time_us, frame.time_us()) {
            return differs(seq, "its time is before the last record of its subject");
        }
        if frame.time_us().unsigned_abs() >= TIME_END_US {
            return differs(seq, "no clock shows its time");
        }
        if frame.cause() >= seq || frame.settings() >= seq {
            return differs(seq, "it names a later record, or itself, as its cause or its settings");
        }
        if frame.decides() && matches!(frame.body, FrameBody::Withheld(_)) {
            return differs(seq, "it decides, and what it says was taken out");
        }
        let alone = frame.following() == 0 && self.last.as_ref().is_none_or(|last| last.following == 0);
        let now = Last {
            seq,
            reaction: frame.reaction(),
            following: frame.following(),
            shared: if alone { Vec::new() } else { [&frame.header[6..10], &frame.header[32..48], &frame.header[56..]].concat() },
        };
        match self.last.as_ref().filter(|last| last.following > 0) {
            Some(last) if seq.0 - last.seq.0 != 1 || now.following != last.following - 1 || now.shared != last.shared => {
                return differs(seq, format!("it does not continue reaction {}", last.reaction));
            }
            None if now.reaction != seq => return differs(seq, format!("reaction {} is not whole", now.reaction)),
            Some(_) | None => {}
        }
        self.tree.push(frame.leaf());
        self.report.records += 1;
        self.report.withheld += u64::from(matches!(frame.body, FrameBody::Withheld(_)));
        self.last = Some(now);
        Ok(())
    }

    /// Mark and claim end where a block ends.
    fn compare(&mut self, log: LogId) -> Result<(), Difference> {
        let size = self.tree.size();
        if let Some(claim) = self.claim.take_if(|claim| claim.log == log && claim.tree.size <= size)
            && claim.tree != self.tree.head()
        {
            return differs(self.seq(), "the log's root is another than its records give");
        }
        match self.mark.take_if(|mark| mark.log == log && mark.tree.size() <= size) {
            Some(mark) if mark.tree != self.tree => differs(mark.last, "the mark has another root"),
            Some(_) | None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), Difference> {
        if let Some(last) = self.last.as_ref().filter(|last| last.following > 0) {
            return differs(last.seq, format!("reaction {} is not whole", last.reaction));
        }
        // A mark that was not reached is left out when the log that followed names what was lost.
        let named = |mark: &Mark| {
            let former = self.restarted.iter().filter_map(|began| began.former.as_ref());
            former.into_iter().any(|former| former.id == mark.log && former.acknowledged >= mark.last)
        };
        // What named it may have aged out with the beginning of the log that followed.
        let followed = self.report.logs.last().filter(|part| self.report.removed.is_some_and(|removed| removed.kept > part.first));
        let aged_out = |mark: &Mark| followed.is_some_and(|part| part.log != mark.log);
        if let Some(mark) = self.mark.as_ref().filter(|mark| !named(mark) && !aged_out(mark)) {
            return differs(mark.last, format!("the log ends before record {}, which was acknowledged", mark.last));
        }
        if self.claim.take().is_some() {
            return differs(self.seq(), "the log ends before its own size");
        }
        Ok(())
    }

    fn seq(&self) -> Seq {
        self.last.as_ref().map_or(Seq::NONE, |last| last.seq)
    }
}
