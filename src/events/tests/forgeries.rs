//! Somebody who can write to the folder, and makes every checksum and every root right again: what is noticed all the same.

use std::collections::BTreeMap;

use super::samples;
use super::world::*;
use crate::events::block::{Block, BlockHead, BlockWriter};
use crate::events::check::check;
use crate::events::frame::{self, Frame, FrameBody, FrameError};
use crate::events::kinds::daemon::RestartReason;
use crate::events::log::{Beginning, OpenError, OpenOptions};
use crate::events::marks::{self, Ceiling, Marks, SEQ_END};
use crate::events::record::{Header, Kind};
use crate::events::tree::Tree;
use crate::ids::{LogId, Seq};

type Blocks = BTreeMap<Seq, Vec<u8>>;

/// What a forger may change of a record.
struct Forged {
    header: Header,
    payload: Vec<u8>,
    withheld: bool,
}

/// Writes every block again, each record as `change` leaves it, with the numbers, roots and checksums that follow from it.
fn forge(blocks: &mut Blocks, log: impl Fn(LogId) -> LogId, change: impl Fn(&mut Forged)) {
    let mut tree = Tree::default();
    for bytes in blocks.values_mut() {
        let block = Block::read(bytes).expect("sound");
        if block.head.before.size == 0 {
            tree = Tree::default();
        }
        let head = BlockHead { log: log(block.head.log), before: tree.head(), ..block.head };
        let mut writer = BlockWriter::new(head);
        for (_, found) in block.records() {
            let found = found.expect("sound");
            let FrameBody::Whole { salt, payload } = found.body else { panic!("nothing is withheld yet") };
            let mut forged = Forged { header: found.decoded().expect("known"), payload: payload.to_vec(), withheld: false };
            change(&mut forged);
            let mut out = Vec::new();
            tree.push(frame::write(&forged.header, found.subject, found.following(), salt, &forged.payload, &mut out));
            writer.push(&if forged.withheld { frame::withhold(&Frame::read(&out).expect("sound")) } else { out });
        }
        *bytes = writer.finish();
    }
}

/// A log that lost its tail, and the one that was begun after it.
fn two_logs() -> (InMemory, Seq) {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    for name in ["bot", "bee", "bot"] {
        let events = [Kind::StepIssued, Kind::StepExplained].map(|kind| samples::events(kind).remove(0));
        log.append(&[reaction(&app(name), events.to_vec())]).expect("appended");
    }
    drop(log);
    world.0.edit(|blocks| drop(blocks.pop_last()));
    let (mut log, opened) = world.open();
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    sound(&*log.reader());
    log.close().expect("closed");
    (world, opened.head)
}

fn difference(world: &InMemory) -> Option<(Seq, String)> {
    let report = check(&*world.read().expect("opens for reading")).expect("the store answers");
    report.difference.map(|difference| (difference.seq, difference.what))
}

#[test]
fn what_is_forged_is_seen() {
    type Change = fn(&mut Forged);
    type Named = fn(LogId) -> LogId;
    let (_, second) = two_logs();
    let same: Named = |log| log;
    let changes: [(&str, Named, Change, Seq); 9] = [
        ("nothing", same, |_| {}, Seq::NONE),
        ("a record of the log before", same, |forged| forged.payload[0] ^= u8::from(forged.header.seq == Seq(3)), second),
        ("a log under another name", |log| LogId(log.0.map(|byte| byte ^ 1)), |_| {}, Seq(1)),
        ("a deciding record without its payload", same, |forged| forged.withheld = forged.header.seq == Seq(2), Seq(2)),
        ("a cause that is later", same, |forged| forged.header.cause.0 += 9 * u64::from(forged.header.seq == Seq(3)), Seq(3)),
        ("settings that are later", same, |forged| forged.header.settings.0 += 9 * u64::from(forged.header.seq == Seq(4)), Seq(4)),
        ("a time that runs back", same, |forged| forged.header.time_us -= i64::from(forged.header.seq > Seq(5)), Seq::NONE),
        ("a time that no clock shows", same, |forged| forged.header.time_us |= i64::from(forged.header.seq == Seq(4)) << 62, Seq(4)),
        (
            "a log that begins with something else",
            same,
            |forged| forged.header.kind = if forged.header.seq == Seq(1) { Kind::StepExplained.number() } else { forged.header.kind },
            Seq(1),
        ),
    ];
    for (what, log, change, at) in changes {
        let (world, _) = two_logs();
        world.0.edit(|blocks| forge(blocks, log, change));
        let found = difference(&world);
        if what == "nothing" {
            assert_eq!(found, None);
        } else if at == Seq::NONE {
            assert!(found.is_some(), "{what}");
        } else {
            assert_eq!(found.as_ref().map(|(seq, _)| *seq), Some(at), "{what}: {found:?}");
        }
    }
}

