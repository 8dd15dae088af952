//! That there is something in the trials, and that they reach every row of the table and every branch of the plan that refuses or waits.

use std::collections::BTreeSet;

use super::{has_something_in_it, hold};
use crate::app::{marks, table};

/// Seeds are played until every mark is reached, at least so many.
const AT_LEAST: u64 = 10;
/// And at most so many.
const AT_MOST: u64 = 60;

#[test]
fn each_refusal_and_each_delay_of_the_plan_is_reached() {
    let mut missing: BTreeSet<&str> = table::rules().into_iter().chain(marks::OF_PLAN.iter().copied()).collect();
    missing.retain(|mark| !marks::OF_STORIES.contains(mark));
    let _ = marks::taken();
    let mut rich = 0;
    for seed in 0..AT_MOST {
        rich += u64::from(has_something_in_it(&hold(seed)));
        let reached = marks::taken();
        missing.retain(|mark| !reached.contains(mark));
        let played = seed + 1;
        assert!(played < AT_LEAST || rich * 2 >= played, "there is something in {rich} of {played} trials alone");
        if missing.is_empty() && played >= AT_LEAST {
            return;
        }
    }
    assert!(missing.is_empty(), "not reached: {missing:?}");
}
