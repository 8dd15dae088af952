//! What a log does when the disk under it fails, loses or changes something.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::samples;
use super::world::*;
use crate::clock::{Clock, Entropy};
use crate::events::block::Block;
use crate::events::check::check;
use crate::events::codec::PAYLOAD_MAX;
use crate::events::kinds::daemon::{FormerLog, LogBefore, LogRestarted, RestartReason};
use crate::events::log::{AppendError, EventLog, Found, OpenError};
use crate::events::mem_log::{MemFault, Unsynced};
use crate::events::record::{Event, Kind};
use crate::events::sled_log::{SledLog, Tuning};
use crate::events::tree::EMPTY_ROOT;
use crate::ids::Seq;

fn append(log: &mut dyn EventLog) -> Seq {
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended").concat()[0].header.seq
}

#[test]
fn after_a_failed_append_nothing_is_written_any_more() {
    for (fault, kept) in [(MemFault::Full, Unsynced::Kept), (MemFault::Sync, Unsynced::Lost), (MemFault::Sync, Unsynced::Kept)] {
        let world = InMemory::new();
        let (mut log, opened) = world.open();
        append(&mut *log);
        let reader = log.reader();
        world.0.fail(fault);
        let failed = log.append(&[reaction(&app("bot"), vec![samples::text(1)])]);
        assert!(matches!((fault, &failed), (MemFault::Full, Err(AppendError::Full(_))) | (MemFault::Sync, Err(AppendError::Io(_)))));
        for _ in 0..2 {
            assert!(matches!(log.append(&[reaction(&app("bot"), vec![samples::text(1)])]), Err(AppendError::Stopped)));
        }
        assert_eq!((reader.head(), stored(&*reader).len()), (Seq(2), 2), "a reader sees what was acknowledged");
        assert!(log.close().is_err());
        world.0.crash(kept);
        let (mut log, again) = world.open();
        assert_eq!((again.found, again.log), (Found::Unclean, opened.log));
        let unacknowledged = fault == MemFault::Sync && kept == Unsynced::Kept;
        assert_eq!(again.head, if unacknowledged { Seq(3) } else { Seq(2) });
        assert!(append(&mut *log) > Seq(3), "no number is used twice");
        sound(&*log.reader());
    }
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    for unsynced in [Unsynced::Lost, Unsynced::MarksKept, Unsynced::Kept] {
        let world = InMemory::new();
        let mut last = Seq(1);
        let mut lives = 0;
        let mut count = 1;
        while lives < 5 {
            let (mut log, opened) = world.open();
            assert_eq!(opened.head, last);
            for _ in 0..=lives {
                last = append(&mut *log);
                count += 1;
            }
            world.0.crash(unsynced);
            assert!(log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).is_err(), "an earlier life cannot write");
            assert_eq!(sound(&*world.read().expect("opens for reading")).records, count);
            lives += 1;
        }
    }
}

#[test]
fn a_lost_tail_begins_a_new_log_and_is_said() {
    let world = InMemory::new();
    let (mut log, first) = world.open();
    let (kept, lost) = (append(&mut *log), append(&mut *log));
    let tree = world.read().expect("opens for reading").tree();
    let acknowledged = append(&mut *log);
    log.close().expect("closed");
    world.0.edit(|blocks| drop(blocks.split_off(&lost)));
    let found = check(&*world.read().expect("opens for reading")).expect("the store answers");
    assert_eq!(found.difference.expect("a difference").seq, acknowledged, "the mark knows better");

    let (mut log, second) = world.open();
    let Found::LostTail(former) = second.found else { panic!("{second:?}") };
    assert_eq!((former.id, former.last, former.acknowledged, former.size), (first.log, kept, acknowledged, 2));
    assert_ne!(former.root, tree.root);
    assert_ne!(second.log, first.log);
    let next = append(&mut *log);
    assert!(next > acknowledged);
    let all = stored(&*log.reader());
    let began = records(&all)[2].clone();
    let before = Some(LogBefore { id: first.log, last: kept, size: former.size, root: former.root });
    let restarted = LogRestarted { log: second.log, reason: RestartReason::LostTail, former: Some(former), before };
    assert_eq!(began.event, Event::LogRestarted(restarted));
    assert_eq!((began.header.subject, began.header.subject_seq), (options().daemon, 1));
    assert_eq!((all[2].position, all[2].log), (0, second.log));
    let report = sound(&*log.reader());
    assert_eq!((report.logs.len(), report.gaps.len()), (2, 1));

    // Everything is lost but the marks.
    drop(log);
    world.0.edit(|blocks| drop(blocks.split_off(&Seq(1))));
    let (log, third) = world.open();
    let former = FormerLog { id: second.log, last: Seq::NONE, acknowledged: next, size: 0, root: EMPTY_ROOT };
    assert_eq!(third.found, Found::LostTail(former));
    assert!(third.head > next);
    sound(&*log.reader());
}

