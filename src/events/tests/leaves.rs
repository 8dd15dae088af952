//! Proofs over a stored log: at every edge of a tile, over several logs, while it grows, and what they cost.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::samples;
use super::world::*;
use crate::events::extends::{Extends, extends};
use crate::events::leaves::{Leaves, LeavesError};
use crate::events::log::{Acknowledged, EventLog, LogReader, ReadError, StoredSize};
use crate::events::marks::Mark;
use crate::events::stored::Visit;
use crate::events::tree::{Tree, TreeHead};
use crate::ids::{Seq, Subject};
use crate::proof::merkle::{check_consistency, check_inclusion, consistency, inclusion};

fn grow(log: &mut dyn EventLog, records: usize) {
    let mut left = records;
    while left > 0 {
        let some = left.min(700);
        log.append(&[reaction(&app("bot"), vec![samples::text(1); some])]).expect("appended");
        left -= some;
    }
}

/// Counts the blocks that are read.
struct Counted(Arc<dyn LogReader>, AtomicU64);

impl LogReader for Counted {
    fn acknowledged(&self) -> Acknowledged {
        self.0.acknowledged()
    }

    fn mark(&self) -> Option<Mark> {
        self.0.mark()
    }

    fn blocks(&self, from: Seq, visit: &mut dyn FnMut(Seq, &[u8]) -> ControlFlow<()>) -> Result<(), ReadError> {
        self.0.blocks(from, &mut |key, bytes| {
            self.1.fetch_add(1, Ordering::Relaxed);
            visit(key, bytes)
        })
    }

    fn subject(&self, subject: &Subject, from: Seq, visit: &mut Visit<'_>) -> Result<(), ReadError> {
        self.0.subject(subject, from, visit)
    }

    fn subjects(&self) -> Vec<Subject> {
        self.0.subjects()
    }

    fn stored(&self) -> StoredSize {
        self.0.stored()
    }
}

/// Every head of the current log, by the number of its leaves; and the leaves.
fn heads(reader: &dyn LogReader) -> (Vec<TreeHead>, Vec<[u8; 32]>) {
    let mut tree = Tree::default();
    let leaves = leaves_of(reader, Some(reader.id()));
    let heads = std::iter::once(tree.head()).chain(leaves.iter().map(|leaf| {
        tree.push(*leaf);
        tree.head()
    }));
    (heads.collect(), leaves)
}

fn holds(leaves: &mut Leaves, reader: &dyn LogReader, sizes: &[u64]) {
    let (heads, all) = heads(reader);
    for second in sizes {
        let new = &heads[*second as usize];
        for first in sizes.iter().filter(|first| *first <= second) {
            let mut ranges = vec![0..*first, 0..*second];
            ranges.extend(consistency(*first, *second).expect("grown"));
            let roots = leaves.roots(reader, &ranges).expect("there");
            let old = &heads[*first as usize];
            assert_eq!((roots[0], roots[1]), (old.root, new.root), "{first} to {second}");
            assert_eq!(check_consistency(old, new, &roots[2..]), Ok(()), "{first} to {second}");
        }
        for index in sizes.iter().filter(|index| *index < second) {
            let proof = leaves.roots(reader, &inclusion(*index, *second).expect("inside")).expect("there");
            assert_eq!(check_inclusion(&all[*index as usize], *index, new, &proof), Ok(()), "{index} in {second}");
        }
    }
}

#[test]
fn proofs_hold_at_every_edge_while_the_log_grows() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    let reader = log.reader();
    let mut leaves = Leaves::new(reader.id());
    holds(&mut leaves, &*reader, &[0, 1]);
    grow(&mut *log, 1_100);
    holds(&mut leaves, &*reader, &[0, 1, 2, 700, 1_023, 1_024, 1_025, 1_101]);
    grow(&mut *log, 4_000);
    holds(&mut leaves, &*reader, &[1, 6, 1_024, 1_101, 2_047, 2_048, 2_049, 3_072, 3_073, 4_096, 5_101]);
    holds(&mut Leaves::new(reader.id()), &*reader, &[5_101, 4_097, 3]);
}

