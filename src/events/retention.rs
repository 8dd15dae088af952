//! Removing a log's beginning, block by block: which blocks go with a batch and what stays of them. Knows no meaning: that each
//! subject was carried before is its caller's.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use super::block::Block;
use super::log::AppendError;
use super::removed::{Numbers, RemovedBlock};
use super::store::{Removal, Store};
use super::tree::Tree;
use crate::ids::{LogId, Seq};

/// Blocks that go with one batch, unless the last of them ends within a reaction: at most 1.5 MiB, a commit's time.
const BLOCKS: usize = 64;

/// Where a log begins whose beginning aged out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// The last record that is not there any more.
    pub to: Seq,
    /// The first that is.
    pub kept: Seq,
}

/// What is before the first block of a part that can be followed from there on: a segment of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The log of the last record before it.
    pub log: LogId,
    /// That record.
    pub last: Seq,
    /// That log's tree with it.
    pub tree: Tree,
}

/// Why nothing was removed.
#[derive(Debug, thiserror::Error)]
pub enum NotRemoved {
    /// What cannot be read leaves no leaf behind.
    #[error("record {seq} cannot be read and is kept: {what}")]
    Damaged {
        /// Which, or the first of its block.
        seq: Seq,
        /// Why.
        what: String,
    },
    /// The store does not answer.
    #[error("the log cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The store does not take it: open the log again.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// What one batch takes out, and where the log begins then.
pub(super) struct Planned {
    pub(super) removal: Removal,
    /// The subjects that it concerns.
    pub(super) subjects: BTreeMap<String, Numbers>,
    pub(super) removed: Removed,
    pub(super) bytes: u64,
    pub(super) records: u64,
}

/// Plans the next batch of what ends at `upto` or before; `None` when there is nothing. A reaction goes whole, and the block behind
/// it stays.
pub(super) fn plan(store: &dyn Store, upto: Seq) -> Result<Option<Planned>, NotRemoved> {
    let mut going: Vec<(RemovedBlock, usize)> = Vec::new();
    let mut subjects = BTreeMap::new();
    let (mut ends, mut planned, mut failed) = (0, None, None);
    let mut noted: BTreeMap<String, Numbers> = BTreeMap::new();
    store.visit(Seq::NONE, &mut |key, bytes| {
        if ends > 0 && ends == going.len() {
            planned = Some(key);
            subjects.append(&mut noted);
            if going.len() >= BLOCKS {
                return ControlFlow::Break(());
            }
        }
        match (Block::read(bytes), RemovedBlock::of(key, bytes)) {
            (Ok(block), Ok(removed)) if removed.last() <= upto => {
                going.push((removed, bytes.len()));
                for frame in block.records().filter_map(|(_, frame)| frame.ok()) {
                    let numbers = Numbers { log: block.head.log, last: frame.subject_seq(), time_us: frame.time_us() };
                    match noted.get_mut(frame.subject) {
                        Some(known) => *known = numbers,
                        None => drop(noted.insert(frame.subject.to_owned(), numbers)),
                    }
                    if frame.following() == 0 {
                        ends = going.len();
                    } else {
                        ends = 0;
                    }
                }
                ControlFlow::Continue(())
            }
            (Ok(_), Ok(_)) => ControlFlow::Break(()),
            (Err(error), _) => {
                failed = Some((key, error.to_string()));
                ControlFlow::Break(())
            }
            (_, Err(why)) => {
                failed = Some(why);
                ControlFlow::Break(())
            }
        }
    })?;
    let Some(kept) = planned else {
        return failed.map_or(Ok(None), |(seq, what)| Err(NotRemoved::Damaged { seq, what }));
    };
    going.retain(|(block, _)| block.head.first < kept);
    let Some((last, _)) = going.last() else { return Ok(None) };
    let removed = Removed { to: last.last(), kept };
    let bytes = going.iter().map(|(_, bytes)| *bytes as u64).sum();
    let records = going.iter().map(|(block, _)| block.leaves.len() as u64).sum();
    let blocks = going.iter().map(|(block, _)| (block.head.first, block.bytes())).collect();
    let numbers = subjects.iter().map(|(subject, numbers): (&String, &Numbers)| (subject.clone(), numbers.bytes())).collect();
    Ok(Some(Planned { removal: Removal { blocks, numbers }, subjects, removed, bytes, records }))
}
