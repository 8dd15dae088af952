//! What a subject takes in: bounded, offered again, coalesced, and never refused when it was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};

use super::support::{Town, app};
use crate::actors::facts::{Fact, SeenPod};
use crate::actors::inbox::Full;
use crate::actors::registry::{Bounds, Registry};
use crate::actors::wheel::Wheel;
use crate::config::Limits;
use crate::events::kinds::daemon::IncarnationStarted;
use crate::events::kinds::pod::{Container, ContainerEnd, ContainerState, GoneHow, Phase, PodGone, PodSeen, Scheduling};
use crate::events::kinds::step::{Outcome, StepSettled};
use crate::events::kinds::want::WantMissing;
use crate::events::record::Event;
use crate::ids::{AppId, HostName, Seq, Subject, Uid, Word};

fn registry(limits: &Limits) -> (Registry, mpsc::UnboundedReceiver<Subject>) {
    let (asking, asked) = mpsc::unbounded_channel();
    let started = IncarnationStarted { number: 1, version: "1".to_owned(), world: "demo".to_owned(), acts: true };
    let started = Event::IncarnationStarted(started);
    let bounds = Bounds { inbox: limits.inbox_subject as usize, subjects: limits.apps as usize };
    let admits = (bounds, Arc::new(Semaphore::new(limits.inbox as usize)));
    (Registry::new(BTreeMap::new(), &BTreeSet::new(), started, admits, Wheel::default(), asking), asked)
}

fn missing(answer: u64) -> Fact {
    Fact::Missing(WantMissing { answer, mass: false })
}

fn settled(step: u64) -> Vec<Event> {
    let (step, outcome) = (Seq(step), Outcome::Done);
    vec![Event::StepSettled(StepSettled { step, outcome, object: None, attempts: 1, audit_id: [0; 16], status: 200, took_us: 1 })]
}

fn pod(version: u64, state: ContainerState) -> SeenPod {
    let container = |state| Container { state, restarts: 0, last_end: None };
    let seen = PodSeen {
        host: HostName::new("bot-r1-00000001").expect("a host"),
        uid: Uid::new("u1").expect("a uid"),
        resource_version: version,
        release: 1,
        sha256: None,
        step: None,
        phase: Phase::Running,
        reason: Word::default(),
        deleting: false,
        node: Word::new("node1"),
        scheduling: Scheduling::Done,
        disruption: None,
        ready: false,
        created_us: 0,
        install: container(ContainerState::Absent),
        app: container(state),
    };
    SeenPod { seen, words: None }
}

fn gone(version: u64) -> PodGone {
    let SeenPod { seen: PodSeen { host, uid, .. }, .. } = pod(version, ContainerState::Absent);
    PodGone { host, uid, resource_version: version, how: GoneHow::Deleted }
}

fn kinds(registry: &Registry, bot: &AppId) -> Vec<&'static str> {
    let (state, batch) = registry.take(bot).expect("something waits");
    batch.news(&state, 0).drafts.iter().map(|draft| draft.event.kind().name()).collect()
}

#[test]
fn a_full_inbox_refuses_what_is_offered_and_takes_what_was_asked_for() {
    let (registry, mut asked) = registry(&Limits { inbox: 3, inbox_subject: 2, ..Limits::default() });
    let (bot, other) = (app("acme/bot"), app("acme/other"));
    assert_eq!((registry.offer(&bot, missing(1)), registry.offer(&bot, missing(2))), (Ok(()), Ok(())));
    assert_eq!(registry.offer(&bot, missing(3)), Err(Full), "one subject's own bound");
    assert_eq!((registry.offer(&other, missing(1)), registry.offer(&other, missing(2))), (Ok(()), Err(Full)), "the bound of all");
    for step in 0..100 {
        registry.bring(&bot, settled(step));
    }
    assert_eq!((asked.try_recv(), asked.try_recv()), (Ok(Subject::App(bot.clone())), Ok(Subject::App(other))), "each is asked for once");
    assert!(asked.try_recv().is_err());
    let (state, batch) = registry.take(&bot).expect("something waits");
    assert_eq!(registry.offer(&app("acme/third"), missing(1)), Err(Full), "the places are held until the reaction is durable");
    assert_eq!(batch.news(&state, 0).drafts.len(), 1 + 2 + 100);
    registry.commit(&bot, state);
    drop(batch);
    assert_eq!(registry.offer(&app("acme/third"), missing(1)), Ok(()));
}