#[test]
fn a_crash_while_a_log_begins_is_no_lost_tail() {
    let world = InMemory::new();
    // The first record is durable and the mark is not: the marks file is as it was before the mark.
    let (log, first) = world.open();
    drop(log);
    world.0.tear_marks();
    let (mut log, opened) = world.open();
    assert_eq!((opened.found, opened.log), (Found::Unclean, first.log));
    append(&mut *log);
    drop(log);
    // Later the same is a loss of the marks: whether records were lost with them cannot be told.
    world.0.tear_marks();
    let (_, opened) = world.open();
    assert!(matches!(opened.found, Found::LostTail(former) if former.id == first.log && former.last == former.acknowledged));
    assert_ne!(opened.log, first.log);
}

#[test]
fn a_bad_record_hides_no_other_and_cannot_be_continued() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    let events = vec![samples::text(1), samples::text(2), samples::text(3)];
    log.append(&[reaction(&app("bot"), events)]).expect("appended");
    let next = append(&mut *log);
    log.close().expect("closed");
    let flip = |at: fn(usize) -> usize| {
        world.0.edit(|blocks| {
            let block = blocks.get_mut(&Seq(2)).expect("there");
            let at = at(block.len());
            block[at] ^= 1;
        });
    };
    flip(|length| length / 2);
    let reader = world.read().expect("opens for reading");
    let read = items(&*reader, Seq::NONE);
    let damaged = read.iter().filter_map(|item| item.as_ref().err()).map(|damage| (damage.seq, damage.whole_block));
    assert_eq!((read.len(), damaged.collect::<Vec<_>>()), (5, vec![(Seq(3), false)]));
    assert_eq!(check(&*reader).expect("the store answers").difference.expect("a difference").seq, Seq(3));
    let Err(OpenError::Damaged { seq: Seq(3), .. }) = world.try_open(&options()) else { panic!("it must not be continued") };

    flip(|_| 30);
    let read = items(&*world.read().expect("opens for reading"), Seq::NONE);
    let damaged = read.iter().filter_map(|item| item.as_ref().err()).map(|damage| (damage.seq, damage.whole_block));
    assert_eq!((read.len(), damaged.collect::<Vec<_>>()), (3, vec![(Seq(2), true)]));
    assert_eq!(read[2].as_ref().expect("sound").header.seq, next);
}

#[test]
fn a_block_that_is_missing_or_put_elsewhere_is_seen() {
    type Edit = fn(&mut std::collections::BTreeMap<Seq, Vec<u8>>);
    let edits: [(Edit, u64); 4] = [
        (|blocks| drop(blocks.remove(&Seq(3))), 4),
        (|blocks| drop(blocks.remove(&Seq(1))), 2),
        (|blocks| drop(blocks.insert(Seq(3), blocks[&Seq(2)].clone())), 3),
        (|blocks| drop(blocks.insert(Seq(9), blocks[&Seq(4)].clone())), 9),
    ];
    for (edit, seq) in edits {
        let world = InMemory::new();
        let (mut log, _) = world.open();
        for _ in 0..3 {
            append(&mut *log);
        }
        log.close().expect("closed");
        world.0.edit(edit);
        let report = check(&*world.read().expect("opens for reading")).expect("the store answers");
        assert_eq!(report.difference.map(|difference| difference.seq), Some(Seq(seq)));
        assert!(matches!(world.try_open(&options()), Err(OpenError::Damaged { seq: at, .. }) if at == Seq(seq)));
    }
}

