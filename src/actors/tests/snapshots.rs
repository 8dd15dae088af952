//! Starting from a snapshot: it is known what a full replay knows, whatever became of the snapshot.

use std::collections::BTreeMap;

use super::support::Town;
use crate::app::state::App;
use crate::events::log::LogReader;
use crate::events::mem_log::{MemDisk, MemLog, Unsynced};
use crate::ids::{AppId, Seq};
use crate::run::recover::{Recovered, fold_on};
use crate::run::snapshot::{load, recover};

/// The states by the log alone.
fn by_the_log(reader: &dyn LogReader) -> BTreeMap<AppId, App> {
    let mut all = Recovered::default();
    fold_on(&mut all, reader, Seq(1), reader.head()).expect("the log can be folded");
    all.apps.states
}

/// The states as a start has them, and where the snapshot was that it began with.
fn by_a_start(disk: &MemDisk) -> (BTreeMap<AppId, App>, Option<Seq>) {
    let reader = MemLog::open_for_reading(disk).expect("the log can be read");
    let from = load(reader.as_ref()).1.map(|snapshot| snapshot.seq);
    let states = recover(reader.as_ref()).expect("the log can be folded").0.apps.states;
    assert_eq!(states, by_the_log(reader.as_ref()));
    (states, from)
}

/// A town with two apps, one of them replaced, that was stopped in order.
async fn stopped() -> Town {
    let mut town = Town::new().await;
    town.start().await;
    let old = town.live_app("acme/bot").await;
    town.live_app("acme/bee").await;
    let new = town.live_app("acme/bot").await;
    town.until("the old one is gone", |town| !town.pods().contains(&old) && town.pods().contains(&new)).await;
    town.stop().await;
    town
}

#[tokio::test(start_paused = true)]
async fn a_start_from_a_snapshot_knows_what_a_full_replay_knows() {
    let mut town = stopped().await;
    let (states, from) = by_a_start(&town.disk);
    assert!(from.is_some() && states.len() == 2, "{from:?}");
    // A life that goes on from it and ends without one.
    town.start().await;
    let host = town.live_app("acme/cat").await;
    town.crash().await;
    let (states, again) = by_a_start(&town.disk);
    assert!(again == from && states.len() == 3, "{again:?}");
    // And one that folds on what the last one had.
    town.start().await;
    town.until("still live", |town| town.is_live("acme/cat", &host)).await;
    town.stop().await;
    let (_, last) = by_a_start(&town.disk);
    assert!(last > from, "{last:?}");
    assert_eq!(town.pods().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_is_gone_costs_time_alone() {
    let mut town = stopped().await;
    let (states, _) = by_a_start(&town.disk);
    town.disk.edit_cached(BTreeMap::clear);
    let reader = MemLog::open_for_reading(&town.disk).expect("the log can be read");
    assert!(load(reader.as_ref()).1.is_none());
    assert_eq!(by_the_log(reader.as_ref()), states);
    drop(reader);
    town.start().await;
    let writes = town.writes().len();
    town.run(60).await;
    assert_eq!(town.writes().len(), writes, "{}", town.story());
    assert!(by_a_start(&town.disk).1.is_some(), "a full replay is kept");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_which_anything_is_changed_is_ignored() {
    let town = stopped().await;
    let reader = MemLog::open_for_reading(&town.disk).expect("the log can be read");
    let mut places = Vec::new();
    town.disk.edit_cached(|cached| places = cached.iter().map(|(key, value)| (key.clone(), value.len())).collect());
    assert_eq!(places.len(), 3, "two states and a head");
    for (key, length) in places {
        for at in 0..length {
            let flip = |cached: &mut BTreeMap<Vec<u8>, Vec<u8>>| cached.get_mut(&key).expect("it is there")[at] ^= 1;
            town.disk.edit_cached(flip);
            assert!(load(reader.as_ref()).1.is_none(), "{key:?} {at}");
            town.disk.edit_cached(flip);
        }
        let mut taken = None;
        town.disk.edit_cached(|cached| taken = cached.remove(&key));
        assert!(load(reader.as_ref()).1.is_none(), "{key:?} is missing");
        town.disk.edit_cached(|cached| drop(cached.insert(key.clone(), taken.expect("it was there"))));
    }
    assert!(load(reader.as_ref()).1.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_ahead_of_what_a_power_cut_left_is_ignored() {
    let mut town = stopped().await;
    let last = town.records().last().expect("records").header.seq;
    town.disk.edit(|blocks| blocks.retain(|key, _| *key < last));
    town.disk.crash(Unsynced::Kept);
    let reader = MemLog::open_for_reading(&town.disk).expect("the log can be read");
    assert!(load(reader.as_ref()).1.is_none());
    drop(reader);
    town.start().await;
    town.until("both live", |town| town.pods().len() == 2).await;
    town.stop().await;
    assert!(by_a_start(&town.disk).1.is_some(), "the new log has one of its own");
}
