//! The cluster actor: tries again, pauses, takes back, keeps its bounds, and says what became of each step.

use std::time::Duration;

use super::support::{Town, app};
use crate::actors::perform::Performer;
use crate::events::kinds::step::{Outcome, Step};
use crate::events::record::Event;
use crate::ids::HostName;
use crate::kube::environment::Environment;
use crate::sim::api::{Action, Canned, Match, Verb};

fn outcomes(town: &Town, name: &str, step_name: &str) -> Vec<Outcome> {
    let records = town.records_of(name);
    let is_such = |step: crate::ids::Seq| {
        records.iter().any(|record| {
            record.header.seq == step && matches!(&record.event, Event::StepIssued(issued) if issued.step.name() == step_name)
        })
    };
    let settled = records.iter().filter_map(|record| {
        let Event::StepSettled(settled) = &record.event else { return None };
        Some(settled)
    });
    settled.filter(|settled| is_such(settled.step)).map(|settled| settled.outcome).collect()
}

#[tokio::test(start_paused = true)]
async fn a_create_that_fails_for_a_while_is_tried_again_as_the_same_step() {
    let mut town = Town::new().await;
    town.world.api.faults().set(Match::on(Verb::Create, "pods"), 0, 4, Action::Answer(Canned::internal()));
    town.start().await;
    let host = town.live_app("acme/bot").await;
    let tries: Vec<i64> = town.sent().into_iter().filter(|(_, e)| e.resource == "pods").map(|(_, e)| e.time_us).collect();
    assert_eq!(tries.len(), 5);
    let pauses: Vec<i64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.windows(2).all(|pair| pair[1] > pair[0]), "they grow: {pauses:?}");
    assert_eq!(town.count("acme/bot", |event| matches!(event, Event::ApiCalled(call) if call.resource.as_str() == "pods")), 5);
    assert_eq!(outcomes(&town, "acme/bot", "CreatePod"), [Outcome::Done]);
    assert_eq!(town.pods(), [host]);
    town.assert_append_before_act();
}

#[tokio::test(start_paused = true)]
async fn b13_a_create_that_is_tried_again_gets_the_environment_as_it_is_by_then() {
    let mut town = Town::new().await;
    town.world.api.faults().set(Match::on(Verb::Create, "pods"), 0, 4, Action::Answer(Canned::internal()));
    town.start().await;
    let host = town.world.gateway.deploy("acme/bot");
    let value = |town: &Town, of: &str| {
        let mut gateway = town.world.gateway.lock();
        gateway.apps.get_mut("acme/bot").expect("it is there").environment = [("KEY".to_owned(), of.to_owned())].into();
    };
    value(&town, "old-value");
    let tries = |town: &Town| town.sent().iter().filter(|(_, entry)| entry.resource == "pods").count();
    town.until("refused twice", |town| tries(town) >= 2).await;
    value(&town, "new-value");
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
    let secret = town.world.api.object("secrets", "apps", &format!("{host}-env")).expect("the Secret");
    let file = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, secret["data"]["env"].as_str().expect("a file"));
    let file = String::from_utf8(file.expect("base64")).expect("text");
    assert!(file.contains("new-value") && !file.contains("old-value"), "{file}");
    assert_eq!((town.writes_like("create secrets"), town.writes_like("update secrets")), (1, 1), "only what changed is written");
    assert_eq!(outcomes(&town, "acme/bot", "CreatePod"), [Outcome::Done]);
    town.assert_append_before_act();
}

#[tokio::test(start_paused = true)]
async fn b43_a_429_pauses_every_call_until_retry_after() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/warm").await;
    town.world.api.faults().once(Match::on(Verb::Create, "secrets"), Action::Answer(Canned::overloaded(30)));
    let before = town.sent().len();
    town.world.gateway.deploy("acme/bot");
    town.until("refused", |town| town.sent().len() > before).await;
    let at = town.outside.clock.now_us();
    town.world.gateway.deploy("acme/other");
    town.run(25).await;
    assert_eq!(town.sent().len(), before + 1, "nobody sends");
    town.until("both", |town| town.writes_like("create pods") == 3).await;
    let next = town.sent()[before + 1].1.time_us;
    assert!(next - at >= 29_000_000, "{}", next - at);
}

