//! That the trials reach every row of the table and every branch of the plan that refuses or waits.

use std::collections::{BTreeMap, BTreeSet};

use super::hold;
use crate::app::{marks, table};

#[test]
fn each_refusal_and_each_delay_of_the_plan_is_reached() {
    let mut reached: BTreeMap<&str, u64> = BTreeMap::new();
    let _ = marks::taken();
    for seed in 0..40 {
        hold(seed);
        for mark in marks::taken() {
            *reached.entry(mark).or_default() += 1;
        }
    }
    let known: BTreeSet<&str> = table::rules().into_iter().chain(marks::OF_PLAN.iter().copied()).collect();
    let missing: Vec<&&str> = known.iter().filter(|mark| !reached.contains_key(*mark)).collect();
    assert!(missing.is_empty(), "not reached: {missing:?}\nreached: {reached:?}");
}
