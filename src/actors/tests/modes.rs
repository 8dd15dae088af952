//! What is decided and not sent: `act = "none"`, frozen apps, nodes that cannot be watched.

use std::time::Duration;

use super::support::{Town, app};
use crate::config::Act;
use crate::events::kinds::operator::Frozen;
use crate::events::kinds::pod::NodeReady;
use crate::events::log::{EventLog as _, OpenOptions};
use crate::events::mem_log::MemLog;
use crate::events::record::{Draft, Event, Reaction};
use crate::ids::{Seq, Subject, Word};
use crate::run::Window;
use crate::sim::api::{Action, Canned, Cut, Match, Refusal, Verb};

#[tokio::test(start_paused = true)]
async fn with_act_none_steps_are_withheld_and_nothing_is_sent() {
    let mut town = Town::with(|settings| settings.act = Act::None).await;
    town.start().await;
    town.world.gateway.deploy("acme/bot");
    town.run(300).await;
    assert_eq!(town.sent().len(), 0);
    assert_eq!((town.kinds("acme/bot", "StepIssued"), town.kinds("acme/bot", "StepWithheld")), (1, 1), "{}", town.story());
    town.stop().await;
    town.outside.settings.act = Act::All;
    town.start().await;
    town.until("live", |town| town.world.gateway.app("acme/bot").is_some_and(|app| app.live_host.is_some())).await;
    town.assert_append_before_act();
}

#[tokio::test(start_paused = true)]
async fn a_frozen_app_is_not_acted_on() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.stop().await;
    let options = OpenOptions::new(Subject::Daemon("demo".to_owned()));
    let (mut log, _) = MemLog::open(&town.disk, &town.outside.clock, town.outside.entropy.clone(), &options).expect("opens");
    let frozen = Event::Frozen(Frozen { everything: false });
    let reaction = Reaction {
        subject: Subject::App(app("acme/bot")),
        time_us: town.outside.clock.now_us(),
        rules: 1,
        settings: Seq::NONE,
        drafts: vec![Draft::input(frozen)],
    };
    log.append(&[reaction]).expect("appends");
    Box::new(log).close().expect("closes");
    town.start().await;
    let sent = town.sent().len();
    town.world.nodes.kill_app(&host, 1);
    town.run(120).await;
    assert_eq!(town.sent().len(), sent, "{}", town.story());
    assert_eq!(town.kinds("acme/bot", "StepWithheld"), 1);
    assert_eq!(town.kinds("acme/bot", "PodEnded"), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_watch_nodes_nothing_is_forced_away() {
    let mut town = Town::new().await;
    let forbidden = Refusal::new(403, "Forbidden", "nodes is forbidden", serde_json::json!({"kind": "nodes"}));
    town.world.api.faults().always(Match::on(Verb::List, "nodes"), Action::Answer(Canned::refusal(&forbidden)));
    town.start().await;
    let host = town.live_app("acme/bot").await;
    let window = Window::new(&town.outside.settings, town.outside.clock.clone(), town.outside.metrics.clone());
    window.show(town.live().registry().clone(), town.live().sessions().clone(), town.live().health().clone());
    let ready = window.readiness().json();
    assert_eq!((&ready["nodes_unknown"], &ready["ready"]), (&true.into(), &true.into()), "{ready}");
    let pod = town.world.api.object("pods", "apps", &host).expect("the pod");
    let node = pod["spec"]["nodeName"].as_str().expect("a node").to_owned();
    town.world.nodes.lose(&node, crate::sim::node::Loss::Unreachable, true);
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    let forced = town.count("acme/bot", |event| {
        matches!(event, Event::StepIssued(issued) if matches!(issued.step, crate::events::kinds::step::Step::DeletePod { forced: true, .. }))
    });
    assert_eq!(forced, 0, "{}", town.story());
    assert_eq!(town.pods(), [host]);
}

#[tokio::test(start_paused = true)]
async fn what_was_known_of_a_node_forces_nothing_away_once_nobody_watches_it() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    let pod = town.world.api.object("pods", "apps", &host).expect("the pod");
    let node = pod["spec"]["nodeName"].as_str().expect("a node").to_owned();
    town.world.nodes.lose(&node, crate::sim::node::Loss::Unreachable, true);
    let is_known =
        |town: &Town, as_what: NodeReady| town.state("acme/bot").is_some_and(|state| state.nodes.get(&Word::new(&node)) == Some(&as_what));
    town.until("the node is lost", |town| is_known(town, NodeReady::NotReady)).await;
    for verb in [Verb::List, Verb::Watch] {
        let refusal = Refusal::new(503, "ServiceUnavailable", "away", serde_json::json!({}));
        town.world.api.faults().always(Match::on(verb, "nodes"), Action::Answer(Canned::refusal(&refusal)));
    }
    town.world.api.cut_watches("nodes", Cut::Reset);
    town.until("nobody watches", |town| is_known(town, NodeReady::Unwatched)).await;
    tokio::time::sleep(Duration::from_secs(1_200)).await;
    let is_forced = |event: &Event| matches!(event, Event::StepIssued(issued) if matches!(issued.step, crate::events::kinds::step::Step::DeletePod { forced: true, .. }));
    assert_eq!((town.count("acme/bot", is_forced), town.pods()), (0, vec![host.clone()]), "{}", town.story());
    town.world.api.faults().clear_all();
    town.until("another pod", |town| town.writes_like(&format!("create pods {host}")) == 2).await;
    assert_eq!(town.count("acme/bot", is_forced), 1, "{}", town.story());
}

#[tokio::test(start_paused = true)]
async fn b22_a_pod_on_a_lost_node_is_forced_away_by_uid_once() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    let pod = town.world.api.object("pods", "apps", &host).expect("the pod");
    let node = pod["spec"]["nodeName"].as_str().expect("a node").to_owned();
    town.world.nodes.lose(&node, crate::sim::node::Loss::Unreachable, true);
    town.until("another pod", |town| town.writes_like(&format!("create pods {host}")) == 2).await;
    let forced = town.count("acme/bot", |event| {
        matches!(event, Event::StepIssued(issued) if matches!(issued.step, crate::events::kinds::step::Step::DeletePod { forced: true, .. }))
    });
    assert_eq!(forced, 1, "{}", town.story());
    assert!(town.sent().iter().filter(|(_, entry)| entry.verb == "delete").all(|(_, entry)| entry.uid_precondition.is_some()));
    assert_eq!(town.count("acme/bot", |event| matches!(event, Event::PodEnded(ended) if ended.counted)), 0);
}
