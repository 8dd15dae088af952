//! Whether everything has come to rest, by the cluster and the gateway alone.

use std::collections::BTreeSet;

use super::history::{AppTruth, Fate, Rest};
use crate::sim::api::Object;

/// What is not as it has to be at rest, in words; nothing when all is.
#[must_use]
pub(super) fn unrest(rest: &Rest) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut owned: BTreeSet<&str> = BTreeSet::new();
    for (name, app) in &rest.apps {
        owned.insert(&app.host);
        owned.extend(app.live_host.as_deref());
        let fate = rest.fates.get(name).copied().unwrap_or(Fate::Left);
        wrong.extend(of_app(rest, name, app, fate));
    }
    for pod in &rest.pods {
        if !owned.contains(name_of(pod)) {
            wrong.push(format!("pod {} is nobody's", name_of(pod)));
        }
    }
    for secret in &rest.secrets {
        let host = name_of(secret).strip_suffix("-env").unwrap_or_default();
        let has_pod = rest.pods.iter().any(|pod| name_of(pod) == host);
        if !owned.contains(host) || !has_pod {
            wrong.push(format!("Secret {} is nobody's", name_of(secret)));
        }
    }
    wrong
}

fn of_app(rest: &Rest, name: &str, app: &AppTruth, fate: Fate) -> Option<String> {
    let pod = rest.pods.iter().find(|pod| name_of(pod) == app.host);
    let runs = pod.is_some_and(|pod| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null());
    let is_live = !app.failed && app.live_host.as_ref() == Some(&app.host) && runs;
    let has_failed = app.failed && pod.is_none();
    let fine = match fate {
        Fate::Healthy => is_live,
        Fate::Fails => has_failed,
        Fate::Left => is_live || has_failed,
    };
    (!fine).then(|| {
        let (failed, live) = (app.failed, app.live_host.as_deref().unwrap_or("none"));
        let phase = pod.map_or("no pod".to_owned(), |pod| format!("pod {}", pod["status"]["phase"]));
        format!("{name} ({fate:?}): wanted {}, failed {failed}, live {live}, {phase}", app.host)
    })
}

fn name_of(object: &Object) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
