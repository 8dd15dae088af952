//! States at a moment, over whole stories of the daemon.

use serde_json::{Value, json};

use crate::actors::tests::support::Town;
use crate::app::state::App;
use crate::events::words::readable;
use crate::ids::{Seq, Subject};
use crate::postmortem::document::Documented as _;
use crate::postmortem::history::History;
use crate::postmortem::replay::{Change, Until, changes, replay};

fn history(town: &Town, subject: &str) -> History {
    let subject = Subject::parse(subject).expect("a subject");
    History::of(town.live().reader().as_ref(), &subject).expect("readable")
}

#[tokio::test(start_paused = true)]
async fn the_state_at_the_end_is_the_one_that_the_daemon_holds() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.world.nodes.kill_app(&host, 3);
    town.run(60).await;
    town.crash().await;
    town.start().await;
    town.run(60).await;
    let history = history(&town, "app/acme/bot");
    let state = replay::<App>(&history, Until::Head, |_, _| {}).expect("folds");
    assert_eq!(state, *town.state("acme/bot").expect("an app"));
    let tails = state.document()["hosts"][&host]["tails"].as_object().map(|tails| tails.len());
    assert!(tails.is_some_and(|tails| tails > 0), "{}", state.document());
}

#[tokio::test(start_paused = true)]
async fn at_a_record_and_at_its_time_is_the_state_that_each_saw() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/bot").await;
    let history = history(&town, "app/acme/bot");
    let mut seen = Vec::new();
    replay::<App>(&history, Until::Head, |entry, state| seen.push((entry.header.seq, entry.header.time_us, state.document())))
        .expect("folds");
    assert!(seen.len() > 10);
    for (seq, time_us, state) in &seen {
        let at = replay::<App>(&history, Until::Seq(*seq), |_, _| {}).expect("folds");
        assert_eq!(at.document(), *state, "at record {seq}");
        let last = seen.iter().rfind(|(_, at_us, _)| at_us <= time_us).map(|(_, _, state)| state);
        let at = replay::<App>(&history, Until::TimeUs(*time_us), |_, _| {}).expect("folds");
        assert_eq!(Some(&at.document()), last, "at the time of record {seq}");
    }
    let before = replay::<App>(&history, Until::Seq(Seq(0)), |_, _| {}).expect("nothing folds");
    assert!(before.is_empty());
}

#[test]
fn a_change_is_told_by_its_path() {
    let before = json!({"a": {"b": 1, "gone": "x"}, "list": [1, 2], "same": true});
    let after = json!({"a": {"b": 2}, "list": [1, 2, 3], "new": {"c": null, "d": 0}, "same": true});
    let change = |path: &str, before: Option<&str>, after: Option<&str>| Change {
        path: path.to_owned(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
    };
    let expected = [
        change("a.b", Some("1"), Some("2")),
        change("a.gone", Some("\"x\""), None),
        change("list", Some("[1,2]"), Some("[1,2,3]")),
        change("new.d", None, Some("0")),
    ];
    assert_eq!(changes(&before, &after), expected);
    assert_eq!(readable("", Value::Null), Value::Null);
}
