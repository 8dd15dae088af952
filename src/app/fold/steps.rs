//! The fold over steps: issued, asked back, settled, left behind by an earlier life.

use super::{At, pods};
use crate::app::state::{App, Delete, Flight, Hindered, Hindrance, Host, Pod, Secret, Work};
use crate::events::kinds::pod::{GoneHow, PodGone};
use crate::events::kinds::step::{ObjectSeen, Outcome, Purpose, Refusal, Step, StepIssued, StepSettled};
use crate::ids::{HostName, Seq};

/// Uncounted revivals that are remembered, a host: with pauses that grow to a minute a window holds far fewer.
const REVIVALS: usize = 64;

/// A step was decided.
pub(super) fn issued(app: &mut App, at: At, issued: &StepIssued) {
    let incarnation = app.incarnation;
    let host = app.hosts.entry(issued.step.host().clone()).or_default();
    let flight =
        Flight { step: issued.step.clone(), purpose: issued.purpose, incarnation, issued_us: at.time_us, revoking: false, withheld: false };
    host.flights.insert(at.seq, flight);
    match &issued.step {
        Step::PutSecret { release, sha256, .. } => {
            begin(host, at, issued.purpose);
            pods::runs(host, *release, *sha256);
            host.secret_put = false;
            // What it reads is about to change.
            host.flights.retain(|_, flight| !matches!(flight.step, Step::ReadSecret { .. }));
        }
        Step::CreatePod { release, sha256, .. } => pods::runs(host, *release, *sha256),
        Step::DeletePod { uid, forced, .. } => {
            let revive = matches!(issued.purpose, Purpose::Revive { .. });
            if revive {
                begin(host, at, issued.purpose);
                host.secret_put = false;
            } else {
                host.work = Work::Stopping;
            }
            if let Some(pod) = host.pod.as_mut().filter(|pod| pod.uid == *uid) {
                pod.delete = Some(Delete { step: at.seq, revive, forced: *forced, unanswered: false });
            }
        }
        // A host whose Secret goes is given up, also one that could come back: whatever is brought next begins anew.
        Step::DeleteSecret { .. } => {
            host.work = Work::Rest;
            host.gone = None;
            host.secret_put = false;
        }
        Step::ReadPod { .. } | Step::ReadSecret { .. } => {}
    }
}

/// The first step of a start or a revive begins it; the later ones go on with it.
fn begin(host: &mut Host, at: At, purpose: Purpose) {
    if !matches!(host.work, Work::Bringing(_)) {
        host.work = Work::Bringing(purpose);
        if purpose == (Purpose::Revive { counted: false }) {
            host.no_fault_us.push(at.time_us);
            if host.no_fault_us.len() > REVIVALS {
                host.no_fault_us.remove(0);
            }
        }
    }
    host.gone = None;
}

/// The plan asked a step back; whether in time, its outcome tells.
pub(super) fn revoking(app: &mut App, step: Seq) {
    if let Some(flight) = app.hosts.values_mut().find_map(|host| host.flights.get_mut(&step)) {
        flight.revoking = true;
    }
}

/// A step was not sent because the daemon may not act: it stays, so that it is not decided again and again.
pub(super) fn withheld(app: &mut App, step: Seq) {
    for host in app.hosts.values_mut() {
        if let Some(flight) = host.flights.get_mut(&step) {
            flight.withheld = true;
            let flight = flight.clone();
            // An end from now on is not by it.
            unsent(host, step, &flight);
        }
    }
    if app.acts && !app.frozen {
        // The thaw came while the step was being held back.
        forget_withheld(app);
    }
}

/// The daemon may act again: what was withheld is decided anew.
pub(super) fn forget_withheld(app: &mut App) {
    for host in app.hosts.values_mut() {
        let withheld: Vec<_> = host.flights.iter().filter(|(_, flight)| flight.withheld).map(|(seq, _)| *seq).collect();
        for seq in withheld {
            if let Some(flight) = host.flights.remove(&seq) {
                unsent(host, seq, &flight);
            }
        }
    }
}