#[test]
fn more_apps_than_may_be_are_refused_and_those_that_are_over_make_room() {
    let (registry, _asked) = registry(&Limits { apps: 1, ..Limits::default() });
    assert_eq!(registry.offer(&app("acme/bot"), missing(1)), Ok(()));
    assert_eq!(registry.offer(&app("acme/other"), missing(1)), Err(Full));
    let (_, _batch) = registry.take(&app("acme/bot")).expect("something waits");
    let mut withdrawn = crate::app::state::App::default();
    withdrawn.missing.in_row = 2;
    registry.commit(&app("acme/bot"), withdrawn.into());
    assert_eq!(registry.offer(&app("acme/other"), missing(1)), Ok(()));
}

#[test]
fn b25_an_end_is_not_lost_to_the_deletion_that_follows_at_once() {
    let (registry, _asked) = registry(&Limits::default());
    let bot = app("acme/bot");
    registry.saw(&bot, pod(1, ContainerState::Running { started_us: 0 }));
    let end = ContainerEnd { exit_code: 1, signal: 0, reason: Word::new("Error"), started_us: 0, finished_us: 0 };
    registry.saw(&bot, pod(3, ContainerState::Ended(end)));
    registry.saw(&bot, pod(2, ContainerState::Running { started_us: 0 }));
    registry.went(&bot, pod(2, ContainerState::Absent), gone(4));
    registry.saw(&bot, pod(5, ContainerState::Absent));
    let (state, batch) = registry.take(&bot).expect("something waits");
    let events: Vec<Event> = batch.news(&state, 0).drafts.into_iter().map(|draft| draft.event).collect();
    let [Event::IncarnationStarted(_), Event::PodSeen(seen), Event::PodGone(_)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(seen.resource_version, 3, "one observation, the newest before it went");
}

#[test]
fn what_a_failed_reaction_took_in_comes_before_what_came_since() {
    let (registry, _asked) = registry(&Limits { inbox: 2, ..Limits::default() });
    let bot = app("acme/bot");
    registry.saw(&bot, pod(1, ContainerState::Running { started_us: 0 }));
    assert_eq!(registry.offer(&bot, missing(1)), Ok(()));
    let (_, batch) = registry.take(&bot).expect("something waits");
    drop(batch);
    registry.went(&bot, pod(2, ContainerState::Absent), gone(2));
    assert_eq!(registry.offer(&bot, missing(2)), Ok(()));
    assert_eq!(registry.failed(&bot, crate::app::state::App::default()), 1);
    assert_eq!(registry.offer(&bot, missing(3)), Err(Full), "it still holds its places");
    assert_eq!(kinds(&registry, &bot), ["IncarnationStarted", "PodSeen", "PodGone", "WantMissing", "WantMissing"]);
}

#[test]
fn the_first_list_is_not_lost_to_a_reaction_under_way() {
    let (registry, _asked) = registry(&Limits::default());
    let bot = app("acme/bot");
    assert_eq!(registry.offer(&bot, missing(1)), Ok(()));
    let (state, batch) = registry.take(&bot).expect("something waits");
    let listed = Event::Listed(crate::events::kinds::daemon::Listed { resource_version: 7, pods: 0 });
    registry.listed(7, BTreeMap::new(), &BTreeSet::new().into());
    registry.secrets_listed(7, BTreeMap::new(), true);
    registry.may_plan(listed);
    let mut learned = crate::app::state::App::clone(&state);
    learned.incarnation = 1;
    drop(batch);
    registry.commit(&bot, learned.into());
    assert!(!registry.rest(&bot, None, false), "it has not planned since the list");
    assert_eq!(kinds(&registry, &bot), ["Listed"]);
}

#[tokio::test(start_paused = true)]
async fn wants_that_find_no_place_are_offered_again() {
    let mut town = Town::with(|settings| (settings.limits.inbox, settings.limits.inbox_subject) = (2, 1)).await;
    let hosts: Vec<String> = (0..12).map(|number| town.world.gateway.deploy(&format!("acme/bot{number}"))).collect();
    town.start().await;
    town.until("all live", |town| hosts.iter().enumerate().all(|(number, host)| town.is_live(&format!("acme/bot{number}"), host))).await;
    town.world.gateway.lock().apps.clear();
    town.until("all gone", |town| town.pods().is_empty() && town.secrets().is_empty()).await;
    assert_eq!(town.writes_like("create pods"), 12);
    town.assert_append_before_act();
}
