//! Erasing what a record says: what goes, what stays, and a power cut at every point.

use std::fs;
use std::path::Path;

use super::samples;
use super::world::*;
use crate::events::block::{BLOCK_MAX, Block, BlockHead, BlockWriter};
use crate::events::erase::{Erasure, NotErased, without};
use crate::events::frame;
use crate::events::kinds::operator::OperatorSaid;
use crate::events::log::{AppendError, EventLog, Found};
use crate::events::mem_log::{MemFault, Unsynced};
use crate::events::record::{Event, Header, Kind, Record};
use crate::events::sled_log::SledLog;
use crate::events::stored::Body;
use crate::events::tree::{EMPTY_ROOT, TreeHead};
use crate::ids::{LogId, Seq, Word};

fn erasure(seq: u64) -> Erasure {
    Erasure { seq: Seq(seq), daemon: options().daemon, time_us: START_US + 20, who: Word::new("on-call"), why: "asked for".to_owned() }
}

/// Records 2 to 4 in one reaction: one decides, two inform; then one of another subject.
fn filled(world: &dyn World) -> Box<dyn EventLog> {
    let (mut log, _) = world.open();
    let events = [Kind::StepIssued, Kind::StepExplained, Kind::TailText].map(|kind| samples::events(kind).remove(0));
    log.append(&[reaction(&app("bot"), events.to_vec())]).expect("appended");
    log.append(&[reaction(&app("bee"), vec![samples::text(1)])]).expect("appended");
    log
}

fn leaves(log: &dyn EventLog) -> Vec<[u8; 32]> {
    leaves_of(&*log.reader(), None)
}

fn withheld(log: &dyn EventLog) -> Vec<u64> {
    stored(&*log.reader()).iter().filter(|record| record.body == Body::Withheld).map(|record| record.header.seq.0).collect()
}

fn erases(world: &dyn World) {
    let mut log = filled(world);
    let before = (leaves(&*log), log.reader().stored());
    let erased: Record = log.erase(&erasure(3)).expect("erased");
    assert_eq!((erased.header.seq, erased.header.subject.clone()), (Seq(6), options().daemon));
    assert!(matches!(&erased.event, Event::RecordErased(erased) if erased.record.seq == Seq(3) && erased.why == "asked for"));
    assert_eq!((withheld(&*log), &leaves(&*log)[..5]), (vec![3], before.0.as_slice()));
    let after = log.reader().stored();
    assert_eq!((after.blocks, after.records, after.blobs), (before.1.blocks + 1, before.1.records + 1, 0));
    assert_eq!(sound(&*log.reader()).withheld, 1);

    log.append(&[reaction(&app("bot"), vec![samples::text(2)])]).expect("the log goes on");
    assert_eq!(log.erase(&erasure(4)).expect("erased").header.seq, Seq(8));
    log.close().expect("closed");
    let (log, opened) = world.open();
    assert_eq!((opened.found, withheld(&*log), sound(&*log.reader()).withheld), (Found::Clean, vec![3, 4], 2));
}

fn refuses(world: &dyn World) {
    let mut log = filled(world);
    let head = log.reader().acknowledged();
    log.erase(&erasure(5)).expect("erased");
    assert!(matches!(log.erase(&erasure(2)), Err(NotErased::Decides { seq: Seq(2), kind }) if kind == "StepIssued"));
    assert!(matches!(log.erase(&erasure(5)), Err(NotErased::Already(Seq(5)))));
    for none in [0, 7, 1 << 40, u64::MAX] {
        assert!(matches!(log.erase(&erasure(none)), Err(NotErased::NoSuchRecord(_))), "{none}");
    }
    for bad in [String::new(), "x".repeat(1_025)] {
        assert!(matches!(log.erase(&Erasure { why: bad, ..erasure(3) }), Err(NotErased::Why(_))));
    }
    assert_eq!(log.reader().head(), Seq(head.head.0 + 1), "a refusal records nothing, and the log goes on");
    let erased = log.erase(&erasure(6)).expect("what says that it was erased only informs");
    assert_eq!((erased.header.seq, withheld(&*log)), (Seq(7), vec![5, 6]));
    sound(&*log.reader());
}

#[test]
fn in_memory_and_on_disk() {
    for world in [&InMemory::new() as &dyn World, &OnDisk::new()] {
        erases(world);
    }
    for world in [&InMemory::new() as &dyn World, &OnDisk::new()] {
        refuses(world);
    }
}

#[test]
fn a_record_of_an_earlier_log_is_erased_too() {
    let world = InMemory::new();
    let log = filled(&world);
    let first = log.reader().id();
    drop(log);
    world.0.edit(|blocks| drop(blocks.pop_last()));
    let (mut log, _) = world.open();
    assert_ne!(log.reader().id(), first);
    let erased = log.erase(&erasure(3)).expect("erased");
    assert!(matches!(&erased.event, Event::RecordErased(erased) if erased.record.log == first));
    sound(&*log.reader());
}

