//! Which blocks are asked for, a bounded page at a time: for a backup, and for whoever asks a running daemon.

use std::ops::ControlFlow;

use super::entry;
use crate::events::block::Block;
use crate::events::log::{LogReader, ReadError};
use crate::ids::{Seq, Subject};

/// A page ends with the block that brings it to this, bytes.
const PAGE_BYTES: usize = 1 << 20;

/// The most blocks that are looked at for a page, whether they are wanted or not.
const PAGE_BLOCKS: usize = 4_096;

/// The largest page, bytes: the last block and the entries' own bytes come on top.
pub const PAGE_MAX: usize = PAGE_BYTES + (128 << 10);

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    /// The first record.
    pub from: Seq,
    /// The last record; the reaction that it belongs to comes whole.
    pub to: Seq,
    /// Blocks that hold records of this subject, or of the daemon, alone. A block comes whole, with its neighbours' records.
    pub subject: Option<Subject>,
}

/// Some of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The blocks with their keys; a page may be empty and not the last.
    pub blocks: Vec<(Seq, Vec<u8>)>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Seq>,
}

impl Page {
    /// As entries of a backup file.
    #[must_use]
    pub fn entries(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, block) in &self.blocks {
            entry::block(*key, block, &mut out);
        }
        out
    }
}

/// The page that begins at `select.from`.
///
/// # Errors
/// When the store does not answer.
pub fn page(reader: &dyn LogReader, select: &Select) -> Result<Page, ReadError> {
    let to = end_of_reaction(reader, select.to.min(reader.head()))?;
    let wanted = select.subject.as_ref().map(ToString::to_string);
    let (mut page, mut bytes, mut looked) = (Page::default(), 0, 0);
    reader.blocks(select.from, &mut |key, stored| {
        let block = Block::read(stored).ok();
        if key > to {
            return ControlFlow::Break(());
        }
        if looked == PAGE_BLOCKS || bytes >= PAGE_BYTES {
            page.next = Some(key);
            return ControlFlow::Break(());
        }
        looked += 1;
        let before = block.as_ref().is_some_and(|block| block.last() < select.from);
        let concerned = |block: &Block<'_>| wanted.as_ref().is_none_or(|wanted| concerns(block, wanted));
        // One that cannot be read may hold what is asked for.
        if !before && block.as_ref().is_none_or(concerned) {
            bytes += stored.len();
            page.blocks.push((key, stored.to_vec()));
        }
        ControlFlow::Continue(())
    })?;
    Ok(page)
}

fn concerns(block: &Block<'_>, wanted: &str) -> bool {
    block.records().any(|(_, frame)| frame.is_ok_and(|frame| frame.subject == wanted || frame.subject.starts_with("daemon/")))
}

/// The record at which a cut leaves no reaction torn: where the reaction of the last record in `to`'s block ends.
fn end_of_reaction(reader: &dyn LogReader, to: Seq) -> Result<Seq, ReadError> {
    let mut end = to;
    reader.blocks(to, &mut |key, stored| {
        if key > end {
            return ControlFlow::Break(());
        }
        let Ok(block) = Block::read(stored) else { return ControlFlow::Break(()) };
        match block.records().last() {
            Some((last, Ok(frame))) if last >= end => {
                end = Seq(last.0.saturating_add(u64::from(frame.following())));
                if frame.following() > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            _ => ControlFlow::Break(()),
        }
    })?;
    Ok(end)
}
