//! The keys of the store: one byte that says what the value is, and what it needs. Pure.

use crate::ids::Seq;

/// The first byte of a block's key. Other small letters are for what may be ignored, capital ones for what must be understood.
pub(super) const BLOCK_KEY: u8 = b'b';

/// The first byte of a cached value's key.
pub(super) const CACHE_KEY: u8 = b's';

/// The first byte of the key of what stays of a block that aged out.
pub(super) const LEAVES_KEY: u8 = b'l';

/// The first byte of the key of a subject's numbers: whoever goes on writing must understand them.
pub(super) const NUMBERS_KEY: u8 = b'R';

pub(super) fn leaves_key(seq: Seq) -> [u8; 9] {
    key_of(LEAVES_KEY, seq)
}

pub(super) fn numbers_key(subject: &str) -> Vec<u8> {
    [&[NUMBERS_KEY], subject.as_bytes()].concat()
}
/// The key that says that dividers are among the blocks' keys, without a value: a build that takes them for damaged blocks must not
/// go on writing.
pub(super) const DIVIDED_KEY: &[u8] = b"D";

/// What a divider's key has behind the number: it comes after the block of that number and before every other.
const DIVIDER: u8 = 0;

pub(super) fn key(seq: Seq) -> [u8; 9] {
    key_of(BLOCK_KEY, seq)
}

/// The key of a value of that letter that belongs to a block.
pub(super) fn key_of(letter: u8, seq: Seq) -> [u8; 9] {
    let mut key = [letter; 9];
    key[1..].copy_from_slice(&seq.0.to_be_bytes());
    key
}

/// The number of a block's key; `None` for a key that no block has.
pub(super) fn seq_of(key: &[u8]) -> Option<Seq> {
    key.get(1..).and_then(|seq| seq.try_into().ok()).map(|seq| Seq(u64::from_be_bytes(seq)))
}

pub(super) fn divider_key(seq: Seq) -> [u8; 10] {
    let mut divider = [DIVIDER; 10];
    divider[..9].copy_from_slice(&key(seq));
    divider
}

/// The number of a divider; `None` for everything else.
pub(super) fn divider_of(key: &[u8], value: &[u8]) -> Option<Seq> {
    let (DIVIDER, block) = key.split_last().map(|(last, rest)| (*last, rest))? else { return None };
    seq_of(block).filter(|_| value.is_empty() && key[0] == BLOCK_KEY)
}

/// Where a key stands that no block has: below the next block's.
pub(super) fn place_of(key: &[u8]) -> Seq {
    let mut seq = [0; 8];
    seq.iter_mut().zip(&key[1..]).for_each(|(to, from)| *to = *from);
    Seq(u64::from_be_bytes(seq))
}

pub(super) fn cache_key(key: &[u8]) -> Vec<u8> {
    [&[CACHE_KEY], key].concat()
}
