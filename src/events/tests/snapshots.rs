//! Snapshots in a log's cache: every state comes back, of any size, and none that is not of this log.

use std::collections::BTreeMap;

use super::samples;
use super::world::*;
use crate::events::log::LogReader;
use crate::events::snapshot::{Schema, Snapshot, Totals};

const SCHEMA: Schema = Schema { rules: 1, state: 1 };
const TOTALS: Totals = Totals { incarnations: 3, last_us: -7, records: 11 };

type States = BTreeMap<String, Vec<u8>>;

fn load(reader: &dyn LogReader, schema: Schema) -> Option<(Snapshot, States)> {
    let mut states = States::new();
    let snapshot = Snapshot::load(reader, schema, &mut |subject, state| states.insert(subject.to_owned(), state.to_vec()).is_none());
    snapshot.expect("the store answers").map(|snapshot| (snapshot, states))
}

fn store(reader: &dyn LogReader, before: Option<Snapshot>, states: &States) -> Snapshot {
    let cache = reader.cache().expect("a cache");
    let all = states.iter().map(|(subject, state)| (subject.clone(), state.clone()));
    Snapshot::store(cache, before, reader.acknowledged(), (SCHEMA, TOTALS), all).expect("stored")
}

fn states(sizes: &[(&str, usize)]) -> States {
    sizes.iter().map(|(name, size)| ((*name).to_owned(), (0..*size).map(|at| at as u8).collect())).collect()
}

fn every_state_comes_back(world: &dyn World) {
    let (mut log, _) = world.open();
    let reader = log.reader();
    assert_eq!(load(&*reader, SCHEMA), None);
    let mut all = states(&[("a", 0), ("app/acme/bot", 100), ("app/acme/bot-2", 24 * 1024), ("app/b/large", 200_000)]);
    let first = store(&*reader, None, &all);
    assert_eq!(load(&*reader, SCHEMA), Some((first, all.clone())));
    assert_eq!((first.totals, first.seq, first.tree), (TOTALS, reader.head(), reader.tree()));
    for other in [Schema { rules: 2, ..SCHEMA }, Schema { state: 2, ..SCHEMA }] {
        assert_eq!(load(&*reader, other), None);
    }

    // What comes later does not touch it, and what changed alone is written.
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    assert_eq!(load(&*reader, SCHEMA), Some((first, all.clone())));
    let changed = states(&[("app/acme/bot", 70_000), ("app/b/large", 3), ("app/new", 9)]);
    let second = store(&*reader, Some(first), &changed);
    all.extend(changed);
    assert_eq!(load(&*reader, SCHEMA), Some((second, all.clone())));
    for (subject, state) in &all {
        assert_eq!(Snapshot::state(reader.cache().expect("a cache"), subject).expect("read").as_ref(), Some(state));
    }

    // Without one before it nothing of what was kept is left.
    let few = states(&[("app/acme/bot", 1)]);
    let third = store(&*reader, None, &few);
    assert_eq!(load(&*reader, SCHEMA), Some((third, few)));
    sound(&*reader);
    assert_eq!(reader.stored().blobs, 0);
}

#[test]
fn every_state_comes_back_from_memory() {
    every_state_comes_back(&InMemory::new());
}

#[test]
fn every_state_comes_back_from_disk() {
    let world = OnDisk::new();
    every_state_comes_back(&world);
    let reader = world.read().expect("it opens");
    assert!(load(&*reader, SCHEMA).is_some(), "it is there after the log was closed");
}

#[test]
fn a_snapshot_is_of_one_log_and_of_one_history() {
    let world = InMemory::new();
    let (mut log, _) = world.open();
    log.append(&[reaction(&app("bot"), vec![samples::text(1)])]).expect("appended");
    let snapshot = store(&*log.reader(), None, &states(&[("a", 1)]));
    log.append(&[reaction(&app("bot"), vec![samples::text(2)])]).expect("appended");
    assert_eq!(load(&*log.reader(), SCHEMA).map(|(found, _)| found), Some(snapshot));
    drop(log);

    // Another log with the same numbers.
    let other = InMemory::new();
    let (mut log, _) = other.open();
    for number in 0..2 {
        log.append(&[reaction(&app("bot"), vec![samples::text(number)])]).expect("appended");
    }
    let mut cached = BTreeMap::new();
    world.0.edit_cached(|there| cached = there.clone());
    other.0.edit_cached(|there| *there = cached);
    assert_eq!(load(&*log.reader(), SCHEMA), None);
}