#[tokio::test(start_paused = true)]
async fn b10_a_create_whose_answer_is_lost_is_adopted() {
    for action in [Action::DropAfter, Action::CutBody, Action::HangAfter] {
        let mut town = Town::new().await;
        town.world.api.faults().once(Match::on(Verb::Create, "pods"), action.clone());
        town.start().await;
        let host = town.live_app("acme/bot").await;
        town.run(120).await;
        assert_eq!(town.pods(), std::slice::from_ref(&host), "{action:?}");
        assert_eq!(town.writes_like(&format!("create pods {host}")), 1, "{action:?}\n{}", town.story());
        assert_eq!(town.writes_like("delete pods"), 0, "{action:?}");
        town.assert_append_before_act();
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_or_is_tried_again_can_be_taken_back() {
    let mut town = Town::new().await;
    town.start().await;
    let first = town.live_app("acme/bot").await;
    let rule = town.world.api.faults().always(Match::on(Verb::Delete, "pods"), Action::Answer(Canned::overloaded(20)));
    let second = town.live_app("acme/bot").await;
    let deletes = |town: &Town| {
        town.count("acme/bot", |event| matches!(event, Event::StepIssued(issued) if matches!(issued.step, Step::DeletePod { .. })))
    };
    town.until("the stop is tried", |town| town.sent().iter().any(|(_, e)| e.verb == "delete")).await;
    assert_eq!(deletes(&town), 1);
    // The gateway goes back to the first while its stop waits for another try.
    {
        let mut gateway = town.world.gateway.lock();
        let bot = gateway.apps.get_mut("acme/bot").expect("the app");
        (bot.host, bot.live_host, bot.release) = (first.clone(), Some(first.clone()), 1);
    }
    town.until("asked back", |town| town.kinds("acme/bot", "StepRevoked") == 1).await;
    town.world.api.faults().clear(rule);
    town.until("only the first", |town| town.pods() == [first.clone()]).await;
    assert_eq!(outcomes(&town, "acme/bot", "DeletePod")[0], Outcome::Revoked, "{}", town.story());
    assert_eq!((town.writes_like(&format!("delete pods {first}")), town.writes_like(&format!("delete pods {second}"))), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_gives_steps_back_and_they_are_planned_again() {
    let mut town = Town::with(|settings| (settings.kubernetes.queue, settings.kubernetes.in_flight) = (2, 1)).await;
    let hosts: Vec<String> = (0..8).map(|number| town.world.gateway.deploy(&format!("acme/bot{number}"))).collect();
    town.start().await;
    town.until("all live", |town| hosts.iter().enumerate().all(|(number, host)| town.is_live(&format!("acme/bot{number}"), host))).await;
    let unsent = (0..8)
        .map(|number| outcomes(&town, &format!("acme/bot{number}"), "PutSecret"))
        .filter(|all| all.contains(&Outcome::Unsent))
        .count();
    assert!(unsent > 0);
    assert_eq!(town.writes_like("create pods"), 8);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_under_way_than_may_be() {
    let mut town = Town::with(|settings| settings.kubernetes.in_flight = 2).await;
    let slow = [Verb::Create, Verb::Delete, Verb::Update];
    for verb in slow {
        town.world.api.faults().always(Match { verb: Some(verb), ..Match::all() }, Action::Delay(Duration::from_millis(300)));
    }
    let hosts: Vec<String> = (0..8).map(|number| town.world.gateway.deploy(&format!("acme/bot{number}"))).collect();
    town.start().await;
    town.until("all live", |town| hosts.iter().enumerate().all(|(number, host)| town.is_live(&format!("acme/bot{number}"), host))).await;
    let times: Vec<i64> = town.sent().iter().map(|(_, entry)| entry.time_us).collect();
    let crowded = times.windows(3).filter(|three| three[2] - three[0] < 300_000).count();
    assert_eq!(crowded, 0, "never three at once: {times:?}");
}

#[tokio::test(start_paused = true)]
async fn stops_go_before_starts() {
    let mut town = Town::with(|settings| settings.kubernetes.in_flight = 1).await;
    town.start().await;
    for number in 0..5 {
        town.live_app(&format!("acme/old{number}")).await;
    }
    town.world.api.faults().once(Match::on(Verb::Create, "secrets"), Action::Answer(Canned::overloaded(40)));
    let before = town.sent().len();
    for number in 0..6 {
        town.world.gateway.deploy(&format!("acme/new{number}"));
    }
    town.until("paused", |town| town.sent().len() > before).await;
    town.world.gateway.withdraw("acme/old3");
    town.until("both wait", |town| {
        let issued = |name: &str| town.kinds(name, "StepIssued");
        issued("acme/old3") == 3 && (0..6).all(|number| issued(&format!("acme/new{number}")) == 1)
    })
    .await;
    assert_eq!(town.sent().len(), before + 1);
    town.until("all done", |town| town.pods().len() == 10).await;
    let next = &town.sent()[before + 1].1;
    assert_eq!((next.verb, next.resource), ("delete", "pods"), "{}", next.name);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_panics_has_an_unknown_outcome_and_the_step_is_settled_by_another() {
    let mut town = Town::new().await;
    let inner = std::sync::Arc::clone(&town.outside.gateway);
    town.outside.gateway = std::sync::Arc::new(Panics { inner, left: std::sync::atomic::AtomicU32::new(2) });
    town.start().await;
    let host = town.live_app("acme/bot").await;
    assert_eq!(outcomes(&town, "acme/bot", "PutSecret"), [Outcome::Unknown, Outcome::Unknown, Outcome::Done]);
    assert_eq!(town.pods(), [host]);
}

/// A gateway whose environments panic at first.
struct Panics {
    inner: std::sync::Arc<dyn crate::gateway::Gateway>,
    left: std::sync::atomic::AtomicU32,
}

type Later<'a, T> = futures_util::future::BoxFuture<'a, Result<T, crate::gateway::GatewayError>>;

impl crate::gateway::Gateway for Panics {
    fn heartbeat(&self, body: Vec<u8>) -> Later<'_, bytes::Bytes> {
        self.inner.heartbeat(body)
    }

    fn environment<'a>(&'a self, app: &'a crate::ids::AppId) -> Later<'a, std::collections::BTreeMap<String, String>> {
        let left = &self.left;
        Box::pin(async move {
            let before = left.load(std::sync::atomic::Ordering::Relaxed);
            left.store(before.saturating_sub(1), std::sync::atomic::Ordering::Relaxed);
            assert_eq!(before, 0, "a scripted panic");
            self.inner.environment(app).await
        })
    }

    fn source<'a>(&'a self, app: &'a crate::ids::AppId, release: u64) -> Later<'a, crate::gateway::api::Chunks> {
        self.inner.source(app, release)
    }
}

#[tokio::test(start_paused = true)]
async fn environments_of_hosts_that_are_gone_are_forgotten() {
    let town = Town::new().await;
    let crate::run::Outside { cluster, gateway, sources, digest_key, .. } = town.outside.clone();
    let performer = Performer::new(cluster, gateway, sources, digest_key, None);
    let (bot, there, gone) = (app("acme/bot"), HostName::new("there").expect("a host"), HostName::new("gone").expect("a host"));
    for host in [&there, &gone] {
        performer.environments.keep(&bot, host, Some(Environment::new(std::collections::BTreeMap::new())));
    }
    performer.environments.forget(|app, host| *app == bot && *host == there);
    assert_eq!((performer.environments.get(&bot, &there).is_some(), performer.environments.get(&bot, &gone).is_some()), (true, false));
}
