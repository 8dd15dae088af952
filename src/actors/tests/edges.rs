//! What is wrong at an edge costs what it is about, and nothing else: tails, packages, refusals, policies, foreign Secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Town, is};
use crate::config::Profile;
use crate::events::kinds::tail::TailLack;
use crate::events::mem_log::MemDisk;
use crate::events::record::Event;
use crate::gateway::{Gateway, GatewayError};
use crate::http::control::AppsView as _;
use crate::run::Window;
use crate::sim::api::{Action, Canned, Match, Refusal, Verb};
use crate::sim::node::{Register, Run, Script};

fn window(town: &Town) -> Window {
    let window = Window::new(&town.outside.settings, town.outside.clock.clone(), town.outside.metrics.clone());
    window.show(town.live().registry().clone(), town.live().sessions().clone(), town.live().health().clone());
    window
}

fn time_of(town: &Town, kind: &str) -> i64 {
    let records = town.records_of("acme/bot");
    let found = records.iter().rev().find(|record| record.event.kind().name() == kind);
    found.unwrap_or_else(|| panic!("no {kind}\n{}", town.story())).header.time_us
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_does_not_answer_holds_a_tail_no_longer_than_its_limit() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    // The environment is no longer in memory: the Secret is to be read.
    town.stop().await;
    town.start().await;
    town.run(10).await;
    town.world.api.faults().always(Match::on(Verb::Get, "secrets"), Action::HangBefore);
    town.world.nodes.kill_app(&host, 1);
    town.until("not to be had", |town| town.kinds("acme/bot", "TailUnavailable") == 1).await;
    let took_us = time_of(&town, "TailUnavailable") - time_of(&town, "TailAsked");
    assert!(took_us <= 6_000_000, "{took_us}\n{}", town.story());
    let timed_out = |event: &Event| matches!(event, Event::TailUnavailable(lack) if lack.why == TailLack::TimedOut);
    assert_eq!(town.count("acme/bot", timed_out), 1, "{}", town.story());
}

#[tokio::test(start_paused = true)]
async fn the_package_of_a_withdrawn_app_goes_and_it_is_not_shown_as_wanted() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.live_app("acme/other").await;
    let wanted = |apps: &Value| apps["apps"][0]["wanted"].clone();
    assert_eq!(wanted(&window(&town).apps().await), json!(host));
    assert_eq!(town.outside.sources.kept().len(), 2);
    town.world.gateway.withdraw("acme/bot");
    town.until("stopped", |town| town.pods().len() == 1 && town.secrets().len() == 1).await;
    town.run(20).await;
    assert_eq!(town.outside.sources.kept().len(), 1, "nobody is served what nobody wants");
    let apps = window(&town).apps().await;
    assert_eq!((wanted(&apps), &apps["apps"][0]["app"]), (Value::Null, &json!("acme/bot")), "{apps}");
    let whole = window(&town).app(&super::support::app("acme/bot")).await.expect("it is shown");
    assert_eq!(whole["want"], Value::Null, "{whole}");
}

#[tokio::test(start_paused = true)]
async fn each_of_two_wants_for_one_app_is_refused_and_reported() {
    let mut town = Town::new().await;
    let want = |host: &str, release: u64| json!({"org": "acme", "name": "bot", "release": release, "sha256": "0".repeat(64), "host": host, "registered": false, "failed": false});
    let answer = json!({"world": "demo", "apps": [want("bot-r1-00000001", 1), want("bot-r2-00000002", 2)]});
    let told = Arc::new(Mutex::new(BTreeSet::new()));
    let inner = Arc::clone(&town.outside.gateway);
    town.outside.gateway = Arc::new(AlwaysSays { inner, answer: answer.to_string(), told: Arc::clone(&told) });
    town.start().await;
    town.run(40).await;
    let both = ["bot-r1-00000001", "bot-r2-00000002"].map(|host| format!("failed {host} of \"acme/bot\""));
    assert_eq!(told.lock().unwrap().iter().map(String::as_str).collect::<Vec<_>>(), both);
    assert_eq!(town.kinds("acme/bot", "WantRefused"), 2, "each once\n{}", town.story());
}

/// A gateway with one answer, whatever it is told.
struct AlwaysSays {
    inner: Arc<dyn Gateway>,
    answer: String,
    told: Arc<Mutex<BTreeSet<String>>>,
}

type Later<'a, T> = futures_util::future::BoxFuture<'a, Result<T, GatewayError>>;

