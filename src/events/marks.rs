//! The small file beside the store that knows how far the log was acknowledged: marks and ceilings as bytes, and how the newest
//! is found. Knows no file and no store.
//!
//! The file has four slots of 4 KiB. Ceilings alternate between the first two, marks between the last two, each with a
//! generation one higher than the last: a write that is torn or lost leaves the one before it (docs/log-format.md, "Marks").

use super::tree::{Hash, Tree};
use crate::ids::{LogId, Seq};

/// A slot's length, bytes: a page, so that writing one never touches another.
pub const SLOT: usize = 4096;

/// The whole file, bytes.
pub const FILE: usize = 4 * SLOT;

/// How far a ceiling is above the last record when it is written. A sync for each commit would cost 40 % (NOTES 3.4).
pub const CEILING_AHEAD: u64 = 65_536;

/// No log comes this far; a number at or above it was not written by one, and has no room for the numbers after it.
pub const SEQ_END: u64 = 1 << 62;

/// No clock shows this, microseconds from 1970 either way (146,000 years): what is beyond it has no room for a deadline.
pub const TIME_END_US: u64 = 1 << 62;

const MAGIC: [u8; 4] = *b"whmk";
const VERSION: u8 = 1;
const CEILING: u8 = 1;
const MARK: u8 = 2;
const FIXED: usize = 64;

/// How far the log was acknowledged. Written after each commit, before it is acknowledged; synced at start and stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The log.
    pub log: LogId,
    /// Its last acknowledged record.
    pub last: Seq,
    /// Whether the log was closed in order and nothing came after.
    pub clean: bool,
    /// Its tree up to that record.
    pub tree: Tree,
}

/// No seq above it has been given to anybody. Synced before a seq above the one before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// The log that was being written, or begun.
    pub log: LogId,
    /// The highest seq that may have been used.
    pub seq: Seq,
}

/// What the file says, and where the next slot goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    /// The newest readable mark.
    pub mark: Option<Mark>,
    /// The newest readable ceiling.
    pub ceiling: Option<Ceiling>,
    /// A slot is sound, and a newer build wrote it.
    pub newer: bool,
    mark_generation: u64,
    ceiling_generation: u64,
}

/// A slot to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Where in the file.
    pub offset: u64,
    /// At most [`SLOT`] bytes.
    pub bytes: Vec<u8>,
}

impl Marks {
    /// From the file's bytes; what is not readable is not there.
    #[must_use]
    pub fn read(file: &[u8]) -> Self {
        let mut marks = Self::default();
        for slot in file.chunks(SLOT) {
            match read_slot(slot) {
                Some((generation, Content::Mark(mark))) if generation > marks.mark_generation => {
                    (marks.mark, marks.mark_generation) = (Some(mark), generation);
                }
                Some((generation, Content::Ceiling(ceiling))) if generation > marks.ceiling_generation => {
                    (marks.ceiling, marks.ceiling_generation) = (Some(ceiling), generation);
                }
                Some((_, Content::Newer)) => marks.newer = true,
                _ => {}
            }
        }
        marks
    }

    /// Takes `mark` as the newest and gives the slot to write.
    pub fn set_mark(&mut self, mark: Mark) -> Slot {
        self.mark_generation += 1;
        let flags = u8::from(mark.clean);
        let mut bytes = fixed(MARK, flags, self.mark_generation, mark.log, mark.last);
        bytes.extend_from_slice(&mark.tree.size().to_le_bytes());
        for hash in mark.tree.frontier() {
            bytes.extend_from_slice(hash);
        }
        seal(&mut bytes);
        self.mark = Some(mark);
        Slot { offset: (2 + self.mark_generation % 2) * SLOT as u64, bytes }
    }

    /// Takes `ceiling` as the newest and gives the slot to write.
    pub fn set_ceiling(&mut self, ceiling: Ceiling) -> Slot {
        self.ceiling_generation += 1;
        let mut bytes = fixed(CEILING, 0, self.ceiling_generation, ceiling.log, ceiling.seq);
        bytes.extend_from_slice(&0_u64.to_le_bytes());
        seal(&mut bytes);
        self.ceiling = Some(ceiling);
        Slot { offset: (self.ceiling_generation % 2) * SLOT as u64, bytes }
    }
}

