//! The backup file as bytes: head, entries, end. Knows no block and no folder; no bytes make it panic.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use super::BackupError;
use crate::events::block::BLOCK_MAX;
use crate::events::retention::Base;
use crate::events::tree::{Hash, Tree, TreeHead};
use crate::ids::{LogId, Seq};

const MAGIC: [u8; 4] = *b"whbk";
const VERSION: u16 = 1;

/// The longest document, bytes: every setting, several times over.
const DOCUMENT_MAX: usize = 1 << 20;

/// Length, checksum and letter.
const ENTRY_FIXED: usize = 9;

/// A block: its key, and the value as stored.
pub const BLOCK: u8 = b'b';

/// What stays of a block that aged out: its key, and the value as stored.
const REMOVED: u8 = b'l';

/// Where a subject's numbers stand after what aged out: the value as stored, then the subject. Whoever follows the log must know it.
const NUMBERS: u8 = b'R';

/// The tree before the first block, when what is before it is elsewhere.
const BASE: u8 = b'T';

/// The length of a subject's numbers as stored, bytes.
const NUMBERS_LENGTH: usize = 36;

/// The end: what the file holds.
const END: u8 = b'E';

/// The longest value of an entry, bytes; the rest is for what later versions put beside the blocks.
const VALUE_MAX: usize = 64 << 10;

const _: () = assert!(BLOCK_MAX + 8 <= VALUE_MAX, "the largest block fits an entry");

/// What a backup says at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Blocks in the file.
    pub blocks: u64,
    /// Records in the file.
    pub records: u64,
    /// The log id of the tree.
    pub log: LogId,
    /// The last record of that tree. In a whole backup it is the last record of the file.
    pub last: Seq,
    /// Size and root of that tree.
    pub tree: TreeHead,
    /// The tree itself, when the file holds the whole log up to `last`.
    pub whole: Option<Tree>,
}

/// The head: what the file says of itself, a JSON document.
#[must_use]
pub fn head(document: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&u32::try_from(document.len()).expect("a document is small").to_le_bytes());
    out.extend_from_slice(document);
    out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
    out
}

/// Appends the entry of a block.
pub fn block(key: Seq, bytes: &[u8], out: &mut Vec<u8>) {
    entry(BLOCK, &[&key.0.to_le_bytes(), bytes], out);
}

/// Appends the entry of what stays of a block.
pub fn removed(key: Seq, bytes: &[u8], out: &mut Vec<u8>) {
    entry(REMOVED, &[&key.0.to_le_bytes(), bytes], out);
}

/// Appends the entry of a subject's numbers.
pub fn numbers(subject: &str, bytes: &[u8], out: &mut Vec<u8>) {
    entry(NUMBERS, &[bytes, subject.as_bytes()], out);
}

/// Appends the entry of what is before the first block.
pub fn base(base: &Base, out: &mut Vec<u8>) {
    let frontier = base.tree.frontier().concat();
    entry(BASE, &[&base.log.0, &base.last.0.to_le_bytes(), &base.tree.size().to_le_bytes(), &frontier], out);
}

/// Appends the end; the file's checksum comes after it.
pub fn end(end: &End, out: &mut Vec<u8>) {
    let mut value = vec![u8::from(end.whole.is_some())];
    for number in [end.blocks, end.records] {
        value.extend_from_slice(&number.to_le_bytes());
    }
    value.extend_from_slice(&end.log.0);
    for number in [end.last.0, end.tree.size] {
        value.extend_from_slice(&number.to_le_bytes());
    }
    value.extend_from_slice(&end.tree.root);
    for hash in end.whole.iter().flat_map(Tree::frontier) {
        value.extend_from_slice(hash);
    }
    entry(END, &[&value], out);
}

