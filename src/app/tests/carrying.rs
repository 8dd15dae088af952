//! Carrying an app over the removal of its former records: from what is carried on it is what it was.

use proptest::prelude::*;

use super::properties::{inputs, line};
use super::story::{Story, verifies};
use crate::app::carry::from_carried;
use crate::app::react::committed;
use crate::app::rules::Rules;
use crate::app::state::{App, Host};
use crate::events::kinds::carried::{PART_BYTES, SubjectCarried};
use crate::events::record::{Event, Record};
use crate::ids::{AppId, HostName, Subject};
use crate::subject::stored::{Waiting, in_parts};

fn bot() -> Subject {
    Subject::App(AppId::new("acme", "bot").expect("a name"))
}

/// The state by records of which the former ones are gone; `None` when it was not carried.
fn replayed(records: &[Record]) -> Option<App> {
    let (mut waiting, mut app) = (Waiting::of([bot()]), App::default());
    for record in records {
        if !waiting.passes_over(&mut app, record) {
            committed(&mut app, Rules::CURRENT, std::slice::from_ref(record));
        }
    }
    (!waiting.is_for(&bot())).then_some(app)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happened before, at the same time, and after: what the carried state and the rest come to is the whole.
    #[test]
    fn what_is_carried_stands_for_all_that_was_before(
        before in prop::collection::vec(line(), 0..40),
        along in prop::collection::vec(line(), 0..3),
        after in prop::collection::vec(line(), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut story = Story::new();
        for line in ["start", "listed"].into_iter().map(str::to_owned).chain(before) {
            let facts = inputs(&mut story, &line);
            story.react(facts);
        }
        let (at, state) = (story.records.len(), story.app.clone());
        let mut facts = in_parts(&state).expect("small");
        for line in &along {
            facts.extend(inputs(&mut story, line));
        }
        story.react(facts);
        for line in &after {
            let facts = inputs(&mut story, line);
            story.react(facts);
        }
        // Complete, it changes nothing and every decision is planned again.
        verifies(&story);
        let cut = cut.index(at + 1);
        let rest = replayed(&story.records[cut..]).expect("it was carried");
        prop_assert_eq!(format!("{rest:#?}"), format!("{:#?}", story.app));
        prop_assert_eq!(replayed(&story.records[..at]), None);
    }
}

/// An app whose state is several parts.
fn large() -> App {
    let mut app = App { incarnation: 3, ..App::default() };
    for number in 0..900 {
        let name = HostName::new(&format!("bot-r{number}")).expect("a name");
        app.hosts.insert(name, Host { release: number, no_fault_us: vec![i64::MAX; 3], ..Host::default() });
    }
    app
}

fn parts(app: &App) -> Vec<SubjectCarried> {
    let part = |event| if let Event::SubjectCarried(part) = event { part } else { panic!("a part: {event:?}") };
    in_parts(app).expect("it fits").into_iter().map(part).collect()
}

fn join(parts: &[SubjectCarried]) -> Option<App> {
    let mut so_far = Vec::new();
    let last = parts.iter().map(|part| part.join(&mut so_far)).last()??;
    crate::events::codec::decode_state(&last).ok().map(from_carried)
}

#[test]
fn a_large_state_is_carried_in_numbered_parts() {
    let (app, parts) = (large(), parts(&large()));
    assert!(parts.len() > 2 && parts.iter().all(|part| part.bytes.len() <= PART_BYTES), "{}", parts.len());
    assert_eq!(join(&parts), Some(app));
    assert_eq!(join(&parts[1..]), None, "without its first part");
    assert_eq!(join(&parts[..parts.len() - 1]), None, "without its last part");
    let mut swapped = parts.clone();
    swapped.swap(0, 1);
    assert_eq!(join(&swapped), None, "out of order");
    let missing = [&parts[..1], &parts[2..]].concat();
    assert_eq!(join(&missing), None, "without one of them");
    let again = [&parts[..2], &parts[..]].concat();
    assert_eq!(join(&again), Some(large()), "begun anew");
}