#[test]
fn a_record_of_a_newer_build_is_shown_or_needs_that_build() {
    for (kind, decides) in [(Kind::StepExplained, false), (Kind::StepWithheld, true)] {
        let world = InMemory::new();
        let (mut log, _) = world.open();
        let started = samples::events(Kind::IncarnationStarted).remove(0);
        let events = vec![started, samples::events(kind).remove(0)];
        log.append(&[reaction(&app("bot"), events)]).expect("appended");
        drop(log);
        // As if version 9 of the kind had been written.
        world.0.edit(|blocks| *blocks.get_mut(&Seq(2)).expect("there") = newer(&blocks[&Seq(2)]));
        // Its leaf changed with it.
        let report = check(&*world.read().expect("opens for reading")).expect("the store answers");
        assert_eq!(report.difference.map(|difference| difference.seq), Some(Seq(3)));
        let read = items(&*world.read().expect("opens for reading"), Seq(3));
        let record = read[0].as_ref().expect("sound");
        assert_eq!((record.header.kind_version, record.header.kind), (9, kind.number()));
        assert_eq!(matches!(record.body, crate::events::stored::Body::NeedsVersion(_)), decides);
        match world.try_open(&options()) {
            Err(OpenError::NeedsVersion { seq: Seq(3), written_by }) => {
                assert!(decides);
                assert_eq!(written_by.as_deref(), Some("0.1.0"));
            }
            other => assert!(!decides, "{:?}", other.err()),
        }
    }
}

/// The block of two records with the second one's kind version changed to 9, and all checksums right.
fn newer(bytes: &[u8]) -> Vec<u8> {
    let block = Block::read(bytes).expect("sound");
    let frames: Vec<_> = block.records().map(|(_, frame)| frame.expect("sound")).collect();
    let mut writer = crate::events::block::BlockWriter::new(block.head);
    for (number, frame) in frames.iter().enumerate() {
        let crate::events::frame::FrameBody::Whole { salt, payload } = frame.body else { panic!("nothing is withheld") };
        let mut header = frame.decoded().expect("a header");
        header.kind_version = if number == 1 { 9 } else { header.kind_version };
        let mut out = Vec::new();
        crate::events::frame::write(&header, frame.subject, frame.following(), salt, payload, &mut out);
        writer.push(&out);
    }
    writer.finish()
}

