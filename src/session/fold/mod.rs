//! What a record means to the state of a session. Folds inputs and decisions alike; looks at no clock and sends nothing.
//!
//! The fold commutes over the observation and the outcome of one step, as an app's does: an observation that carries our step's id
//! settles that step, an outcome's object counts as observed, and a uid once gone never comes back.

mod calls;
mod objects;
mod pods;
mod steps;

use super::state::Session;
use crate::events::kinds::daemon::IncarnationStarted;
use crate::events::record::{Event, Record};
use crate::ids::Subject;
use crate::subject::pod::At;
use crate::subject::rules::Rules;
use crate::subject::stored::take_part;

/// Folds one record of the session's subject. Unknown kinds that only inform never get here.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is about apps, the daemon, or the reader alone says nothing of a session")]
pub fn fold(session: &mut Session, _rules: Rules, record: &Record) {
    let at = At { seq: record.header.seq, time_us: record.header.time_us };
    if let Subject::Session(id) = &record.header.subject
        && session.id.is_none()
    {
        session.id = Some(id.clone());
    }
    match &record.event {
        Event::IncarnationStarted(started) => incarnation_started(session, started),
        Event::Listed(_) => listed(session, at),
        Event::SessionAsked(asked) => calls::asked(session, at, asked),
        Event::SessionDeleteAsked(asked) => calls::delete_asked(session, at, asked),
        Event::SessionTouched(_) => session.active_us = Some(at.time_us),
        Event::SessionFailed(failed) => calls::failed(session, at, failed),
        Event::SessionRemoved(removed) => calls::removed(session, at, removed.keep_workspace),
        Event::ClaimSeen(seen) => objects::claim_seen(session, at, seen),
        Event::ClaimGone(gone) => objects::claim_gone(session, at, &gone.uid),
        Event::ServiceSeen(seen) => objects::service_seen(session, at, seen),
        Event::ServiceGone(gone) => objects::service_gone(session, at, &gone.uid),
        Event::PodSeen(seen) => pods::seen(session, at, seen),
        Event::PodGone(gone) => pods::gone(session, at, &gone.uid, gone.how),
        Event::PodEnded(ended) => pods::end_recorded(session, at, ended),
        Event::NodeSeen(seen) => {
            session.nodes.insert(seen.node.clone(), seen.ready);
        }
        Event::SessionStepIssued(issued) => steps::issued(session, at, &issued.step),
        Event::StepSettled(settled) => steps::settled(session, at, settled),
        Event::StepRevoked(revoked) => steps::revoking(session, revoked.step),
        Event::StepWithheld(withheld) => steps::withheld(session, withheld.step),
        Event::TailAsked(asked) => pods::tail_asked(session, &asked.of),
        Event::TailKept(kept) => pods::tail_settled(session, &kept.of, Some(at.seq)),
        Event::TailUnavailable(lack) => pods::tail_settled(session, &lack.of, None),
        Event::AlarmRaised(alarm) => {
            session.alarms.insert(alarm.name.clone());
        }
        Event::AlarmCleared(alarm) => {
            session.alarms.remove(&alarm.name);
        }
        Event::Frozen(_) => session.frozen = true,
        Event::Thawed(_) => {
            session.frozen = false;
            steps::forget_withheld(session);
        }
        Event::Quarantined(_) => session.quarantined = true,
        Event::SubjectCarried(part) => {
            take_part(session, part);
        }
        _ => {}
    }
    rest(session, at);
}

/// A new life: nothing is known until it is listed.
fn incarnation_started(session: &mut Session, started: &IncarnationStarted) {
    session.incarnation = started.number;
    session.acts = started.acts;
    session.listed = None;
    session.quarantined = false;
    // Nobody watched meanwhile: what a node was says nothing of what it is.
    session.nodes.clear();
    steps::forget_withheld(session);
    // A tail that nobody reads any more is asked for again.
    session.tails.retain(|_, tail| tail.settled);
}

/// After complete lists of all three sorts: what an earlier life left without an outcome is resolved by what they showed.
fn listed(session: &mut Session, at: At) {
    session.listed = Some(at.seq);
    let stale = session.flights.iter().filter(|(_, flight)| flight.incarnation != session.incarnation);
    let stale: Vec<_> = stale.map(|(seq, _)| *seq).collect();
    for seq in stale {
        if let Some(flight) = session.flights.remove(&seq) {
            steps::left_behind(session, at, seq, &flight);
        }
    }
    session.claim.listed();
    session.service.listed();
}

/// What follows from the rest of the state: since when it is suspended, and what nothing can need any more.
fn rest(session: &mut Session, at: At) {
    let idle = session.pod.is_none() && session.wanted.is_none() && session.removing.is_none() && session.claim.there().is_some();
    session.suspended_since_us = if idle { session.suspended_since_us.or(Some(at.time_us)) } else { None };
    let Session { nodes, pod, tails, .. } = session;
    let on = pod.as_ref().and_then(|pod| pod.view.as_ref()).map(|view| &view.node);
    nodes.retain(|node, _| Some(node) == on);
    let uid = pod.as_ref().map(|pod| &pod.uid);
    tails.retain(|of, tail| Some(&of.uid) == uid || !tail.settled);
}
