//! A subject whose actor fails: restarted from the log, nothing lost, nothing doubled; quarantined when it fails again and again.

use super::poison::{At, is_left, poison};
use super::support::{Town, app, is};
use crate::config::Act;
use crate::http::control::AppsView as _;
use crate::run::Window;

#[tokio::test(start_paused = true)]
async fn b61_a_failing_subject_is_restarted_and_the_others_go_on() {
    for at in [At::BeforeAppend, At::AfterAppend] {
        let mut town = Town::new().await;
        town.start().await;
        let other = town.world.gateway.deploy("acme/other");
        let host = town.world.gateway.deploy("acme/bot");
        // Once in every few reactions of the whole roll-out: never three times in a row.
        for _ in 0..2_000 {
            if !is_left() {
                poison(&app("acme/bot"), at, 1);
            }
            town.run_ms(10).await;
            // Each second one is let through.
            super::poison::clear();
            town.run_ms(7).await;
        }
        town.until("live", |town| town.is_live("acme/bot", &host) && town.is_live("acme/other", &other)).await;
        assert!(town.state("acme/bot").is_some_and(|state| !state.quarantined), "{at:?}");
        assert_eq!((town.writes_like(&format!("create pods {host}")), town.writes_like("create pods")), (1, 2), "{at:?}");
        for kind in ["IncarnationStarted", "Listed"] {
            assert_eq!(town.count("acme/bot", is(kind)), 1, "{kind} {at:?}\n{}", town.story());
        }
        let issued = town.kinds("acme/bot", "StepIssued");
        assert_eq!(issued, town.kinds("acme/bot", "StepSettled"), "{at:?}\n{}", town.story());
        assert_eq!(issued, town.kinds("acme/other", "StepIssued"), "{at:?}");
        town.assert_append_before_act();
        super::poison::clear();
    }
}

#[tokio::test(start_paused = true)]
async fn each_fact_is_recorded_once_when_a_reaction_fails() {
    for at in [At::BeforeAppend, At::AfterAppend] {
        let mut town = Town::new().await;
        town.start().await;
        let host = town.live_app("acme/bot").await;
        let wants = town.kinds("acme/bot", "WantSeen");
        poison(&app("acme/bot"), at, 2);
        let second = town.world.gateway.deploy("acme/bot");
        town.until("live", |town| town.is_live("acme/bot", &second) && town.pods() == [second.clone()]).await;
        assert!(!is_left());
        let named = town.count(
            "acme/bot",
            |event| matches!(event, crate::events::record::Event::WantSeen(want) if want.host.as_str() == second && !want.registered),
        );
        assert_eq!(named, 1, "{at:?}\n{}", town.story());
        assert!(town.kinds("acme/bot", "WantSeen") > wants);
        assert_eq!(town.writes_like(&format!("create pods {second}")), 1, "{at:?}");
        assert_eq!(town.writes_like(&format!("delete pods {host}")), 1, "{at:?}");
        super::poison::clear();
    }
}

#[tokio::test(start_paused = true)]
async fn b61_a_subject_that_fails_three_times_is_quarantined_alone() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    let other = town.live_app("acme/other").await;
    poison(&app("acme/bot"), At::BeforeAppend, 3);
    town.world.nodes.kill_app(&host, 1);
    town.world.nodes.kill_app(&other, 1);
    town.run(120).await;
    assert_eq!(town.kinds("acme/bot", "Quarantined"), 1);
    assert_eq!(town.writes_like(&format!("create pods {other}")), 2, "the other one was revived");
    assert_eq!((town.writes_like("delete pods bot"), town.writes_like("create pods bot")), (0, 1));
    let window = Window::new(&town.outside.settings, town.outside.clock.clone(), town.outside.metrics.clone());
    window.show(town.live().registry().clone(), town.live().sessions().clone(), town.live().health().clone());
    let apps = window.apps().await;
    let quarantined: Vec<_> = apps["apps"].as_array().expect("a list").iter().map(|app| (&app["app"], &app["quarantined"])).collect();
    assert_eq!(quarantined, [(&"acme/bot".into(), &true.into()), (&"acme/other".into(), &false.into())]);
    assert_eq!(apps["apps"][0]["alarms"], serde_json::json!(["quarantined"]));
    window.count_alarms();
    assert!(town.outside.metrics.text().contains("wharf_alarms{name=\"quarantined\"} 1\n"), "{}", town.outside.metrics.text());
    town.world.gateway.deploy("acme/bot");
    town.run(60).await;
    assert_eq!(town.writes_like("create pods bot"), 1, "it is not acted on");
    town.stop().await;
    town.start().await;
    town.until("acted on again", |town| town.world.gateway.app("acme/bot").is_some_and(|app| app.live_host == Some(app.host))).await;
    assert_eq!(town.count("acme/bot", |event| matches!(event, crate::events::record::Event::PodEnded(ended) if ended.counted)), 1);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_never_could_be_taken_in_is_visible_all_the_same() {
    let mut town = Town::new().await;
    poison(&app("acme/bot"), At::BeforeAppend, u32::MAX);
    town.start().await;
    town.world.gateway.deploy("acme/bot");
    let other = town.live_app("acme/other").await;
    assert!(town.is_live("acme/other", &other));
    assert_eq!(town.kinds("acme/bot", "Quarantined"), 1, "once, whatever comes in");
    let window = Window::new(&town.outside.settings, town.outside.clock.clone(), town.outside.metrics.clone());
    window.show(town.live().registry().clone(), town.live().sessions().clone(), town.live().health().clone());
    assert_eq!(window.app(&app("acme/bot")).await.expect("it is shown")["quarantined"], true);
    super::poison::clear();
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_daemon_that_does_not_act_sends_nothing() {
    let mut town = Town::with(|settings| settings.act = Act::None).await;
    town.start().await;
    poison(&app("acme/bot"), At::AfterAppend, 2);
    town.world.gateway.deploy("acme/bot");
    town.run(120).await;
    assert!(!is_left());
    assert_eq!(town.sent().len(), 0, "{}", town.story());
    assert_eq!((town.kinds("acme/bot", "StepIssued"), town.kinds("acme/bot", "StepWithheld")), (1, 1), "{}", town.story());
}