impl Gateway for AlwaysSays {
    fn heartbeat(&self, body: Vec<u8>) -> Later<'_, bytes::Bytes> {
        let body: Value = serde_json::from_slice(&body).expect("a heartbeat");
        let reports = body["reports"].as_array().expect("reports").iter();
        let text = |report: &Value, field: &str| report[field].as_str().unwrap_or_default().to_owned();
        let said = reports.map(|report| {
            format!("{} {} of \"{}/{}\"", text(report, "state"), text(report, "host"), text(report, "org"), text(report, "name"))
        });
        self.told.lock().unwrap().extend(said);
        Box::pin(async { Ok(self.answer.clone().into()) })
    }

    fn environment<'a>(&'a self, app: &'a crate::ids::AppId) -> Later<'a, BTreeMap<String, String>> {
        self.inner.environment(app)
    }

    fn source<'a>(&'a self, app: &'a crate::ids::AppId, release: u64) -> Later<'a, crate::gateway::api::Chunks> {
        self.inner.source(app, release)
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_is_refused_fails_no_release() {
    for refusal in [
        Refusal::new(422, "Invalid", "NetworkPolicy is invalid: spec.egress", json!({})),
        Refusal::new(403, "Forbidden", "violates PodSecurity \"restricted\"", json!({})),
    ] {
        let mut town = Town::new().await;
        town.world.api.faults().always(Match::on(Verb::Create, "networkpolicies"), Action::Answer(Canned::refusal(&refusal)));
        town.start().await;
        let host = town.world.gateway.deploy("acme/bot");
        town.run(60).await;
        assert_eq!((town.kinds("acme/bot", "VerdictReached"), town.pods().len()), (0, 0), "{}", town.story());
        let is_waiting = |event: &Event| matches!(event, Event::AlarmRaised(alarm) if alarm.name.as_str() == "waiting");
        assert_eq!(town.count("acme/bot", is_waiting), 1, "{}", town.story());
        town.world.api.faults().clear_all();
        town.until("live", |town| town.is_live("acme/bot", &host)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_the_seeds_which_no_list_shows_goes_with_its_host() {
    let mut town = Town::with(|settings| settings.profile = Profile::Pinecall).await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.stop().await;
    // As the seed left it: another log, a pod with the seed's labels, a Secret with a name and nothing else.
    town.disk = MemDisk::new();
    let bare = |object: &mut Value, keep: &[&str]| {
        let labels = object["metadata"]["labels"].as_object_mut().expect("labels");
        labels.retain(|key, _| keep.iter().any(|name| key.ends_with(name)));
        let annotations = object["metadata"]["annotations"].as_object_mut().expect("annotations");
        annotations.retain(|key, _| keep.iter().any(|name| key.ends_with(name)));
    };
    let name = format!("{host}-env");
    for (resource, name, keep) in [("pods", &host, &["/app", "/world", "/release"][..]), ("secrets", &name, &[])] {
        let mut object = Value::clone(&*town.world.api.object(resource, "apps", name).expect("it is there"));
        bare(&mut object, keep);
        town.world.api.put_raw(object);
    }
    town.start().await;
    town.until("known", |town| town.is_live("acme/bot", &host)).await;
    town.run(20).await;
    assert_eq!(town.count("acme/bot", is("SecretGone")), 0, "a list says nothing of it\n{}", town.story());
    town.world.gateway.withdraw("acme/bot");
    town.until("nothing is left", |town| town.pods().is_empty() && town.secrets().is_empty()).await;
}

#[tokio::test(start_paused = true)]
#[expect(clippy::wildcard_enum_match_arm, reason = "two kinds of text are looked at")]
async fn nothing_that_a_tenant_says_quarantines_its_app() {
    let mut town = Town::new().await;
    let value = "open-sesame";
    let dies = Run { message: Some(value.repeat(370)), ..Run::ends(Duration::from_secs(2), 3) };
    town.world.scripts.otherwise(Script { register: Register::Never, ..Script::default().app(dies) });
    town.start().await;
    town.world.gateway.deploy("acme/bot");
    town.world.gateway.deploy("acme/other");
    {
        let mut gateway = town.world.gateway.lock();
        let variables = |name: String, value: &str| [(name, value.to_owned())].into();
        gateway.apps.get_mut("acme/bot").expect("it is there").environment = variables("N".repeat(500), value);
        gateway.apps.get_mut("acme/other").expect("it is there").environment = variables("N".repeat(20_000), &"x".repeat(1 << 20));
    }
    town.until("both are told", |town| {
        let told = |name: &str| town.kinds(name, "VerdictReached") + town.kinds(name, "Quarantined") > 0;
        told("acme/bot") && told("acme/other")
    })
    .await;
    let texts = |name: &str| -> Vec<String> {
        let texts = town.records_of(name).into_iter().filter_map(|record| match record.event {
            Event::MessageText(message) => Some(message.text),
            Event::StepExplained(explained) => Some(explained.text),
            _ => None,
        });
        texts.collect()
    };
    for name in ["acme/bot", "acme/other"] {
        assert_eq!((town.kinds(name, "VerdictReached"), town.kinds(name, "Quarantined")), (1, 0), "{}", town.story());
        assert!(!texts(name).is_empty(), "{name}\n{}", town.story());
        assert!(texts(name).iter().all(|text| text.len() <= 4_096 && !text.contains(value)), "{name}");
    }
}
