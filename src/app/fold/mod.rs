//! What a record means to the state. Folds inputs and decisions alike; looks at no clock and sends nothing.
//!
//! The fold commutes over the observation and the outcome of one step: an observation that carries our step's id settles that
//! step, and an outcome's object counts as observed. A uid once gone never comes back.

mod pods;
mod steps;
mod wants;

use super::state::{App, Secret};
use crate::events::kinds::daemon::IncarnationStarted;
use crate::events::kinds::pod::SecretSeen;
use crate::events::kinds::step::Step;
use crate::events::record::{Event, Record};
use crate::ids::HostName;
use crate::subject::pod::At;
use crate::subject::rules::Rules;
use crate::subject::stored::take_part;

/// Folds one record of the app's subject. Unknown kinds that only inform never get here.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is about sessions, the daemon, or the reader alone says nothing of an app")]
pub fn fold(app: &mut App, _rules: Rules, record: &Record) {
    let at = At { seq: record.header.seq, time_us: record.header.time_us };
    match &record.event {
        Event::IncarnationStarted(started) => incarnation_started(app, started),
        Event::Listed(_) => listed(app, at),
        Event::NodeSeen(seen) => {
            app.nodes.insert(seen.node.clone(), seen.ready);
        }
        Event::PodSeen(seen) => pods::seen(app, at, seen),
        Event::PodGone(gone) => pods::gone(app, at, gone),
        Event::SecretSeen(seen) => secret_seen(app, seen),
        Event::SecretGone(gone) => secret_gone(app, at, &gone.host),
        Event::WantSeen(want) => wants::seen(app, at, want),
        Event::WantConfirmed(_) => wants::confirmed(app, at),
        Event::WantMissing(missing) => wants::missing(app, at, missing),
        Event::WantRefused(_) => wants::refused(app),
        Event::VerdictReached(reached) => wants::verdict(app, at, reached),
        Event::PodEnded(ended) => pods::end_recorded(app, at, ended),
        Event::AlarmRaised(alarm) => drop(app.alarms.insert(alarm.name.clone(), alarm.host.clone())),
        Event::AlarmCleared(alarm) => drop(app.alarms.remove(&alarm.name)),
        Event::StepIssued(issued) => steps::issued(app, at, issued),
        Event::StepSettled(settled) => steps::settled(app, at, settled),
        Event::StepRevoked(revoked) => steps::revoking(app, revoked.step),
        Event::StepWithheld(withheld) => steps::withheld(app, withheld.step),
        Event::TailAsked(asked) => pods::tail_asked(app, &asked.of),
        Event::TailKept(kept) => pods::tail_settled(app, &kept.of, Some(at.seq)),
        Event::TailUnavailable(lack) => pods::tail_settled(app, &lack.of, None),
        Event::Frozen(_) => app.frozen = true,
        Event::Thawed(_) => {
            app.frozen = false;
            steps::forget_withheld(app);
        }
        Event::RetryAsked(asked) => wants::retry(app, &asked.host),
        Event::Quarantined(_) => app.quarantined = true,
        Event::StopAsked(_) => app.stop_asked = Some(at.seq),
        Event::SubjectCarried(part) => {
            take_part(app, part);
        }
        _ => {}
    }
    forget(app);
}

/// A new life: nothing is known until it is listed, nothing is believed until the gateway answered.
fn incarnation_started(app: &mut App, started: &IncarnationStarted) {
    app.incarnation = started.number;
    app.acts = started.acts;
    app.listed = None;
    app.confirmed = false;
    app.quarantined = false;
    // Nobody watched meanwhile: what a node was says nothing of what it is.
    app.nodes.clear();
    steps::forget_withheld(app);
    for host in app.hosts.values_mut() {
        // A tail that nobody reads any more is asked for again.
        host.tails.retain(|_, tail| tail.settled);
    }
}

/// After a complete list: what an earlier life left without an outcome is resolved by what the list showed.
fn listed(app: &mut App, at: At) {
    app.listed = Some(at.seq);
    let incarnation = app.incarnation;
    for host in app.hosts.values_mut() {
        let stale: Vec<_> = host.flights.iter().filter(|(_, flight)| flight.incarnation != incarnation).map(|(seq, _)| *seq).collect();
        for seq in stale {
            if let Some(flight) = host.flights.remove(&seq) {
                steps::left_behind(host, at, seq, &flight);
            }
        }
    }
}

fn secret_seen(app: &mut App, seen: &SecretSeen) {
    let host = app.hosts.entry(seen.host.clone()).or_default();
    host.secret = Secret::Present { uid: seen.uid.clone(), resource_version: seen.resource_version };
}

fn secret_gone(app: &mut App, at: At, name: &HostName) {
    if let Some(host) = app.hosts.get_mut(name) {
        host.secret = Secret::Absent;
        host.secret_put = false;
        host.moved = at.seq;
        host.flights.retain(|_, flight| !matches!(flight.step, Step::DeleteSecret { .. } | Step::ReadSecret { .. }));
    }
}

/// Drops what nothing can need any more: hosts that are neither wanted nor live and have nothing left, nodes without a pod of the
/// app, and an operator's stop that is carried out.
fn forget(app: &mut App) {
    let App { want, hosts, nodes, stop_asked, .. } = app;
    let named = |name: &HostName| want.as_ref().is_some_and(|want| want.host == *name || want.live_host.as_ref() == Some(name));
    hosts.retain(|name, host| named(name) || !host.is_forgettable());
    nodes.retain(|node, _| hosts.values().any(|host| host.has_pod_on(node)));
    if hosts.is_empty() {
        *stop_asked = None;
    }
}
