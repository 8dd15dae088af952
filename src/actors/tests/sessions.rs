//! The life of sessions over the embedded API server: brought, ended, suspended, resumed, deleted; many callers, many sessions.

use futures_util::future::join_all;

use super::session_town::{delete, id};
use super::support::Town;
use crate::actors::NotCalled;
use crate::events::kinds::session::{CallRefusal, SessionTouched};
use crate::events::kinds::verdict::EndCause;
use crate::events::record::Event;
use crate::ids::{Tenant, Word};
use crate::session::view::{Answer, State, view};

#[tokio::test(start_paused = true)]
async fn a_session_is_brought_ends_is_resumed_and_deleted() {
    let town = Town::of_sessions(|_| {}).await;
    assert_eq!(town.bring("s1").await, Answer::Ready { resumed: false });
    assert_eq!(town.objects(), ["persistentvolumeclaims workspace-session-s1", "pods pi-session-s1", "services pi-session-s1"]);
    assert!(view(&town.session("s1")).service_address.is_some());
    let first = town.session("s1").pod.as_ref().map(|pod| pod.uid.clone());
    town.world.nodes.kill_app("pi-session-s1", 3);
    town.until("suspended", |town| town.state_of("s1") == State::Suspended).await;
    assert_eq!(town.objects(), ["persistentvolumeclaims workspace-session-s1", "services pi-session-s1"]);
    let end = town.session("s1").last_end.clone().expect("its end is kept");
    assert_eq!((end.cause, end.exit_code), (EndCause::AppExit, Some(3)));
    let tails = town.records_of_session("s1").into_iter().filter(|record| matches!(record.event, Event::TailKept(_))).count();
    assert_eq!(tails, 1, "{}", town.story());
    assert_eq!(town.bring("s1").await, Answer::Ready { resumed: true });
    assert_ne!(town.session("s1").pod.as_ref().map(|pod| pod.uid.clone()), first);
    assert_eq!(town.writes_like("create persistentvolumeclaims"), 1);
    assert_eq!(town.writes_like("create services"), 1);
    town.delete("s1", false).await.expect("the call is made");
    town.until("gone", |town| town.objects().is_empty() && town.state_of("s1") == State::Absent).await;
    town.run(120).await;
    assert!(town.objects().is_empty());
    town.assert_append_before_act();
    town.assert_verifies();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_creates_of_one_session_are_one() {
    let town = Town::of_sessions(|_| {}).await;
    let answers = join_all((0..100).map(|_| town.bring("s1"))).await;
    assert!(answers.iter().all(|answer| *answer == Answer::Ready { resumed: false }), "{answers:?}");
    for resource in ["persistentvolumeclaims", "pods", "services"] {
        assert_eq!(town.writes_like(&format!("create {resource}")), 1, "{resource}");
    }
    let asked = town.records_of_session("s1").into_iter().filter(|record| matches!(record.event, Event::SessionAsked(_))).count();
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn two_hundred_sessions_at_once_cost_three_writes_each_and_no_reads() {
    let town = Town::of_sessions(|settings| settings.sessions.creates_per_s = 1_000).await;
    let reads = ["pods", "persistentvolumeclaims", "services"].map(|resource| town.reads(resource).len());
    let names: Vec<String> = (0..200).map(|number| format!("s{number}")).collect();
    let answers = join_all(names.iter().map(|name| town.bring(name))).await;
    assert!(answers.iter().all(|answer| *answer == Answer::Ready { resumed: false }));
    for name in &names {
        let own = town.writes().iter().filter(|write| write.ends_with(&format!("-{name}"))).count();
        assert_eq!(own, 3, "{name}");
    }
    assert_eq!(town.writes_like("create networkpolicies"), 1);
    assert_eq!(town.reads("networkpolicies").iter().filter(|read| read.starts_with("get")).count(), 1, "before it was made");
    assert_eq!(["pods", "persistentvolumeclaims", "services"].map(|resource| town.reads(resource).len()), reads);
    town.assert_append_before_act();
    town.assert_verifies();
}

#[tokio::test(start_paused = true)]
async fn a_delete_at_any_moment_of_a_create_wins() {
    for after_ms in [0, 1, 2, 3, 4, 5, 7, 10, 50, 150, 400, 600, 1_000, 1_500, 2_000] {
        let town = Town::of_sessions(|_| {}).await;
        town.create("s1").await.expect("the call is made");
        town.run_ms(after_ms).await;
        town.delete("s1", false).await.expect("the call is made");
        town.until("gone", |town| town.state_of("s1") == State::Absent && town.objects().is_empty()).await;
        town.run(120).await;
        assert!(town.objects().is_empty(), "after {after_ms} ms: {:?}\n{}", town.objects(), town.story());
        town.assert_append_before_act();
        town.assert_verifies();
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_after_a_delete_waits_for_the_old_claim_and_begins_anew() {
    let town = Town::of_sessions(|_| {}).await;
    town.bring("s1").await;
    let claim = town.session("s1").claim.there().map(|claim| claim.uid.clone());
    let pod = town.session("s1").pod.as_ref().map(|pod| pod.uid.clone());
    town.delete("s1", false).await.expect("the call is made");
    assert_eq!(town.bring("s1").await, Answer::Ready { resumed: false }, "{}", town.story());
    let session = town.session("s1");
    assert_ne!(session.claim.there().map(|claim| claim.uid.clone()), claim);
    assert_ne!(session.pod.as_ref().map(|pod| pod.uid.clone()), pod);
    assert_eq!(town.writes_like("create pods"), 2);
}

#[tokio::test(start_paused = true)]
async fn callers_that_hang_up_change_nothing() {
    let town = Town::of_sessions(|_| {}).await;
    for _ in 0..20 {
        let call = town.create("s1");
        let _ = tokio::time::timeout(std::time::Duration::from_micros(1), call).await;
    }
    town.until("ready", |town| town.state_of("s1") == State::Ready).await;
    assert_eq!(town.writes_like("create pods"), 1);
}

#[tokio::test(start_paused = true)]
async fn limits_refuse_at_once_and_refusals_are_recorded_together() {
    let town = Town::of_sessions(|settings| {
        settings.sessions.most = 3;
        settings.sessions.creates_per_s = 4;
    })
    .await;
    let names: Vec<String> = (0..5).map(|number| format!("s{number}")).collect();
    let called = join_all(names.iter().map(|name| town.create(name))).await;
    assert_eq!(called.iter().filter(|called| called.is_ok()).count(), 3);
    assert!(called[3..].iter().all(|called| matches!(called, Err(NotCalled::Refused(CallRefusal::TooMany)))), "{called:?}");
    assert_eq!(town.live().sessions().count(), 3);
    town.until("ready", |town| town.state_of("s0") == State::Ready).await;
    town.delete("s0", false).await.expect("the call is made");
    town.until("gone", |town| town.state_of("s0") == State::Absent).await;
    assert!(town.create("s4").await.is_ok(), "there is a place again");
    assert!(matches!(town.delete("unheard-of", false).await, Err(NotCalled::Refused(CallRefusal::Unknown))));
    town.run(15).await;
    let refused: Vec<_> = town.records().into_iter().filter(|record| matches!(record.event, Event::SessionCallRefused(_))).collect();
    assert_eq!(refused.len(), 3, "{}", town.story());
    assert!(town.live().sessions().state(&id("unheard-of")).is_none(), "a refused call makes nothing known");
}

#[tokio::test(start_paused = true)]
async fn too_many_in_a_second_are_refused() {
    let town = Town::of_sessions(|settings| settings.sessions.creates_per_s = 2).await;
    let names: Vec<String> = (0..4).map(|number| format!("s{number}")).collect();
    let called = join_all(names.iter().map(|name| town.create(name))).await;
    assert_eq!(called.iter().filter(|called| matches!(called, Err(NotCalled::Refused(CallRefusal::TooFast)))).count(), 2);
    town.run(1).await;
    assert!(town.create("s2").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_touch_is_recorded_once_a_minute() {
    let town = Town::of_sessions(|_| {}).await;
    town.bring("s1").await;
    let touch = async || town.live().sessions().touch(&id("s1"), SessionTouched { by: Word::new("test") }).await;
    let touches =
        |town: &Town| town.records_of_session("s1").iter().filter(|record| matches!(record.event, Event::SessionTouched(_))).count();
    town.run(61).await;
    let (one, other) = tokio::join!(touch(), touch());
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(touches(&town), 1, "{}", town.story());
    town.run(61).await;
    assert!(touch().await.is_ok());
    assert_eq!(touches(&town), 2);
}

#[tokio::test(start_paused = true)]
async fn what_rests_has_no_actor_and_is_listed_in_order() {
    let town = Town::of_sessions(|_| {}).await;
    for name in ["a", "b", "c"] {
        town.bring(name).await;
        town.delete(name, true).await.expect("the call is made");
    }
    town.until("suspended", |town| ["a", "b", "c"].iter().all(|name| town.state_of(name) == State::Suspended)).await;
    assert_eq!(town.live().sessions().registry().active(), 0);
    let sessions = town.live().sessions();
    let names = |after: Option<&str>, limit| -> Vec<String> {
        let found = sessions.list(after.map(id).as_ref(), limit, |_, session| view(session).state == State::Suspended);
        found.into_iter().map(|(id, _)| id.to_string()).collect()
    };
    assert_eq!(names(None, 2), ["a", "b"]);
    assert_eq!(names(Some("b"), 2), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_lost_node_is_forced_away_only_when_that_is_set_and_its_claim_stays() {
    for force_after_s in [0, 60] {
        let town = Town::of_sessions(|settings| settings.sessions.force_after_s = force_after_s).await;
        town.bring("s1").await;
        let node = view(&town.session("s1")).node.expect("it is on a node").to_string();
        town.world.nodes.lose(&node, crate::sim::node::Loss::Dead, true);
        town.run(600).await;
        let claim = "persistentvolumeclaims workspace-session-s1".to_owned();
        assert!(town.objects().contains(&claim));
        if force_after_s == 0 {
            assert!(town.session("s1").alarms.contains(&Word::new("stuck_terminating")), "{}", town.story());
            assert_eq!(town.writes_like("delete pods"), 0, "its claim may be written still");
        } else {
            assert_eq!(town.state_of("s1"), State::Suspended, "{}", town.story());
            assert_eq!(town.session("s1").last_end.as_ref().map(|end| end.cause), Some(EndCause::NodeLost));
            assert_eq!(town.bring("s1").await, Answer::Ready { resumed: true });
        }
        town.assert_append_before_act();
        town.assert_verifies();
    }
}

#[tokio::test(start_paused = true)]
async fn a_delete_is_for_the_session_of_the_tenant_that_it_was_judged_by() {
    let town = Town::of_sessions(|_| {}).await;
    town.create("s1").await.expect("the call is made");
    let sessions = town.live().sessions().clone();
    let [other, own] = ["other", "acme"].map(|name| Tenant::new(name).expect("a tenant"));
    let refused = sessions.delete(&id("s1"), delete(false), Some(&other)).await;
    assert!(matches!(refused, Err(NotCalled::Refused(CallRefusal::Hidden))), "{refused:?}");
    town.until("ready", |town| town.state_of("s1") == State::Ready).await;
    assert!(sessions.delete(&id("s1"), delete(false), Some(&own)).await.is_ok());
    town.until("gone", |town| town.state_of("s1") == State::Absent).await;
}
