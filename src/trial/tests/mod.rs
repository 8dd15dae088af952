//! That a trial repeats, that trials hold, that there is something in them, and that they reach every branch of the plan that
//! refuses or waits.

mod many;
mod seeds;

use std::collections::BTreeSet;

use super::{Options, run, run_and_keep};

#[test]
fn a_seed_gives_the_same_log_twice() {
    let calm = Options { kinds: Some(BTreeSet::new()), ..Options::new(1) };
    for options in [calm, Options::new(3), Options::new(77)] {
        let (first, second) = (run(&options).expect("it runs"), run(&options).expect("it runs"));
        assert!(first.holds(), "{options:?}: {:#?}", first.broken);
        assert_eq!((first.records, &first.digest), (second.records, &second.digest), "{options:?}");
    }
}

#[test]
fn nothing_of_a_trial_outlives_it() {
    let (_, history) = run_and_keep(&Options::new(1)).expect("it runs");
    assert_eq!(history.holders(), 1, "somebody else holds the history of a trial that is over");
}
