//! A block as a store keeps it: as it is, or packed, whichever is shorter. The only file that names lz4_flex. Knows no store, and
//! of a block only its version; everything that is hashed, checked or sent is the block as it is.
//!
//! docs/log-format.md, "Packed block", is the specification.

use super::block::{BLOCK_FIXED, BLOCK_MAX, PACKED_VERSION};

/// Head of a packed block, bytes: version, length, checksum, length of the block.
const HEAD: usize = 12;

/// A block below this length is stored as it is, bytes: a disk writes 4 KiB at once, and a small commit is not to wait for packing.
pub const PACKED_FROM: usize = 2 * 1024;

/// The value to store for a block.
#[must_use]
pub fn pack(block: Vec<u8>) -> Vec<u8> {
    if block.len() < PACKED_FROM || block.len() > BLOCK_MAX {
        return block;
    }
    let mut value = vec![0; HEAD + lz4_flex::block::get_maximum_output_size(block.len())];
    let Ok(packed) = lz4_flex::block::compress_into(&block, &mut value[HEAD..]) else { return block };
    value.truncate(HEAD + packed);
    // Below a block's fixed part a build that knows no packing would take it for damage.
    if value.len() >= block.len() || value.len() < BLOCK_FIXED {
        return block;
    }
    let length = u16::try_from(value.len()).expect("shorter than a block");
    let of_block = u32::try_from(block.len()).expect("a block is small");
    value[..2].copy_from_slice(&PACKED_VERSION.to_le_bytes());
    value[2..4].copy_from_slice(&length.to_le_bytes());
    value[8..HEAD].copy_from_slice(&of_block.to_le_bytes());
    let checksum = checksum(&value);
    value[4..8].copy_from_slice(&checksum.to_le_bytes());
    value
}

/// Puts the block of a stored value in the place of what is in `out`: the value itself when it is not packed, or does not unpack,
/// which whoever reads it as a block then finds.
pub fn unpack(value: &[u8], out: &mut Vec<u8>) {
    match try_unpack(value, out) {
        Some(length) => out.truncate(length),
        None => value.clone_into(out),
    }
}

fn try_unpack(value: &[u8], room: &mut Vec<u8>) -> Option<usize> {
    let (head, packed) = value.split_first_chunk::<HEAD>()?;
    let [v0, v1, l0, l1, c0, c1, c2, c3, of_block @ ..] = *head;
    if u16::from_le_bytes([v0, v1]) != PACKED_VERSION || usize::from(u16::from_le_bytes([l0, l1])) != value.len() {
        return None;
    }
    let length = usize::try_from(u32::from_le_bytes(of_block)).ok().filter(|length| *length <= BLOCK_MAX)?;
    if checksum(value) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return None;
    }
    room.resize(length, 0);
    lz4_flex::block::decompress_into(packed, room).ok().filter(|unpacked| *unpacked == length)
}

/// Over all of it, without the checksum's own four bytes.
fn checksum(value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&value[..4]);
    hasher.update(&value[8..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::block::{Block, BlockError, BlockHead, BlockWriter};
    use crate::events::tree::Tree;
    use crate::ids::{LogId, Seq};

    /// Of records that are alike but for a number.
    fn block(records: usize) -> Vec<u8> {
        let head = BlockHead { log: LogId([7; 16]), first: Seq(1), previous: Seq::NONE, before: Tree::default().head() };
        let mut writer = BlockWriter::new(head);
        (0..records).for_each(|number| writer.push(format!("a record that is like the others, but for {number}").as_bytes()));
        writer.finish()
    }

    #[test]
    fn a_block_comes_back_as_it_was_and_a_small_one_is_left_alone() {
        let mut room = Vec::new();
        for records in [1, 10, 40, 41, 100, 400] {
            let block = block(records);
            let value = pack(block.clone());
            assert_eq!(value.len() < block.len(), block.len() >= PACKED_FROM, "{records}");
            unpack(&value, &mut room);
            assert_eq!(room, block);
        }
        let random: Vec<u8> = (0..4_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[1] ^ (at >> 5) as u8).collect();
        let value = pack(random.clone());
        unpack(&value, &mut room);
        assert_eq!(room, random, "what does not get shorter stays as it is");
    }

    #[test]
    fn a_value_that_is_changed_anywhere_is_a_block_that_does_not_read() {
        let value = pack(block(100));
        let mut room = Vec::new();
        for at in 0..value.len() {
            for bit in 0..8 {
                let mut changed = value.clone();
                changed[at] ^= 1 << bit;
                unpack(&changed, &mut room);
                assert!(Block::read(&room).is_err(), "byte {at} bit {bit}");
            }
            unpack(&value[..at], &mut room);
            assert!(Block::read(&room).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_right_checksum_over_anything_takes_no_more_than_a_block() {
        let mut room = Vec::new();
        let lengths = [0, 1, BLOCK_MAX - 1, BLOCK_MAX, BLOCK_MAX + 1, u32::MAX as usize];
        for length in lengths {
            for fill in [0x00, 0x0f, 0xf0, 0xff] {
                let mut value = pack(block(100));
                value[8..12].copy_from_slice(&(length as u32).to_le_bytes());
                value[40..].fill(fill);
                let sum = checksum(&value);
                value[4..8].copy_from_slice(&sum.to_le_bytes());
                unpack(&value, &mut room);
                assert_eq!(Block::read(&room).err(), Some(BlockError::Packed), "{length} {fill}");
                assert!(room.len() <= BLOCK_MAX);
            }
        }
    }
}
