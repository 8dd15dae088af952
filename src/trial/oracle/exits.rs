//! Invariant 6: only a process's own exit counts as a crash, once, across restarts of the daemon. Judged from what was reported and
//! from what was run again, against the exits that really were.

use std::collections::BTreeMap;

use super::Found;
use super::pods::{Pod, Shown};
use super::view::{SECOND_US, View};
use crate::sim::api::{DAEMON, Entry};
use crate::trial::history::{GatewayAsk, Happening, Moment, Report};

/// What clocks that show whole seconds may differ by.
const SLACK_US: i64 = 2 * SECOND_US;
/// How long a host may stay failed at the gateway before a start of it can no more have been under way.
const UNDER_WAY_US: i64 = 240 * SECOND_US;

/// What empties a host's window.
#[derive(Debug, Default)]
pub(super) struct Exits {
    /// When the host's failure was last taken back, or it was forgotten: exits before that may count or not.
    forgiven_us: BTreeMap<String, i64>,
}

impl Exits {
    pub(super) fn see(&mut self, view: &View, moment: &Moment) -> Vec<Found> {
        match &moment.what {
            Happening::Answered { .. } => {
                self.forgive_what_is_taken_back(view);
                Vec::new()
            }
            // A host whose environment is removed is given up: what begins under its name begins anew.
            Happening::Stored(stored) if stored.resource == "secrets" && stored.after.is_none() => {
                if let Some(host) = stored.name.strip_suffix("-env") {
                    self.forgiven_us.insert(host.to_owned(), moment.time_us);
                }
                Vec::new()
            }
            Happening::Asked { what: GatewayAsk::Beat(reports), taken: true, .. } => {
                reports.iter().filter(|report| report.state == "failed").flat_map(|report| self.reported(view, report)).collect()
            }
            Happening::Requested(entry)
                if entry.user == DAEMON && entry.resource == "pods" && entry.verb == "create" && entry.changed() =>
            {
                self.brought(view, entry)
            }
            _ => Vec::new(),
        }
    }

    fn forgive_what_is_taken_back(&mut self, view: &View) {
        let [.., before, now] = view.answers.as_slice() else { return };
        for (app, want) in &now.apps {
            let former = before.apps.get(app);
            if former.is_none_or(|former| former.host != want.host || (former.failed && !want.failed)) {
                self.forgiven_us.insert(want.host.clone(), view.now_us);
            }
        }
    }

    fn reported(&self, view: &View, report: &Report) -> Vec<Found> {
        let host = report.host.as_str();
        let pods = || view.pods_of(host);
        let wrong = |why: String| vec![(6, format!("{host} was reported failed ({}), but {why}", first_line(&report.why)))];
        if report.why.starts_with("the process keeps exiting") {
            let exits = may_have_counted(view, host);
            if exits <= view.promises.crash_limit {
                return wrong(format!("at most {exits} exits of its own can count: {}", ends(view, host)));
            }
        } else if report.why.starts_with("the process ended before") {
            if !pods().any(|pod| pod.own_exit_us().is_some()) {
                return wrong(format!("its process never ended by itself: {}", ends(view, host)));
            }
        } else if report.why.starts_with("the install failed") {
            if !pods().any(|pod| shows(pod, Shown::Install)) {
                return wrong(format!("no install of it failed: {}", ends(view, host)));
            }
        } else if view.clock_stepped {
            // Deadlines and windows that lie over a restart are measured by a clock that somebody moved.
        } else if report.why.starts_with("nothing registered in time") {
            let limit_us = view.promises.register_us - SLACK_US;
            let late = |pod: &Pod| pod.shown_running_us.is_some_and(|since_us| view.now_us - since_us > limit_us);
            if !pods().any(late) {
                return wrong("none of its pods ran for that long".to_owned());
            }
        } else if let Some((stage, limit_us)) =
            view.promises.stages_us.iter().find(|(stage, _)| report.why.contains(&format!("get past {stage} in time")))
        {
            let lasted = |pod: &Pod| pod.gone_us.unwrap_or(view.now_us) - pod.created_us > limit_us - SLACK_US;
            if !pods().any(lasted) {
                return wrong(format!("none of its pods was there for as long as {stage} may take"));
            }
        }
        Vec::new()
    }

    /// A host is run again: not after the sixth own exit of its window, and not while it is failed.
    fn brought(&self, view: &View, entry: &Entry) -> Vec<Found> {
        let host = entry.name.as_str();
        let failed = view.truth.values().find(|(truth, _)| truth.host == host && truth.failed);
        if let Some((_, since_us)) = failed.filter(|(_, since_us)| entry.asked_us - since_us > UNDER_WAY_US) {
            let ago_s = (entry.asked_us - since_us) / SECOND_US;
            return vec![(6, format!("{host} was run again though the gateway holds it failed since {ago_s} s"))];
        }
        if view.clock_stepped {
            return Vec::new();
        }
        let forgiven_us = self.forgiven_us.get(host).copied().unwrap_or(i64::MIN);
        let mut known: Vec<(i64, i64)> =
            view.pods_of(host).filter_map(Pod::known_own_exit_us).filter(|(exit_us, _)| *exit_us > forgiven_us).collect();
        known.sort_unstable();
        // Only the end that this revive follows must not be one too many.
        let last = view.pods_of(host).filter(|pod| pod.gone_us.is_some()).max_by_key(|pod| pod.created_us);
        let Some((last_exit_us, removed_us)) = last.and_then(Pod::known_own_exit_us) else { return Vec::new() };
        let window_us = view.promises.crash_window_us - SLACK_US;
        let before = known.iter().filter(|(exit_us, _)| *exit_us < last_exit_us && removed_us - exit_us < window_us).count();
        if before >= view.promises.crash_limit {
            return vec![(
                6,
                format!("{host} was run again after {} exits of its own within the window: {}", before + 1, ends(view, host)),
            )];
        }
        Vec::new()
    }
}

/// The most own exits of the host that can lie in one window with its last one.
pub(super) fn may_have_counted(view: &View, host: &str) -> usize {
    let last_us = view.pods_of(host).filter_map(Pod::own_exit_us).max().unwrap_or(0);
    let begin_us = last_us - view.promises.crash_window_us - SLACK_US;
    view.pods_of(host).filter(|pod| pod.own_exit_us().is_some() && pod.end_seen_by_us(view.now_us) > begin_us).count()
}

fn shows(pod: &Pod, end: Shown) -> bool {
    pod.shown_end.is_some_and(|(shown, _)| shown == end)
}

/// How the host's pods ended, in words.
fn ends(view: &View, host: &str) -> String {
    let mut pods: Vec<&Pod> = view.pods_of(host).collect();
    pods.sort_by_key(|pod| pod.created_us);
    let words = pods.iter().map(|pod| match (pod.shown_end, pod.gone_us) {
        (Some((Shown::OwnExit, _)), _) if pod.ended_unasked => "by itself",
        (Some((Shown::OwnExit, _)), _) => "while it was being deleted",
        (Some((Shown::Install, _)), _) => "in its install",
        (Some((Shown::NotStarted, _)), _) => "before its start",
        (Some((Shown::Outside, _)), _) => "by its node",
        (None, Some(_)) => "removed without an end",
        (None, None) => "not ended",
    });
    let words: Vec<&str> = words.collect();
    format!("{} pods, which ended {}", words.len(), words.join(", "))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
