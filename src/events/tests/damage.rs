//! What may lie on a disk instead of a log: nothing panics, what is good is served as it was, and what is bad is counted and named.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::samples;
use super::world::*;
use crate::events::block::BLOCK_MAX;
use crate::events::check::check;
use crate::events::damage::{Census, NAMED, census};
use crate::events::log::{Found, OpenError};
use crate::events::marks;
use crate::events::mem_log::MemDisk;
use crate::events::record::Kind;
use crate::events::stored::StoredRecord;
use crate::ids::Seq;

type Blocks = BTreeMap<Seq, Vec<u8>>;

/// Changes a block.
type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

/// A sound log and what is in it.
struct Sound {
    blocks: Blocks,
    marks: Vec<u8>,
    records: Vec<StoredRecord>,
}

impl Sound {
    fn new() -> Self {
        let world = InMemory::new();
        let (mut log, _) = world.open();
        for name in ["bot", "bee"] {
            let events = [Kind::PodSeen, Kind::StepIssued, Kind::TailText].map(|kind| samples::events(kind).remove(0));
            log.append(&[reaction(&app(name), events.to_vec())]).expect("appended");
        }
        log.close().expect("closed");
        let records = stored(&*world.read().expect("opens for reading"));
        let (mut blocks, mut marks) = (Blocks::new(), Vec::new());
        world.0.edit(|all| blocks = all.clone());
        world.0.edit_marks(|all| marks = all.clone());
        Self { blocks, marks, records }
    }

    fn world(&self, change: impl FnOnce(&mut Blocks, &mut Vec<u8>)) -> InMemory {
        let (mut blocks, mut marks) = (self.blocks.clone(), self.marks.clone());
        change(&mut blocks, &mut marks);
        let disk = MemDisk::new();
        disk.edit(|all| *all = blocks);
        disk.edit_marks(|all| *all = marks);
        InMemory(disk)
    }

    /// Reads all of a damaged world: every record that comes is one of the sound ones. Then opens it for writing.
    fn served(&self, world: &InMemory, what: &str) -> Option<Census> {
        let counted = match world.read() {
            Err(error) => {
                assert!(matches!(error, OpenError::Missing | OpenError::NeedsVersion { .. }), "{what}: {error}");
                None
            }
            Ok(reader) => {
                for record in items(&*reader, Seq::NONE).into_iter().flatten() {
                    assert!(self.records.contains(&record), "{what}: a wrong record {record:?}");
                }
                check(&*reader).expect("the store answers");
                Some(census(&*reader).expect("the store answers"))
            }
        };
        match world.try_open(&options()) {
            Ok((_, opened)) => assert!(opened.head >= Seq(1), "{what}"),
            Err(error) => assert!(matches!(error, OpenError::Damaged { .. } | OpenError::NeedsVersion { .. }), "{what}: {error}"),
        }
        counted
    }
}

#[test]
fn any_byte_of_a_block_may_flip() {
    let sound = Sound::new();
    let whole = sound.records.len() as u64;
    for (key, block) in &sound.blocks {
        let alone = |at: usize| at >= usize::from(u16::from_le_bytes([block[2], block[3]]));
        for at in 0..block.len() {
            let flip = [1, 0x80, 0xff][at % 3];
            let world = sound.world(|blocks, _| blocks.get_mut(key).expect("there")[at] ^= flip);
            let what = format!("block {key}, byte {at} ^ {flip}");
            let census = sound.served(&world, &what).expect("it can be read");
            assert_eq!((census.damaged, census.named.len(), census.newer), (1, 1, 0), "{what}");
            if alone(at) {
                assert_eq!(census.readable, whole - 1, "{what}: one record is lost and no other");
            }
            assert!(matches!(world.try_open(&options()), Err(OpenError::Damaged { .. })), "{what}: it cannot be continued");
        }
    }
}

#[test]
fn any_byte_of_the_marks_may_flip() {
    let sound = Sound::new();
    let last = sound.records.last().expect("some").header.seq;
    for at in 0..sound.marks.len() {
        // What no slot uses is read by nobody.
        if at % marks::SLOT >= 300 && at % 97 != 0 {
            continue;
        }
        let world = sound.world(|_, marks| marks[at] ^= 0xff);
        let census = sound.served(&world, &format!("marks, byte {at}")).expect("it can be read");
        assert_eq!((census.readable, census.damaged), (sound.records.len() as u64, 0), "the marks hide no record");
        let world = sound.world(|_, marks| marks[at] ^= 0xff);
        let (mut log, opened) = world.open();
        assert_ne!(opened.found, Found::Fresh, "byte {at}");
        let next = log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended").concat()[0].header.seq;
        assert!(next > last, "byte {at}: {next} was used");
    }
}

#[test]
fn any_block_may_be_cut_and_so_may_the_marks() {
    let sound = Sound::new();
    for (key, block) in &sound.blocks {
        for length in 0..block.len() {
            let world = sound.world(|blocks, _| blocks.get_mut(key).expect("there").truncate(length));
            let census = sound.served(&world, &format!("block {key} cut to {length}")).expect("it can be read");
            assert_eq!(census.damaged, 1);
        }
    }
    for length in (0..sound.marks.len()).step_by(61) {
        let world = sound.world(|_, marks| marks.truncate(length));
        let census = sound.served(&world, &format!("marks cut to {length}")).expect("it can be read");
        assert_eq!((census.readable, census.damaged), (sound.records.len() as u64, 0));
    }
}

