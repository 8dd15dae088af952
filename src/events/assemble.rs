//! Reactions become blocks: numbers, times, causes, leaves. Pure, but for the salts it is given; stores nothing.

use std::collections::BTreeMap;

use super::block::{BlockHead, BlockWriter};
use super::codec;
use super::frame;
use super::index::{Added, Index};
use super::log::{AppendError, Refused};
use super::record::{Header, Reaction};
use super::seal::{Sealer, Sealing};
use super::store::Batch;
use super::tree::{EMPTY_ROOT, Tree, TreeHead};
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
    /// As the store keeps them.
    pub(super) batches: Vec<Batch>,
    /// Of its blocks as they are, bytes.
    pub(super) block_bytes: usize,
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
    sealer: &mut Sealer,
) -> Result<Commit, AppendError> {
    let Position { log, last, next, floor_us, ref tree } = *position;
    let mut assembly = Assembly {
        at: At { log, last, next, floor_us },
        index,
        block: None,
        blocks: 0,
        batches: Vec::new(),
        batch_bytes: 0,
        sealing: sealer.begin(tree.clone()),
        headers: Vec::with_capacity(reactions.len()),
        added: BTreeMap::new(),
    };
    let mut payloads = Payloads::default();
    for (number, reaction) in reactions.iter().enumerate() {
        let refused = |why| AppendError::Refused { reaction: number, why };
        let subject = text_of(&reaction.subject).ok_or_else(|| refused(Refused::Subject))?;
        let bytes = payloads.encode(reaction, subject.len()).map_err(refused)?;
        assembly.add(reaction, subject, (&payloads, bytes), salt).map_err(refused)?;
    }
    assembly.end_batch();
    Ok(assembly.end())
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

/// Where the next record goes; the tree follows when the blocks are sealed.
struct At {
    log: LogId,
    last: Seq,
    next: Seq,
    floor_us: i64,
}

struct Assembly<'a> {
    at: At,
    index: &'a Index,
    block: Option<BlockWriter>,
    /// Blocks of the batch that is being filled.
    blocks: usize,
    /// The blocks of each batch before.
    batches: Vec<usize>,
    batch_bytes: usize,
    sealing: Sealing<'a>,
    headers: Vec<Vec<Header>>,
    added: BTreeMap<String, Added>,
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
        let mut added = self.added.remove(&subject).unwrap_or_else(|| {
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
            block.push_written(|out| frame::write_unhashed(&header, &subject, following, &salt(), payload, out));
            let block = block.first();
            if added.blocks.last() != Some(&block) {
                added.blocks.push(block);
            }
            self.at.last = header.seq;
            self.at.next = Seq(header.seq.0 + 1);
            headers.push(header);
        }
        self.added.insert(subject, added);
        self.headers.push(headers);
        Ok(())
    }

    /// The open block, or a new one, when a frame of that length does not fit.
    fn block_for(&mut self, frame: usize) -> &mut BlockWriter {
        if self.block.as_ref().is_none_or(|block| !block.has_room(frame)) {
            self.end_block();
        }
        let At { log, next: first, last: previous, .. } = self.at;
        // What is before it is known when it is sealed.
        let before = TreeHead { size: 0, root: EMPTY_ROOT };
        self.block.get_or_insert_with(|| BlockWriter::new(BlockHead { log, first, previous, before }))
    }

    fn end_block(&mut self) {
        if let Some(block) = self.block.take() {
            self.sealing.add(block);
            self.blocks += 1;
        }
    }

    fn end_batch(&mut self) {
        self.end_block();
        if self.blocks > 0 {
            self.batches.push(std::mem::take(&mut self.blocks));
        }
        self.batch_bytes = 0;
    }

    fn end(self) -> Commit {
        let At { log, last, next, floor_us } = self.at;
        let (tree, sealed) = self.sealing.end();
        let block_bytes = sealed.iter().map(|block| block.length).sum();
        let mut sealed = sealed.into_iter().map(|block| (block.key, block.value));
        let batches = self.batches.iter().map(|blocks| sealed.by_ref().take(*blocks).collect()).collect();
        let after = Position { log, last, next, floor_us, tree };
        Commit { batches, block_bytes, headers: self.headers, after, added: self.added }
    }
}
