//! The list and the watch: what went in a gap is seen once, what is newer than a list stays, what cannot be read is spared.

use super::support::{Town, is};
use crate::events::record::Event;
use crate::sim::api::{Action, Cut, Verb};

fn reviving(town: &Town, host: &str, creates: usize) -> bool {
    town.writes_like(&format!("create pods {host}")) == creates
}

#[tokio::test(start_paused = true)]
async fn b01_b02_a_pod_that_goes_in_a_gap_is_seen_to_be_gone_once() {
    for expired in [true, false] {
        let mut town = Town::new().await;
        town.start().await;
        let host = town.live_app("acme/bot").await;
        let kept = town.live_app("acme/kept").await;
        town.run(10).await;
        town.world.api.mute_watches("pods");
        town.world.api.remove_raw("pods", "apps", &host);
        if expired {
            town.world.api.compact();
            town.world.api.cut_watches("pods", Cut::Reset);
        }
        town.until("back", |town| reviving(town, &host, 2)).await;
        town.run(400).await;
        let absent = |event: &Event| matches!(event, Event::PodGone(gone) if gone.how == crate::events::kinds::pod::GoneHow::Absent);
        assert_eq!((town.count("acme/bot", absent), town.count("acme/bot", is("PodGone"))), (1, 1), "{}", town.story());
        assert_eq!(town.count("acme/bot", is("PodEnded")), 1);
        assert_eq!(town.count("acme/bot", |event| matches!(event, Event::PodEnded(ended) if ended.counted)), 0);
        assert_eq!(town.count("acme/kept", is("PodGone")), 0);
        assert!(reviving(&town, &kept, 1));
        assert_eq!(town.count("acme/bot", is("Listed")), 1, "a later list is no news to a subject");
        let lost = town.records().iter().filter(|record| matches!(record.event, Event::WatchLost(_))).count();
        assert_eq!(lost, 1, "{}", town.story());
    }
}

#[tokio::test(start_paused = true)]
async fn b05_a_pod_that_cannot_be_read_is_spared_by_a_list() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.world.api.mute_watches("pods");
    let mut pod = serde_json::Value::clone(&town.world.api.object("pods", "apps", &host).expect("the pod"));
    let sound = pod.clone();
    pod["metadata"]["uid"] = 17.into();
    town.world.api.put_raw(pod);
    town.run(400).await;
    assert_eq!((town.count("acme/bot", is("PodGone")), town.writes_like("delete")), (0, 0), "{}", town.story());
    assert!(reviving(&town, &host, 1));
    town.world.api.put_raw(sound);
    town.run(60).await;
    assert!(reviving(&town, &host, 1));
}

