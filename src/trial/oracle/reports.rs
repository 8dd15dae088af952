//! Invariant 12: every verdict reaches the gateway while it is true and wanted; none that is void does. What is judged here is that
//! what was told was wanted and true; that it was told at all shows at rest.

use super::Found;
use super::pods::Pod;
use super::serving::said;
use super::view::{Answer, SECOND_US, View};
use crate::trial::history::{GatewayAsk, Happening, Moment, Report};

/// How long an answer may take to become what is owed.
const REACTS_US: i64 = 2 * SECOND_US;

pub(super) fn judge(view: &View, moment: &Moment) -> Vec<Found> {
    let Happening::Asked { what: GatewayAsk::Beat(reports), .. } = &moment.what else { return Vec::new() };
    // A want that cannot be believed is told in the gateway's own words.
    let of_verdicts = reports.iter().filter(|report| !report.why.starts_with("refused:"));
    of_verdicts.flat_map(|report| told(view, report)).collect()
}

fn told(view: &View, report: &Report) -> Vec<Found> {
    let (app, host, now_us) = (&report.app, report.host.as_str(), view.now_us);
    let words = view.last_words_of(app, now_us, REACTS_US);
    let wants = |answer: &Answer| answer.apps.get(app).is_some_and(|want| want.host == host);
    let Some(first) = words.first() else {
        return vec![(12, format!("{host} was reported {} before any answer named it", report.state))];
    };
    if !words.iter().any(wants) {
        return vec![(12, format!("{host} was reported {}, which is void: {}", report.state, said(first, app)))];
    }
    if report.state != "live" {
        return Vec::new();
    }
    let registered = |answer: &Answer| wants(answer) && answer.apps.get(app).is_some_and(|want| want.registered);
    if !words.iter().any(registered) {
        return vec![(12, format!("{host} was reported live, but the gateway's last word is: {}", said(first, app)))];
    }
    let last = view.pods_of(host).max_by_key(|pod| pod.created_us);
    let runs = last.is_some_and(Pod::runs);
    let ended_us = last.and_then(|pod| pod.shown_end.map(|(_, at_us)| at_us).or(pod.gone_us));
    // A list that came after the end shows it.
    let listed_us = view.lives.last().and_then(|life| life.last_list_us);
    let known = ended_us.zip(listed_us).is_some_and(|(ended_us, listed_us)| ended_us < listed_us && now_us - listed_us > REACTS_US);
    if !runs && known {
        return vec![(12, format!("{host} was reported live, but no process of it runs"))];
    }
    Vec::new()
}
