//! Where the store's tree is divided ahead of the blocks. Pure; knows no store.
//!
//! The database keeps 9 to 16 values in a leaf of its tree, and writes a whole leaf anew when it divides it and at every tenth change:
//! each block was written four times. So the tree is divided while there is nothing in it to write: keys without a value, at every
//! 64th number, so far ahead that the leaf a block comes to is divided already and takes the few blocks that belong there. A block is
//! then written once, and nothing of it is left to be collected. docs/log-format.md, "The folder", has the key.

use crate::ids::Seq;

/// Numbers between two dividers. A leaf has nine of them: 576 records, which are about five blocks of the largest size.
const EVERY: u64 = 64;

/// How far dividers are ahead of the last block at least: the last leaf, which is still divided, is then behind them.
const AHEAD: u64 = 20 * EVERY;

/// How many more are put when there are too few: they are not put with every commit.
const MORE: u64 = 32 * EVERY;

/// Bytes of a commit's blocks from which dividing pays: what is smaller is written anew for little.
pub(super) const WORTHWHILE: usize = 4 * 1024;

/// More than the numbers of one batch: what lies further behind a block was given to nobody.
const BATCH: u64 = 16_384;

/// The dividers that are to be put before a batch whose last block begins at `last` is, when those up to `divided` are there.
pub(super) fn wanted(divided: Seq, last: Seq) -> impl Iterator<Item = Seq> {
    let ahead = divided.0 >= last.0.saturating_add(AHEAD);
    let end = if ahead { 0 } else { last.0.saturating_add(AHEAD + MORE) };
    // In front of a block that is the first of many, or comes after a gap, there is nothing to divide.
    let from = if last.0 - divided.0.min(last.0) > BATCH { last.0 } else { divided.0 };
    (from / EVERY + 1..=end / EVERY).map(|place| Seq(place * EVERY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_ahead_of_every_block_and_none_is_put_twice() {
        let (mut divided, mut put) = (Seq::NONE, Vec::new());
        for first in (1..100_000).step_by(700) {
            let last = Seq(first + 690);
            let wanted: Vec<Seq> = wanted(divided, last).collect();
            put.extend(&wanted);
            divided = put.last().copied().expect("some");
            assert!(divided.0 >= last.0 + AHEAD - EVERY);
        }
        assert!(put.is_sorted_by(|a, b| a < b));
        assert_eq!(put.len() as u64, divided.0 / EVERY);
    }

    #[test]
    fn a_gap_gets_none_and_the_end_of_all_numbers_is_no_end_of_the_world() {
        let far = Seq(1 << 40);
        let wanted_far: Vec<Seq> = wanted(Seq(3_200), far).collect();
        assert!(wanted_far.len() < 60 && wanted_far.iter().all(|divider| *divider > far));
        assert!(wanted(Seq::NONE, Seq(u64::MAX)).count() <= 1);
    }
}
