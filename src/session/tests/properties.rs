//! Properties over random lines: what no order, cut or repetition of facts may change.

use proptest::prelude::*;

use super::story::{Story, pod_seen, shown, subject, verifies};
use crate::events::kinds::session::{SessionDoing, SessionObject, SessionStep, SessionStepIssued};
use crate::events::kinds::step::{ObjectSeen, Outcome, StepSettled};
use crate::events::record::{Draft, Event};
use crate::ids::{LogId, RecordId, Seq, Uid};
use crate::session::state::Session;
use crate::subject::react::{Under, committed, react};
use crate::subject::rules::Rules;

/// Lines of the mini-language that fit any state; those that need a flight are chosen by what flies.
pub(super) fn line() -> impl Strategy<Value = String> {
    let state = prop_oneof![
        Just("created"),
        Just("unschedulable"),
        Just("waiting:ImagePullBackOff"),
        Just("waiting:InvalidImageName"),
        Just("running"),
        Just("ready"),
        Just("ready"),
        Just("exited:1"),
        Just("exited:0"),
        Just("oom:137"),
        Just("failed:Evicted"),
        Just("failed:NodeLost"),
    ];
    let detail = prop_oneof![3 => Just(""), 1 => Just(" deleting"), 1 => Just(" by=preempted"), 1 => Just(" by=tainted deleting")];
    let create = prop_oneof![Just("create"), Just("create tenant=other"), Just("create force=60s")];
    let delete = prop_oneof![Just("delete"), Just("delete keep"), Just("delete force=60s")];
    let claim = prop_oneof![4 => Just("claim"), 1 => Just("claim deleting"), 1 => Just("claim tenant=other")];
    let service = prop_oneof![3 => Just("service"), 1 => Just("service differs"), 1 => Just("service deleting")];
    let span = prop_oneof![Just("1us"), Just("1s"), Just("30s"), Just("61s"), Just("301s"), Just("1201s")];
    let gone = prop_oneof![Just("claim"), Just("service"), Just("pod"), Just("pod absent")];
    let operator = prop_oneof![Just("freeze"), Just("withheld"), Just("thaw")];
    prop_oneof![
        2 => Just("start".to_owned()),
        3 => Just("listed".to_owned()),
        6 => create.prop_map(str::to_owned),
        3 => delete.prop_map(str::to_owned),
        1 => Just("touch".to_owned()),
        3 => claim.prop_map(str::to_owned),
        3 => service.prop_map(str::to_owned),
        8 => (state, detail).prop_map(|(state, detail)| format!("pod {state}{detail}")),
        4 => gone.prop_map(|gone| format!("gone {gone}")),
        1 => Just("other".to_owned()),
        1 => Just("node lost".to_owned()),
        1 => operator.prop_map(str::to_owned),
        5 => span.prop_map(|span| format!("tick {span}")),
        14 => (0..OUTCOMES.len()).prop_map(|pick| format!("settle {pick}")),
        4 => Just("tail".to_owned()),
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
    "foreign",
    "network-policy",
];

pub(super) fn inputs(story: &mut Story, line: &str) -> Vec<Event> {
    if let Some(pick) = line.strip_prefix("settle ") {
        let outcome = OUTCOMES[pick.parse::<usize>().expect("a number")];
        let Some(step) = story.session.flights.values().next().map(|flight| flight.step.name()) else { return Vec::new() };
        return story.inputs(&format!("settle {step} {outcome}"));
    }
    story.inputs(line)
}

fn tell(lines: &[String], each: &mut dyn FnMut(&Session, &[Event], &str)) -> Story {
    let mut story = Story::new();
    for line in ["start", "listed"].into_iter().map(str::to_owned).chain(lines.iter().cloned()) {
        let facts = inputs(&mut story, &line);
        let decided = story.react(facts);
        each(&story.session, &decided, &line);
        let again = story.clone().react(Vec::new());
        assert!(again.is_empty(), "planned twice after `{line}`: {:?}", again.iter().map(shown).collect::<Vec<_>>());
    }
    story
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// No input panics; planning twice adds nothing; replay from any cut, and planning again, give the same.
    #[test]
    fn any_story_replays_and_verifies(lines in prop::collection::vec(line(), 1..60), cut in any::<prop::sample::Index>()) {
        let story = tell(&lines, &mut |_, _, _| {});
        let cut = cut.index(story.records.len() + 1);
        let mut session = Session::default();
        committed(&mut session, Rules::CURRENT, &story.records[..cut]);
        committed(&mut session, Rules::CURRENT, &story.records[cut..]);
        prop_assert_eq!(&session, &story.session);
        verifies(&story);
    }

    /// A claim goes by an explicit delete alone, a pod is made on a claim that stays and with no other pod known, and every delete
    /// names the object that is known.
    #[test]
    fn nothing_is_decided_that_must_never_be(lines in prop::collection::vec(line(), 1..60)) {
        tell(&lines, &mut |session, decided, line| {
            for event in decided {
                let Event::SessionStepIssued(SessionStepIssued { step, .. }) = event else { continue };
                match step {
                    SessionStep::DeleteClaim { uid, .. } => {
                        assert!(session.removing.is_some_and(|removing| !removing.keep_workspace), "after `{line}`");
                        assert_eq!(session.claim.there().map(|claim| &claim.uid), Some(uid));
                    }
                    SessionStep::CreatePod { .. } => {
                        assert!(session.pod.is_none() && session.claim.staying().is_some() && session.wanted.is_some(), "after `{line}`");
                    }
                    SessionStep::DeletePod { uid, grace_s, forced, .. } => {
                        let pod = session.pod.as_ref().expect("a known pod");
                        assert_eq!(pod.uid, *uid);
                        assert!(*forced || *grace_s > 0 || pod.process_ended(), "what may still run is given no grace after `{line}`");
                        assert!(!*forced || pod.is_deleting());
                    }
                    SessionStep::DeleteService { uid, .. } => {
                        assert_eq!(session.service.there().map(|service| &service.uid), Some(uid));
                    }
                    _ => {}
                }
            }
        });
    }

    /// The observation and the outcome of one step fold to one state in either order.
    #[test]
    fn an_observation_and_an_outcome_commute(lines in prop::collection::vec(line(), 0..40)) {
        let mut story = tell(&lines, &mut |_, _, _| {});
        let facts = story.inputs("create");
        story.react(facts);
        let Some((seq, _)) = story.session.flying(SessionObject::Pod, SessionDoing::Make) else { return Ok(()) };
        let uid = Uid::new("pod-new").expect("a uid");
        let version = story.next_version() + 10;
        let object = Some(ObjectSeen { uid: uid.clone(), resource_version: version });
        let settled = StepSettled { step: seq, outcome: Outcome::Done, object, attempts: 1, audit_id: [0; 16], status: 201, took_us: 1 };
        let step = Some(RecordId { log: LogId([7; 16]), seq });
        let (seen, settled) = (Event::PodSeen(pod_seen(uid, version, step, story.now_us)), Event::StepSettled(settled));
        let orders = [[&seen, &settled], [&settled, &seen]].map(|order| {
            let under = Under { rules: Rules::CURRENT, settings: &story.settings, settings_seq: Seq(1) };
            let mut session = story.session.clone();
            for event in order {
                let reacted = react(&session, &subject(), vec![Draft::input(event.clone())], under, story.now_us);
                let at = crate::subject::pod::At { seq: Seq::provisional(0), time_us: 0 };
                crate::subject::react::look_ahead(&mut session, Rules::CURRENT, event, at);
                assert!(!reacted.reaction.drafts.is_empty());
            }
            let pod = session.pod.as_ref().map(|pod| (pod.uid.clone(), pod.view.clone(), pod.end.clone()));
            (pod, session.flights.clone(), session.hindrances.clone(), session.unrecorded.len())
        });
        prop_assert_eq!(&orders[0], &orders[1]);
    }
}

#[test]
fn a_demand_that_is_over_while_the_pod_before_it_hangs_is_given_up_at_once() {
    let lines =
        ["create force=60s", "settle 0", "touch", "touch", "pod created", "settle 13", "create force=60s", "settle 7", "tick 1201s"];
    let story = tell(&lines.map(str::to_owned), &mut |_, _, _| {});
    verifies(&story);
    assert_eq!(story.session.wanted, None);
}
