//! The fold over a session's steps: issued, asked back, settled, left behind by an earlier life.

use super::pods;
use crate::events::kinds::pod::GoneHow;
use crate::events::kinds::session::{SessionDoing, SessionObject, SessionStep};
use crate::events::kinds::step::{ObjectSeen, Outcome, Refusal, StepSettled};
use crate::ids::Seq;
use crate::session::state::{Flight, Session};
use crate::subject::hindrance::{Hindered, Hindrance};
use crate::subject::pod::{At, Delete};

/// A step was decided.
pub(super) fn issued(session: &mut Session, at: At, step: &SessionStep) {
    let incarnation = session.incarnation;
    let flight = Flight { step: step.clone(), incarnation, issued_us: at.time_us, revoking: false, withheld: false };
    session.flights.insert(at.seq, flight);
    let delete = |forced| Delete { step: at.seq, revive: false, forced, unanswered: false };
    match step {
        SessionStep::CreateClaim { name, .. } => {
            session.claim.name = Some(name.clone());
            // An earlier try that nobody answered may be the one that made it.
            if session.claim.doubt_since_us.is_none() || session.made.is_none() {
                session.made = Some(at.seq);
            }
        }
        SessionStep::CreatePod { name, .. } => session.pod_name = Some(name.clone()),
        SessionStep::PutService { name, .. } => session.service.name = Some(name.clone()),
        SessionStep::DeletePod { uid, forced, .. } => {
            if let Some(pod) = session.pod.as_mut().filter(|pod| pod.uid == *uid) {
                pod.delete = Some(delete(*forced));
            }
        }
        SessionStep::DeleteService { uid, .. } => session.service.deleting(uid, delete(false)),
        SessionStep::DeleteClaim { uid, .. } => session.claim.deleting(uid, delete(false)),
        SessionStep::ReadPod { .. } | SessionStep::ReadService { .. } | SessionStep::ReadClaim { .. } => {}
    }
}

/// The plan asked a step back; whether in time, its outcome tells.
pub(super) fn revoking(session: &mut Session, step: Seq) {
    if let Some(flight) = session.flights.get_mut(&step) {
        flight.revoking = true;
    }
}

/// A step was not sent because the daemon may not act: it stays, so that it is not decided again and again.
pub(super) fn withheld(session: &mut Session, step: Seq) {
    if let Some(flight) = session.flights.get_mut(&step) {
        flight.withheld = true;
        let flight = flight.clone();
        // An end from now on is not by it.
        unsent(session, step, &flight);
    }
    if session.acts && !session.frozen {
        // The thaw came while the step was being held back.
        forget_withheld(session);
    }
}

/// The daemon may act again: what was withheld is decided anew.
pub(super) fn forget_withheld(session: &mut Session) {
    let withheld: Vec<_> = session.flights.iter().filter(|(_, flight)| flight.withheld).map(|(seq, _)| *seq).collect();
    for seq in withheld {
        if let Some(flight) = session.flights.remove(&seq) {
            unsent(session, seq, &flight);
        }
    }
}

/// What became of a step.
pub(super) fn settled(session: &mut Session, at: At, settled: &StepSettled) {
    // An observation may have settled it before; the outcome adds nothing to what was observed.
    let Some(flight) = session.flights.remove(&settled.step) else { return };
    session.moved = at.seq;
    let (object, doing) = flight.step.act();
    let hindered = match (doing, settled.outcome) {
        // Another version is there than the one that was seen: the watch will show it.
        (SessionDoing::Make, Outcome::Conflict) => Some(Hindered::Unsent),
        (SessionDoing::Make | SessionDoing::Remove | SessionDoing::Read, outcome) => Hindered::of(outcome),
    };
    match hindered {
        Some(what) => {
            let next = Hindrance::next(session.hindrances.get(&(object, doing)), what, at.seq, flight.issued_us, at.time_us);
            session.hindrances.insert((object, doing), next);
        }
        None => drop(session.hindrances.remove(&(object, doing))),
    }
    match doing {
        SessionDoing::Make => made(session, at, object, settled.outcome, settled.object.as_ref()),
        SessionDoing::Remove => removed(session, at, settled.step, &flight, settled.outcome),
        SessionDoing::Read => read(session, at, object, &flight, settled.outcome, settled.object.as_ref()),
    }
}

fn made(session: &mut Session, at: At, object: SessionObject, outcome: Outcome, shown: Option<&ObjectSeen>) {
    match (outcome, shown) {
        (Outcome::Done | Outcome::AlreadySo, Some(shown)) => match object {
            SessionObject::Claim => {
                if outcome == Outcome::AlreadySo && session.claim.doubt_since_us.is_none() {
                    session.made = None;
                }
                session.claim.written(at, shown);
            }
            SessionObject::Service => session.service.put(at, shown),
            SessionObject::Pod => pods::written(session, at, shown),
        },
        (Outcome::Unknown, _) | (Outcome::Done | Outcome::AlreadySo, None) => doubt(session, at, object),
        (Outcome::Gone | Outcome::Conflict | Outcome::NameHeld | Outcome::Refused(_) | Outcome::Revoked | Outcome::Unsent, _) => {}
    }
}

