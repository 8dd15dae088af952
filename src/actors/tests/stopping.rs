//! Ending in order: what is under way comes back and is recorded, the log closes clean, and all of it is bounded.

use std::time::Duration;

use super::support::Town;
use crate::events::log::Found;
use crate::events::record::Event;
use crate::sim::api::{Action, Match, Verb};

#[tokio::test(start_paused = true)]
async fn what_is_under_way_settles_and_the_next_opening_has_no_gap() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.world.api.faults().always(Match::on(Verb::Create, "pods"), Action::Delay(Duration::from_secs(4)));
    let second = town.world.gateway.deploy("acme/bot");
    let creates = |event: &Event| matches!(event, Event::StepIssued(issued) if issued.step.name() == "CreatePod");
    town.until("the create is sent", |town| town.count("acme/bot", creates) == 2).await;
    town.run_ms(50).await;
    town.stop().await;
    assert_eq!(town.pods(), [host, second.clone()], "the create came back");
    assert_eq!(town.kinds("acme/bot", "StepIssued"), town.kinds("acme/bot", "StepSettled"), "{}", town.story());
    let last = town.records().pop().expect("a record");
    assert!(matches!(last.event, Event::IncarnationStopped(_)), "{last:?}");
    let opened = town.start().await;
    assert_eq!((opened.found, opened.gap), (Found::Clean, None));
    town.world.api.faults().clear_all();
    town.until("live", |town| town.is_live("acme/bot", &second)).await;
    assert_eq!(town.writes_like(&format!("create pods {second}")), 1);
    town.assert_append_before_act();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_drain_and_what_waits_is_said_to_be_unsent() {
    let mut town = Town::with(|settings| settings.kubernetes.in_flight = 1).await;
    town.start().await;
    town.live_app("acme/warm").await;
    town.world.api.faults().always(Match::on(Verb::Create, "secrets"), Action::Delay(Duration::from_secs(3)));
    for number in 0..5 {
        town.world.gateway.deploy(&format!("acme/bot{number}"));
    }
    town.until("issued", |town| (0..5).all(|number| town.kinds(&format!("acme/bot{number}"), "StepIssued") == 1)).await;
    town.run(1).await;
    let before = town.sent().len();
    town.stop().await;
    assert!(town.sent().len() <= before + 1, "only what was under way");
    for number in 0..5 {
        let name = format!("acme/bot{number}");
        assert_eq!(town.kinds(&name, "StepIssued"), town.kinds(&name, "StepSettled"), "{}", town.story());
    }
    let sent = town.sent().len();
    town.run(120).await;
    assert_eq!(town.sent().len(), sent, "nobody goes on behind its back");
    town.world.api.faults().clear_all();
    town.start().await;
    town.until("all live", |town| {
        (0..5).all(|number| town.world.gateway.app(&format!("acme/bot{number}")).is_some_and(|app| app.live_host.is_some()))
    })
    .await;
    assert_eq!(town.writes_like("create pods bot"), 5);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_does_not_hold_up_the_end() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/warm").await;
    town.world.api.faults().always(Match::on(Verb::Create, "secrets"), Action::HangAfter);
    town.world.gateway.deploy("acme/bot");
    town.until("issued", |town| town.kinds("acme/bot", "StepIssued") == 1).await;
    town.run(1).await;
    let begun = town.outside.clock.now_us();
    town.stop().await;
    let took_s = (town.outside.clock.now_us() - begun) / 1_000_000;
    assert!((10..=18).contains(&took_s), "{took_s}");
    town.world.api.faults().clear_all();
    let opened = town.start().await;
    assert_eq!(opened.found, Found::Clean);
    town.until("live", |town| town.world.gateway.app("acme/bot").is_some_and(|app| app.live_host.is_some())).await;
    assert_eq!(town.writes_like("create pods bot"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_signal_ends_the_whole_daemon_in_order() {
    let town = Town::new().await;
    let dir = tempfile::tempdir().expect("a folder");
    let listen = || async { tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port") };
    let listeners = crate::run::serve::Listeners { control: listen().await, sources: listen().await };
    let host = town.world.gateway.deploy("acme/bot");
    let place = crate::run::serve::Place { dir: dir.path(), probe: None };
    let stop = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "SIGTERM"
    };
    let checkpoints = crate::run::Checkpoints::open(&town.outside.settings, &town.outside.entropy, std::sync::Arc::new(|_| ()));
    let checkpoints = checkpoints.expect("a key");
    crate::run::serve::serve(town.outside.clone(), place, listeners, checkpoints, false, stop).await.expect("it ends in order");
    assert_eq!(town.pods(), std::slice::from_ref(&host));
    assert_eq!(town.world.gateway.app("acme/bot").and_then(|app| app.live_host), Some(host));
    let reader = crate::events::sled_log::SledLog::open_for_reading(dir.path()).expect("nobody holds it");
    let last = reader.record(reader.head()).expect("it can be read").expect("a record").expect("sound");
    assert_eq!(last.header.kind, crate::events::record::Kind::IncarnationStopped as u16);
}
