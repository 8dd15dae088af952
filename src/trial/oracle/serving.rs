//! Invariant 4: the host that serves an app is never removed until the gateway names another as live, the app is withdrawn, or it is
//! itself the wanted one and failed. Judged at each delete of a pod whose process runs and that nobody had deleted yet.

use super::Found;
use super::pods::Pod;
use super::view::{Answer, SECOND_US, View};
use crate::sim::api::Entry;

/// How long an answer may take to become a decision and a request: a delete that waits in a lane is asked back.
pub(super) const REACTS_US: i64 = 5 * SECOND_US;
/// What clocks that show whole seconds may differ by.
const SLACK_US: i64 = 2 * SECOND_US;

pub(super) fn judge(view: &View, entry: &Entry) -> Vec<Found> {
    if entry.resource != "pods" || !entry.changed() {
        return Vec::new();
    }
    match entry.verb {
        "delete" => removed(view, entry),
        "create" => created(view, entry),
        _ => Vec::new(),
    }
}

fn removed(view: &View, entry: &Entry) -> Vec<Found> {
    let Some(pod) = view.pods.get(entry.uid()) else { return Vec::new() };
    let was_asked_before = pod.deleting_us.is_some_and(|at_us| at_us < entry.time_us);
    if !pod.runs() || was_asked_before || pod.shown_end.is_some() || seems_stuck(view, pod, entry.asked_us) {
        return Vec::new();
    }
    let host = &pod.name;
    if !view.answers.iter().any(|answer| answer.apps.contains_key(&pod.app)) {
        return vec![(4, format!("{host} was removed while it runs, and no answer ever named {}", pod.app))];
    }
    let words = view.last_words(entry.asked_us, REACTS_US);
    if words.iter().any(|answer| justifies(view, answer, pod, entry.asked_us)) {
        return Vec::new();
    }
    let said = words.first().map_or_else(|| "nothing".to_owned(), |answer| said(answer, &pod.app));
    vec![(4, format!("{host} of {} was removed while it runs; the gateway's last word: {said}", pod.app))]
}

/// Whether all that was ever seen of it is that it comes up, for longer than it may: a node that is cut off does not say that it runs.
fn seems_stuck(view: &View, pod: &Pod, at_us: i64) -> bool {
    let shortest_us = view.promises.stages_us.iter().map(|(_, limit_us)| *limit_us).min().unwrap_or(i64::MAX);
    pod.shown_running_us.is_none() && (view.clock_stepped || at_us - pod.created_us >= shortest_us - SLACK_US)
}

/// Whether this answer lets a running host go.
fn justifies(view: &View, answer: &Answer, pod: &Pod, at_us: i64) -> bool {
    let is_live = answer.live.get(&pod.app) == Some(&pod.name);
    let Some(want) = answer.apps.get(&pod.app) else { return answer.withdrawn.contains(&pod.app) };
    if want.host != pod.name {
        return !is_live;
    }
    let late = pod.running_us.is_some_and(|since_us| at_us - since_us >= view.promises.register_us - SLACK_US);
    want.failed || (!is_live && (late || view.clock_stepped))
}

/// Nothing is started that is neither wanted nor named live.
fn created(view: &View, entry: &Entry) -> Vec<Found> {
    let host = entry.name.as_str();
    let Some(app) = view.app_of(host) else {
        return vec![(4, format!("{host} was started, and no answer ever named it"))];
    };
    let named = |answer: &Answer| {
        let live = answer.live.get(&app).is_some_and(|live| live == host);
        let wanted = answer.apps.get(&app).is_some_and(|want| want.host == host);
        let absent = !answer.apps.contains_key(&app) && !answer.withdrawn.contains(&app);
        wanted || live || (absent && super::order::may_be_live(view, host)) || (absent && was_wanted(view, &app, host))
    };
    // A try that is under way is not asked back: its policy and its environment can take their whole time.
    let words = view.last_words(entry.asked_us, TRY_US);
    if words.iter().any(named) {
        return Vec::new();
    }
    let said = words.last().map_or_else(|| "nothing".to_owned(), |answer| said(answer, &app));
    vec![(4, format!("{host} of {app} was started; the gateway's last word: {said}"))]
}

/// The longest time from the decision to send a create to its request: a policy read, an environment, a Secret, each with its limit.
const TRY_US: i64 = 240 * SECOND_US;

fn was_wanted(view: &View, app: &str, host: &str) -> bool {
    view.answers.iter().rev().find_map(|answer| answer.apps.get(app)).is_some_and(|want| want.host == host)
}

/// An answer's word of an app.
pub(super) fn said(answer: &Answer, app: &str) -> String {
    match answer.apps.get(app) {
        None => format!("{app} is not named"),
        Some(want) => {
            let live = answer.live.get(app).map_or("nothing", String::as_str);
            let how = [(want.registered, "registered"), (want.failed, "failed")];
            let how: Vec<&str> = how.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
            let how = if how.is_empty() { "not registered".to_owned() } else { how.join(", ") };
            format!("{} is wanted ({how}), {live} is live", want.host)
        }
    }
}