/// What became of a step.
pub(super) fn settled(app: &mut App, at: At, settled: &StepSettled) {
    let Some((name, flight)) = take_flight(app, settled.step) else {
        // An observation settled it before; the outcome adds nothing to what was observed.
        return;
    };
    let Some(host) = app.hosts.get_mut(&name) else { return };
    if !matches!(flight.step, Step::CreatePod { .. } | Step::DeletePod { .. }) {
        host.moved = at.seq;
    }
    match Hindered::of(settled.outcome) {
        Some(what) => hinder(host, at, what, &flight),
        None => host.hindrance = None,
    }
    match (&flight.step, settled.outcome) {
        (_, Outcome::Revoked | Outcome::Unsent) => unsent(host, settled.step, &flight),
        (Step::PutSecret { .. }, Outcome::Done | Outcome::AlreadySo) => {
            host.secret_put = true;
            host.secret = present(settled.object.as_ref());
        }
        (Step::PutSecret { .. }, _) => {
            if settled.outcome == Outcome::Unknown {
                host.secret = Secret::Unknown;
                host.secret_doubt_since_us = Some(at.time_us);
            }
        }
        (Step::CreatePod { .. }, outcome) => {
            if let Some(object) = &settled.object {
                pods::replaced(app, at, &name, object);
            }
            created(app.hosts.entry(name).or_default(), at, outcome, settled.object.as_ref());
        }
        (Step::DeletePod { uid, .. }, Outcome::Gone | Outcome::Conflict) => {
            let gone = PodGone { host: name.clone(), uid: uid.clone(), resource_version: 0, how: GoneHow::NotFound };
            pods::gone(app, at, &gone);
        }
        (Step::DeletePod { .. }, Outcome::Done | Outcome::AlreadySo) => {}
        (Step::DeletePod { .. }, Outcome::Unknown) => unanswered(host, settled.step),
        (Step::DeletePod { .. }, _) => unsent(host, settled.step, &flight),
        (Step::DeleteSecret { .. }, Outcome::Done | Outcome::AlreadySo) => host.secret = Secret::Absent,
        // Gone is that uid: another one may have the name.
        (Step::DeleteSecret { .. }, _) => host.secret = Secret::Unknown,
        (Step::ReadSecret { .. }, outcome) => {
            let absent = matches!(outcome, Outcome::Gone | Outcome::Refused(Refusal::Foreign));
            host.secret = if absent { Secret::Absent } else { present(settled.object.as_ref()) };
            if absent || host.secret != Secret::Unknown {
                host.secret_doubt_since_us = still_in_doubt(host.secret_doubt_since_us, &flight);
            }
        }
        (Step::ReadPod { .. }, Outcome::Done | Outcome::AlreadySo | Outcome::Gone | Outcome::Refused(Refusal::Foreign)) => {
            host.doubt_since_us = still_in_doubt(host.doubt_since_us, &flight);
        }
        (Step::ReadPod { .. }, _) => {}
    }
}

/// A reading settles the doubts from before it was decided.
fn still_in_doubt(since_us: Option<i64>, reading: &Flight) -> Option<i64> {
    since_us.filter(|since_us| *since_us >= reading.issued_us)
}

fn take_flight(app: &mut App, step: Seq) -> Option<(HostName, Flight)> {
    app.hosts.iter_mut().find_map(|(name, host)| host.flights.remove(&step).map(|flight| (name.clone(), flight)))
}

fn present(object: Option<&ObjectSeen>) -> Secret {
    object.map_or(Secret::Unknown, |object| Secret::Present { uid: object.uid.clone(), resource_version: object.resource_version })
}

fn created(host: &mut Host, at: At, outcome: Outcome, object: Option<&ObjectSeen>) {
    match (outcome, object) {
        (Outcome::Done | Outcome::AlreadySo, Some(object)) => {
            pod_known(host, at, object, false);
            pods::brought(host);
        }
        (Outcome::Conflict, Some(object)) => {
            pod_known(host, at, object, true);
            host.work = Work::Rest;
        }
        (Outcome::Unknown, _) => host.doubt_since_us = Some(at.time_us),
        _ => {}
    }
}

/// An outcome's object counts as observed, unless its uid is known gone or a newer one is known.
fn pod_known(host: &mut Host, at: At, object: &ObjectSeen, different: bool) {
    if host.gone_uids.contains(&object.uid) {
        return;
    }
    match &mut host.pod {
        Some(pod) if pod.uid == object.uid => {
            pod.resource_version = pod.resource_version.max(object.resource_version);
            pod.different |= different;
        }
        Some(pod) if pod.resource_version > object.resource_version => {}
        known => {
            let mut pod = Pod::known(object.uid.clone(), object.resource_version, at);
            pod.different = different;
            *known = Some(pod);
        }
    }
    host.gone = None;
}

fn hinder(host: &mut Host, at: At, what: Hindered, flight: &Flight) {
    host.hindrance = Some(Hindrance::next(host.hindrance.as_ref(), what, at.seq, flight.issued_us, at.time_us));
}

/// A step that was certainly not carried out, or whose repetition is harmless: the plan may decide it again.
fn unsent(host: &mut Host, step: Seq, flight: &Flight) {
    if let Step::DeletePod { forced: true, .. } = flight.step {
        // The pod was being deleted before.
        unanswered(host, step);
    } else if let Step::DeletePod { .. } = flight.step {
        if let Some(pod) = host.pod.as_mut().filter(|pod| pod.delete.is_some_and(|delete| delete.step == step)) {
            pod.delete = None;
        }
        if host.work == Work::Stopping {
            host.work = Work::Rest;
        }
    }
}

fn unanswered(host: &mut Host, step: Seq) {
    if let Some(delete) = host.pod.as_mut().and_then(|pod| pod.delete.as_mut()).filter(|delete| delete.step == step) {
        delete.unanswered = true;
    }
}

/// A step of an earlier life that the list did not settle. It may have been sent in that life's last moment, long after it was
/// decided, and the server may still carry it out: a 404 proves nothing for as long as a request lives there.
pub(super) fn left_behind(host: &mut Host, at: At, step: Seq, flight: &Flight) {
    match &flight.step {
        Step::CreatePod { .. } if host.pod.is_none() => host.doubt_since_us = Some(at.time_us),
        Step::PutSecret { .. } => host.secret_doubt_since_us = Some(at.time_us),
        Step::DeletePod { forced, .. } if *forced || !host.pod.as_ref().is_some_and(Pod::is_deleting) => unanswered(host, step),
        Step::CreatePod { .. } | Step::DeletePod { .. } | Step::DeleteSecret { .. } | Step::ReadPod { .. } | Step::ReadSecret { .. } => {}
    }
}
