//! Invariant 5, where it is no write: what is not ours is never taken for ours. A pod that the log says a step made, or found made, is
//! one that the daemon made.

use super::Found;
use super::log::Log;
use super::view::View;
use crate::events::kinds::step::{Outcome, Step};
use crate::events::record::{Event, Record};
use crate::sim::api::DAEMON;

pub(super) fn judge(view: &View, log: &Log, records: &[Record]) -> Vec<Found> {
    records.iter().filter_map(|record| settled(view, log, &record.event)).collect()
}

fn settled(view: &View, log: &Log, event: &Event) -> Option<Found> {
    let Event::StepSettled(settled) = event else { return None };
    if !matches!(settled.outcome, Outcome::Done | Outcome::AlreadySo) {
        return None;
    }
    let Some(Step::CreatePod { host, .. }) = log.issued(settled.step) else { return None };
    let uid = settled.object.as_ref()?.uid.as_str();
    let what = format!("step {} is recorded as having made {host} ({uid})", settled.step);
    match view.pods.get(uid) {
        None => Some((5, format!("{what}, and there never was such a pod"))),
        Some(pod) if !pod.ours || pod.made_by != DAEMON => Some((5, format!("{what}, which is not ours"))),
        Some(_) => None,
    }
}
