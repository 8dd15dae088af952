//! What a log is to the rest of the program: appending, reading, and the ways both can fail. Knows no store.
//!
//! Errors are sorted by what the caller does next (DESIGN.md, "The loop" and "The log").

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::block::Block;
use super::cache::Cache;
use super::codec::CodecError;
use super::erase::{Erasure, NotErased};
use super::kinds::daemon::{FormerLog, RestartReason};
use super::marks::Mark;
use super::record::{Reaction, Record};
use super::retention::{Base, NotRemoved, Removed};
use super::stored::{Item, Payloads, Visit, each_item};
use super::tree::{Hash, TreeHead};
use crate::ids::{LogId, Seq, Subject};

/// The writer: one a log, owned by one thread.
pub trait EventLog: Send {
    /// Appends the reactions of one group commit, each of them whole or not at all, and returns when they are durable: the
    /// records with their real numbers and times, in order, a list for each reaction.
    ///
    /// # Errors
    /// See [`AppendError`]: after [`AppendError::Refused`] the log goes on, after any other it must be opened again.
    fn append(&mut self, reactions: &[Reaction]) -> Result<Vec<Vec<Record>>, AppendError>;

    /// The same, and the events become the records' own: nothing is left of `reactions` then. After an error they are as they were.
    ///
    /// # Errors
    /// As [`Self::append`].
    fn append_taking(&mut self, reactions: &mut Vec<Reaction>) -> Result<Vec<Vec<Record>>, AppendError> {
        let records = self.append(reactions)?;
        reactions.clear();
        Ok(records)
    }

    /// Takes away what a record says that only informs, and records that; returns that record when both are durable.
    ///
    /// # Errors
    /// See [`NotErased`]; after [`NotErased::Append`] as after a failed append.
    fn erase(&mut self, erasure: &Erasure) -> Result<Record, NotErased>;

    /// Takes out some of the oldest blocks, none of which goes beyond `upto`, and keeps their leaves; returns when that is durable,
    /// with where the log begins now. `None` when nothing is left to take out: so often until then. What is left must be enough for
    /// every subject: the caller has carried them (src/run/retention.rs).
    ///
    /// # Errors
    /// See [`NotRemoved`]; after [`NotRemoved::Append`] as after a failed append.
    fn remove(&mut self, upto: Seq) -> Result<Option<Removed>, NotRemoved>;

    /// A reader of what has been acknowledged; it outlives the writer and sees what is appended later.
    fn reader(&self) -> Arc<dyn LogReader>;

    /// Ends in order: the next opening continues without a gap. The folder stays locked until the last reader is dropped too.
    ///
    /// # Errors
    /// When the last sync fails; the next opening then counts as after a crash.
    fn close(self: Box<Self>) -> io::Result<()>;
}

/// Why an append did not happen.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// One reaction cannot be stored as it is. Nothing was written and the log goes on: leave that reaction out.
    #[error("reaction {reaction} cannot be stored: {why}")]
    Refused {
        /// Its place in the list.
        reaction: usize,
        /// Why.
        why: Refused,
    },
    /// The disk is full. Nothing was acknowledged; open the log again when there is room.
    #[error("no room to append")]
    Full(#[source] io::Error),
    /// Writing or syncing failed. Nothing was acknowledged, and nobody knows what is stored: open the log again.
    #[error("cannot append")]
    Io(#[source] io::Error),
    /// An earlier append failed, and a sync is never retried: open the log again.
    #[error("an earlier append failed")]
    Stopped,
}

/// What is wrong with a reaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A payload is too long, or cannot be encoded.
    #[error("event {0}: {1}")]
    Payload(usize, #[source] CodecError),
    /// All its records together are too long.
    #[error("{bytes} bytes in {records} records: at most {max} bytes and 65,536 records")]
    TooLarge {
        /// How long it is, as far as it was encoded.
        bytes: usize,
        /// How many records.
        records: usize,
        /// How long it may be.
        max: usize,
    },
    /// An event names a later one, or itself, as its cause or its settings.
    #[error("event {0} is not after its cause, or not after its settings")]
    Cause(usize),
    /// The subject does not read as it is written.
    #[error("the subject is no subject")]
    Subject,
}

/// Why a log id is begun that what is stored does not ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// Why.
    pub reason: RestartReason,
    /// The log whose place it takes, when that is known.
    pub former: Option<FormerLog>,
}

