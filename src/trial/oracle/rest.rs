//! Invariant 11, and what of 10 and 12 shows at rest: with faults stopped the cluster is what is wanted, nothing of ours is left
//! without an owner, and the gateway knows of every wanted host whether it is live or failed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Found;
use super::exits::may_have_counted;
use super::pods::is_ours;
use super::serving::REACTS_US;
use super::view::View;
use super::waits::waits_for_a_node;
use crate::sim::api::DAEMON;
use crate::trial::history::{AppTruth, Fate, Rest};

pub(super) fn judge(view: &View, rest: &Rest) -> Vec<Found> {
    let mut found = Vec::new();
    let mut kept = BTreeSet::new();
    for (app, truth) in &rest.apps {
        let fate = rest.fates.get(app).copied();
        let hosts = hosts_of(view, app, truth);
        for host in &hosts {
            found.extend(stands(view, rest, app, truth, host));
        }
        found.extend(decided(view, rest, app, truth, fate));
        kept.extend(hosts);
    }
    found.extend(left_over(view, rest, &kept));
    found
}

/// The hosts that an app is to have: the wanted one unless it failed, and while it is not live the one that is.
fn hosts_of(view: &View, app: &str, truth: &AppTruth) -> Vec<String> {
    let wanted = (!truth.failed).then(|| truth.host.clone());
    let former = truth.live_host.clone().filter(|live| *live != truth.host);
    // The sixth exit drops a former host; one that was stopped or dropped for another reason does not come back.
    // Nor does one that was reported failed, and then named live by a report from before; one that was started again since does.
    let began_us = |live: &str| view.pods_of(live).map(|pod| pod.created_us).max();
    let has_failed = |live: &str| view.failed.get(live).is_some_and(|at_us| began_us(live).is_none_or(|began_us| began_us <= *at_us));
    let went = |live: &str| was_stopped(view, live) || was_dropped(view, app, live) || has_failed(live);
    let former = former.filter(|live| may_have_counted(view, live) <= view.promises.crash_limit && !went(live));
    wanted.into_iter().chain(former).collect()
}

/// Whether the daemon removed the host's last pod while it ran or came up; whether it might is judged when it does.
fn was_stopped(view: &View, host: &str) -> bool {
    let last = view.pods_of(host).max_by_key(|pod| pod.created_us);
    last.is_some_and(|pod| pod.gone_us.is_some() && pod.deleted_by.as_deref() == Some(DAEMON) && !pod.ended_unasked)
}

/// Whether an answer that was in force when the host had no pod that ran let it be dropped, which is no step: its app was withdrawn,
/// or the wanted host served.
fn was_dropped(view: &View, app: &str, host: &str) -> bool {
    let last = view.pods_of(host).max_by_key(|pod| pod.created_us);
    let Some((pod, gone_us)) = last.and_then(|pod| Some((pod, pod.gone_us?))) else { return false };
    let ended_us = pod.shown_end.map_or(gone_us, |(_, at_us)| at_us.min(gone_us));
    let until = view.answers.iter().skip(1).map(|answer| answer.time_us).chain([i64::MAX]);
    view.answers.iter().zip(until).filter(|(_, until_us)| *until_us >= pod.created_us).any(|(answer, until_us)| {
        // What is removed on an answer goes a moment after it.
        let until_us = until_us.saturating_add(REACTS_US);
        let withdrawn = answer.withdrawn.iter().any(|name| name == app);
        let other_serves = answer.apps.get(app).is_some_and(|want| want.host != host && want.registered && !want.failed);
        (withdrawn && gone_us <= until_us) || (other_serves && ended_us <= until_us)
    })
}

/// A host that is to be there: one pod of ours, that is not going, that runs, with its Secret.
fn stands(view: &View, rest: &Rest, app: &str, truth: &AppTruth, host: &str) -> Vec<Found> {
    let what = if host == truth.host { "the wanted host" } else { "the former live host" };
    let Some(pod) = rest.pods.iter().find(|pod| is_named(pod, host)) else {
        // Between two tries.
        if waits_for_a_node(view, host) {
            return Vec::new();
        }
        return vec![(11, format!("{host}, {what} of {app}, has no pod at rest"))];
    };
    let mut found = Vec::new();
    if waits_for_a_node(view, host) {
        return found;
    }
    if !is_ours(pod, &view.promises) {
        found.push((11, format!("{host}, {what} of {app}, is another's pod at rest")));
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        found.push((10, format!("{host}, {what} of {app}, is being deleted at rest")));
    } else if !rest.running.iter().any(|(running, uid)| running == host && pod["metadata"]["uid"] == **uid) {
        found.push((11, format!("{host}, {what} of {app}, does not run at rest")));
    }
    let secret = format!("{host}-env");
    // One that somebody else took is put again when the host is brought again.
    if !rest.secrets.iter().any(|secrets| is_named(secrets, &secret)) && !view.robbed.contains(&secret) {
        found.push((11, format!("{host}, {what} of {app}, has no Secret at rest")));
    }
    found
}

/// The gateway knows what became of the wanted host, and it is what became of it.
fn decided(view: &View, rest: &Rest, app: &str, truth: &AppTruth, fate: Option<Fate>) -> Vec<Found> {
    let live = truth.live_host.as_deref() == Some(&truth.host);
    let runs = rest.running.iter().any(|(host, _)| *host == truth.host);
    let host = &truth.host;
    match fate {
        // A failure that was true when it was told stays until it is taken back.
        Some(_) if truth.failed || waits_for_a_node(view, host) => Vec::new(),
        Some(Fate::Healthy | Fate::Left) if !live && runs => {
            vec![(12, format!("{host} of {app} runs at rest, and nobody told that it is live"))]
        }
        Some(Fate::Healthy | Fate::Left) if !live => vec![(11, format!("{host} of {app} is neither live nor failed at rest"))],
        Some(Fate::Fails) if !live => vec![(12, format!("{host} of {app} cannot run, and nobody told that it failed"))],
        Some(Fate::Healthy | Fate::Fails | Fate::Left) | None => Vec::new(),
    }
}

/// Nothing of ours is left that belongs to no host that is to be there.
fn left_over(view: &View, rest: &Rest, kept: &BTreeSet<String>) -> Vec<Found> {
    let mut found = Vec::new();
    let ours = |object: &&std::sync::Arc<crate::sim::api::Object>| is_ours(object, &view.promises);
    let ever_named = |app: &str| view.answers.iter().any(|answer| answer.apps.contains_key(app));
    for pod in rest.pods.iter().filter(ours) {
        let name = name(pod);
        let app = pod["metadata"]["annotations"][format!("{}/app", view.promises.label_domain)].as_str().unwrap_or_default();
        // What no answer ever named is nobody's to stop.
        if !kept.contains(name) && ever_named(app) {
            found.push((11, format!("the pod {name} of {app} is left over at rest")));
        }
    }
    for secret in rest.secrets.iter().filter(ours) {
        let name = name(secret);
        let host = name.strip_suffix("-env").unwrap_or(name);
        let app = secret["metadata"]["annotations"][format!("{}/app", view.promises.label_domain)].as_str().unwrap_or_default();
        if !kept.contains(host) && ever_named(app) {
            found.push((11, format!("the Secret {name} of {app} is left over at rest")));
        }
    }
    for service in rest.services.iter().filter(ours) {
        found.push((11, format!("the Service {} is left over at rest", name(service))));
    }
    found
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_named(object: &Value, wanted: &str) -> bool {
    name(object) == wanted
}
