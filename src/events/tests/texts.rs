//! What tenants wrote, left out for a reader who may not have it: every leaf stays, and nothing else goes.

use std::ops::ControlFlow;

use super::samples;
use super::world::*;
use crate::events::block::Block;
use crate::events::frame::FrameBody;
use crate::events::log::LogReader;
use crate::events::record::Kind;
use crate::events::texts::without_texts;
use crate::ids::Seq;

fn blocks(reader: &dyn LogReader) -> Vec<(Seq, Vec<u8>)> {
    let mut blocks = Vec::new();
    let each = &mut |key, bytes: &[u8]| {
        blocks.push((key, bytes.to_vec()));
        ControlFlow::Continue(())
    };
    reader.blocks(Seq::NONE, each).expect("read");
    blocks
}

#[test]
fn texts_go_and_nothing_else_and_every_leaf_stays() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::LogRestarted) {
        log.append(&[reaction(&app("bot"), samples::events(*kind))]).expect("appended");
    }
    let reader = log.reader();
    let mut withheld = Vec::new();
    for (key, stored) in blocks(&*reader) {
        let without = without_texts(key, stored.clone()).expect("room");
        let (before, after) = (Block::read(&stored).expect("sound"), Block::read(&without).expect("sound"));
        assert_eq!(before.head, after.head);
        for ((_, was), (_, is)) in before.records().zip(after.records()) {
            let (was, is) = (was.expect("sound"), is.expect("sound"));
            assert_eq!((was.leaf(), was.header), (is.leaf(), is.header));
            if matches!(is.body, FrameBody::Withheld(_)) {
                withheld.push(Kind::from_number(is.kind()).expect("known"));
            } else {
                assert_eq!(was, is);
            }
        }
    }
    withheld.dedup();
    assert_eq!(withheld, [Kind::TailText, Kind::MessageText]);
}

#[test]
fn of_what_cannot_be_read_nothing_is_given() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    let events = [Kind::TailText, Kind::StepIssued].map(|kind| samples::events(kind).remove(0));
    log.append(&[reaction(&app("bot"), events.to_vec())]).expect("appended");
    let (key, stored) = blocks(&*log.reader()).pop().expect("a block");
    let count = Block::read(&stored).expect("sound").count();

    let mut in_a_record = stored.clone();
    let last = in_a_record.len() - 1;
    in_a_record[last] ^= 1;
    let given = without_texts(key, in_a_record).expect("room");
    let given = Block::read(&given).expect("sound");
    assert_eq!((given.count(), given.frames().last()), (count, Some(&[][..])));
    let bodies: Vec<bool> = given.records().map(|(_, found)| found.is_ok()).collect();
    assert_eq!(bodies, [vec![true; bodies.len() - 1], vec![false]].concat());

    let mut in_its_head = stored;
    in_its_head[9] ^= 1;
    assert!(without_texts(key, in_its_head).expect("room").is_empty());
}
