//! Carrying a session over the removal of its former records: from what is carried on it is what it was.

use proptest::prelude::*;

use super::properties::{inputs, line};
use super::story::{Story, subject, verifies};
use crate::events::record::Record;
use crate::session::state::Session;
use crate::subject::react::committed;
use crate::subject::rules::Rules;
use crate::subject::stored::{Waiting, in_parts};

/// The state by records of which the former ones are gone; `None` when it was not carried.
fn replayed(records: &[Record]) -> Option<Session> {
    let (mut waiting, mut session) = (Waiting::of([subject()]), Session::default());
    for record in records {
        if !waiting.passes_over(&mut session, record) {
            committed(&mut session, Rules::CURRENT, std::slice::from_ref(record));
        }
    }
    (!waiting.is_for(&subject())).then_some(session)
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
        let at = story.records.len();
        let mut facts = in_parts(&story.session).expect("small");
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
        prop_assert_eq!(format!("{rest:#?}"), format!("{:#?}", story.session));
        prop_assert_eq!(replayed(&story.records[..at]), None);
    }
}
