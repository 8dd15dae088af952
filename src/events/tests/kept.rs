//! What is in a store: of a newer build, packed, divided.

use std::ops::ControlFlow;

use crate::clock::{Clock, Entropy};
use crate::events::check::check;
use crate::events::damage::census;
use crate::events::folder::lock;
use crate::events::keys::{BLOCK_KEY, DIVIDED_KEY, divider_of, seq_of};
use crate::events::kinds::operator::OperatorSaid;
use crate::events::log::{EventLog as _, OpenError, OpenOptions};
use crate::events::record::{Draft, Event, Reaction};
use crate::events::sled_log::{Access, SledLog, SledStore, Tuning};
use crate::events::store::Store as _;
use crate::ids::{AppId, Seq, Subject, Word};

#[test]
fn what_a_newer_build_stored_is_ignored_or_needs_that_build() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = || {
        let options = OpenOptions::new(Subject::daemon("world").expect("a name"));
        SledLog::open(folder.path(), &Clock::simulated(1), Entropy::os(), &options).map(|(_, opened)| opened.head)
    };
    let put = |key: &[u8]| {
        let store = opened_raw(folder.path());
        store.db().insert(key, &[1]).expect("stored");
        store.sync().expect("synced");
    };
    assert!(matches!(open(), Ok(Seq(1))));
    put(b"a small letter");
    put(b"zz");
    assert!(matches!(open(), Ok(Seq(1))));
    put(b"Tree at 7");
    assert!(matches!(open(), Err(OpenError::NeedsVersion { seq: Seq::NONE, .. })));
    assert!(SledLog::open_for_reading(folder.path()).is_ok());
}

/// A log of so many commits of 300 records each, closed; and what it takes of the disk, and its records' bytes.
fn filled(folder: &std::path::Path, commits: usize) -> (u64, u64) {
    let options = OpenOptions::new(Subject::daemon("world").expect("a name"));
    let (mut log, _) = SledLog::open(folder, &Clock::simulated(1), Entropy::os(), &options).expect("opens");
    let mut bytes = 0;
    for commit in 0..commits {
        let text = |number: usize| {
            Event::OperatorSaid(OperatorSaid {
                who: Word::new("somebody"),
                why: format!("for reason {commit} of many, the {number}th time"),
            })
        };
        let drafts = (0..300).map(|number| Draft::input(text(number))).collect();
        let subject = Subject::App(AppId::new("acme", "bot").expect("a name"));
        let reaction = Reaction { subject, time_us: 1, rules: 1, settings: Seq::NONE, drafts };
        log.append(&[reaction]).expect("appended");
    }
    let reader = log.reader();
    let count = &mut |_, block: &[u8]| {
        bytes += block.len() as u64;
        ControlFlow::Continue(())
    };
    reader.blocks(Seq::NONE, count).expect("the store answers");
    let stored = reader.stored().bytes;
    drop(reader);
    Box::new(log).close().expect("closed");
    (stored, bytes)
}

fn opened_raw(folder: &std::path::Path) -> SledStore {
    let access = Access::Writing { extra_sync: true };
    SledStore::open_at(folder, &folder.join("store"), lock(folder).expect("nobody has it"), access, Tuning::USUAL).expect("opens")
}

#[test]
fn what_is_stored_is_packed_and_written_about_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (stored, blocks) = filled(folder.path(), 120);
    assert!(blocks > 4 << 20, "{blocks}");
    // A file grows by whole segments.
    assert!(stored < blocks / 2 + 2 * Tuning::USUAL.segment as u64, "{stored} bytes for blocks of {blocks}");
    let store = opened_raw(folder.path());
    let values: Vec<(sled::IVec, sled::IVec)> = store.db().range([BLOCK_KEY]..[BLOCK_KEY + 1]).map(|found| found.expect("sound")).collect();
    let last_block = values.iter().filter_map(|(key, _)| seq_of(key)).max().expect("some");
    let dividers: Vec<Seq> = values.iter().filter_map(|(key, value)| divider_of(key, value)).collect();
    assert!(dividers.len() as u64 > last_block.0 / 64 && dividers.last().is_some_and(|last| *last > Seq(last_block.0 + 1_000)));
    assert!(store.db().get(DIVIDED_KEY).expect("answers").is_some());
}

#[test]
fn a_packed_block_that_is_damaged_is_named_and_hides_no_other() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    filled(folder.path(), 10);
    let whole = census(&*SledLog::open_for_reading(folder.path()).expect("opens")).expect("answers");
    let store = opened_raw(folder.path());
    let packed = store.db().range([BLOCK_KEY]..[BLOCK_KEY + 1]).filter_map(Result::ok).find(|(_, value)| value.starts_with(&[1, 0x80]));
    let (key, value) = packed.expect("a packed block");
    let mut changed = value.to_vec();
    changed[value.len() / 2] ^= 1;
    store.db().insert(&key, changed).expect("stored");
    store.sync().expect("synced");
    drop(store);
    let census = census(&*SledLog::open_for_reading(folder.path()).expect("opens")).expect("answers");
    assert_eq!((census.damaged, census.newer), (1, 0));
    let named = census.named.first().expect("one");
    assert!(named.whole_block && Some(named.seq) == seq_of(&key), "{named}");
    assert!(census.readable < whole.readable && census.readable > whole.readable - 300);
}

#[test]
fn dividers_that_are_gone_change_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    filled(folder.path(), 10);
    let store = opened_raw(folder.path());
    let keys: Vec<sled::IVec> = store.db().range([BLOCK_KEY]..[BLOCK_KEY + 1]).filter_map(Result::ok).map(|(key, _)| key).collect();
    for divider in keys.iter().filter(|key| key.len() == 10) {
        store.db().remove(divider).expect("removed");
    }
    store.sync().expect("synced");
    drop(store);
    filled(folder.path(), 10);
    let report = check(&*SledLog::open_for_reading(folder.path()).expect("opens")).expect("answers");
    assert_eq!((report.difference, report.records), (None, 2 * 3_000 + 1));
}