#[test]
fn only_the_log_that_is_asked_for_is_proved() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    grow(&mut *log, 1_500);
    drop(log);
    world.0.edit(|blocks| drop(blocks.pop_last()));
    let (mut log, _) = world.open();
    grow(&mut *log, 1_300);
    let reader = log.reader();
    holds(&mut Leaves::new(reader.id()), &*reader, &[1, 1_024, 1_301]);
}

#[test]
fn a_proof_reads_two_tiles_however_long_the_log_is() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    grow(&mut *log, 20_000);
    let reader = Counted(log.reader(), AtomicU64::new(0));
    let all = reader.stored().blocks;
    let mut leaves = Leaves::new(reader.id());
    let mut cost = |first: u64, second: u64| {
        reader.1.store(0, Ordering::Relaxed);
        leaves.roots(&reader, &consistency(first, second).expect("grown")).expect("there");
        reader.1.load(Ordering::Relaxed)
    };
    let first = cost(7_001, 20_001);
    assert!(first >= all * 9 / 10, "the first one reads the log: {first} of {all}");
    for (first, second) in [(7_001, 20_001), (1, 20_001), (19_999, 20_001), (1_024, 2_048)] {
        let cost = cost(first, second);
        assert!(cost <= all / 6, "{cost} of {all} blocks");
    }
}

#[test]
fn what_is_missing_or_damaged_is_said() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    grow(&mut *log, 1_400);
    let reader = log.reader();
    let ask = |size: u64| Leaves::new(reader.id()).roots(&*reader, std::slice::from_ref(&(0..size)));
    assert!(matches!(ask(1_402), Err(LeavesError::Missing(1_401))));
    world.0.edit(|blocks| drop(blocks.pop_first()));
    assert!(matches!(ask(1_401), Err(LeavesError::Missing(0))));
    world.0.edit(|blocks| {
        let mut last = blocks.last_entry().expect("there");
        let length = last.get().len();
        last.get_mut()[length - 1] ^= 1;
    });
    assert!(matches!(
        Leaves::new(reader.id()).roots(&*reader, std::slice::from_ref(&(1_399..1_401))),
        Err(LeavesError::Missing(0) | LeavesError::Damaged(_))
    ));
}

#[test]
fn whether_a_log_extends_what_was_seen_of_it() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    grow(&mut *log, 50);
    let (reader, (heads, _)) = (log.reader(), heads(&*log.reader()));
    let ask = |seen: &TreeHead| extends(&*reader, reader.id(), seen).expect("the store answers");
    for size in [0, 1, 17, 51] {
        assert_eq!(ask(&heads[size]), Extends::Yes { since: 51 - size as u64 });
        let other = TreeHead { root: [9; 32], ..heads[size] };
        assert_eq!(ask(&other), Extends::Differs { root: heads[size].root });
    }
    assert_eq!(ask(&TreeHead { size: 52, root: [9; 32] }), Extends::Shorter { size: 51 });
    let other = crate::ids::LogId([9; 16]);
    assert_eq!(extends(&*reader, other, &heads[1]).expect("the store answers"), Extends::NoSuchLog);
    let first = reader.head();
    world.0.edit(|blocks| {
        let mut last = blocks.last_entry().expect("there");
        let length = last.get().len();
        last.get_mut()[length - 1] ^= 1;
    });
    assert!(matches!(ask(&heads[51]), Extends::Unreadable { seq, .. } if seq == first));
    assert!(matches!(ask(&heads[17]), Extends::Yes { .. }), "what is damaged behind it changes nothing of what was seen");
    world.0.edit(|blocks| drop(blocks.pop_first()));
    assert!(matches!(ask(&heads[17]), Extends::Unreadable { .. }), "a log without its beginning");
}