#[test]
fn a_value_under_another_key_is_no_block_of_it() {
    let sound = Sound::new();
    let last = *sound.blocks.last_key_value().expect("some").0;
    for key in [0, 2, 3, 7, 1 << 40, (1 << 62) - 1, 1 << 62, u64::MAX] {
        if sound.blocks.contains_key(&Seq(key)) {
            continue;
        }
        let world = sound.world(|blocks, _| drop(blocks.insert(Seq(key), blocks[&last].clone())));
        let census = sound.served(&world, &format!("under {key}")).expect("it can be read");
        assert_eq!((census.readable, census.damaged), (sound.records.len() as u64, 1), "{key}");
        assert!(matches!(world.try_open(&options()), Err(OpenError::Damaged { .. })), "{key}");
    }
}

#[test]
fn a_giant_length_takes_no_memory() {
    let sound = Sound::new();
    let giants: [Change<'_>; 4] = [
        &|block| block[2..4].copy_from_slice(&u16::MAX.to_le_bytes()),
        &|block| block[80..82].copy_from_slice(&u16::MAX.to_le_bytes()),
        // The payload's length of the first record, and its subject's.
        &|block| frame_of(block, |frame| frame[17..21].copy_from_slice(&u32::MAX.to_le_bytes())),
        &|block| frame_of(block, |frame| frame[13..15].copy_from_slice(&u16::MAX.to_le_bytes())),
    ];
    for (number, giant) in giants.iter().enumerate() {
        let world = sound.world(|blocks, _| {
            let block = blocks.get_mut(&Seq(2)).expect("there");
            giant(block);
            seal_block(block);
        });
        let census = sound.served(&world, &format!("giant {number}")).expect("it can be read");
        assert_eq!(census.damaged, 1, "{number}");
    }
    let world = sound.world(|blocks, _| drop(blocks.insert(Seq(2), vec![0xff; 64 * BLOCK_MAX])));
    assert_eq!(sound.served(&world, "a giant value").expect("it can be read").damaged, 1);
}

/// Changes a block's first frame, and makes its checksum right again.
fn frame_of(block: &mut [u8], change: impl FnOnce(&mut [u8])) {
    let head = usize::from(u16::from_le_bytes([block[2], block[3]]));
    let length = usize::from(u16::from_le_bytes([block[80], block[81]]));
    let frame = &mut block[head..head + length];
    change(frame);
    let sum = crc32fast::hash(&frame[4..]).to_le_bytes();
    frame[..4].copy_from_slice(&sum);
}

/// Makes a block's checksum right again, as far as it has one.
fn seal_block(block: &mut [u8]) {
    let head = usize::from(u16::from_le_bytes([block[2], block[3]])).clamp(8, block.len());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&block[..4]);
    sum.update(&block[8..head]);
    block[4..8].copy_from_slice(&sum.finalize().to_le_bytes());
}

#[test]
fn b60_what_a_newer_build_wrote_is_counted_apart() {
    let sound = Sound::new();
    let newer: [Change<'_>; 3] =
        [&|block| block[0] = 2, &|block| frame_of(block, |frame| frame[4] = 2), &|block| frame_of(block, |frame| frame[5] = 2)];
    for (number, newer) in newer.iter().enumerate() {
        let world = sound.world(|blocks, _| {
            let block = blocks.get_mut(&Seq(2)).expect("there");
            newer(block);
            seal_block(block);
        });
        let census = sound.served(&world, &format!("newer {number}")).expect("it can be read");
        assert_eq!((census.damaged, census.newer), (0, 1), "{number}");
        assert!(matches!(world.try_open(&options()), Err(OpenError::NeedsVersion { .. })), "{number}");
    }
}

#[test]
fn the_first_are_named_and_the_rest_counted() {
    let sound = Sound::new();
    let world = sound.world(|blocks, _| blocks.extend((100..400).map(|key| (Seq(key), vec![7; 90]))));
    let census = sound.served(&world, "much").expect("it can be read");
    assert_eq!((census.damaged, census.named.len()), (300, NAMED));
    assert_eq!(census.named.first().map(|damage| damage.seq), Some(Seq(100)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_anywhere_hides_nothing(
        keys in prop::collection::vec(prop_oneof![0..12_u64, any::<u64>()], 1..4),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        marks in prop::option::of(prop::collection::vec(any::<u8>(), 0..3 * marks::SLOT)),
    ) {
        let sound = Sound::new();
        let keys: Vec<Seq> = keys.into_iter().map(Seq).filter(|key| !sound.blocks.contains_key(key)).collect();
        let world = sound.world(|blocks, old| {
            blocks.extend(keys.iter().map(|key| (*key, bytes.clone())));
            *old = marks.unwrap_or_else(|| old.clone());
        });
        if let Some(census) = sound.served(&world, "garbage") {
            prop_assert_eq!(census.readable, sound.records.len() as u64);
        }
    }
}
