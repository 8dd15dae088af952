//! That a trial repeats, that trials hold, and that they reach every branch of the plan that refuses or waits.

mod marks;

use std::collections::BTreeSet;

use super::{Options, Played, run};
use crate::clock::Entropy;

/// Plays a seed and says how to play it again when something does not hold.
fn hold(seed: u64) -> Played {
    let played = run(&Options::new(seed)).expect("it runs");
    let Played { broken, last, .. } = &played;
    assert!(played.holds(), "wharf sim --seed {seed}\n{broken:#?}\n{}", last.join("\n"));
    played
}

/// Whether enough happened in it.
fn has_something_in_it(played: &Played) -> bool {
    let Played { records, writes, kinds, crashes, .. } = played;
    *records >= 200 && *writes >= 20 && kinds.len() >= 3 && *crashes >= 1
}

/// So many seeds that nobody played before.
fn hold_fresh(count: u64) {
    let first = u64::from(u32::from_le_bytes(Entropy::os().bytes()));
    println!("from seed {first} on");
    for seed in first..first + count {
        hold(seed);
    }
}

#[test]
fn a_seed_gives_the_same_log_twice() {
    let calm = Options { kinds: Some(BTreeSet::new()), ..Options::new(1) };
    for options in [calm, Options::new(3), Options::new(77)] {
        let (first, second) = (run(&options).expect("it runs"), run(&options).expect("it runs"));
        assert!(first.holds(), "{options:?}: {:#?}", first.broken);
        assert_eq!((first.records, &first.digest), (second.records, &second.digest), "{options:?}");
    }
}

// Two, because tests beside each other use every core.

#[test]
fn fresh_seeds_hold() {
    hold_fresh(8);
}

#[test]
fn other_fresh_seeds_hold() {
    hold_fresh(8);
}
