//! Chains of causes over whole stories of the daemon.

use crate::actors::tests::support::Town;
use crate::events::record::Event;
use crate::ids::{Seq, Subject, hex};
use crate::postmortem::because::Because;
use crate::postmortem::history::History;
use crate::postmortem::reference::{Found, NotFound, find};
use crate::postmortem::why::{Believed, Link, rule, why};

fn kinds(chain: &[Link<'_>]) -> Vec<(&'static str, Because)> {
    let kind = |link: &Link<'_>| link.entry.event.as_ref().expect("known").kind().name();
    chain.iter().map(|link| (kind(link), link.because)).collect()
}

fn history(town: &Town, reference: &str) -> (History, Seq) {
    let reader = town.live().reader();
    let found = find(reader.as_ref(), reference).expect("it is there");
    (History::of(reader.as_ref(), &found.subject).expect("readable"), found.seq)
}

#[tokio::test(start_paused = true)]
async fn a_replaced_host_ended_because_the_gateway_named_another_live() {
    let mut town = Town::new().await;
    town.start().await;
    let former = town.live_app("acme/bot").await;
    let host = town.live_app("acme/bot").await;
    town.until("replaced", |town| town.pods() == [host.clone()]).await;
    let (history, seq) = history(&town, &former);
    let chain = why(&history, seq);
    let expected =
        [("PodEnded", Because::Decided), ("PodSeen", Because::Shows), ("StepIssued", Because::Decided), ("WantSeen", Because::Input)];
    assert_eq!(kinds(&chain), expected);
    assert_eq!(rule(chain[2].entry).map(|(name, _)| name), Some("stop.not_kept"));
    let Some(Event::WantSeen(want)) = &chain[3].entry.event else { panic!("a want") };
    assert_eq!(want.live_host.as_ref().map(|host| host.as_str()), Some(host.as_str()));
    // What was believed of the pod is the newest observation before the decision, with its version and its age.
    let believed = chain[2].beliefs.iter().find(|belief| belief.of == Believed::Pod).expect("a pod was believed in");
    let entry = history.entry(believed.seq).expect("there");
    let Some(Event::PodSeen(seen)) = &entry.event else { panic!("an observation") };
    assert_eq!(believed.resource_version, Some(seen.resource_version));
    assert_eq!(believed.age_us, chain[2].entry.header.time_us - entry.header.time_us);
    // The call is the one that the API server has under the same Audit-ID.
    let called = chain[2].told.iter().find_map(|entry| if let Some(Event::ApiCalled(called)) = &entry.event { Some(called) } else { None });
    let audit_id = hex(&called.expect("the delete was called").audit_id);
    let entries = town.world.api.audit().since(0);
    let entry = entries.iter().find(|entry| entry.audit_id.replace('-', "") == audit_id).expect("the API server has it");
    assert_eq!((entry.verb, entry.name.as_str()), ("delete", former.as_str()));
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_followed_down_to_what_the_kubelet_said() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.world.nodes.kill_app(&host, 3);
    town.until("ended", |town| town.kinds("acme/bot", "PodEnded") == 1).await;
    let (history, seq) = history(&town, &host);
    assert_eq!(kinds(&why(&history, seq)), [("PodEnded", Because::Decided), ("PodSeen", Because::Input)]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_is_there_because_the_gateway_wants_it() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    let uid = town.host("acme/bot", &host).and_then(|host| host.pod).expect("a pod").uid;
    let (by_host, seq) = history(&town, &host);
    let chain = why(&by_host, seq);
    let first = chain.first().and_then(|link| link.entry.event.clone());
    assert!(matches!(&first, Some(Event::StepIssued(issued)) if issued.step.name() == "CreatePod"), "{first:?}");
    assert_eq!(kinds(&chain).last(), Some(&("WantSeen", Because::Input)));
    assert_eq!(history(&town, uid.as_str()).1, seq, "the pod's uid names the same");
}

#[tokio::test(start_paused = true)]
async fn a_reference_is_found_or_said_to_be_none() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/bot").await;
    town.live_app("acme/other").await;
    let reader = town.live().reader();
    let find = |text: &str| find(reader.as_ref(), text);
    assert!(matches!(find("999999"), Err(NotFound::NoRecord(Seq(999_999)))));
    assert!(matches!(find("nobody"), Err(NotFound::Nothing)));
    assert!(matches!(find("acme"), Err(NotFound::Several(names)) if names == ["app/acme/bot", "app/acme/other"]));
    let Found { subject, seq } = find("acme/bot").expect("a subject");
    assert_eq!(subject, Subject::parse("app/acme/bot").expect("a subject"));
    assert!(seq > Seq(1));
    assert_eq!(find("1").expect("the first record").seq, Seq(1));
}
