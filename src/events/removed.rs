//! What stays of the blocks that aged out, as bytes: where each stood and the leaf of each of its records, so that the tree is whole;
//! and where each subject's numbers stand. Pure; docs/log-format.md, "What aged out", is the layout.

use super::block::{Block, BlockHead};
use super::tree::{Hash, TreeHead};
use crate::ids::{LogId, Seq};

const VERSION: u16 = 1;

/// The fixed part, bytes; the leaves follow.
const FIXED: usize = 80;

/// The length of a subject's numbers, bytes.
const NUMBERS: usize = 36;

/// A block's place and leaves, whether it is still there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafBlock {
    /// Where it stands.
    pub head: BlockHead,
    /// Its last record.
    pub last: Seq,
    /// The leaves of its records, in order, up to the first that cannot be read.
    pub leaves: Vec<Hash>,
    /// That one, and why.
    pub broken: Option<(Seq, String)>,
}

impl LeafBlock {
    /// Of a block that is there.
    ///
    /// # Errors
    /// Its first record, and why it cannot be read.
    pub fn of(key: Seq, bytes: &[u8]) -> Result<Self, (Seq, String)> {
        let block = Block::read(bytes).map_err(|error| (key, error.to_string()))?;
        let (mut leaves, mut broken) = (Vec::new(), None);
        for (seq, frame) in block.records() {
            match frame {
                Ok(frame) => leaves.push(frame.leaf()),
                Err(error) => {
                    broken = Some((seq, error.to_string()));
                    break;
                }
            }
        }
        Ok(Self { head: block.head, last: block.last(), leaves, broken })
    }

    /// Of what stays of one that aged out.
    ///
    /// # Errors
    /// Its first record, and why it cannot be read.
    pub fn of_removed(key: Seq, bytes: &[u8]) -> Result<Self, (Seq, String)> {
        let removed = RemovedBlock::read(bytes).ok_or_else(|| (key, "what stays of the block does not read".to_owned()))?;
        Ok(Self { head: removed.head, last: removed.last(), leaves: removed.leaves, broken: None })
    }
}

/// A block that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedBlock {
    /// Where it stood.
    pub head: BlockHead,
    /// The leaves of its records, in order; at least one.
    pub leaves: Vec<Hash>,
}

impl RemovedBlock {
    /// What stays of this block.
    ///
    /// # Errors
    /// The record, or the block's first, that cannot be read, and why.
    pub fn of(key: Seq, bytes: &[u8]) -> Result<Self, (Seq, String)> {
        let LeafBlock { head, leaves, broken, .. } = LeafBlock::of(key, bytes)?;
        broken.map_or(Ok(Self { head, leaves }), Err)
    }

    /// Its last record.
    #[must_use]
    pub fn last(&self) -> Seq {
        Seq(self.head.first.0.saturating_add(self.leaves.len() as u64 - 1))
    }

    /// As it is stored.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let BlockHead { log, first, previous, before } = self.head;
        let mut out = Vec::with_capacity(FIXED + 32 * self.leaves.len());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&log.0);
        for number in [first.0, previous.0, before.size] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&before.root);
        debug_assert_eq!(out.len(), FIXED, "the fixed part");
        self.leaves.iter().for_each(|leaf| out.extend_from_slice(leaf));
        let checksum = checksum(&out);
        out[4..8].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// From stored bytes; `None` when they are none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (fixed, leaves) = bytes.split_at_checked(FIXED)?;
        if leaves.is_empty() || bytes[..2] != VERSION.to_le_bytes() || checksum(bytes).to_le_bytes() != bytes[4..8] {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(fixed[at..at + 8].try_into().ok()?));
        let before = TreeHead { size: number(40)?, root: fixed[48..80].try_into().ok()? };
        let head = BlockHead { log: LogId(fixed[8..24].try_into().ok()?), first: Seq(number(24)?), previous: Seq(number(32)?), before };
        let leaves = leaves.chunks(32).map(Hash::try_from).collect::<Result<Vec<_>, _>>().ok()?;
        Some(Self { head, leaves })
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..4]);
    hasher.update(&bytes[8..]);
    hasher.finalize()
}

/// Where a subject's numbers stand after its last record that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The log of that record.
    pub log: LogId,
    /// Its subject seq.
    pub last: u64,
    /// Its time.
    pub time_us: i64,
}

impl Numbers {
    /// As they are stored.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.extend_from_slice(&self.log.0);
        out.extend_from_slice(&self.last.to_le_bytes());
        out.extend_from_slice(&self.time_us.to_le_bytes());
        let checksum = crc32fast::hash(&out[4..]);
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// From stored bytes; `None` when they are none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != NUMBERS || crc32fast::hash(&bytes[4..]).to_le_bytes() != bytes[..4] {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?));
        Some(Self { log: LogId(bytes[4..20].try_into().ok()?), last: number(20)?, time_us: number(28)?.cast_signed() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn removed() -> RemovedBlock {
        let before = TreeHead { size: 4, root: [3; 32] };
        let head = BlockHead { log: LogId([1; 16]), first: Seq(7), previous: Seq(5), before };
        RemovedBlock { head, leaves: vec![[8; 32], [9; 32]] }
    }

    #[test]
    fn what_is_stored_reads_back() {
        assert_eq!(RemovedBlock::read(&removed().bytes()), Some(removed()));
        assert_eq!(removed().last(), Seq(8));
        let numbers = Numbers { log: LogId([1; 16]), last: 300, time_us: -5 };
        assert_eq!(Numbers::read(&numbers.bytes()), Some(numbers));
        assert_eq!((RemovedBlock::read(&[]), Numbers::read(&[])), (None, None));
        assert_eq!(RemovedBlock::read(&removed().bytes()[..FIXED]), None);
    }

    proptest! {
        #[test]
        fn no_flip_goes_unseen(at in 0..144_usize, flip in 1..=255_u8) {
            let mut bytes = removed().bytes();
            bytes[at] ^= flip;
            prop_assert_eq!(RemovedBlock::read(&bytes), None);
            let mut bytes = Numbers { log: LogId([1; 16]), last: 300, time_us: 5 }.bytes();
            bytes[at % NUMBERS] ^= flip;
            prop_assert_eq!(Numbers::read(&bytes), None);
        }
    }
}
