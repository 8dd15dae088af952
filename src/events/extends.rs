//! Whether a log extends what somebody saw of it: the tree of its first leaves, made anew from every record. Knows no signature.

use std::ops::ControlFlow;

use super::leaf_blocks::leaf_blocks;
use super::log::{LogReader, ReadError};
use super::removed::LeafBlock;
use super::tree::{EMPTY_ROOT, Hash, Tree, TreeHead};
use crate::ids::{LogId, Seq};

/// What a log is to a tree that was seen of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extends {
    /// It begins with exactly those leaves. So many records came after them.
    Yes {
        /// Records behind them.
        since: u64,
    },
    /// Its first leaves give another root: one of them was changed, left out, added or moved.
    Differs {
        /// The root that they give.
        root: Hash,
    },
    /// It has fewer: records that were seen are not there.
    Shorter {
        /// How many it has.
        size: u64,
    },
    /// There is no such log in the store.
    NoSuchLog,
    /// What is stored cannot be read that far, or begins later: it can be said of neither.
    Unreadable {
        /// The record, or the block's first.
        seq: Seq,
        /// Why.
        what: String,
    },
}

/// Compares the log with a tree that was seen of it. Nothing that the log says of itself is believed: every leaf is made from
/// its record.
///
/// # Errors
/// When the store does not answer.
pub fn extends(reader: &dyn LogReader, log: LogId, seen: &TreeHead) -> Result<Extends, ReadError> {
    let mut pass = Pass { seen: *seen, tree: Tree::default(), root: (seen.size == 0).then_some(EMPTY_ROOT), there: false, stopped: None };
    if let Some(base) = reader.base().filter(|base| base.log == log && base.tree.size() <= seen.size) {
        (pass.there, pass.tree) = (true, base.tree);
        if pass.tree.size() == seen.size {
            pass.root = Some(pass.tree.root());
        }
    }
    leaf_blocks(reader, Seq::NONE, &mut |key, block| match pass.block(log, key, block) {
        Ok(()) => ControlFlow::Continue(()),
        Err(stopped) => {
            pass.stopped = Some(stopped);
            ControlFlow::Break(())
        }
    })?;
    Ok(pass.answer())
}

struct Pass {
    seen: TreeHead,
    tree: Tree,
    /// The root over as many leaves as were seen, once there are that many.
    root: Option<Hash>,
    there: bool,
    stopped: Option<(Seq, String)>,
}

impl Pass {
    fn block(&mut self, log: LogId, key: Seq, block: Result<LeafBlock, (Seq, String)>) -> Result<(), (Seq, String)> {
        let block = block?;
        if block.head.log != log {
            return Ok(());
        }
        if !self.there && block.head.before.size > 0 {
            return Err((key, format!("the {} records before it are not there", block.head.before.size)));
        }
        self.there = true;
        for leaf in block.leaves {
            self.tree.push(leaf);
            if self.tree.size() == self.seen.size {
                self.root = Some(self.tree.root());
            }
        }
        block.broken.map_or(Ok(()), Err)
    }

    fn answer(self) -> Extends {
        match (self.root, self.stopped) {
            // What cannot be read behind it changes nothing of what was seen.
            (Some(root), _) if self.there && root == self.seen.root => Extends::Yes { since: self.tree.size() - self.seen.size },
            (Some(root), _) if self.there => Extends::Differs { root },
            (_, Some((seq, what))) => Extends::Unreadable { seq, what },
            (_, None) if self.there => Extends::Shorter { size: self.tree.size() },
            (_, None) => Extends::NoSuchLog,
        }
    }
}