enum Content {
    Mark(Mark),
    Ceiling(Ceiling),
    Newer,
}

fn fixed(what: u8, flags: u8, generation: u64, log: LogId, seq: Seq) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FIXED + 64 * 32);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[VERSION, what, flags, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&generation.to_le_bytes());
    bytes.extend_from_slice(&log.0);
    bytes.extend_from_slice(&seq.0.to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes
}

fn seal(bytes: &mut [u8]) {
    let length = u16::try_from(bytes.len()).expect("a slot is a page");
    bytes[12..14].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[4..]);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
}

fn read_slot(slot: &[u8]) -> Option<(u64, Content)> {
    let fixed = slot.first_chunk::<FIXED>()?;
    let number = |at: usize| fixed[at..at + 8].try_into().map(u64::from_le_bytes).ok();
    let bytes = slot.get(..usize::from(u16::from_le_bytes([fixed[12], fixed[13]])))?;
    if fixed[4..8] != MAGIC || bytes.len() < FIXED || crc32fast::hash(&bytes[4..]).to_le_bytes() != fixed[..4] {
        return None;
    }
    if fixed[8] != VERSION {
        return Some((number(16)?, Content::Newer));
    }
    let (what, size) = (fixed[9], number(56)?);
    let hashes = if what == MARK { size.count_ones() as usize } else { 0 };
    if bytes.len() != FIXED + 32 * hashes {
        return None;
    }
    let log = LogId(fixed[24..40].try_into().ok()?);
    let (generation, seq) = (number(16)?, Seq(number(40)?));
    if seq.0 >= SEQ_END || generation >= SEQ_END || (what == MARK && size > seq.0) {
        return None;
    }
    let content = match what {
        CEILING => Content::Ceiling(Ceiling { log, seq }),
        MARK => {
            let frontier = bytes[FIXED..].chunks_exact(32).map(Hash::try_from).collect::<Result<Vec<_>, _>>().ok()?;
            Content::Mark(Mark { log, last: seq, clean: fixed[10] & 1 == 1, tree: Tree::from_frontier(size, frontier)? })
        }
        _ => return None,
    };
    Some((generation, content))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mark(last: u64) -> Mark {
        let mut tree = Tree::default();
        (0..last).for_each(|leaf| tree.push([leaf as u8; 32]));
        Mark { log: LogId([1; 16]), last: Seq(last), clean: last.is_multiple_of(2), tree }
    }

    fn put(file: &mut [u8], slot: &Slot) {
        let at = usize::try_from(slot.offset).expect("small");
        file[at..at + slot.bytes.len()].copy_from_slice(&slot.bytes);
    }

    #[test]
    fn the_newest_is_found_and_a_torn_one_leaves_the_one_before() {
        let mut file = vec![0; FILE];
        let mut marks = Marks::read(&file);
        assert_eq!(marks, Marks::default());
        for last in 1..200 {
            put(&mut file, &marks.set_mark(mark(last)));
            put(&mut file, &marks.set_ceiling(Ceiling { log: LogId([1; 16]), seq: Seq(last + CEILING_AHEAD) }));
            assert_eq!(Marks::read(&file), marks, "{last}");
        }
        let slot = marks.set_mark(mark(200));
        put(&mut file, &Slot { offset: slot.offset, bytes: slot.bytes[..60].to_vec() });
        assert_eq!(Marks::read(&file).mark, Some(mark(199)));
    }

    #[test]
    fn the_largest_frontier_fits_a_slot() {
        let tree = Tree::from_frontier(u64::MAX, vec![[9; 32]; 64]).expect("one hash for each bit");
        let slot = Marks::default().set_mark(Mark { log: LogId([1; 16]), last: Seq(1), clean: false, tree });
        assert!(slot.bytes.len() <= SLOT);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_no_flip_goes_unseen(at in 0..FIXED + 32 * 3, flip in 1..=255_u8, junk in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut file = vec![0; FILE];
            let mut marks = Marks::default();
            let slot = marks.set_mark(mark(7));
            put(&mut file, &slot);
            file[usize::try_from(slot.offset).expect("small") + at] ^= flip;
            prop_assert_eq!(Marks::read(&file).mark, None);
            let _ = Marks::read(&junk);
        }
    }
}
