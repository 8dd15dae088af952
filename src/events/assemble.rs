//! Reactions become blocks: numbers, times, causes, leaves. Pure, but for the salts it is given; stores nothing.

use std::collections::BTreeMap;

use super::block::{BlockHead, BlockWriter};
use super::codec;
use super::frame;
use super::index::Index;
use super::log::{AppendError, Refused};
use super::record::{Header, Reaction, Record};
use super::store::Batch;
use super::tree::Tree;
use crate::ids::{LogId, Seq, Subject};

/// The most that the store takes as one atomic batch, bytes of frames; a reaction fits one whole. A commit of more becomes
/// several batches under one sync (NOTES 3.2: the tail of the latency stays flat).
pub(super) const BATCH_MAX: usize = 1 << 20;

/// The most records of a reaction: what `following` can count.
const RECORDS_MAX: usize = 1 << 16;

/// Where the next record goes.
#[derive(Debug, Clone)]
pub(super) struct Position {
    pub(super) log: LogId,
    /// The last record in the store.
    pub(super) last: Seq,
    /// The next record's number.
    pub(super) next: Seq,
    /// No record is before this: the latest time in the store when it was opened.
    pub(super) floor_us: i64,
    pub(super) tree: Tree,
}

/// A commit that is ready to be stored.
pub(super) struct Commit {
    pub(super) batches: Vec<Batch>,
    /// For each reaction its records.
    pub(super) records: Vec<Vec<Record>>,
    /// Where the record after it goes.
    pub(super) after: Position,
    /// For each reaction its subject and time, and for each of its records the subject seq and the block.
    pub(super) indexed: Vec<Indexed>,
}

/// A reaction's subject and time, and for each of its records the subject seq and the block.
pub(super) type Indexed = (String, i64, Vec<(u64, Seq)>);

/// Makes the blocks of one commit.
///
/// # Errors
/// [`AppendError::Refused`] alone.
pub(super) fn assemble(
    position: &Position,
    index: &Index,
    reactions: &[Reaction],
    salt: &mut dyn FnMut() -> [u8; 16],
) -> Result<Commit, AppendError> {
    let mut assembly = Assembly {
        at: position.clone(),
        index,
        subjects: BTreeMap::new(),
        block: None,
        batch: Vec::new(),
        batch_bytes: 0,
        commit: Commit { batches: Vec::new(), records: Vec::new(), after: position.clone(), indexed: Vec::new() },
    };
    for (number, reaction) in reactions.iter().enumerate() {
        let refused = |why| AppendError::Refused { reaction: number, why };
        let subject = text_of(&reaction.subject).ok_or_else(|| refused(Refused::Subject))?;
        let payloads = payloads(reaction, &subject).map_err(refused)?;
        assembly.add(reaction, &subject, &payloads, salt).map_err(refused)?;
    }
    assembly.end_batch();
    assembly.commit.after = assembly.at;
    Ok(assembly.commit)
}

/// The subject as it is stored, when it reads back as the same one.
fn text_of(subject: &Subject) -> Option<String> {
    let text = subject.to_string();
    (text.len() <= frame::SUBJECT_MAX && Subject::parse(&text).as_ref() == Ok(subject)).then_some(text)
}

fn payloads(reaction: &Reaction, subject: &str) -> Result<Vec<Vec<u8>>, Refused> {
    let records = reaction.drafts.len();
    let mut bytes = 0;
    let mut payloads = Vec::with_capacity(records);
    for (number, draft) in reaction.drafts.iter().enumerate() {
        let payload = codec::encode(&draft.event).map_err(|error| Refused::Payload(number, error))?;
        bytes += frame::length(subject.len(), payload.len());
        payloads.push(payload);
        if bytes > BATCH_MAX || records > RECORDS_MAX {
            return Err(Refused::TooLarge { bytes, records, max: BATCH_MAX });
        }
    }
    Ok(payloads)
}

struct Assembly<'a> {
    at: Position,
    index: &'a Index,
    /// Subject seqs and times that this commit has given.
    subjects: BTreeMap<String, (u64, i64)>,
    block: Option<BlockWriter>,
    batch: Batch,
    batch_bytes: usize,
    commit: Commit,
}

impl Assembly<'_> {
    fn add(&mut self, reaction: &Reaction, subject: &str, payloads: &[Vec<u8>], salt: &mut dyn FnMut() -> [u8; 16]) -> Result<(), Refused> {
        let bytes = payloads.iter().map(|payload| frame::length(subject.len(), payload.len())).sum::<usize>();
        if self.batch_bytes + bytes > BATCH_MAX {
            self.end_batch();
        }
        self.batch_bytes += bytes;
        let first = self.at.next;
        let before = self.subjects.get(subject).copied();
        let (mut subject_seq, time_us) = before.unwrap_or_else(|| (self.index.last(subject), self.index.time_us(subject)));
        let time_us = time_us.max(self.at.floor_us).max(reaction.time_us);
        let mut records = Vec::with_capacity(payloads.len());
        let mut indexed = Vec::with_capacity(payloads.len());
        let mut frame = Vec::new();
        for ((number, draft), payload) in reaction.drafts.iter().enumerate().zip(payloads) {
            subject_seq += 1;
            let header = Header {
                kind: draft.event.kind().number(),
                kind_version: draft.event.kind().version(),
                rules: reaction.rules,
                seq: self.at.next,
                subject: reaction.subject.clone(),
                subject_seq,
                time_us,
                reaction: first,
                cause: draft.cause.resolved(first),
                settings: reaction.settings,
            };
            if header.cause >= header.seq || header.settings >= header.seq {
                return Err(Refused::Cause(number));
            }
            let following = u16::try_from(payloads.len() - 1 - number).expect("a reaction has at most RECORDS_MAX records");
            frame.clear();
            let leaf = frame::write(&header, subject, following, &salt(), payload, &mut frame);
            let block = self.place(&frame);
            self.at.tree.push(leaf);
            self.at.last = header.seq;
            self.at.next = Seq(header.seq.0 + 1);
            indexed.push((subject_seq, block));
            records.push(Record { header, event: draft.event.clone() });
        }
        self.subjects.insert(subject.to_owned(), (subject_seq, time_us));
        self.commit.indexed.push((subject.to_owned(), time_us, indexed));
        self.commit.records.push(records);
        Ok(())
    }

    /// Puts a frame into the open block, or into a new one, and gives the block's key.
    fn place(&mut self, frame: &[u8]) -> Seq {
        if self.block.as_ref().is_none_or(|block| !block.has_room(frame.len())) {
            self.end_block();
            let head = BlockHead { log: self.at.log, first: self.at.next, previous: self.at.last, before: self.at.tree.head() };
            self.block = Some(BlockWriter::new(head));
        }
        let block = self.block.as_mut().expect("one was just opened");
        block.push(frame);
        block.first()
    }

    fn end_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.batch.push((block.first(), block.finish()));
        }
    }

    fn end_batch(&mut self) {
        self.end_block();
        if !self.batch.is_empty() {
            self.commit.batches.push(std::mem::take(&mut self.batch));
        }
        self.batch_bytes = 0;
    }
}