fn entry(letter: u8, value: &[&[u8]], out: &mut Vec<u8>) {
    let length: usize = value.iter().map(|part| part.len()).sum();
    debug_assert!(length <= VALUE_MAX, "a value is bounded");
    let start = out.len();
    out.extend_from_slice(&u32::try_from(length).expect("a value is bounded").to_le_bytes());
    out.extend_from_slice(&[0, 0, 0, 0, letter]);
    value.iter().for_each(|part| out.extend_from_slice(part));
    let checksum = checksum(&out[start..start + 4], &out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(length: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(length);
    hasher.update(rest);
    hasher.finalize()
}

/// What comes next in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A block.
    Block {
        /// Its key.
        key: Seq,
        /// Where the value begins in what is read.
        at: u64,
        /// The value as stored.
        bytes: Vec<u8>,
    },
    /// What stays of a block.
    Removed {
        /// Its key.
        key: Seq,
        /// Where the value begins in what is read.
        at: u64,
        /// The value as stored.
        bytes: Vec<u8>,
    },
    /// Where a subject's numbers stand.
    Numbers {
        /// The subject.
        subject: String,
        /// The value as stored.
        bytes: Vec<u8>,
    },
    /// What is before the first block.
    Base(Base),
    /// The end; nothing comes after it.
    End(End),
}

/// Reads entries one behind the other, in bounded memory.
#[derive(Debug)]
pub struct Entries<R> {
    from: R,
    at: u64,
    after: Seq,
    sum: Sha256,
}

impl<R: Read> Entries<R> {
    /// From a file: its head is read and checked, and its document given.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn of_file(from: R) -> Result<(Self, Vec<u8>), BackupError> {
        let mut entries = Self::of_page(from);
        let mut fixed = [0; 12];
        let there = read_up_to(&mut entries.from, &mut fixed)?;
        if fixed[..there.min(4)] != MAGIC[..there.min(4)] || there == 0 {
            return Err(BackupError::NotOne);
        }
        if there < fixed.len() {
            return Err(entries.damaged("the file ends in its head"));
        }
        let version = u16::from_le_bytes([fixed[4], fixed[5]]);
        let length = u32::from_le_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]) as usize;
        if length > DOCUMENT_MAX {
            return Err(entries.damaged("the length of its head is not one"));
        }
        let mut rest = vec![0; length + 4];
        if read_up_to(&mut entries.from, &mut rest)? < rest.len() {
            return Err(entries.damaged("the file ends in its head"));
        }
        entries.pass(&fixed);
        entries.pass(&rest);
        let (document, sum) = rest.split_at(length);
        if checksum(&fixed, document).to_le_bytes() != sum {
            return Err(BackupError::Damaged { at: 0, after: Seq::NONE, what: "the checksum of the head does not hold".to_owned() });
        }
        if version != VERSION {
            return Err(BackupError::Newer(format!("its form is number {version}")));
        }
        Ok((entries, document.to_vec()))
    }

    /// From entries alone, as the daemon sends them.
    pub fn of_page(from: R) -> Self {
        Self { from, at: 0, after: Seq::NONE, sum: Sha256::new() }
    }

    /// The next entry that this build knows; `None` only at the end of a page.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn step(&mut self) -> Result<Option<Next>, BackupError> {
        loop {
            let mut fixed = [0; ENTRY_FIXED];
            match read_up_to(&mut self.from, &mut fixed)? {
                0 => return Ok(None),
                there if there < ENTRY_FIXED => return Err(self.damaged("it ends in an entry")),
                _ => {}
            }
            let length = u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]) as usize;
            if length > VALUE_MAX {
                return Err(self.damaged("the length of the entry is not one"));
            }
            let mut value = vec![0; length];
            if read_up_to(&mut self.from, &mut value)? < length {
                return Err(self.damaged("it ends in an entry"));
            }
            let letter = fixed[8];
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(&fixed[..4]);
            hasher.update(&[letter]);
            hasher.update(&value);
            if hasher.finalize().to_le_bytes() != fixed[4..8] {
                return Err(self.damaged("the checksum of the entry does not hold"));
            }
            let (begins, known) = (self.at, self.known(letter, value)?);
            self.pass(&fixed);
            match known {
                Known::Block(key, value) => {
                    self.pass(&value);
                    self.after = key;
                    let bytes = value[8..].to_vec();
                    return Ok(Some(Next::Block { key, at: begins + ENTRY_FIXED as u64 + 8, bytes }));
                }
                Known::Removed(key, value) => {
                    self.pass(&value);
                    self.after = key;
                    let bytes = value[8..].to_vec();
                    return Ok(Some(Next::Removed { key, at: begins + ENTRY_FIXED as u64 + 8, bytes }));
                }
                Known::Numbers(subject, value) => {
                    self.pass(&value);
                    return Ok(Some(Next::Numbers { subject, bytes: value[..NUMBERS_LENGTH].to_vec() }));
                }
                Known::Base(base, value) => {
                    self.pass(&value);
                    return Ok(Some(Next::Base(base)));
                }
                Known::End(end, value) => {
                    self.pass(&value);
                    return self.ends().map(|()| Some(Next::End(end)));
                }
                Known::Ignored(value) => self.pass(&value),
            }
        }
    }

    fn known(&self, letter: u8, value: Vec<u8>) -> Result<Known, BackupError> {
        match letter {
            BLOCK | REMOVED => {
                let key = value.first_chunk::<8>().map(|key| Seq(u64::from_le_bytes(*key)));
                let key = key.ok_or_else(|| self.damaged("the entry is no block"))?;
                if key <= self.after {
                    return Err(self.damaged("the blocks are not in order"));
                }
                Ok(if letter == BLOCK { Known::Block(key, value) } else { Known::Removed(key, value) })
            }
            NUMBERS => {
                let subject = value.get(NUMBERS_LENGTH..).and_then(|subject| std::str::from_utf8(subject).ok());
                let subject = subject.ok_or_else(|| self.damaged("the entry is no subject's numbers"))?.to_owned();
                Ok(Known::Numbers(subject, value))
            }
            BASE => Ok(Known::Base(read_base(&value).ok_or_else(|| self.damaged("the entry is no tree"))?, value)),
            END => Ok(Known::End(read_end(&value).ok_or_else(|| self.damaged("the entry is no end"))?, value)),
            small if small.is_ascii_lowercase() => Ok(Known::Ignored(value)),
            other => Err(BackupError::Newer(format!("at byte {} it has an entry of letter {other}", self.at))),
        }
    }

    /// The checksum over all that was read, and nothing behind it.
    fn ends(&mut self) -> Result<(), BackupError> {
        let mut sum = [0; 33];
        let there = read_up_to(&mut self.from, &mut sum)?;
        if there < 32 {
            return Err(self.damaged("the file ends in its checksum"));
        }
        let expected: Hash = self.sum.clone().finalize().into();
        if sum[..32] != expected {
            return Err(self.damaged("the checksum of the file does not hold"));
        }
        if there > 32 {
            return Err(self.damaged("something comes after the end"));
        }
        Ok(())
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.at += bytes.len() as u64;
    }

    /// An error at the present place.
    pub(super) fn damaged(&self, what: impl Into<String>) -> BackupError {
        BackupError::Damaged { at: self.at, after: self.after, what: what.into() }
    }
}

