//! A log whose beginning aged out: what is left is sound, its tree is whole, and nothing that is done to it goes unseen.

use std::sync::Arc;

use proptest::prelude::*;

use super::samples;
use super::world::*;
use crate::events::archive::{Archive, segments};
use crate::events::backup::about::About;
use crate::events::backup::file;
use crate::events::backup::restore::restore;
use crate::events::backup::select::{Select, page};
use crate::events::backup::write::NewBackup;
use crate::events::check::check;
use crate::events::extends::{Extends, extends};
use crate::events::leaves::Leaves;
use crate::events::log::{AppendError, EventLog, Found, LogReader, OpenError};
use crate::events::mem_log::{MemFault, Unsynced};
use crate::events::retention::{NotRemoved, Removed};
use crate::events::tree::{Tree, TreeHead};
use crate::ids::Seq;
use crate::proof::merkle::{check_consistency, check_inclusion, consistency, inclusion};

/// Fills a log with reactions of some apps, a commit each.
fn fill(log: &mut dyn EventLog, commits: usize) {
    for number in 0..commits {
        let about = app(["bot", "bee", "cat"][number % 3]);
        log.append(&[reaction(&about, vec![samples::text(number % 40); 1 + number % 4])]).expect("appended");
    }
}

/// Removes all that ends at `upto` or before.
fn remove(log: &mut dyn EventLog, upto: Seq) -> Option<Removed> {
    let mut removed = None;
    while let Some(now) = log.remove(upto).expect("removed") {
        removed = Some(now);
    }
    removed
}

fn heads(reader: &dyn LogReader) -> (Vec<TreeHead>, Vec<[u8; 32]>) {
    let mut tree = Tree::default();
    let leaves = leaves_of(reader, Some(reader.id()));
    let heads = std::iter::once(tree.head()).chain(leaves.iter().map(|leaf| {
        tree.push(*leaf);
        tree.head()
    }));
    (heads.collect(), leaves)
}

/// Every proof that was there before is there, and leads to the same roots.
fn proofs_hold(reader: &dyn LogReader, heads: &[TreeHead], leaves: &[[u8; 32]]) {
    let mut kept = Leaves::new(reader.id());
    let sizes: Vec<u64> = (0..heads.len() as u64).filter(|size| size % 7 == 0 || *size + 3 > heads.len() as u64).collect();
    for second in &sizes {
        for first in sizes.iter().filter(|first| *first <= second) {
            let mut ranges = vec![0..*first, 0..*second];
            ranges.extend(consistency(*first, *second).expect("grown"));
            let roots = kept.roots(reader, &ranges).expect("there");
            let (old, new) = (&heads[*first as usize], &heads[*second as usize]);
            assert_eq!((roots[0], roots[1]), (old.root, new.root), "{first} to {second}");
            assert_eq!(check_consistency(old, new, &roots[2..]), Ok(()));
        }
        for index in sizes.iter().filter(|index| *index < second) {
            let proof = kept.roots(reader, &inclusion(*index, *second).expect("inside")).expect("there");
            assert_eq!(check_inclusion(&leaves[*index as usize], *index, &heads[*second as usize], &proof), Ok(()));
        }
    }
    for size in &sizes {
        let since = heads.len() as u64 - 1 - size;
        assert_eq!(extends(reader, reader.id(), &heads[*size as usize]).expect("the store answers"), Extends::Yes { since });
    }
}