#[test]
fn a_folder_has_one_owner_and_is_nobody_elses() {
    let world = OnDisk::new();
    let (log, _) = world.open();
    assert!(matches!(world.try_open(&options()), Err(OpenError::Held)));
    assert!(matches!(world.read(), Err(OpenError::Held)));
    let mode = fs::metadata(world.path()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(log);
    assert!(world.read().is_ok());
}

#[test]
fn reading_leaves_the_marks_as_they_are() {
    let world = OnDisk::new();
    let (mut log, _) = world.open();
    append(&mut *log);
    // Not closed: what is read is what a crash left.
    drop(log);
    let path = world.path().join("marks");
    let marks = fs::read(&path).expect("there");
    assert_eq!(sound(&*world.read().expect("opens for reading")).marked, Some(Seq(2)));
    assert_eq!(fs::read(&path).expect("there"), marks);
    fs::write(&path, &marks[..100]).expect("written");
    assert_eq!(sound(&*world.read().expect("opens for reading")).marked, None);
    assert_eq!(fs::metadata(&path).expect("there").len(), 100);
    fs::remove_file(&path).expect("removed");
    assert_eq!(sound(&*world.read().expect("opens for reading")).marked, None);
    assert!(!path.exists());
}

#[test]
fn a_torn_conf_is_replaced() {
    let world = OnDisk::new();
    let (mut log, first) = world.open();
    append(&mut *log);
    log.close().expect("closed");
    let conf = world.path().join("store/conf");
    let sound = fs::read(&conf).expect("there");
    for torn in [sound[..20].to_vec(), Vec::new(), vec![0; sound.len()]] {
        fs::write(&conf, torn).expect("written");
        let (log, opened) = world.open();
        assert_eq!((opened.log, opened.head, opened.found), (first.log, Seq(2), Found::Clean));
        log.close().expect("closed");
        assert_eq!(fs::read(&conf).expect("there"), sound);
    }
}

#[test]
fn a_damaged_snapshot_of_sled_keeps_no_sound_log_from_opening() {
    let world = OnDisk::new();
    let (mut log, first) = world.open();
    append(&mut *log);
    log.close().expect("closed");
    let (log, _) = world.open();
    log.close().expect("closed");
    let snapshots = || {
        let entries = fs::read_dir(world.path().join("store")).expect("there").map(|entry| entry.expect("readable").path());
        entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snap."))).collect::<Vec<_>>()
    };
    for damage in [|_: &[u8]| Vec::new(), |sound: &[u8]| sound[..sound.len() / 2].to_vec(), |sound: &[u8]| vec![7; sound.len()]] {
        let found = snapshots();
        assert!(!found.is_empty(), "sled makes one at each opening");
        for path in found {
            fs::write(&path, damage(&fs::read(&path).expect("there"))).expect("written");
        }
        let (log, opened) = world.open();
        assert_eq!((opened.log, opened.head, opened.found), (first.log, Seq(2), Found::Clean));
        log.close().expect("closed");
    }
}

#[test]
fn a_snapshot_that_sled_did_not_finish_keeps_nothing_from_opening() {
    let world = OnDisk::new();
    let (mut log, first) = world.open();
    append(&mut *log);
    drop(log);
    fs::write(world.path().join("store/snap.7FFFFFFFFFFFFFFF.generating"), [1; 40]).expect("written");
    let (_, opened) = world.open();
    assert_eq!((opened.log, opened.head), (first.log, Seq(2)));
}

#[test]
fn maximal_blocks_make_no_blob() {
    let world = OnDisk::new();
    let clock = Clock::simulated(START_US);
    // Garbage is collected every millisecond: between any two appends.
    let (mut log, _) =
        SledLog::open_tuned(&world.path(), &clock, Entropy::os(), &options(), Tuning { collect_every_ms: 1, ..Tuning::USUAL })
            .expect("opens");
    // One record a block: 17 blocks fill a leaf and split it; the leaf is rewritten whole every tenth.
    for _ in 0..6 {
        for _ in 0..40 {
            log.append(&[reaction(&app("bot"), vec![samples::text(PAYLOAD_MAX - 4)])]).expect("appended");
        }
        // 24 KiB a block: two records of 11 KiB.
        for _ in 0..10 {
            log.append(&[reaction(&app("bot"), vec![samples::text(12_000); 8])]).expect("appended");
        }
    }
    let reader = log.reader();
    assert_eq!((reader.stored().blobs, reader.stored().records), (0, 1 + 6 * 120));
    Box::new(log).close().expect("closed");
    drop(reader);
    let reader = world.read().expect("opens for reading");
    assert_eq!(reader.stored().blobs, 0);
    assert_eq!(sound(&*reader).records, 721);
}

/// What is taken out leaves leaves of the tree that are merged with their neighbours.
#[test]
fn removing_maximal_blocks_makes_no_blob() {
    let world = OnDisk::new();
    let clock = Clock::simulated(START_US);
    let (mut log, _) =
        SledLog::open_tuned(&world.path(), &clock, Entropy::os(), &options(), Tuning { collect_every_ms: 1, ..Tuning::USUAL })
            .expect("opens");
    let reader = log.reader();
    for round in 0..6_u64 {
        for _ in 0..40 {
            log.append(&[reaction(&app("bot"), vec![samples::text(12_000); 2])]).expect("appended");
        }
        // A few at a time, many at once, and all but the last.
        let upto = [3, 2, 1][round as usize % 3];
        let upto = Seq(reader.head().0 - reader.head().0.min(40 / upto) * (upto - 1));
        while log.remove(upto).expect("removed").is_some() {
            assert_eq!(reader.stored().blobs, 0, "{round}");
        }
    }
    assert!(reader.removed().is_some());
    Box::new(log).close().expect("closed");
    drop(reader);
    let reader = world.read().expect("opens for reading");
    assert_eq!(reader.stored().blobs, 0);
    sound(&*reader);
}
