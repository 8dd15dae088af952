//! The NetworkPolicy of sessions: confirmed before a pod, repaired, refused when it is another's, watched for what widens it.

use serde_json::json;

use super::session_town::id;
use super::support::{Town, is};
use crate::config::Switch;
use crate::events::kinds::step::Refusal;
use crate::session::view::{Answer, Code, Failure};

const POLICY: &str = "wharf-sessions-demo";

fn policy(town: &Town) -> Option<serde_json::Value> {
    town.world.api.object("networkpolicies", &town.world.namespace, POLICY).map(|object| serde_json::Value::clone(&object))
}

fn allow_all(town: &Town) -> serde_json::Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "allow-all", "namespace": town.world.namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]},
    })
}

#[tokio::test(start_paused = true)]
async fn a_changed_or_missing_policy_is_repaired_within_five_seconds() {
    let town = Town::of_sessions(|_| {}).await;
    town.bring("s1").await;
    let good = policy(&town).expect("it is there");
    let mut bad = good.clone();
    bad["spec"]["egress"] = json!([{}]);
    town.world.api.put_raw(bad);
    town.run(5).await;
    assert_eq!(policy(&town).map(|policy| policy["spec"].clone()), Some(good["spec"].clone()), "{}", town.story());
    town.world.api.remove_raw("networkpolicies", &town.world.namespace, POLICY);
    town.run(5).await;
    assert_eq!(policy(&town).map(|policy| policy["spec"].clone()), Some(good["spec"].clone()), "{}", town.story());
    let repairs = town.records().iter().filter(|record| is("SessionPolicyRepairIssued")(&record.event)).count();
    assert_eq!(repairs, 2);
    town.assert_append_before_act();
    town.assert_verifies();
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_watched_again_is_not_asked_for() {
    let town = Town::of_sessions(|_| {}).await;
    town.bring("s1").await;
    let asked = town.reads("networkpolicies").iter().filter(|read| read.starts_with("get")).count();
    for _ in 0..5 {
        // Its version falls far behind that of the list.
        town.world.api.skip_revisions(100);
        town.world.api.compact();
        town.world.api.cut_watches("networkpolicies", crate::sim::api::Cut::End);
        town.run(60).await;
    }
    town.bring("s2").await;
    assert_eq!(town.reads("networkpolicies").iter().filter(|read| read.starts_with("get")).count(), asked, "{}", town.story());
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_anothers_is_refused_at_once_and_left_alone() {
    let town = Town::of_sessions(|_| {}).await;
    let mut foreign = allow_all(&town);
    foreign["metadata"]["name"] = json!(POLICY);
    town.world.api.put_raw(foreign.clone());
    town.run(1).await;
    let Answer::Failed(Failure { code: Code::Refused(Refusal::NetworkPolicy), .. }) = town.bring("s1").await else {
        panic!("{:?}\n{}", town.state_of("s1"), town.story());
    };
    assert_eq!(policy(&town).map(|policy| policy["spec"].clone()), Some(foreign["spec"].clone()));
    assert_eq!(town.writes_like("create pods"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_widens_ours_is_reported_and_when_strict_no_pod_is_made() {
    for strict in [Switch::Off, Switch::On] {
        let town = Town::of_sessions(|settings| settings.sessions.strict_policy = strict).await;
        town.world.api.put_raw(allow_all(&town));
        town.run(1).await;
        assert_eq!(town.records().iter().filter(|record| is("SessionPolicyWidened")(&record.event)).count(), 1);
        let answered = town.bring("s1").await;
        if strict.is_on() {
            assert!(matches!(answered, Answer::Failed(Failure { code: Code::Refused(Refusal::NetworkPolicy), .. })), "{answered:?}");
            assert_eq!(town.writes_like("create pods"), 0);
            town.world.api.remove_raw("networkpolicies", &town.world.namespace, "allow-all");
            assert!(town.live().sessions().state(&id("s1")).is_some());
            town.run(60).await;
            assert!(matches!(town.bring("s1").await, Answer::Ready { .. }), "{}", town.story());
        } else {
            assert_eq!(answered, Answer::Ready { resumed: false });
        }
    }
}