enum Known {
    Block(Seq, Vec<u8>),
    Removed(Seq, Vec<u8>),
    Numbers(String, Vec<u8>),
    Base(Base, Vec<u8>),
    End(End, Vec<u8>),
    Ignored(Vec<u8>),
}

fn read_end(value: &[u8]) -> Option<End> {
    let number = |at: usize| Some(u64::from_le_bytes(value.get(at..at + 8)?.try_into().ok()?));
    let log = LogId(value.get(17..33)?.try_into().ok()?);
    let tree = TreeHead { size: number(41)?, root: value.get(49..81)?.try_into().ok()? };
    let frontier = value.get(81..)?;
    let hashes = frontier.chunks(32).map(Hash::try_from).collect::<Result<Vec<_>, _>>().ok()?;
    let whole = match value[0] {
        0 if hashes.is_empty() => None,
        1 => Some(Tree::from_frontier(tree.size, hashes).filter(|whole| whole.head() == tree)?),
        _ => return None,
    };
    Some(End { blocks: number(1)?, records: number(9)?, log, last: Seq(number(33)?), tree, whole })
}

fn read_base(value: &[u8]) -> Option<Base> {
    let number = |at: usize| Some(u64::from_le_bytes(value.get(at..at + 8)?.try_into().ok()?));
    let hashes = value.get(32..)?.chunks(32).map(Hash::try_from).collect::<Result<Vec<_>, _>>().ok()?;
    let tree = Tree::from_frontier(number(24)?, hashes)?;
    Some(Base { log: LogId(value.get(..16)?.try_into().ok()?), last: Seq(number(16)?), tree })
}

/// Fills the buffer, or as much of it as there is left.
fn read_up_to(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut there = 0;
    while there < buffer.len() {
        match from.read(&mut buffer[there..]) {
            Ok(0) => break,
            Ok(more) => there += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}