#[test]
fn what_decides_cannot_be_taken_out_and_what_informs_can() {
    for (seq, decides) in [(Seq(2), true), (Seq(3), false)] {
        let (world, _) = two_logs();
        world.0.edit(|blocks| forge(blocks, |log| log, |forged| forged.withheld = forged.header.seq == seq));
        let report = check(&*world.read().expect("opens for reading")).expect("the store answers");
        assert_eq!((report.difference.is_some(), report.withheld), (decides, u64::from(!decides)));
        match world.try_open(&options()) {
            Err(OpenError::Damaged { seq: at, .. }) => assert!(decides && at == seq),
            other => assert!(!decides, "{:?}", other.err()),
        }
    }
}

#[test]
fn a_log_put_behind_one_that_was_cut_does_not_hide_the_cut() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    let cut = log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended").concat()[0].header.seq;
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    log.close().expect("closed");
    // The forged log says truly what is before it, but not that something was acknowledged and is gone.
    let other = InMemory::new();
    let mut stored = Blocks::new();
    world.0.edit(|blocks| stored = blocks.clone());
    stored.retain(|key, _| *key <= cut);
    other.0.edit(|blocks| *blocks = stored.clone());
    let begin = Some(Beginning { reason: RestartReason::NewFolder, former: None });
    drop(other.try_open(&OpenOptions { begin, ..options() }).expect("opens"));
    other.0.edit(|blocks| stored = blocks.clone());
    world.0.edit(|blocks| *blocks = stored);
    assert!(difference(&world).expect("a difference").1.contains("acknowledged"));
}

#[test]
fn no_log_comes_to_the_end_of_numbers() {
    let (world, _) = two_logs();
    world.0.edit(|blocks| {
        let last = blocks.pop_last().expect("there").1;
        let block = Block::read(&last).expect("sound");
        let mut writer = BlockWriter::new(BlockHead { first: Seq(SEQ_END), ..block.head });
        for (_, found) in block.records() {
            let found = found.expect("sound");
            let FrameBody::Whole { salt, payload } = found.body else { panic!("nothing is withheld") };
            let mut header = found.decoded().expect("known");
            (header.seq, header.reaction) = (Seq(SEQ_END), Seq(SEQ_END));
            let mut out = Vec::new();
            frame::write(&header, found.subject, found.following(), salt, payload, &mut out);
            writer.push(&out);
        }
        blocks.insert(Seq(SEQ_END), writer.finish());
    });
    assert_eq!(difference(&world).expect("a difference").0, Seq(SEQ_END));
}

#[test]
fn what_a_newer_build_wrote_is_not_taken_for_damage() {
    // A form that is shorter than this version's header.
    let mut frame = vec![0, 0, 0, 0, 2, 1, 9, 9];
    let sum = crc32fast::hash(&frame[4..]).to_le_bytes();
    frame[..4].copy_from_slice(&sum);
    assert_eq!(Frame::read(&frame), Err(FrameError::Newer { version: 1, form: 2 }));

    let mut marks = Marks::default();
    let mut slot = marks.set_ceiling(Ceiling { log: LogId([1; 16]), seq: Seq(7) });
    slot.bytes[8] = 2;
    slot.bytes.extend_from_slice(&[3; 100]);
    let length = u16::try_from(slot.bytes.len()).expect("small");
    slot.bytes[12..14].copy_from_slice(&length.to_le_bytes());
    let sum = crc32fast::hash(&slot.bytes[4..]).to_le_bytes();
    slot.bytes[..4].copy_from_slice(&sum);
    slot.bytes.resize(marks::SLOT, 0);
    let read = Marks::read(&slot.bytes);
    assert!(read.newer && read.ceiling.is_none());
}
