//! Bytes that are not what they should be: nothing panics, and no damage ever becomes a wrong record.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::samples;
use super::world::*;
use crate::events::block::Block;
use crate::events::codec;
use crate::events::frame::Frame;
use crate::events::record::Kind;
use crate::events::stored::{Item, Payloads, StoredRecord, each_item};
use crate::ids::Seq;

/// A block with a few records of several kinds, as stored.
fn block() -> (Seq, Vec<u8>) {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    let events = [Kind::PodSeen, Kind::StepIssued, Kind::TailText].map(|kind| samples::events(kind).remove(0));
    log.append(&[reaction(&app("bot"), events.to_vec())]).expect("appended");
    let mut found = None;
    let find = &mut |key, bytes: &[u8]| {
        found = Some((key, bytes.to_vec()));
        ControlFlow::Continue(())
    };
    log.reader().blocks(Seq(2), find).expect("the store answers");
    found.expect("there")
}

fn read(key: Seq, bytes: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    let push = &mut |item| {
        items.push(item);
        ControlFlow::Continue(())
    };
    let _ = each_item(key, bytes, Seq::NONE, None, Payloads::All, push);
    items
}

#[test]
fn a_flipped_bit_is_always_seen() {
    let (key, sound) = block();
    let records: Vec<StoredRecord> = read(key, &sound).into_iter().map(|item| item.expect("sound")).collect();
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            let items = read(key, &bytes);
            assert!(items.iter().any(Result::is_err), "byte {at} bit {bit}");
            for record in items.into_iter().flatten() {
                assert!(records.contains(&record), "byte {at} bit {bit}: a wrong record");
            }
        }
    }
}

#[test]
fn a_cut_block_is_an_error() {
    let (key, sound) = block();
    for length in 0..sound.len() {
        assert!(read(key, &sound[..length]).iter().all(Result::is_err), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_payload_panics(kind in 0..Kind::ALL.len(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(event) = codec::decode(Kind::ALL[kind], 1, &bytes) {
            prop_assert_eq!(event.kind(), Kind::ALL[kind]);
        }
    }

    #[test]
    fn no_changed_payload_panics(kind in 0..Kind::ALL.len(), at in any::<prop::sample::Index>(), changes in prop::collection::vec(any::<u8>(), 1..9)) {
        for event in samples::events(Kind::ALL[kind]) {
            let mut bytes = codec::encode(&event).expect("a sample is small");
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..(at + changes.len()).min(bytes.len()), changes.clone());
            let _ = codec::decode(Kind::ALL[kind], 1, &bytes);
        }
    }

    #[test]
    fn no_frame_and_no_block_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Frame::read(&bytes);
        let _ = Block::read(&bytes);
        // The checksums made right, so that what is behind them is reached.
        if bytes.len() > 6 {
            let mut frame = bytes.clone();
            (frame[4], frame[5]) = (frame[4] & 1, 1);
            let sum = crc32fast::hash(&frame[4..]).to_le_bytes();
            frame[..4].copy_from_slice(&sum);
            if let Ok(frame) = Frame::read(&frame) {
                let _ = (frame.decoded(), frame.leaf());
            }
        }
        if bytes.len() > 90 {
            let mut block = bytes.clone();
            let head = 80 + 2 * usize::from(block[2] % 5);
            (block[0], block[2], block[3]) = (1, head as u8, 0);
            let mut sum = crc32fast::Hasher::new();
            sum.update(&block[..4]);
            sum.update(&block[8..head.max(8)]);
            block[4..8].copy_from_slice(&sum.finalize().to_le_bytes());
            let _ = read(Seq(1), &block);
        }
    }
}
