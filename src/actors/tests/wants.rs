//! What the gateway says and is told: withdrawals, answers that are not believed, reports.

use super::support::{Town, is};
use crate::sim::api::{Action, Canned, Match, Refusal, Verb};
use crate::sim::gateway::{Endpoint, Fault};
use crate::sim::node::{Register, Run, Script};
use std::time::Duration;

fn missing(town: &Town, name: &str) -> usize {
    town.count(name, is("WantMissing"))
}

#[tokio::test(start_paused = true)]
async fn one_odd_answer_withdraws_nothing_and_two_do() {
    let mut town = Town::new().await;
    town.start().await;
    for name in ["acme/a", "acme/b", "acme/c", "acme/d"] {
        town.live_app(name).await;
    }
    town.run(20).await;
    town.world.gateway.fail(Endpoint::Heartbeat, 1, Fault::Omit("acme/a".to_owned()));
    town.run(60).await;
    assert_eq!((missing(&town, "acme/a"), town.pods().len()), (1, 4), "{}", town.story());
    town.world.gateway.fail(Endpoint::Heartbeat, 2, Fault::Omit("acme/a".to_owned()));
    town.until("stopped", |town| town.pods().len() == 3).await;
    assert_eq!(missing(&town, "acme/a"), 3);
    assert_eq!(town.writes_like("delete pods a-"), 1);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_believed_change_nothing() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.run(20).await;
    let records = town.records().len();
    for fault in [Fault::Status(500), Fault::Garbage, Fault::WrongWorld, Fault::Status(401), Fault::Hang] {
        town.world.gateway.fail(Endpoint::Heartbeat, 6, fault);
    }
    town.run(600).await;
    assert_eq!(town.records().len(), records, "{}", town.story());
    assert_eq!(town.writes_like("delete"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_withdraws_only_the_fifth_time() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.run(20).await;
    town.world.gateway.fail(Endpoint::Heartbeat, 4, Fault::Empty);
    town.run(120).await;
    assert_eq!((missing(&town, "acme/bot"), town.writes_like("delete")), (4, 0));
    town.world.gateway.fail(Endpoint::Heartbeat, 5, Fault::Empty);
    town.until("stopped", |town| town.pods().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_report_is_owed_over_restarts_and_sent_again_after_three_beats() {
    let mut town = Town::new().await;
    town.start().await;
    // The gateway takes reports and never shows them.
    town.world.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::Status(500));
    town.world.gateway.heal();
    let host = town.world.gateway.deploy("acme/bot");
    town.until("serves", |town| town.host("acme/bot", &host).is_some_and(|host| host.says_live())).await;
    town.world.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::Status(503));
    town.crash().await;
    town.start().await;
    town.run(60).await;
    town.world.gateway.heal();
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
    assert_eq!(town.world.gateway.reported(), [format!("live {host}")]);
    let reports = town.world.gateway.lock().seen.reports.len();
    town.run(120).await;
    assert_eq!(town.world.gateway.lock().seen.reports.len(), reports, "shown, so not owed");
}

#[tokio::test(start_paused = true)]
async fn a_report_that_is_not_shown_is_sent_again_and_dropped_when_it_is_void() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.world.gateway.deploy("acme/bot");
    town.until("serves", |town| town.host("acme/bot", &host).and_then(|host| host.pod).is_some_and(|pod| pod.runs())).await;
    let shown = serde_json::to_vec(&wants(&town, &host)).expect("json");
    town.world.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::Body(shown));
    town.until("reported", |town| town.host("acme/bot", &host).is_some_and(|host| host.says_live())).await;
    town.run(100).await;
    assert_eq!(town.world.gateway.reported(), [""; 0], "a canned answer takes nothing in: it is still owed");
    let second = town.world.gateway.deploy("acme/bot");
    let shown = serde_json::to_vec(&wants(&town, &second)).expect("json");
    town.world.gateway.heal();
    town.world.gateway.fail(Endpoint::Heartbeat, 2, Fault::Body(shown));
    town.until("second", |town| town.is_live("acme/bot", &second)).await;
    assert_eq!(town.world.gateway.reported(), [format!("live {second}")], "the first is void: it is not wanted any more");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_gone_is_not_reported_live_and_the_one_that_serves_stays() {
    for crashes in [false, true] {
        let mut town = Town::new().await;
        town.start().await;
        let first = town.live_app("acme/bot").await;
        let second = town.world.gateway.deploy("acme/bot");
        town.until("runs", |town| town.host("acme/bot", &second).and_then(|host| host.pod).is_some_and(|pod| pod.runs())).await;
        let mut shown = wants(&town, &second);
        shown["apps"][0]["registered"] = true.into();
        shown["apps"][0]["live_host"] = first.as_str().into();
        // What it answers is canned: it takes no report in.
        town.world.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::Body(serde_json::to_vec(&shown).expect("json")));
        town.until("serves", |town| town.host("acme/bot", &second).is_some_and(|host| host.says_live())).await;
        town.world.gateway.heal();
        town.world.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::Status(503));
        let refuses = Match::on(Verb::Create, "pods");
        let rule = town.world.api.faults().always(refuses, Action::Answer(Canned::quota("pod")));
        if crashes {
            town.crash().await;
        }
        town.world.api.remove_raw("pods", "apps", &second);
        if crashes {
            // Before it is listed nobody knows that the pod is gone.
            town.world.api.faults().set(Match::on(Verb::List, "pods"), 0, 3, Action::Answer(Canned::internal()));
            town.world.gateway.heal();
            town.start().await;
        } else {
            town.run(30).await;
            town.world.gateway.heal();
        }
        town.run(100).await;
        assert_eq!(town.world.gateway.reported(), [format!("live {first}")], "crashes {crashes}");
        assert_eq!(town.pods(), [first.clone()], "crashes {crashes}: {}", town.story());
        town.world.api.faults().clear(rule);
        town.until("second", |town| town.is_live("acme/bot", &second) && town.pods() == [second.clone()]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_registration_in_a_silence_of_the_gateway_is_not_late() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.world.gateway.deploy("acme/bot");
    town.until("runs", |town| town.host("acme/bot", &host).and_then(|host| host.pod).is_some_and(|pod| pod.runs())).await;
    town.world.gateway.fail(Endpoint::Heartbeat, u32::MAX, Fault::Status(503));
    assert!(town.state("acme/bot").is_some_and(|state| state.want.as_ref().is_some_and(|want| !want.registered)));
    town.run(200).await;
    town.world.gateway.heal();
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
    assert_eq!(town.world.gateway.reported(), [format!("live {host}")]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_registers_fails_by_the_first_answer_after_its_deadline() {
    let mut town = Town::new().await;
    town.world.scripts.otherwise(Script { register: Register::Never, ..Script::default() });
    town.start().await;
    let host = town.world.gateway.deploy("acme/bot");
    town.until("runs", |town| town.host("acme/bot", &host).and_then(|host| host.pod).is_some_and(|pod| pod.runs())).await;
    let records = town.kinds("acme/bot", "WantConfirmed");
    town.run(115).await;
    assert_eq!(town.world.gateway.reported(), [""; 0]);
    town.run(20).await;
    assert_eq!(town.world.gateway.reported(), [format!("failed {host}")], "{}", town.story());
    assert_eq!(town.kinds("acme/bot", "WantConfirmed"), records + 1, "once a deadline");
}

fn wants(town: &Town, host: &str) -> serde_json::Value {
    let bot = town.world.gateway.app("acme/bot").expect("the app");
    serde_json::json!({"world": "demo", "apps": [{"org": "acme", "name": "bot", "release": bot.release, "sha256": bot.sha256(),
        "host": host, "registered": bot.release == 1, "failed": false}]})
}

#[tokio::test(start_paused = true)]
async fn a_refused_want_is_reported_failed_and_touches_no_other() {
    let mut town = Town::new().await;
    town.start().await;
    let good = town.live_app("acme/good").await;
    let bot = {
        let mut gateway = town.world.gateway.lock();
        let mut bot = crate::sim::gateway::App::new("acme", "bot");
        bot.deploy(1, None);
        bot.host = "Not_A_Host".to_owned();
        gateway.apps.insert("acme/bot".to_owned(), bot.clone());
        bot
    };
    town.until("reported", |town| {
        town.world.gateway.lock().seen.reports.iter().any(|report| report.host == bot.host && report.state == "failed")
    })
    .await;
    town.run(30).await;
    assert_eq!(town.kinds("acme/bot", "WantRefused"), 1, "{}", town.story());
    assert_eq!((town.pods(), town.kinds("acme/bot", "StepIssued")), (vec![good], 0));
    let host = town.world.gateway.deploy("acme/bot");
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_report_says_the_last_lines() {
    let mut town = Town::new().await;
    let dies = Run { last_lines: vec!["no database at db.internal".to_owned()], ..Run::ends(Duration::from_secs(2), 3) };
    town.world.scripts.otherwise(Script::default().app(dies));
    town.start().await;
    let host = town.world.gateway.deploy("acme/bot");
    town.until("told", |town| town.world.gateway.lock().seen.reports.iter().any(|report| report.state == "failed")).await;
    let report = town.world.gateway.lock().seen.reports.last().cloned().expect("a report");
    assert_eq!(report.host, host);
    assert!(report.why.contains("no database at db.internal"), "{:?}", report.why);
    assert!(report.why.contains(" (exit code 3, Error):\n"), "{:?}", report.why);
    let order: Vec<String> = town.records_of("acme/bot").iter().map(|record| record.event.kind().name().to_owned()).collect();
    let at = |kind: &str| order.iter().rposition(|name| name == kind).unwrap_or_else(|| panic!("no {kind}"));
    assert!(at("TailKept") < at("VerdictReached"), "{order:?}");
}

#[tokio::test(start_paused = true)]
async fn b24_a_refusal_is_reported_in_the_words_of_who_refused() {
    let mut town = Town::new().await;
    town.start().await;
    let why = |town: &Town, host: &str| {
        let gateway = town.world.gateway.lock();
        gateway.seen.reports.iter().find(|report| report.host == host).map(|report| report.why.clone())
    };
    town.world.gateway.deploy("acme/bot");
    let host = town.world.gateway.change_secret("acme/bot", Some([("1BAD".to_owned(), "x".to_owned())].into()));
    town.until("told", |town| why(town, &host).is_some()).await;
    let told = why(&town, &host).unwrap_or_default();
    assert!(told.starts_with("its environment cannot be used: ") && told.contains("1BAD"), "{told}");
    let invalid = Refusal::new(422, "Invalid", "Pod is invalid: spec.containers[0].image: Required value", serde_json::json!({}));
    town.world.api.faults().always(Match::on(Verb::Create, "pods"), Action::Answer(Canned::refusal(&invalid)));
    let host = town.world.gateway.deploy("acme/odd");
    town.until("told", |town| why(town, &host).is_some()).await;
    let told = why(&town, &host).unwrap_or_default();
    assert!(told.contains("spec.containers[0].image: Required value"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn lines_that_somebody_looks_at_are_given_and_never_recorded() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.world.nodes.print(&host, "hello there");
    town.run(20).await;
    let records = town.records().len();
    town.world.gateway.want_logs("acme/bot");
    town.until("given", |town| !town.world.gateway.lock().seen.logs.is_empty()).await;
    let lines = town.world.gateway.lock().seen.logs[0].lines.as_str().unwrap_or_default().to_owned();
    assert!(lines.contains("hello there"), "{lines:?}");
    assert_eq!(town.records().len(), records);
}
