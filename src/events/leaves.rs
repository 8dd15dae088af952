//! Roots of subtrees of a log, read from its blocks in bounded memory: what proofs are made of. Knows no proof and no signature.
//!
//! The roots of every 1,024 leaves are kept, 40 bytes each: a proof then reads at most the leaves of two such tiles again, however
//! long the log is. Nothing is kept on disk: the first proof of a process reads the log once, a later one what came since.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use super::leaf_blocks::leaf_blocks;
use super::log::{LogReader, ReadError};
use super::tree::{Hash, Tree, node};
use crate::ids::{LogId, Seq};

/// Leaves of a tile.
const TILE: u64 = 1_024;

/// Why a subtree has no root that can be told.
#[derive(Debug, thiserror::Error)]
pub enum LeavesError {
    /// The store does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A record, or its block, cannot be read.
    #[error("record {0} is damaged")]
    Damaged(Seq),
    /// The log has no record at this position: it ends before it, or what was there was removed.
    #[error("there is no record at position {0}")]
    Missing(u64),
}

/// The subtrees of one log.
#[derive(Debug)]
pub struct Leaves {
    log: LogId,
    tiles: Vec<Tile>,
    /// The block that holds the first leaf behind the last tile, or comes before it.
    next: Seq,
}

#[derive(Debug, Clone, Copy)]
struct Tile {
    /// The block that holds its first leaf.
    block: Seq,
    root: Hash,
}

/// The leaves of the tiles that one proof looks into, each read once.
struct Opened {
    /// Nothing of the proof is behind this position.
    end: u64,
    tiles: BTreeMap<u64, Vec<Hash>>,
}

impl Leaves {
    /// Of that log; nothing is read yet.
    #[must_use]
    pub fn new(log: LogId) -> Self {
        Self { log, tiles: Vec::new(), next: Seq::NONE }
    }

    /// Which log.
    #[must_use]
    pub fn log(&self) -> LogId {
        self.log
    }

    /// The roots of subtrees of the tree of RFC 6962, each a range of leaves: whole, or at the right edge of a tree of any size up
    /// to the reader's own.
    ///
    /// # Errors
    /// Any [`LeavesError`].
    pub fn roots(&mut self, reader: &dyn LogReader, ranges: &[Range<u64>]) -> Result<Vec<Hash>, LeavesError> {
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        self.reach(reader, end)?;
        let mut opened = Opened { end, tiles: BTreeMap::new() };
        ranges.iter().map(|range| self.root(reader, range, &mut opened)).collect()
    }

    /// Makes every whole tile below `end`.
    fn reach(&mut self, reader: &dyn LogReader, end: u64) -> Result<(), LeavesError> {
        let wanted = end / TILE;
        if self.tiles.len() as u64 >= wanted {
            return Ok(());
        }
        let from = self.tiles.len() as u64 * TILE;
        let (mut tile, mut begins) = (Tree::default(), self.next);
        each_leaf(reader, self.log, self.next, from..wanted * TILE, &mut |position, block, leaf| {
            if position.is_multiple_of(TILE) {
                begins = block;
            }
            tile.push(leaf);
            if tile.size() == TILE {
                self.tiles.push(Tile { block: begins, root: tile.root() });
                (self.next, tile) = (block, Tree::default());
            }
        })
    }

    fn root(&self, reader: &dyn LogReader, range: &Range<u64>, opened: &mut Opened) -> Result<Hash, LeavesError> {
        let (first, last) = (range.start / TILE, range.end / TILE);
        // Tiles are leaves of the upper tree; what is behind the last whole one hangs to the right of all of them.
        let mut tiles = Tree::default();
        if range.start.is_multiple_of(TILE) {
            self.tiles[self.at(first)..self.at(last)].iter().for_each(|tile| tiles.push(tile.root));
        }
        let from = if tiles.size() > 0 { last * TILE } else { range.start };
        if from == range.end {
            return Ok(tiles.root());
        }
        let leaves = self.open(reader, from / TILE, opened)?;
        let within = |position: u64| usize::try_from(position - from / TILE * TILE).unwrap_or(usize::MAX);
        let mut tail = Tree::default();
        leaves[within(from)..within(range.end)].iter().for_each(|leaf| tail.push(*leaf));
        Ok(tiles.frontier().iter().rev().fold(tail.root(), |right, left| node(left, &right)))
    }

    /// The leaves of a tile, as far as the proof reaches.
    fn open<'a>(&self, reader: &dyn LogReader, tile: u64, opened: &'a mut Opened) -> Result<&'a [Hash], LeavesError> {
        let positions = tile * TILE..opened.end.min((tile + 1) * TILE);
        let leaves = opened.tiles.entry(tile).or_default();
        if leaves.is_empty() {
            let from = self.tiles.get(self.at(tile)).map_or(self.next, |tile| tile.block);
            each_leaf(reader, self.log, from, positions, &mut |_, _, leaf| leaves.push(leaf))?;
        }
        Ok(leaves)
    }

    fn at(&self, tile: u64) -> usize {
        usize::try_from(tile).unwrap_or(usize::MAX)
    }
}

/// Every leaf of those positions in order, each with its position and its block, from the block `from` on; all must be there.
fn each_leaf(
    reader: &dyn LogReader,
    log: LogId,
    from: Seq,
    positions: Range<u64>,
    visit: &mut dyn FnMut(u64, Seq, Hash),
) -> Result<(), LeavesError> {
    let mut next = positions.start;
    let mut damaged = None;
    leaf_blocks(reader, from, &mut |key, block| {
        let block = match block {
            Ok(block) => block,
            Err((seq, _)) => {
                damaged = Some(seq);
                return ControlFlow::Break(());
            }
        };
        let first = block.head.before.size;
        if block.head.log != log || first.saturating_add(block.leaves.len() as u64) <= next && block.broken.is_none() {
            return ControlFlow::Continue(());
        }
        for (position, leaf) in (first..positions.end).zip(&block.leaves) {
            if position == next {
                visit(position, key, *leaf);
                next += 1;
            }
        }
        if next < positions.end {
            damaged = block.broken.map(|(seq, _)| seq);
        }
        // A block that begins behind the next one: what was before it is gone.
        if next < positions.end && first <= next && damaged.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    match damaged {
        Some(seq) => Err(LeavesError::Damaged(seq)),
        None if next < positions.end => Err(LeavesError::Missing(next)),
        None => Ok(()),
    }
}
