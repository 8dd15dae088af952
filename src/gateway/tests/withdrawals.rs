//! Which absences count.

use std::collections::BTreeSet;

use serde_json::json;

use crate::gateway::judge::{Judged, judge};
use crate::gateway::withdrawals::Withdrawals;
use crate::ids::AppId;

const BEAT_US: i64 = 5_000_000;

fn app(name: &str) -> AppId {
    AppId::new("acme", name).expect("a name")
}

fn known(names: &[&str]) -> BTreeSet<AppId> {
    names.iter().map(|name| app(name)).collect()
}

/// An answer that names these apps, each with a want that is good unless the name begins with `bad`.
fn naming(number: u64, names: &[&str]) -> Judged {
    let apps: Vec<_> = names
        .iter()
        .map(|name| {
            let release = u64::from(!name.starts_with("bad"));
            let digest = "ab".repeat(32);
            json!({"org": "acme", "name": name, "release": release, "sha256": digest, "host": name, "registered": true, "failed": false})
        })
        .collect();
    let body = json!({"world": "prod", "apps": apps}).to_string();
    judge(number, body.as_bytes(), "prod", 100).expect("an answer")
}

fn missing(names: &[&str], answered: &[&str]) -> Vec<(String, bool)> {
    let found = Withdrawals::new(5_000).missing(0, &naming(1, answered), &known(names));
    found.into_iter().map(|(app, missing)| (app.name().to_owned(), missing.mass)).collect()
}

#[test]
fn an_app_that_is_not_named_is_missing_and_a_refused_want_names_it() {
    assert_eq!(missing(&["a", "b", "bad"], &["a", "bad"]), [("b".to_owned(), false)]);
    assert_eq!(missing(&["a"], &["a", "new"]), []);
}

#[test]
fn missing_most_of_more_than_three_apps_or_naming_none_is_mass() {
    let masses = |names: &[&str], answered: &[&str]| missing(names, answered).into_iter().map(|(_, mass)| mass).collect::<BTreeSet<_>>();
    assert_eq!(masses(&["a", "b", "c"], &["a"]), BTreeSet::from([false]), "three apps are not enough to tell");
    assert_eq!(masses(&["a", "b", "c", "d"], &["a", "b"]), BTreeSet::from([false]), "half is not most");
    assert_eq!(masses(&["a", "b", "c", "d"], &["a"]), BTreeSet::from([true]));
    assert_eq!(masses(&["a"], &[]), BTreeSet::from([true]), "an answer that names none");
    assert_eq!(masses(&["a"], &["new"]), BTreeSet::from([false]));
}

#[test]
fn an_answer_counts_when_a_beat_has_passed_since_the_last_that_counted() {
    let mut withdrawals = Withdrawals::new(5_000);
    let known = known(&["a", "b"]);
    let mut counts = |sent_us: i64, number: u64| {
        withdrawals.missing(sent_us, &naming(number, &["a"]), &known).values().next().map(|missing| missing.answer)
    };
    assert_eq!(counts(0, 1), Some(1));
    assert_eq!(counts(BEAT_US - 1, 2), None, "a beat out of turn");
    assert_eq!(counts(BEAT_US, 3), Some(3));
    assert_eq!(counts(BEAT_US + 100, 4), None);
    assert_eq!(counts(10 * BEAT_US, 5), Some(5));
}