#[test]
fn a_power_cut_leaves_both_or_neither() {
    for unsynced in [Unsynced::Lost, Unsynced::MarksKept, Unsynced::Kept] {
        let world = InMemory::new();
        let mut log = filled(&world);
        world.0.fail(MemFault::Sync);
        assert!(matches!(log.erase(&erasure(3)), Err(NotErased::Append(AppendError::Io(_)))));
        assert!(matches!(log.erase(&erasure(3)), Err(NotErased::Append(AppendError::Stopped))), "nobody knows what is stored");
        world.0.crash(unsynced);
        let (mut log, _) = world.open();
        let there = u64::from(unsynced == Unsynced::Kept);
        let records = records_of(&*log, Kind::RecordErased);
        assert_eq!((withheld(&*log).len() as u64, records), (there, there), "{unsynced:?}");
        sound(&*log.reader());
        // What was acknowledged stays.
        if there == 0 {
            log.erase(&erasure(3)).expect("erased");
        }
        world.0.crash(Unsynced::Lost);
        let (log, _) = world.open();
        assert_eq!((withheld(&*log), records_of(&*log, Kind::RecordErased)), (vec![3], 1));
        sound(&*log.reader());
    }
    let world = InMemory::new();
    let mut log = filled(&world);
    world.0.fail(MemFault::Full);
    assert!(matches!(log.erase(&erasure(3)), Err(NotErased::Append(AppendError::Full(_)))));
    drop(log);
    let (log, _) = world.open();
    assert_eq!(withheld(&*log), Vec::<u64>::new());
    sound(&*log.reader());
}

fn records_of(log: &dyn EventLog, kind: Kind) -> u64 {
    stored(&*log.reader()).iter().filter(|record| record.header.kind == kind.number()).count() as u64
}

/// A full block of small records that only inform.
fn full_block() -> Vec<u8> {
    let before = TreeHead { size: 0, root: EMPTY_ROOT };
    let mut block = BlockWriter::new(BlockHead { log: LogId([1; 16]), first: Seq(1), previous: Seq::NONE, before });
    let subject = app("bot");
    let frame = |seq: u64, payload: usize| {
        let header = Header {
            kind: Kind::ClockStepped.number(),
            kind_version: 1,
            rules: 0,
            seq: Seq(seq),
            subject: subject.clone(),
            subject_seq: seq,
            time_us: 0,
            reaction: Seq(seq),
            cause: Seq::NONE,
            settings: Seq::NONE,
        };
        let mut out = Vec::new();
        frame::write(&header, &subject.to_string(), 0, &[7; 16], &vec![0; payload], &mut out);
        out
    };
    let mut seq = 1;
    while block.has_room(frame(seq, 1).len() * 2) {
        block.push(&frame(seq, 1));
        seq += 1;
    }
    let most = (0..400).rev().find(|payload| block.has_room(frame(seq, *payload).len())).expect("one fits");
    block.push(&frame(seq, most));
    block.finish()
}

#[test]
fn a_block_never_outgrows_itself() {
    let full = full_block();
    assert_eq!(full.len(), BLOCK_MAX);
    let last = Block::read(&full).expect("sound").last();
    assert!(matches!(without(&full, Seq(1)), Err(NotErased::NoRoom(Seq(1)))));
    // The last one is long, and makes room for the others.
    let (_, shorter) = without(&full, last).expect("erased");
    let (_, again) = without(&shorter, Seq(1)).expect("erased");
    let read = Block::read(&again).expect("sound");
    assert_eq!(read.head, Block::read(&full).expect("sound").head);
    assert!(matches!(without(&full[1..], Seq(1)), Err(NotErased::Block(_))));
}

/// Whether any file of a folder holds those bytes.
fn is_in(dir: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(dir).expect("a folder").any(|entry| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            return is_in(&path, bytes);
        }
        fs::read(&path).expect("a file").windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn a_renewed_store_holds_nothing_of_what_was_erased() {
    let secret = "correct horse battery staple";
    let world = OnDisk::new();
    let mut log = filled(&world);
    let said = Event::OperatorSaid(OperatorSaid { who: Word::new("on-call"), why: secret.to_owned() });
    log.append(&[reaction(&app("bot"), vec![said])]).expect("appended");
    log.erase(&erasure(6)).expect("erased");
    let (before, leaves_before) = (log.reader().acknowledged(), leaves(&*log));
    assert!(matches!(SledLog::renew(&world.path()), Err(crate::events::log::OpenError::Held)));
    log.close().expect("closed");
    assert!(is_in(&world.path(), secret.as_bytes()), "the database appends: this is why it is renewed");
    SledLog::renew(&world.path()).expect("renewed");
    assert!(!is_in(&world.path(), secret.as_bytes()));
    let (log, opened) = world.open();
    assert_eq!((opened.found, log.reader().acknowledged(), leaves(&*log)), (Found::Clean, before, leaves_before));
    assert_eq!((sound(&*log.reader()).withheld, log.reader().stored().blobs), (1, 0));
}

#[test]
fn a_crash_while_a_store_is_renewed_leaves_the_one_or_the_other() {
    let named = |names: &[(&str, &str)], missing: bool| {
        let world = OnDisk::new();
        let mut log = filled(&world);
        log.erase(&erasure(3)).expect("erased");
        let before = log.reader().acknowledged();
        log.close().expect("closed");
        // The copy, as it is named at each step.
        let dir = world.path();
        for (from, to) in names {
            copy(&dir.join(from), &dir.join(to));
        }
        if missing {
            fs::remove_dir_all(dir.join("store")).expect("removed");
        }
        let reader = world.read().expect("opens for reading");
        assert_eq!(reader.acknowledged(), before, "{names:?}");
        drop(reader);
        let (log, opened) = world.open();
        assert_eq!((opened.found, sound(&*log.reader()).withheld), (Found::Clean, 1), "{names:?}");
        let left: Vec<_> = ["store.partial", "store.renewed", "store.old"].into_iter().filter(|name| dir.join(name).exists()).collect();
        assert_eq!(left, Vec::<&str>::new(), "{names:?}");
    };
    named(&[("store", "store.partial")], false);
    named(&[("store", "store.renewed")], false);
    named(&[("store", "store.renewed"), ("store", "store.old")], true);
    named(&[("store", "store.renewed"), ("store", "store.old")], false);
    named(&[("store", "store.old")], false);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("copied");
        }
    }
}
