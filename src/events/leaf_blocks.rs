//! Every leaf of a log: of the blocks that aged out by what stays of them, of the others by their records. Knows no tree.

use std::ops::ControlFlow;

use super::log::{LogReader, ReadError};
use super::removed::LeafBlock;
use crate::ids::Seq;

/// Takes the places and leaves of blocks; in place of one that cannot be read, the record and why.
pub(super) type LeafVisit<'a> = dyn FnMut(Seq, Result<LeafBlock, (Seq, String)>) -> ControlFlow<()> + 'a;

/// Where a walk over blocks and what stays of them is.
struct LeafWalk {
    from: Seq,
    next: Seq,
    /// The last record that was passed.
    last: Option<Seq>,
    ended: bool,
}

impl LeafWalk {
    fn is_next(&self, block: &LeafBlock) -> bool {
        self.last.map_or(block.head.first <= self.from, |last| block.head.previous == last)
    }

    fn take(&mut self, key: Seq, block: Result<LeafBlock, (Seq, String)>, visit: &mut LeafVisit<'_>) -> ControlFlow<()> {
        if let Ok(block) = &block {
            if block.last < self.next {
                return ControlFlow::Continue(());
            }
            (self.next, self.last) = (Seq(block.last.0.saturating_add(1)), Some(block.last));
        }
        let flow = visit(key, block);
        self.ended |= flow.is_break();
        flow
    }
}

/// Every block's place and leaves, from the one that holds `from` on: of those that aged out, and of those that are there.
/// What cannot be read is named, with why.
///
/// # Errors
/// When the store does not answer.
pub(super) fn leaf_blocks(reader: &dyn LogReader, from: Seq, visit: &mut LeafVisit<'_>) -> Result<(), ReadError> {
    let mut walk = LeafWalk { from, next: from, last: (from <= Seq(1)).then_some(Seq::NONE), ended: false };
    loop {
        reader.removed_blocks(walk.next, &mut |key, bytes| walk.take(key, LeafBlock::of_removed(key, bytes), visit))?;
        // What ages out meanwhile, before the walk or in the middle of it, is found among what aged out, the next time.
        let mut again = false;
        if !walk.ended {
            reader.blocks(walk.next, &mut |key, bytes| {
                let block = LeafBlock::of(key, bytes);
                again = block.as_ref().is_ok_and(|block| !walk.is_next(block)) && holds_removed(reader, walk.next);
                if again { ControlFlow::Break(()) } else { walk.take(key, block, visit) }
            })?;
        }
        if !again {
            return Ok(());
        }
    }
}

/// Whether a block that aged out holds that record, or comes after it.
fn holds_removed(reader: &dyn LogReader, seq: Seq) -> bool {
    let mut holds = false;
    let read = reader.removed_blocks(seq, &mut |_, bytes| {
        holds = LeafBlock::of_removed(seq, bytes).is_ok_and(|block| block.last >= seq);
        if holds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.is_ok() && holds
}