#[tokio::test(start_paused = true)]
async fn pods_and_secrets_that_are_newer_than_a_list_stay() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/warm").await;
    // The list is old when it arrives: everything of a roll-out happens meanwhile.
    let slow = crate::sim::api::Match::on(crate::sim::api::Verb::List, "secrets");
    town.world.api.faults().once(slow, crate::sim::api::Action::Delay(std::time::Duration::from_secs(20)));
    town.world.api.compact();
    town.world.api.cut_watches("pods", Cut::Reset);
    let host = town.world.gateway.deploy("acme/bot");
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
    town.run(60).await;
    assert_eq!(town.count("acme/bot", is("PodGone")), 0, "{}", town.story());
    assert_eq!(town.count("acme/bot", is("SecretGone")), 0, "{}", town.story());
    assert!(reviving(&town, &host, 1));
    town.world.gateway.withdraw("acme/bot");
    town.world.gateway.withdraw("acme/warm");
    town.until("nothing is left", |town| town.pods().is_empty() && town.secrets().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_answered_after_a_list_makes_no_pod_that_is_not_there() {
    let mut town = Town::new().await;
    town.start().await;
    town.live_app("acme/warm").await;
    let seconds = std::time::Duration::from_secs;
    let on = |verb| crate::sim::api::Match::on(verb, "pods");
    town.world.api.faults().once(on(Verb::Create), Action::Delay(seconds(1)));
    town.world.api.faults().once(on(Verb::Create), Action::DelayAfter(seconds(6)));
    let host = town.world.gateway.deploy("acme/bot");
    town.until("put", |town| town.secrets().contains(&format!("{host}-env"))).await;
    // Nobody watches while the pod is made and goes; the list shows none, and only then is the create answered.
    town.world.api.faults().once(on(Verb::List), Action::Delay(seconds(3)));
    town.world.api.compact();
    town.world.api.cut_watches("pods", Cut::Reset);
    town.until("made", |town| town.pods().contains(&host)).await;
    town.world.api.remove_raw("pods", "apps", &host);
    town.run(30).await;
    assert!(reviving(&town, &host, 2), "{}", town.story());
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
    assert_eq!(town.count("acme/bot", is("PodGone")), 1, "{}", town.story());
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_went_in_a_gap_is_put_again_with_the_next_revive() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.world.api.remove_raw("secrets", "apps", &format!("{host}-env"));
    town.world.api.compact();
    town.world.api.cut_watches("pods", Cut::Reset);
    town.until("known", |town| town.count("acme/bot", is("SecretGone")) == 1).await;
    town.world.nodes.kill_app(&host, 1);
    town.until("back", |town| reviving(town, &host, 2)).await;
    assert_eq!(town.secrets(), [format!("{host}-env")]);
}

fn no_secrets(town: &Town) -> u64 {
    let secrets = crate::sim::api::Match::on(crate::sim::api::Verb::List, "secrets");
    town.world.api.faults().always(secrets, crate::sim::api::Action::Answer(crate::sim::api::Canned::internal()))
}

fn failing(town: &Town) -> serde_json::Value {
    let window = crate::run::Window::new(&town.outside.settings, town.outside.clock.clone(), town.outside.metrics.clone());
    window.show(town.live().registry().clone(), town.live().sessions().clone(), town.live().health().clone());
    window.readiness().json()["failing"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_first_plans_wait_for_the_secrets_and_no_longer_than_a_minute() {
    let mut town = Town::new().await;
    let rule = no_secrets(&town);
    town.start().await;
    let host = town.world.gateway.deploy("acme/bot");
    town.run(55).await;
    assert!(!town.live().registry().is_listed());
    assert_eq!(town.kinds("acme/bot", "StepIssued"), 0);
    assert_eq!(failing(&town), serde_json::json!(["secrets_listed"]));
    let late = "wharf_secrets_late 1\n";
    assert!(!town.outside.metrics.text().contains(late));
    town.until("live", |town| town.is_live("acme/bot", &host)).await;
    assert_eq!(failing(&town), serde_json::json!(["secrets_listed"]));
    assert!(town.outside.metrics.text().contains(late));
    town.world.api.faults().clear(rule);
    town.until("listed", |town| failing(town) == serde_json::json!([])).await;
    assert!(!town.outside.metrics.text().contains(late));
    town.world.gateway.withdraw("acme/bot");
    town.until("nothing is left", |town| town.pods().is_empty() && town.secrets().is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_watched_on_while_the_secrets_cannot_be_listed() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    no_secrets(&town);
    town.world.api.compact();
    town.world.api.cut_watches("pods", Cut::Reset);
    town.run(10).await;
    town.world.nodes.kill_app(&host, 1);
    town.until("back", |town| reviving(town, &host, 2)).await;
    town.world.gateway.withdraw("acme/bot");
    town.until("nothing is left", |town| town.pods().is_empty() && town.secrets().is_empty()).await;
    assert_eq!(failing(&town), serde_json::json!([]), "they were listed once");
}

#[tokio::test(start_paused = true)]
async fn what_the_pods_are_is_known_before_the_secrets_are() {
    let mut town = Town::new().await;
    town.start().await;
    let host = town.live_app("acme/bot").await;
    town.crash().await;
    town.world.api.remove_raw("pods", "apps", &host);
    no_secrets(&town);
    town.start().await;
    town.run(20).await;
    assert_eq!(town.count("acme/bot", is("PodGone")), 1, "{}", town.story());
    assert_eq!(town.count("acme/bot", is("Listed")), 1, "only that of the first life: nothing is planned yet");
    town.until("back", |town| reviving(town, &host, 2)).await;
}
