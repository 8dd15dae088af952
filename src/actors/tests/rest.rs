//! Subjects at rest: no actor, no record, and no reaction to what is no news.

use super::support::Town;

#[tokio::test(start_paused = true)]
async fn a_subject_at_rest_has_no_actor_and_no_record() {
    let mut town = Town::new().await;
    town.start().await;
    for number in 0..10 {
        town.live_app(&format!("acme/bot{number}")).await;
    }
    town.run(10).await;
    let records = town.records().len();
    let beats = town.world.gateway.lock().seen.beats.len();
    town.run(600).await;
    assert_eq!(town.live().registry().active(), 0);
    assert_eq!(town.records().len(), records, "{}", town.story());
    assert!(town.world.gateway.lock().seen.beats.len() - beats >= 110, "the same want came again and again");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_wakes_a_subject_that_rests() {
    let mut town = Town::new().await;
    town.start().await;
    let never = crate::sim::node::Register::Never;
    town.world.scripts.otherwise(crate::sim::node::Script { register: never, ..Default::default() });
    let host = town.world.gateway.deploy("acme/bot");
    town.until("runs", |town| town.host("acme/bot", &host).and_then(|host| host.pod).is_some_and(|pod| pod.runs())).await;
    town.run(5).await;
    assert_eq!(town.live().registry().active(), 0);
    let app = super::support::app("acme/bot");
    assert!(town.live().registry().looks_again_us(&app).is_some(), "it is to look again");
    town.until("failed", |town| town.host("acme/bot", &host).is_some_and(|host| host.has_failed())).await;
    town.until("told", |town| town.world.gateway.reported() == [format!("failed {host}")]).await;
}

#[tokio::test(start_paused = true)]
async fn one_change_of_a_pod_is_one_reaction() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.run(30).await;
    let before = town.records_of("acme/bot");
    let reactions = |records: &[crate::events::record::Record]| {
        records.iter().map(|record| record.header.reaction).collect::<std::collections::BTreeSet<_>>().len()
    };
    // The version changes and nothing that is looked at does.
    let mut pod = serde_json::Value::clone(&town.world.api.object("pods", "apps", &host).expect("the pod"));
    pod["metadata"]["annotations"]["somebody"] = "was here".into();
    town.world.api.put_raw(pod.clone());
    town.run(5).await;
    assert_eq!(town.records_of("acme/bot").len(), before.len());
    pod["status"]["conditions"] = serde_json::json!([{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]);
    town.world.api.put_raw(pod);
    town.run(3).await;
    assert_eq!(reactions(&town.records_of("acme/bot")), reactions(&before) + 1, "{}", town.story());
}