fn what_is_left_is_sound_and_proved(world: &dyn World) {
    let (mut log, _) = world.open();
    fill(&mut *log, 120);
    let reader = log.reader();
    let (before, all) = (items(&*reader, Seq(1)), heads(&*reader));
    assert_eq!(remove(&mut *log, Seq(0)), None);
    let removed = remove(&mut *log, Seq(150)).expect("some went");
    assert!(removed.to <= Seq(150) && removed.kept == Seq(removed.to.0 + 1), "{removed:?}");
    assert_eq!(reader.removed(), Some(removed));
    let after = items(&*reader, Seq(1));
    assert_eq!(after, before[before.len() - after.len()..]);
    let report = sound(&*reader);
    assert_eq!((report.removed, report.aged_out + report.records), (Some(removed), before.len() as u64));
    proofs_hold(&*reader, &all.0, &all.1);
    assert!(reader.record(Seq(3)).expect("the store answers").is_none());
    // It goes on with the same numbers and the same tree, now and when it is opened again.
    fill(&mut *log, 5);
    log.close().expect("closed");
    drop(reader);
    let (mut log, opened) = world.open();
    assert_eq!(opened.found, Found::Clean);
    fill(&mut *log, 5);
    let reader = log.reader();
    assert_eq!(reader.removed(), Some(removed));
    sound(&*reader);
    let stored = reader.stored();
    assert_eq!(stored.records, items(&*reader, Seq(1)).len() as u64);
    let mut bytes = 0;
    let count = &mut |_: Seq, block: &[u8]| {
        bytes += block.len() as u64;
        std::ops::ControlFlow::Continue(())
    };
    reader.blocks(Seq::NONE, count).expect("the store answers");
    assert_eq!(stored.block_bytes, bytes);
    // All but the last block can go, and a subject of which nothing is left goes on counting where it was.
    let head = reader.head();
    remove(&mut *log, head);
    let left = stored_subjects(&*reader);
    assert!(left.len() < 3, "{left:?}");
    fill(&mut *log, 5);
    sound(&*reader);
    drop((log, reader));
    let (mut log, opened) = world.open();
    assert!(matches!(opened.found, Found::Unclean));
    fill(&mut *log, 5);
    sound(&*log.reader());
}

fn stored_subjects(reader: &dyn LogReader) -> std::collections::BTreeSet<String> {
    stored(reader).iter().map(|record| record.header.subject.to_string()).collect()
}

#[test]
fn what_is_left_of_a_log_in_memory_is_sound_and_proved() {
    what_is_left_is_sound_and_proved(&InMemory::new());
}

#[test]
fn what_is_left_of_a_log_on_disk_is_sound_and_proved() {
    what_is_left_is_sound_and_proved(&OnDisk::new());
}

#[test]
fn a_whole_log_before_the_one_that_is_written_can_go() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    fill(&mut *log, 30);
    drop(log);
    world.0.edit(|blocks| drop(blocks.pop_last()));
    let (mut log, opened) = world.open();
    fill(&mut *log, 30);
    let reader = log.reader();
    let all = heads(&*reader);
    for upto in [opened.head.0 - 1, opened.head.0 + 20] {
        let removed = remove(&mut *log, Seq(upto)).expect("some went");
        assert_eq!(sound(&*reader).logs.len(), 2, "{removed:?}");
        proofs_hold(&*reader, &all.0, &all.1);
        assert_eq!(sound(&*world.read().expect("opens for reading")).removed, Some(removed));
    }
}

#[test]
fn a_power_cut_leaves_the_blocks_or_their_leaves() {
    for (fault, unsynced) in [(MemFault::Full, Unsynced::Kept), (MemFault::Sync, Unsynced::Lost), (MemFault::Sync, Unsynced::Kept)] {
        let world = InMemory::new();
        let (mut log, _) = world.open();
        fill(&mut *log, 50);
        let all = heads(&*log.reader());
        world.0.fail(fault);
        assert!(matches!(log.remove(Seq(60)), Err(NotRemoved::Append(AppendError::Full(_) | AppendError::Io(_)))));
        assert!(matches!(log.remove(Seq(60)), Err(NotRemoved::Append(AppendError::Stopped))));
        assert!(matches!(log.append(&[reaction(&app("bot"), vec![samples::text(1)])]), Err(AppendError::Stopped)));
        world.0.crash(unsynced);
        let (mut log, _) = world.open();
        let reader = log.reader();
        assert_eq!(reader.removed().is_some(), fault == MemFault::Sync && unsynced == Unsynced::Kept);
        sound(&*reader);
        proofs_hold(&*reader, &all.0, &all.1);
        remove(&mut *log, Seq(60));
        assert!(reader.removed().is_some());
        sound(&*reader);
    }
}

#[test]
fn a_record_that_cannot_be_read_stays() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    fill(&mut *log, 9);
    let mut keys = Vec::new();
    world.0.edit(|blocks| keys = blocks.keys().copied().collect());
    world.0.edit(|blocks| *blocks.get_mut(&keys[3]).expect("there").last_mut().expect("bytes") ^= 1);
    remove_until_damaged(&mut *log, keys[3]);
    assert_eq!(log.reader().removed().map(|removed| removed.kept), Some(keys[3]));
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("the log goes on");
}

