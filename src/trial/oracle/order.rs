//! The order of a life (DESIGN.md, "The loop"): replay, list, plan; and until its first good answer nothing is stopped, and nothing
//! is brought but a host that is live. A write that comes too early is counted under what it endangers: invariant 3 before the
//! list, invariant 4 before the answer.

use super::Found;
use super::log::Log;
use super::view::{View, is_exempt};
use crate::sim::api::Entry;

pub(super) fn judge(view: &View, log: &Log, entry: &Entry) -> Vec<Found> {
    let Some(life) = log.step_of(entry).and_then(|issued| view.lives.iter().find(|life| life.number == issued.life)) else {
        return Vec::new();
    };
    if is_exempt(entry) {
        return Vec::new();
    }
    let what = format!("{} {} {}", entry.verb, entry.resource, entry.name);
    let mut found = Vec::new();
    if life.listed_us.is_none_or(|listed_us| listed_us > entry.asked_us) {
        found.push((3, format!("{what} was sent in life {} before the cluster was listed", life.number)));
    }
    let answered = view.answers.iter().any(|answer| answer.life == life.number && answer.time_us <= entry.asked_us);
    if !answered && entry.resource != "networkpolicies" {
        let host = entry.name.strip_suffix("-env").filter(|_| entry.resource == "secrets").unwrap_or(&entry.name);
        let is_live = may_be_live(view, host);
        let is_stop = entry.verb == "delete"
            && (entry.resource == "secrets" || view.pod_named(host).is_some_and(|pod| pod.runs() && pod.shown_end.is_none()));
        // Forced away: a live host on a lost node is brought back without an answer.
        let is_forced = entry.grace_s == Some(0) && view.pod_named(host).is_some_and(|pod| pod.deleting_us.is_some());
        if !is_live || (is_stop && !is_forced) {
            found.push((4, format!("{what} was sent in life {} before its first good answer", life.number)));
        }
    }
    found
}

/// Whether the daemon may know the host as live: the gateway named it so, or it was wanted and registered, so that it may have been
/// found live and not reported yet.
pub(super) fn may_be_live(view: &View, host: &str) -> bool {
    view.answers.iter().rev().any(|answer| {
        answer.live.values().any(|live| live == host) || answer.apps.values().any(|want| want.host == host && want.registered)
    })
}
