//! Whether blocks that come one after the other are a whole log: the chain, and the tree of their leaves. Knows no file.

use super::entry::End;
use crate::events::block::{Block, BlockHead};
use crate::events::removed::RemovedBlock;
use crate::events::retention::Base;
use crate::events::tree::{EMPTY_ROOT, Tree, TreeHead};
use crate::ids::{LogId, Seq};

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Follow {
    log: Option<LogId>,
    tree: Tree,
    last: Seq,
    following: u16,
    pub(super) blocks: u64,
    pub(super) records: u64,
}

impl Follow {
    /// Counts a block of a part, whatever is before it.
    pub(super) fn count(&mut self, bytes: &[u8]) {
        self.blocks += 1;
        self.records += Block::read(bytes).map_or(0, |block| block.count());
    }

    /// Takes the next block of a whole log.
    ///
    /// # Errors
    /// In words, when it is damaged or does not follow.
    pub(super) fn take(&mut self, key: Seq, bytes: &[u8]) -> Result<(), String> {
        let block = Block::read(bytes).map_err(|error| error.to_string())?;
        self.stands(key, block.head)?;
        for (seq, frame) in block.records() {
            let frame = frame.map_err(|error| format!("record {seq}: {error}"))?;
            if frame.seq() != seq {
                return Err(format!("record {seq} says that it is {}", frame.seq()));
            }
            self.tree.push(frame.leaf());
            self.following = frame.following();
        }
        self.last = block.last();
        self.blocks += 1;
        self.records += block.count();
        Ok(())
    }

    /// Takes what stays of the next block.
    ///
    /// # Errors
    /// In words, when it is damaged or does not follow.
    pub(super) fn removed(&mut self, key: Seq, bytes: &[u8]) -> Result<(), String> {
        let block = RemovedBlock::read(bytes).ok_or("what stays of the block does not read")?;
        self.stands(key, block.head)?;
        block.leaves.iter().for_each(|leaf| self.tree.push(*leaf));
        self.last = block.last();
        Ok(())
    }

    /// Takes what is before the first block of a segment.
    pub(super) fn base(&mut self, base: Base) {
        (self.log, self.last, self.tree) = (Some(base.log), base.last, base.tree);
    }

    fn stands(&mut self, key: Seq, head: BlockHead) -> Result<(), String> {
        let BlockHead { log, first, previous, before } = head;
        if first != key || previous != self.last || first <= self.last {
            return Err(format!("the block does not follow record {}", self.last));
        }
        if self.log != Some(log) {
            if self.following > 0 {
                return Err("another log begins within a reaction".to_owned());
            }
            (self.log, self.tree) = (Some(log), Tree::default());
            if before != (TreeHead { size: 0, root: EMPTY_ROOT }) {
                return Err("a log begins in the middle".to_owned());
            }
        } else if before != self.tree.head() {
            return Err("the tree before the block is another than its records give".to_owned());
        }
        Ok(())
    }

    /// What a file of these blocks says at its end; `None` when there were none.
    ///
    /// # Errors
    /// In words, when the last reaction is not whole.
    pub(super) fn end(self) -> Result<Option<End>, String> {
        if self.following > 0 {
            return Err("the last reaction is not whole".to_owned());
        }
        let Self { log, tree, last, blocks, records, .. } = self;
        Ok(log.map(|log| End { blocks, records, log, last, tree: tree.head(), whole: Some(tree) }))
    }
}
