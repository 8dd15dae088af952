//! Reactions become blocks: numbers, times, causes, leaves. Pure, but for the salts it is given; stores nothing.

use std::collections::BTreeMap;

use super::block::{BlockHead, BlockWriter};
use super::codec;
use super::frame;
use super::index::{Added, Index};
use super::log::{AppendError, Refused};
use super::record::{Header, Reaction};
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
    /// For each reaction where its records are.
    pub(super) headers: Vec<Vec<Header>>,
    /// Where the record after it goes.
    pub(super) after: Position,
    /// What of each subject is in it.
    pub(super) added: BTreeMap<String, Added>,
}

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
        block: None,
        batch: Vec::new(),
        batch_bytes: 0,
        commit: Commit {
            batches: Vec::new(),
            headers: Vec::with_capacity(reactions.len()),
            after: position.clone(),
            added: BTreeMap::new(),
        },
    };
    let mut payloads = Payloads::default();
    for (number, reaction) in reactions.iter().enumerate() {
        let refused = |why| AppendError::Refused { reaction: number, why };
        let subject = text_of(&reaction.subject).ok_or_else(|| refused(Refused::Subject))?;
        let bytes = payloads.encode(reaction, subject.len()).map_err(refused)?;
        assembly.add(reaction, subject, (&payloads, bytes), salt).map_err(refused)?;
    }
    assembly.end_batch();
    assembly.commit.after = assembly.at;
    Ok(assembly.commit)
}

/// The subject as it is stored, when it reads back as the same one.
fn text_of(subject: &Subject) -> Option<String> {
    // Nearly every reaction is about an app, and an app's parts were checked when it was made.
    if let Subject::App(app) = subject {
        return Some(["app/", app.org(), "/", app.name()].concat());
    }
    let text = subject.to_string();
    (text.len() <= frame::SUBJECT_MAX && Subject::parse(&text).as_ref() == Ok(subject)).then_some(text)
}

/// A reaction's payloads, one behind the other: one allocation for a whole commit.
#[derive(Default)]
struct Payloads {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Payloads {
    /// Encodes the payloads of a reaction in the place of those before, and says how long its frames will be.
    fn encode(&mut self, reaction: &Reaction, subject: usize) -> Result<usize, Refused> {
        self.bytes.clear();
        self.ends.clear();
        let records = reaction.drafts.len();
        let mut bytes = 0;
        for (number, draft) in reaction.drafts.iter().enumerate() {
            let start = self.bytes.len();
            codec::encode_into(&draft.event, &mut self.bytes).map_err(|error| Refused::Payload(number, error))?;
            self.ends.push(self.bytes.len());
            bytes += frame::length(subject, self.bytes.len() - start);
            if bytes > BATCH_MAX || records > RECORDS_MAX {
                return Err(Refused::TooLarge { bytes, records, max: BATCH_MAX });
            }
        }
        Ok(bytes)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

struct Assembly<'a> {
    at: Position,
    index: &'a Index,
    block: Option<BlockWriter>,
    batch: Batch,
    batch_bytes: usize,
    commit: Commit,
}

impl Assembly<'_> {
    /// Adds a reaction, given its subject as text, and its payloads with the length of their frames.
    fn add(
        &mut self,
        reaction: &Reaction,
        subject: String,
        (payloads, bytes): (&Payloads, usize),
        salt: &mut dyn FnMut() -> [u8; 16],
    ) -> Result<(), Refused> {
        if self.batch_bytes + bytes > BATCH_MAX {
            self.end_batch();
        }
        self.batch_bytes += bytes;
        let first = self.at.next;
        let mut added = self.commit.added.remove(&subject).unwrap_or_else(|| {
            let (last, time_us) = self.index.last(&subject);
            Added { last, time_us, records: 0, blocks: Vec::new() }
        });
        added.time_us = added.time_us.max(self.at.floor_us).max(reaction.time_us);
        let count = reaction.drafts.len();
        let mut headers = Vec::with_capacity(count);
        for ((number, draft), payload) in reaction.drafts.iter().enumerate().zip(payloads.iter()) {
            added.last += 1;
            added.records += 1;
            let header = Header {
                kind: draft.event.kind().number(),
                kind_version: draft.event.kind().version(),
                rules: reaction.rules,
                seq: self.at.next,
                subject: reaction.subject.clone(),
                subject_seq: added.last,
                time_us: added.time_us,
                reaction: first,
                cause: draft.cause.resolved(first),
                settings: reaction.settings,
            };
            if header.cause >= header.seq || header.settings >= header.seq {
                return Err(Refused::Cause(number));
            }
            let following = u16::try_from(count - 1 - number).expect("a reaction has at most RECORDS_MAX records");
            let block = self.block_for(frame::length(subject.len(), payload.len()));
            let leaf = block.push_written(|out| frame::write(&header, &subject, following, &salt(), payload, out));
            let block = block.first();
            if added.blocks.last() != Some(&block) {
                added.blocks.push(block);
            }
            self.at.tree.push(leaf);
            self.at.last = header.seq;
            self.at.next = Seq(header.seq.0 + 1);
            headers.push(header);
        }
        self.commit.added.insert(subject, added);
        self.commit.headers.push(headers);
        Ok(())
    }

    /// The open block, or a new one, when a frame of that length does not fit.
    fn block_for(&mut self, frame: usize) -> &mut BlockWriter {
        if self.block.as_ref().is_none_or(|block| !block.has_room(frame)) {
            self.end_block();
        }
        let at = &self.at;
        self.block
            .get_or_insert_with(|| BlockWriter::new(BlockHead { log: at.log, first: at.next, previous: at.last, before: at.tree.head() }))
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
