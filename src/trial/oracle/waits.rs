//! Invariant 10: every wait is bounded and ends in an event that names the stage it hung in. A wanted host that nobody disturbs goes
//! live or is reported failed within the deadlines of its stages.

use std::collections::BTreeSet;

use super::Found;
use super::view::{SECOND_US, View};
use crate::trial::history::Moment;

/// What comes on top of the deadlines: doubts about unanswered writes, pauses between tries, a watch that has to be found silent.
const BESIDES_US: i64 = 600 * SECOND_US;

/// Hosts that were found waiting too long: each is told once.
#[derive(Debug, Default)]
pub(super) struct Waits {
    told: BTreeSet<String>,
    looked_us: i64,
}

impl Waits {
    pub(super) fn see(&mut self, view: &View, moment: &Moment) -> Vec<Found> {
        // Once a second is often enough for limits of minutes.
        if moment.time_us - self.looked_us < SECOND_US {
            return Vec::new();
        }
        self.looked_us = moment.time_us;
        let stages_us: i64 = view.promises.stages_us.iter().map(|(_, limit_us)| limit_us).sum();
        let limit_us = stages_us + view.promises.register_us + BESIDES_US;
        let mut found = Vec::new();
        for (app, (truth, since_us)) in &view.truth {
            let since_us = (*since_us).max(view.disturbed_us);
            let decided = truth.failed || truth.live_host.as_deref() == Some(&truth.host);
            if !decided
                && !waits_for_a_node(view, &truth.host)
                && moment.time_us - since_us > limit_us
                && self.told.insert(truth.host.clone())
            {
                let is = match view.pod_named(&truth.host) {
                    None => "has no pod",
                    Some(pod) if pod.deleting_us.is_some() => "has a pod that is being deleted",
                    Some(pod) if pod.runs() => "runs",
                    Some(_) => "has a pod that does not run",
                };
                let waits_s = (moment.time_us - since_us) / SECOND_US;
                found
                    .push((10, format!("{} of {app} is neither live nor failed after {waits_s} undisturbed seconds; it {is}", truth.host)));
            }
        }
        found
    }
}

/// Whether no node takes the host's pods: that is reported as waiting, never as the app's failure.
pub(super) fn waits_for_a_node(view: &View, host: &str) -> bool {
    let last = view.pods_of(host).max_by_key(|pod| pod.created_us);
    last.is_some_and(|pod| pod.is_unschedulable() || pod.is_refused())
}