fn remove_until_damaged(log: &mut dyn EventLog, at: Seq) {
    for _ in 0..10 {
        match log.remove(Seq(1_000)) {
            Ok(Some(_)) => {}
            Err(NotRemoved::Damaged { seq, .. }) => return assert!(seq >= at && seq.0 < at.0 + 4, "{seq} {at}"),
            other => panic!("{other:?}"),
        }
    }
    panic!("it is not found");
}

#[test]
fn what_is_done_to_what_stays_is_found() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    fill(&mut *log, 40);
    remove(&mut *log, Seq(50)).expect("some went");
    log.close().expect("closed");
    let mut keys: Vec<(Seq, usize)> = Vec::new();
    world.0.edit_removed(|removed| keys = removed.iter().map(|(key, value)| (*key, value.len())).collect());
    assert!(keys.len() > 5);
    let differs = |what: &str| {
        let reader = world.read().expect("opens for reading");
        assert!(check(&*reader).expect("the store answers").difference.is_some(), "{what}");
    };
    for (key, length) in keys {
        for at in [0, 4, 8, 24, 40, 48, 80, length - 1] {
            let flip = |removed: &mut std::collections::BTreeMap<Seq, Vec<u8>>| removed.get_mut(&key).expect("there")[at] ^= 1;
            world.0.edit_removed(flip);
            differs("a bit is flipped");
            world.0.edit_removed(flip);
        }
        let mut taken = None;
        world.0.edit_removed(|removed| taken = removed.remove(&key));
        differs("one is missing");
        world.0.edit_removed(|removed| drop(removed.insert(key, taken.expect("it was there"))));
    }
    sound(&*world.read().expect("opens for reading"));
    // The last one decides where the log goes on: without it nothing is written.
    world.0.edit_removed(|removed| drop(removed.pop_last()));
    assert!(matches!(world.try_open(&options()), Err(OpenError::Damaged { .. })));
}

#[test]
fn proofs_hold_while_the_beginning_goes() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    fill(&mut *log, 400);
    let reader = log.reader();
    let (heads, _) = heads(&*reader);
    let (head, size) = (reader.head().0, heads.len() as u64 - 1);
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = log;
            for upto in (0..head).step_by(3) {
                remove(&mut *log, Seq(upto));
            }
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut kept = Leaves::new(reader.id());
        let mut rounds = 0;
        while rounds < 3 || !ended.load(std::sync::atomic::Ordering::Relaxed) {
            rounds += 1;
            for leaves in [&mut kept, &mut Leaves::new(reader.id())] {
                let roots = leaves.roots(&*reader, &[0..size, 0..size / 2]).expect("there");
                assert_eq!(roots, [heads[size as usize].root, heads[size as usize / 2].root]);
            }
            let answer = extends(&*reader, reader.id(), &heads[size as usize]).expect("the store answers");
            assert_eq!(answer, Extends::Yes { since: 0 });
            let mut last = 0;
            let visit = &mut |item: crate::events::stored::Item| {
                let seq = item.expect("sound").header.subject_seq;
                assert!(seq > last, "{seq} {last}");
                last = seq;
                std::ops::ControlFlow::Continue(())
            };
            reader.subject(&app("bee"), Seq(1), visit).expect("the store answers");
        }
    });
    sound(&*reader);
}

/// A whole backup of a reader.
fn backup(reader: &dyn LogReader, path: &std::path::Path) {
    let about = About::of(reader, 7).expect("the store answers");
    let mut select = Select { from: Seq(1), to: Seq(about.to), subject: None };
    let mut new = NewBackup::begin(path, about).expect("begun");
    new.aged_out(reader).expect("written");
    loop {
        let page = page(reader, &select).expect("the store answers");
        page.blocks.iter().for_each(|(key, block)| new.block(*key, block).expect("written"));
        match page.next {
            Some(next) => select.from = next,
            None => break,
        }
    }
    assert!(new.finish().expect("finished").whole.is_some());
}

