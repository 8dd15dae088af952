//! A block: consecutive records under one key of the store, with what the chain needs. Knows no store and no payload.
//!
//! docs/log-format.md, "Block", is the specification. The directory of lengths lets every record be found and checked alone:
//! one bad record hides no other.

use super::frame::{self, Frame, FrameError};
use super::tree::{Hash, TreeHead};
use crate::ids::{LogId, Seq};

/// The version of the block's layout.
pub const BLOCK_VERSION: u16 = 1;

/// The version of a block of that layout that a store has packed (`packed.rs`): the same with the top bit.
pub const PACKED_VERSION: u16 = 0x8000 | BLOCK_VERSION;

/// The block's fixed part, bytes; the directory follows.
pub const BLOCK_FIXED: usize = 80;

/// The largest block, bytes. A value above a quarter of the store's segment goes to a file that is never synced, and a full
/// leaf of 16 values counts as one (DESIGN.md, "The log"): 16 of these are 384 KiB of the 512 that a 2 MiB segment allows.
pub const BLOCK_MAX: usize = 24 * 1024;

const _: () = assert!(BLOCK_FIXED + 2 + frame::FRAME_MAX <= BLOCK_MAX, "the largest record fits a block");

/// Why bytes are no block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Too short, or too long.
    #[error("{0} bytes are no block")]
    Size(usize),
    /// The checksum of header and directory does not hold.
    #[error("the block's checksum does not hold")]
    Checksum,
    /// A newer build wrote a layout that this one does not know.
    #[error("block version {0} is not known to this build")]
    Newer(u16),
    /// It was stored packed, its checksum holds, and it does not unpack.
    #[error("the block does not unpack")]
    Packed,
    /// The directory does not cover the block.
    #[error("the block's directory does not cover its bytes")]
    Directory,
}

/// Where a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// The log that its records belong to.
    pub log: LogId,
    /// Its first record, and its key.
    pub first: Seq,
    /// The last record before it in this store, of whatever log; [`Seq::NONE`] for none. Above it and below `first` is a named
    /// gap: numbers that were given to nobody, or to nobody whose answer was ever sent.
    pub previous: Seq,
    /// The log's tree before its first record.
    pub before: TreeHead,
}

/// A block that is being filled.
#[derive(Debug)]
pub struct BlockWriter {
    head: BlockHead,
    lengths: Vec<u16>,
    frames: Vec<u8>,
}

impl BlockWriter {
    /// An empty block.
    #[must_use]
    pub fn new(head: BlockHead) -> Self {
        Self { head, lengths: Vec::new(), frames: Vec::new() }
    }

    /// Its first record, and its key.
    #[must_use]
    pub fn first(&self) -> Seq {
        self.head.first
    }

    /// Whether a frame of that length still fits.
    #[must_use]
    pub fn has_room(&self, frame: usize) -> bool {
        BLOCK_FIXED + 2 * (self.lengths.len() + 1) + self.frames.len() + frame <= BLOCK_MAX
    }

    /// Adds a frame; the caller has asked [`Self::has_room`].
    pub fn push(&mut self, frame: &[u8]) {
        self.push_written(|out| out.extend_from_slice(frame));
    }

    /// Adds the frame that `write` appends, of the length that the caller has asked [`Self::has_room`] for.
    pub fn push_written<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let before = self.frames.len();
        let written = write(&mut self.frames);
        self.lengths.push(u16::try_from(self.frames.len() - before).expect("a frame is smaller than a block"));
        written
    }

    /// The frames that were added.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        self.lengths.iter().map(move |length| {
            at += usize::from(*length);
            &self.frames[at - usize::from(*length)..at]
        })
    }

    /// The block's bytes, behind a tree that was not known when it was begun.
    #[must_use]
    pub fn finish_behind(mut self, before: TreeHead) -> Vec<u8> {
        self.head.before = before;
        self.finish()
    }

    /// The block's bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_FIXED + 2 * self.lengths.len() + self.frames.len());
        let head_length = u16::try_from(BLOCK_FIXED + 2 * self.lengths.len()).expect("the head is a part of a block");
        out.extend_from_slice(&BLOCK_VERSION.to_le_bytes());
        out.extend_from_slice(&head_length.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.head.log.0);
        out.extend_from_slice(&self.head.first.0.to_le_bytes());
        out.extend_from_slice(&self.head.previous.0.to_le_bytes());
        out.extend_from_slice(&self.head.before.size.to_le_bytes());
        out.extend_from_slice(&self.head.before.root);
        debug_assert_eq!(out.len(), BLOCK_FIXED, "the fixed part");
        for length in &self.lengths {
            out.extend_from_slice(&length.to_le_bytes());
        }
        let checksum = checksum(&out);
        out[4..8].copy_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&self.frames);
        out
    }
}

/// Over header and directory, without the checksum's own four bytes.
fn checksum(head: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..4]);
    hasher.update(&head[8..]);
    hasher.finalize()
}

/// A block's bytes, its header and directory checked.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Where it stands.
    pub head: BlockHead,
    directory: &'a [u8],
    frames: &'a [u8],
}

impl<'a> Block<'a> {
    /// Checks header and directory.
    ///
    /// # Errors
    /// Any [`BlockError`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, BlockError> {
        if bytes.len() < BLOCK_FIXED {
            return Err(BlockError::Size(bytes.len()));
        }
        let head_length = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]));
        if bytes.len() > BLOCK_MAX || !(BLOCK_FIXED..=bytes.len()).contains(&head_length) {
            return Err(BlockError::Size(bytes.len()));
        }
        let (head, frames) = bytes.split_at(head_length);
        if checksum(head).to_le_bytes() != bytes[4..8] {
            return Err(BlockError::Checksum);
        }
        let version = u16::from_le_bytes([bytes[0], bytes[1]]);
        match version {
            BLOCK_VERSION => {}
            PACKED_VERSION => return Err(BlockError::Packed),
            _ => return Err(BlockError::Newer(version)),
        }
        let directory = &head[BLOCK_FIXED..];
        if directory.is_empty() || directory.len() % 2 != 0 || lengths(directory).sum::<usize>() != frames.len() {
            return Err(BlockError::Directory);
        }
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let head = BlockHead {
            log: LogId(head[8..24].try_into().expect("sixteen bytes")),
            first: Seq(number(24)),
            previous: Seq(number(32)),
            before: TreeHead { size: number(40), root: Hash::try_from(&head[48..80]).expect("thirty-two bytes") },
        };
        Ok(Self { head, directory, frames })
    }

    /// How many records it holds; at least 1.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.directory.len() as u64 / 2
    }

    /// Its last record.
    #[must_use]
    pub fn last(&self) -> Seq {
        Seq(self.head.first.0.saturating_add(self.count() - 1))
    }

    /// Its records in order, each with the number that its place gives it.
    pub fn records(&self) -> impl Iterator<Item = (Seq, Result<Frame<'a>, FrameError>)> + use<'a> {
        let first = self.head.first.0;
        self.frames().zip(0_u64..).map(move |(bytes, index)| (Seq(first.saturating_add(index)), Frame::read(bytes)))
    }

    /// Their bytes as stored.
    pub fn frames(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let frames = self.frames;
        let mut at = 0;
        lengths(self.directory).map(move |length| {
            at += length;
            &frames[at - length..at]
        })
    }
}

fn lengths(directory: &[u8]) -> impl Iterator<Item = usize> + use<'_> {
    directory.chunks_exact(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]])))
}
