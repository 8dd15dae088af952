//! Properties over random stories: what no order, cut or repetition of facts may change.

use proptest::prelude::*;

use super::story::{Story, append, name, settings, shown, verifies};
use crate::app::react::{Under, committed, react};
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::events::kinds::step::{Step, StepIssued};
use crate::events::record::{Draft, Event, Record};
use crate::ids::{AppId, Seq, Subject};

/// Lines of the mini-language that fit any state; those that need a flight are chosen by what flies.
pub(super) fn line() -> impl Strategy<Value = String> {
    let host = prop_oneof![Just("bot-r1"), Just("bot-r2"), Just("bot-r3")];
    let live = prop_oneof![Just(""), Just(" live=bot-r1"), Just(" live=bot-r2"), Just(" live=bot-r3")];
    let flags = prop_oneof![Just(""), Just(" registered"), Just(" failed"), Just(" registered failed")];
    let state = prop_oneof![
        Just("created"),
        Just("unschedulable"),
        Just("waiting:ImagePullBackOff"),
        Just("waiting:InvalidImageName"),
        Just("installing"),
        Just("install-failed"),
        Just("running"),
        Just("exited:1"),
        Just("exited:0"),
        Just("oom:137"),
        Just("failed:Evicted"),
        Just("failed:OutOfcpu"),
    ];
    let detail = prop_oneof![Just(""), Just(" deleting"), Just(" by=preempted"), Just(" by=tainted deleting"), Just(" restarts=2")];
    let how = prop_oneof![Just("deleted"), Just("absent")];
    let span = prop_oneof![Just("1us"), Just("1s"), Just("30s"), Just("121s"), Just("301s"), Just("600s")];
    prop_oneof![
        2 => Just("start".to_owned()),
        3 => Just("listed".to_owned()),
        6 => (host.clone(), live, flags).prop_map(|(host, live, flags)| format!("want r{} {host}{live}{flags}", &host[5..])),
        1 => Just("confirm".to_owned()),
        1 => Just("refused".to_owned()),
        2 => prop_oneof![Just("missing".to_owned()), Just("missing mass".to_owned())],
        8 => (host.clone(), state, detail).prop_map(|(host, state, detail)| format!("seen {host} {state}{detail}")),
        3 => (host.clone(), how).prop_map(|(host, how)| format!("gone {host} {how}")),
        1 => host.clone().prop_map(|host| format!("nosecret {host}")),
        1 => host.prop_map(|host| format!("retry {host}")),
        1 => prop_oneof![Just("node n1 lost".to_owned()), Just("node n1 ready".to_owned())],
        1 => prop_oneof![Just("freeze".to_owned()), Just("withheld".to_owned()), Just("thaw".to_owned()), Just("stop".to_owned())],
        5 => span.prop_map(|span| format!("tick {span}")),
        12 => (0..OUTCOMES.len()).prop_map(|pick| format!("settle {pick}")),
        4 => Just("tails".to_owned()),
    ]
}

const OUTCOMES: &[&str] = &[
    "done",
    "done",
    "done",
    "done",
    "already",
    "gone",
    "conflict",
    "name-held",
    "revoked",
    "unknown",
    "unsent",
    "quota",
    "forbidden",
    "invalid",
    "environment",
    "runtime-class",
];

/// The inputs of a line, with `settle N` and `tails` resolved by what is under way.
pub(super) fn inputs(story: &mut Story, line: &str) -> Vec<Event> {
    if let Some(pick) = line.strip_prefix("settle ") {
        let outcome = OUTCOMES[pick.parse::<usize>().expect("a number")];
        let flying = story.app.hosts.values().find_map(|host| host.flights.values().next().map(|flight| flight.step.name()));
        return flying.map(|step| story.inputs(&format!("settle {step} {outcome}"))).unwrap_or_default();
    }
    if line == "tails" {
        let hosts: Vec<String> = story.app.hosts.keys().map(ToString::to_string).collect();
        return hosts.iter().flat_map(|host| story.inputs(&format!("tail {host}"))).collect();
    }
    let unknown = |host: &str| !story.app.hosts.contains_key(&name(host));
    if line.strip_prefix("gone ").and_then(|rest| rest.split(' ').next()).is_some_and(unknown) {
        return Vec::new();
    }
    story.inputs(line)
}

fn tell(lines: &[String]) -> Story {
    let mut story = Story::new();
    for line in ["start", "listed"].into_iter().map(str::to_owned).chain(lines.iter().cloned()) {
        let facts = inputs(&mut story, &line);
        let decided = story.react(facts);
        never_without_a_record_of_its_end(&story.records, &decided);
        let again = story.clone().react(Vec::new());
        assert!(again.is_empty(), "planned twice after `{line}`: {:?}", again.iter().map(shown).collect::<Vec<_>>());
    }
    story
}