#[test]
fn a_backup_carries_the_leaves_and_a_restored_folder_has_them() {
    let (world, folder) = (OnDisk::new(), tempfile::tempdir().expect("a folder"));
    let (mut log, _) = world.open();
    fill(&mut *log, 60);
    let all = heads(&*log.reader());
    let removed = remove(&mut *log, Seq(70));
    let path = folder.path().join("kept");
    backup(&*log.reader(), &path);
    let kept = file::open(&path).expect("it opens");
    assert_eq!((kept.removed(), kept.is_part()), (removed, false));
    let (of_file, of_log) = (sound(&*kept), sound(&*log.reader()));
    assert_eq!((&of_file.logs, of_file.records, of_file.aged_out), (&of_log.logs, of_log.records, of_log.aged_out));
    proofs_hold(&*kept, &all.0, &all.1);
    let again = folder.path().join("again");
    backup(&*kept, &again);
    let data = folder.path().join("data");
    restore(&again, &data).expect("restored");
    let restored = crate::events::sled_log::SledLog::open_for_reading(&data.join("log")).expect("it opens");
    assert_eq!(restored.removed(), removed);
    proofs_hold(&*restored, &all.0, &all.1);
}

#[test]
fn segments_of_an_archive_follow_each_other() {
    let (world, folder) = (InMemory::new(), tempfile::tempdir().expect("a folder"));
    let (mut log, _) = world.open();
    fill(&mut *log, 60);
    let (reader, before) = (log.reader(), items(&*log.reader(), Seq(1)));
    let all = heads(&*reader);
    let mut archive = Archive::new(&folder.path().join("archive"));
    for upto in [30, 60, 90] {
        let ends = end_before(&*reader, Seq(upto));
        if upto == 60 {
            // Another life reads the leaves.
            archive = Archive::new(&folder.path().join("archive"));
        }
        archive.write(&*reader, ends, 7).expect("written");
        remove(&mut *log, ends).expect("some went");
    }
    let segments = segments(&folder.path().join("archive")).expect("listed");
    assert_eq!(segments.len(), 3);
    let mut found = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let kept: Arc<dyn LogReader> = file::open(&segment.path).expect("it opens");
        assert!(!kept.is_part());
        let report = sound(&*kept);
        assert_eq!((kept.removed().is_some(), report.aged_out), (number > 0, 0));
        let size = report.logs.last().expect("a log").tree.size;
        assert_eq!(report.logs.last().expect("a log").tree, all.0[size as usize]);
        assert_eq!(extends(&*kept, kept.id(), &all.0[size as usize]).expect("the store answers"), Extends::Yes { since: 0 });
        found.extend(items(&*kept, Seq(1)));
        if number > 0 {
            assert!(restore(&segment.path, &folder.path().join("none")).is_err(), "what is before it is not in it");
        }
    }
    found.extend(items(&*reader, Seq(1)));
    assert_eq!(found, before);
}

fn end_before(reader: &dyn LogReader, bound: Seq) -> Seq {
    let mut last = Seq::NONE;
    let visit = &mut |_: Seq, bytes: &[u8]| {
        let block = crate::events::block::Block::read(bytes).expect("sound");
        if block.last() <= bound {
            last = block.last();
        }
        std::ops::ControlFlow::Continue(())
    };
    reader.blocks(Seq::NONE, visit).expect("the store answers");
    last
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_goes_what_is_left_is_sound(steps in prop::collection::vec((0..4_u8, 1..60_usize), 1..12)) {
        let world = InMemory::new();
        let (mut log, _) = world.open();
        let mut leaves = leaves_of(&*log.reader(), None);
        for (what, number) in steps {
            match what {
                0 | 1 => {
                    let head = log.reader().head();
                    fill(&mut *log, number);
                    let new = leaves_of(&*log.reader(), None);
                    let added = items(&*log.reader(), Seq(head.0 + 1)).len();
                    leaves.extend_from_slice(&new[new.len() - added..]);
                }
                2 => {
                    let head = log.reader().head().0;
                    remove(&mut *log, Seq(head * number as u64 / 60));
                }
                _ => {
                    log.close().expect("closed");
                    log = world.open().0;
                }
            }
            let reader = log.reader();
            sound(&*reader);
            let mut tree = Tree::default();
            leaves.iter().for_each(|leaf| tree.push(*leaf));
            prop_assert_eq!(reader.tree(), tree.head());
            let roots = Leaves::new(reader.id()).roots(&*reader, &[0..tree.size(), 0..tree.size() / 2]).expect("there");
            prop_assert_eq!(roots[0], tree.root());
        }
    }
}
