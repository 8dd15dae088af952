//! That a trial repeats, and that trials hold.

use std::collections::BTreeSet;

use super::{Options, run};

#[test]
fn without_faults_a_seed_gives_the_same_log_twice() {
    let options = Options { kinds: Some(BTreeSet::new()), ..Options::new(1) };
    let first = run(&options).expect("it runs");
    let second = run(&options).expect("it runs");
    assert!(first.holds(), "{:#?}\n{}", first.broken, first.last.join("\n"));
    assert_eq!((first.records, &first.digest), (second.records, &second.digest));
    assert!(first.records >= 100, "{first:?}");
}
