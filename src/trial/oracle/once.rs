//! Invariant 3: at most one pod per host by our doing. An API server has one object of a name; two processes of one host come to be
//! when the object of one that still runs is taken away at once, and the name is used again.

use super::Found;
use super::view::{SECOND_US, View};
use crate::sim::api::Entry;

/// What clocks that show whole seconds, and a watch, may differ by.
const SLACK_US: i64 = 2 * SECOND_US;

pub(super) fn judge(view: &View, entry: &Entry) -> Vec<Found> {
    let at_once = entry.resource == "pods" && entry.verb == "delete" && entry.grace_s == Some(0) && entry.changed();
    let uid = entry.uid();
    let Some(pod) = view.pods.get(uid).filter(|pod| at_once && pod.runs()) else { return Vec::new() };
    let what = format!("{} ({})", pod.name, pod.uid);
    // A kubelet that is cut off shows what it last said: only a lost node excuses this, and only after the limit.
    let limit_us = view.promises.force_us - SLACK_US;
    // Over a restart the limit is measured by a clock that somebody may have moved.
    let waited = view.clock_stepped || pod.deleting_us.is_some_and(|since_us| entry.asked_us - since_us >= limit_us);
    let ended = pod.shown_end.is_some();
    let node_is_lost = view.lost_nodes.contains_key(pod.node());
    if ended || (waited && node_is_lost) {
        return Vec::new();
    }
    vec![(
        3,
        format!(
            "the pod {what} was forced away while its process runs on {}, which is {}",
            pod.node(),
            if node_is_lost { "lost, too early" } else { "well" }
        ),
    )]
}