/// It may be there, or come to be.
fn doubt(session: &mut Session, at: At, object: SessionObject) {
    match object {
        SessionObject::Claim => session.claim.doubt(at.time_us),
        SessionObject::Service => session.service.doubt(at.time_us),
        SessionObject::Pod => session.pod_doubt_since_us = Some(at.time_us),
    }
}

fn removed(session: &mut Session, at: At, step: Seq, flight: &Flight, outcome: Outcome) {
    match outcome {
        Outcome::Gone | Outcome::Conflict => match &flight.step {
            SessionStep::DeletePod { uid, .. } => pods::gone(session, at, uid, GoneHow::NotFound),
            SessionStep::DeleteService { uid, .. } => super::objects::service_gone(session, at, uid),
            SessionStep::DeleteClaim { uid, .. } => super::objects::claim_gone(session, at, uid),
            SessionStep::CreateClaim { .. }
            | SessionStep::CreatePod { .. }
            | SessionStep::PutService { .. }
            | SessionStep::ReadPod { .. }
            | SessionStep::ReadService { .. }
            | SessionStep::ReadClaim { .. } => {}
        },
        Outcome::Done | Outcome::AlreadySo => {}
        Outcome::Unknown => unanswered(session, step),
        Outcome::NameHeld | Outcome::Refused(_) | Outcome::Revoked | Outcome::Unsent => unsent(session, step, flight),
    }
}

/// A reading settles the doubts from before it was decided.
fn read(session: &mut Session, at: At, object: SessionObject, reading: &Flight, outcome: Outcome, shown: Option<&ObjectSeen>) {
    let told = matches!(outcome, Outcome::Done | Outcome::AlreadySo | Outcome::Gone | Outcome::Refused(Refusal::Foreign));
    if !told {
        return;
    }
    let there = shown.filter(|_| matches!(outcome, Outcome::Done | Outcome::AlreadySo));
    let still = |since_us: Option<i64>| since_us.filter(|since_us| *since_us >= reading.issued_us);
    match object {
        SessionObject::Pod => {
            session.pod_doubt_since_us = still(session.pod_doubt_since_us);
            if let Some(there) = there {
                pods::written(session, at, there);
            }
        }
        SessionObject::Claim => {
            session.claim.doubt_since_us = still(session.claim.doubt_since_us);
            match there {
                Some(there) => session.claim.written(at, there),
                None => session.claim.listed(),
            }
        }
        SessionObject::Service => {
            session.service.doubt_since_us = still(session.service.doubt_since_us);
            match there {
                Some(there) => session.service.written(at, there),
                None => session.service.listed(),
            }
        }
    }
}

/// Our delete, by its step.
fn delete_of(session: &mut Session, step: Seq) -> Option<&mut Option<Delete>> {
    let Session { pod, claim, service, .. } = session;
    let of_pod = pod.as_mut().map(|pod| &mut pod.delete).filter(|delete| delete.is_some_and(|delete| delete.step == step));
    of_pod.or_else(|| claim.delete_of(step)).or_else(|| service.delete_of(step))
}

/// A step that was certainly not carried out, or whose repetition is harmless: the plan may decide it again.
fn unsent(session: &mut Session, step: Seq, flight: &Flight) {
    if let SessionStep::DeletePod { forced: true, .. } = flight.step {
        // The pod was being deleted before.
        unanswered(session, step);
    } else if let Some(delete) = delete_of(session, step) {
        *delete = None;
    }
}

fn unanswered(session: &mut Session, step: Seq) {
    if let Some(Some(delete)) = delete_of(session, step) {
        delete.unanswered = true;
    }
}

/// A step of an earlier life that the lists did not settle: it may have been sent in that life's last moment, and the server may
/// still carry it out.
pub(super) fn left_behind(session: &mut Session, at: At, step: Seq, flight: &Flight) {
    let (object, doing) = flight.step.act();
    let there = match object {
        SessionObject::Claim => session.claim.there().map(|claim| claim.deleting_since_us.is_some()),
        SessionObject::Service => session.service.there().map(|service| service.deleting_since_us.is_some()),
        SessionObject::Pod => session.pod.as_ref().map(|pod| pod.deleting_since_us.is_some()),
    };
    let forced = matches!(flight.step, SessionStep::DeletePod { forced: true, .. });
    match doing {
        SessionDoing::Make if there.is_none() => doubt(session, at, object),
        SessionDoing::Remove if forced || there == Some(false) => unanswered(session, step),
        SessionDoing::Make | SessionDoing::Remove | SessionDoing::Read => {}
    }
}