/// Begins or continues a log.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// What the first record of a log id is about: the daemon.
    pub daemon: Subject,
    /// Begin a new log id, whatever is there: a take-over, or a folder that was set aside. `None`: begin one only when the store
    /// is new or has lost its tail.
    pub begin: Option<Beginning>,
    /// Whether to sync the store's file after the store's own flush, which does not survive a power cut. Off only in the test
    /// that shows the loss.
    pub extra_sync: bool,
}

impl OpenOptions {
    /// For the daemon of that subject.
    #[must_use]
    pub fn new(daemon: Subject) -> Self {
        Self { daemon, begin: None, extra_sync: true }
    }
}

/// What was found when a log was opened for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The log id that is being written.
    pub log: LogId,
    /// The last record, with the one that began the log id, if that was now.
    pub head: Seq,
    /// In which state it was.
    pub found: Found,
    /// The numbers that are given to nobody, when there are some.
    pub gap: Option<Gap>,
}

/// The state a log was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing was there.
    Fresh,
    /// It had been closed in order.
    Clean,
    /// It had not been closed, and holds all that was acknowledged.
    Unclean,
    /// It ended before what had been acknowledged: a new log id was begun.
    LostTail(FormerLog),
}

/// Numbers between two records that no record has, and that nobody was ever told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last record before it.
    pub after: Seq,
    /// The first record behind it.
    pub before: Seq,
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it: wait, or ask that process.
    #[error("the log is held by another process")]
    Held,
    /// There is none: only from opening for reading.
    #[error("there is no log")]
    Missing,
    /// The folder cannot be written to: change that, nothing else helps.
    #[error("the log's folder cannot be written to")]
    ReadOnly(#[source] io::Error),
    /// The disk is full: make room.
    #[error("no room to open the log")]
    Full(#[source] io::Error),
    /// What is there is not a log that can be continued: read it, set it aside.
    #[error("the log is damaged at {seq}: {what}")]
    Damaged {
        /// The first record concerned; [`Seq::NONE`] when the store itself does not open.
        seq: Seq,
        /// What is wrong.
        what: String,
    },
    /// A newer build wrote what must be understood to go on: serve reads, do not act.
    #[error("a newer build is needed from record {seq} on{}", .written_by.as_ref().map(|version| format!(" (the log was last written by {version})")).unwrap_or_default())]
    NeedsVersion {
        /// The first record that decides and is not known; [`Seq::NONE`] when it is something else in the store.
        seq: Seq,
        /// The version that the last `IncarnationStarted` names.
        written_by: Option<String>,
    },
    /// The operating system refuses for another reason: try again later.
    #[error("cannot open the log")]
    Io(#[source] io::Error),
}

/// Reading failed below the records: the store does not answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the log")]
pub struct ReadError(#[from] pub io::Error);

/// What the store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredSize {
    /// Bytes on disk.
    pub bytes: u64,
    /// Values that the store put into files of their own, which it never syncs: always 0.
    pub blobs: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of the blocks alone: what ages out by size.
    pub block_bytes: u64,
    /// Records.
    pub records: u64,
    /// fdatasync calls of our own since it was opened: one a commit, and now and then one for a ceiling.
    pub syncs: u64,
}

/// How far a log is: what the Lease carries and what a checkpoint signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledged {
    /// The current log id.
    pub log: LogId,
    /// Its last acknowledged record.
    pub head: Seq,
    /// Its tree with that record; for a damaged log, as far as it is sound.
    pub tree: TreeHead,
}

/// A reader: sees what has been acknowledged and nothing else. Cheap to share, blocks on the disk.
pub trait LogReader: Send + Sync {
    /// The current log id, its last acknowledged record and its tree, as of one moment.
    fn acknowledged(&self) -> Acknowledged;

    /// The mark that was found when the log was opened.
    fn mark(&self) -> Option<Mark>;

    /// The blocks as stored, from the one that holds `from`, in order, one at a time.
    ///
    /// # Errors
    /// When the store does not answer.
    fn blocks(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> Result<(), ReadError>;

    /// Every record of one subject from `from` on, in order, by the index.
    ///
    /// # Errors
    /// When the store does not answer.
    fn subject(&self, subject: &Subject, from: Seq, visit: &mut Visit<'_>) -> Result<(), ReadError>;

    /// Every subject that has records.
    fn subjects(&self) -> Vec<Subject>;

    /// What it takes, for metrics.
    fn stored(&self) -> StoredSize;

    /// Whether it shows a part of a log alone, of which neither tree nor decisions can be followed.
    fn is_part(&self) -> bool {
        false
    }

    /// Where values are kept that may be lost; `None` where none are.
    fn cache(&self) -> Option<&dyn Cache> {
        None
    }

    /// Where it begins, when its beginning aged out.
    fn removed(&self) -> Option<Removed> {
        None
    }

    /// What is before the first block, when it is elsewhere and its leaves are too: of a segment of an archive.
    fn base(&self) -> Option<Base> {
        None
    }

    /// What stays of the blocks that aged out, as stored, from the one that held `from`, in order.
    ///
    /// # Errors
    /// When the store does not answer.
    fn removed_blocks(&self, _from: Seq, _visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> Result<(), ReadError> {
        Ok(())
    }

    /// Where the subjects' numbers stand after what aged out, as stored.
    ///
    /// # Errors
    /// When the store does not answer.
    fn removed_numbers(&self, _visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>) -> Result<(), ReadError> {
        Ok(())
    }

    /// The subjects of which records aged out.
    fn cut_subjects(&self) -> Vec<Subject> {
        Vec::new()
    }

    /// The subjects that have records in blocks whose first record is before `kept`.
    fn subjects_before(&self, _kept: Seq) -> Vec<Subject> {
        Vec::new()
    }

    /// The current log id.
    fn id(&self) -> LogId {
        self.acknowledged().log
    }

    /// The last acknowledged record.
    fn head(&self) -> Seq {
        self.acknowledged().head
    }

    /// The current log id's tree; for a damaged log, as far as it is sound.
    fn tree(&self) -> TreeHead {
        self.acknowledged().tree
    }

    /// Every record from `from` on, in order, in bounded memory.
    ///
    /// # Errors
    /// When the store does not answer.
    fn scan(&self, from: Seq, visit: &mut Visit<'_>) -> Result<(), ReadError> {
        self.blocks(from, &mut |key, bytes| each_item(key, bytes, from, None, Payloads::All, visit))
    }

    /// The same for whoever folds: of what only informs the payload is left out, and not decoded.
    ///
    /// # Errors
    /// When the store does not answer.
    fn scan_deciding(&self, from: Seq, visit: &mut Visit<'_>) -> Result<(), ReadError> {
        self.blocks(from, &mut |key, bytes| each_item(key, bytes, from, None, Payloads::Deciding, visit))
    }

    /// The leaf of every readable record from `from` on, in order, with the log it belongs to. Apart from [`Self::scan`], because
    /// hashing is a third of what reading a record costs, and few ask.
    ///
    /// # Errors
    /// When the store does not answer.
    fn leaves(&self, from: Seq, visit: &mut dyn FnMut(LogId, Hash) -> ControlFlow<()>) -> Result<(), ReadError> {
        self.blocks(from, &mut |_, bytes| {
            let Ok(block) = Block::read(bytes) else { return ControlFlow::Continue(()) };
            for (seq, frame) in block.records() {
                if let Ok(frame) = frame
                    && seq >= from
                {
                    visit(block.head.log, frame.leaf())?;
                }
            }
            ControlFlow::Continue(())
        })
    }

    /// Every record from `from` on with its leaf, in order: for whoever hands on what can be proved. What cannot be read has none.
    ///
    /// # Errors
    /// When the store does not answer.
    fn scan_proved(&self, from: Seq, visit: &mut dyn FnMut(Item, Option<Hash>) -> ControlFlow<()>) -> Result<(), ReadError> {
        self.blocks(from, &mut |key, bytes| {
            let frames = Block::read(bytes).into_iter().flat_map(|block| block.records());
            let mut leaves = frames.filter(|(seq, _)| *seq >= from).map(|(_, frame)| frame.ok().map(|frame| frame.leaf()));
            each_item(key, bytes, from, None, Payloads::All, &mut |item| visit(item, leaves.next().flatten()))
        })
    }

    /// One record; `None` when no record has that number.
    ///
    /// # Errors
    /// When the store does not answer.
    fn record(&self, seq: Seq) -> Result<Option<Item>, ReadError> {
        let mut found = None;
        self.scan(seq, &mut |item| {
            let holds = match &item {
                Ok(record) => record.header.seq == seq,
                Err(damage) => damage.seq == seq || (damage.whole_block && damage.seq < seq),
            };
            found = holds.then_some(item);
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}
