//! Crashes in the middle: the next incarnation goes on from the log and the list, nothing lost, nothing doubled.

use super::support::{Town, is};
use crate::events::record::Event;
use crate::sim::api::{Action, Match, Verb};
use crate::sim::gateway::{Endpoint, Fault};

#[tokio::test(start_paused = true)]
async fn b14_a_crash_anywhere_in_a_roll_out_makes_one_pod_a_host() {
    for after_ms in [1, 3, 5, 8, 12, 20, 300, 1_500, 3_500, 4_500, 5_200, 6_500, 9_000] {
        let mut town = Town::new().await;
        town.start().await;
        let first = town.live_app("acme/bot").await;
        let second = town.world.gateway.deploy("acme/bot");
        // From the beat that names it on.
        town.until("named", |town| {
            town.state("acme/bot").is_some_and(|state| state.want.as_ref().is_some_and(|want| want.host.as_str() == second))
        })
        .await;
        town.run_ms(after_ms).await;
        town.crash().await;
        town.run(2).await;
        town.start().await;
        town.until("done", |town| town.is_live("acme/bot", &second) && town.pods() == [second.clone()]).await;
        town.run(90).await;
        assert_eq!(town.writes_like(&format!("create pods {second}")), 1, "after {after_ms} ms\n{}", town.story());
        assert_eq!(town.writes_like(&format!("delete pods {first}")), 1, "after {after_ms} ms");
        assert_eq!((town.pods(), town.secrets()), (vec![second.clone()], vec![format!("{second}-env")]), "after {after_ms} ms");
        assert_eq!(town.count("acme/bot", is("IncarnationStarted")), 2, "after {after_ms} ms\n{}", town.story());
        // With the next reaction: when there was none left to make, not at all.
        assert!((1..=2).contains(&town.count("acme/bot", is("Listed"))), "after {after_ms} ms\n{}", town.story());
        town.assert_append_before_act();
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_revive_goes_on_with_it() {
    for after_ms in [2, 20, 60, 150, 400, 1_200, 2_500] {
        let mut town = Town::new().await;
        town.start().await;
        let host = town.live_app("acme/bot").await;
        town.world.nodes.kill_app(&host, 3);
        town.run_ms(after_ms).await;
        town.crash().await;
        town.run(3).await;
        town.start().await;
        town.until("runs", |town| {
            town.writes_like(&format!("create pods {host}")) == 2
                && town.host("acme/bot", &host).and_then(|host| host.pod).is_some_and(|pod| pod.runs())
        })
        .await;
        town.run(120).await;
        assert_eq!(town.writes_like(&format!("create pods {host}")), 2, "after {after_ms} ms\n{}", town.story());
        let counted = town.count("acme/bot", |event| matches!(event, Event::PodEnded(ended) if ended.counted));
        assert_eq!(counted, 1, "after {after_ms} ms\n{}", town.story());
        assert_eq!(town.host("acme/bot", &host).map(|host| host.exits.len()), Some(1));
        town.assert_append_before_act();
    }
}

#[tokio::test(start_paused = true)]
async fn before_the_first_good_answer_nothing_is_stopped_and_only_a_live_host_is_revived() {
    let mut town = Town::new().await;
    town.start().await;
    let live = town.live_app("acme/bot").await;
    let other = town.live_app("acme/other").await;
    town.crash().await;
    town.world.gateway.withdraw("acme/other");
    town.world.gateway.deploy("acme/bot");
    town.world.nodes.kill_app(&live, 1);
    town.world.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::Status(503));
    town.start().await;
    town.run(600).await;
    assert_eq!(town.pods(), [live.clone(), other.clone()]);
    assert_eq!(town.writes_like(&format!("create pods {live}")), 2, "the live host is revived");
    assert_eq!(town.writes_like("delete pods other"), 0);
    assert_eq!(town.writes_like("create pods bot"), 2, "nothing new is started");
    town.world.gateway.heal();
    town.until("as wanted", |town| town.pods().iter().all(|pod| *pod != live && *pod != other)).await;
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_want_is_confirmed_once_in_each_incarnation() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    for incarnation in 1..4 {
        town.crash().await;
        town.start().await;
        town.run(120).await;
        // Something happens after the list: it is learned with that.
        town.world.nodes.print(&host, "a line");
        let mut pod = serde_json::Value::clone(&town.world.api.object("pods", "apps", &host).expect("the pod"));
        let ready = if incarnation % 2 == 0 { "True" } else { "False" };
        pod["status"]["conditions"] = serde_json::json!([{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}]);
        town.world.api.put_raw(pod);
        town.run(1).await;
        for (kind, times) in [("WantConfirmed", incarnation), ("Listed", incarnation + 1), ("IncarnationStarted", incarnation + 1)] {
            assert_eq!(town.count("acme/bot", is(kind)), times, "{kind}\n{}", town.story());
        }
    }
    assert_eq!(town.writes_like("create pods"), 1);
    assert_eq!(town.writes_like("delete"), 0);
}

#[tokio::test(start_paused = true)]
async fn b30_what_ended_while_nobody_ran_is_seen_once() {
    let mut town = Town::new().await;
    town.start().await;
    let ended = town.live_app("acme/ended").await;
    let deleted = town.live_app("acme/deleted").await;
    town.crash().await;
    town.world.nodes.kill_app(&ended, 9);
    town.world.api.remove_raw("pods", "apps", &deleted);
    town.run(5).await;
    town.start().await;
    town.until("both are back", |town| town.writes_like("create pods") == 4).await;
    town.run(60).await;
    let counted = |name: &str| town.count(name, |event| matches!(event, Event::PodEnded(ended) if ended.counted));
    assert_eq!((counted("acme/ended"), counted("acme/deleted")), (1, 0), "{}", town.story());
    assert_eq!((town.kinds("acme/ended", "PodEnded"), town.kinds("acme/deleted", "PodEnded")), (1, 1));
    assert_eq!(town.kinds("acme/deleted", "PodGone"), 1);
}

#[tokio::test(start_paused = true)]
async fn b55_a_withdrawn_app_whose_stop_was_not_sent_is_stopped_after_the_restart() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.world.api.faults().always(Match::on(Verb::Delete, "pods"), Action::HangBefore);
    town.world.gateway.withdraw("acme/bot");
    let is_stop = |event: &Event| matches!(event, Event::StepIssued(issued) if issued.step.name() == "DeletePod");
    town.until("the stop is decided", |town| town.count("acme/bot", is_stop) == 1).await;
    town.crash().await;
    town.world.api.faults().clear_all();
    town.start().await;
    town.until("nothing is left", |town| town.pods().is_empty() && town.secrets().is_empty()).await;
    town.assert_append_before_act();
}
