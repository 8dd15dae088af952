//! That a trial repeats, and that trials hold.

use std::collections::{BTreeMap, BTreeSet};

use super::{Options, run};
use crate::app::{marks, table};

/// Trials of a fixed set, and in how many of them each mark of the table and the plan is to be reached at least once.
const SEEDS: std::ops::Range<u64> = 0..40;

#[test]
fn without_faults_a_seed_gives_the_same_log_twice() {
    let options = Options { kinds: Some(BTreeSet::new()), ..Options::new(1) };
    let first = run(&options).expect("it runs");
    let second = run(&options).expect("it runs");
    assert!(first.holds(), "{:#?}\n{}", first.broken, first.last.join("\n"));
    assert_eq!((first.records, &first.digest), (second.records, &second.digest));
    assert!(first.records >= 100, "{first:?}");
}

#[test]
fn each_refusal_and_each_delay_of_the_plan_is_reached() {
    let mut reached: BTreeMap<&str, u64> = BTreeMap::new();
    let _ = marks::taken();
    for seed in SEEDS {
        let played = run(&Options::new(seed)).expect("it runs");
        assert!(played.holds(), "wharf sim --seed {seed}: {:#?}", played.broken);
        for mark in marks::taken() {
            *reached.entry(mark).or_default() += 1;
        }
    }
    let known: BTreeSet<&str> = table::rules().into_iter().chain(marks::OF_PLAN.iter().copied()).collect();
    let missing: Vec<&&str> = known.iter().filter(|mark| !reached.contains_key(*mark)).collect();
    assert!(missing.is_empty(), "not reached: {missing:?}\nreached: {reached:?}");
}