/// A pod that has ended is deleted only when its end is in the log, or in this very reaction.
fn never_without_a_record_of_its_end(records: &[Record], decided: &[Event]) {
    for event in decided {
        let Event::StepIssued(StepIssued { step: Step::DeletePod { host, uid, grace_s: 0, forced: false }, .. }) = event else { continue };
        let recorded = records.iter().any(|record| matches!(&record.event, Event::PodEnded(ended) if ended.uid == *uid));
        assert!(recorded, "{host} {uid} is deleted without a record of its end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// No input panics; planning twice adds nothing (in `tell`); replay from any cut, and planning again, give the same.
    #[test]
    fn any_story_replays_and_verifies(lines in prop::collection::vec(line(), 1..60), cut in any::<prop::sample::Index>()) {
        let story = tell(&lines);
        let cut = cut.index(story.records.len() + 1);
        let mut app = App::default();
        committed(&mut app, Rules::CURRENT, &story.records[..cut]);
        committed(&mut app, Rules::CURRENT, &story.records[cut..]);
        prop_assert_eq!(&app, &story.app);
        verifies(&story);
    }

    /// The former live host is never stopped while it runs and the gateway names it.
    #[test]
    fn the_host_that_serves_is_never_stopped(lines in prop::collection::vec(line(), 1..60)) {
        let mut story = Story::new();
        for line in ["start", "listed"].into_iter().map(str::to_owned).chain(lines) {
            let facts = inputs(&mut story, &line);
            let decided = story.react(facts);
            let Some(want) = story.app.wanted(story.settings.withdraw_after, story.settings.withdraw_after_mass) else { continue };
            for event in &decided {
                let Event::StepIssued(StepIssued { step: Step::DeletePod { host, uid, forced: false, .. }, .. }) = event else { continue };
                let pod = story.app.hosts.get(host).and_then(|host| host.pod.as_ref()).filter(|pod| pod.uid == *uid);
                let served = want.live_host.as_ref() == Some(host) && *host != want.host;
                prop_assert!(!served || !pod.is_some_and(|pod| pod.runs()), "{} stopped after `{line}`", host);
            }
        }
    }

    /// The observation and the outcome of one step fold to one state in either order.
    #[test]
    fn an_observation_and_an_outcome_commute(lines in prop::collection::vec(line(), 0..40), shape in 0..3_usize) {
        let mut story = tell(&lines);
        let facts = story.inputs("want r1 bot-r1");
        story.react(facts);
        let flying = story.app.hosts.get(&name("bot-r1")).and_then(|host| {
            let flight = host.flying(|step| matches!(step, Step::CreatePod { .. } | Step::DeletePod { .. }));
            flight.map(|(seq, flight)| (seq, flight.step.name()))
        });
        let Some((seq, step)) = flying else { return Ok(()) };
        let seen = match (step, shape) {
            ("CreatePod", 0) => "seen bot-r1 created",
            ("CreatePod", _) => "seen bot-r1 running",
            (_, 0) => "seen bot-r1 running deleting",
            (_, 1) => "seen bot-r1 exited:0 deleting",
            _ => "gone bot-r1 deleted",
        };
        let outcome = story.clone().inputs(&format!("settle {step} done"));
        let observation = story.clone().inputs(seen);
        let one = folded(&story, seq, [&outcome[0], &observation[0]]);
        let other = folded(&story, seq, [&observation[0], &outcome[0]]);
        prop_assert_eq!(one, other);
    }
}

/// The state after both records, with the numbers by which they may be named as causes made equal.
fn folded(story: &Story, step: Seq, facts: [&Event; 2]) -> App {
    let mut app = story.app.clone();
    let last = story.records.last().expect("a story has records").header.seq;
    for fact in facts {
        let subject = Subject::App(AppId::new("acme", "bot").expect("a valid app"));
        let settings = settings();
        let under = Under { rules: Rules::CURRENT, settings: &settings, settings_seq: Seq(1) };
        let mut reaction = react(&app, &subject, vec![Draft::input(fact.clone())], under, story.now_us).reaction;
        reaction.drafts.truncate(1);
        let mut records = append(&story.records, reaction);
        for record in &mut records {
            record.header.seq = Seq(last.0 + 1);
        }
        committed(&mut app, Rules::CURRENT, &records);
    }
    let flies = app.hosts.values().any(|host| host.flights.get(&step).is_some_and(|flight| matches!(flight.step, Step::CreatePod { .. })));
    assert!(!flies, "both settle a create");
    app
}
