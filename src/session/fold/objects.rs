//! The fold over what the cluster shows of a session's claim and Service.

use crate::events::kinds::session::{ClaimSeen, ServiceSeen, SessionDoing, SessionObject, SessionStep};
use crate::ids::{RecordId, Uid};
use crate::session::held::Shown as _;
use crate::session::state::Session;
use crate::subject::pod::At;

/// The claim as a list, the watch or a write showed it.
pub(super) fn claim_seen(session: &mut Session, at: At, seen: &ClaimSeen) {
    let before = session.claim.there().map(|claim| claim.uid.clone());
    if !session.claim.seen(at, seen) {
        return;
    }
    if before.is_some_and(|before| before != seen.uid) {
        session.made = None;
    }
    is_there(session, SessionObject::Claim, seen.step());
}

/// It is gone.
pub(super) fn claim_gone(session: &mut Session, at: At, uid: &Uid) {
    session.flights.retain(|_, flight| !matches!(&flight.step, SessionStep::DeleteClaim { uid: of, .. } if of == uid));
    if session.claim.gone(uid) {
        session.made = None;
        moved_on(session, at, SessionObject::Claim);
    }
}

/// The Service as a list, the watch or a write showed it.
pub(super) fn service_seen(session: &mut Session, at: At, seen: &ServiceSeen) {
    if session.service.seen(at, seen) {
        is_there(session, SessionObject::Service, seen.step());
    }
}

/// It is gone.
pub(super) fn service_gone(session: &mut Session, at: At, uid: &Uid) {
    session.flights.retain(|_, flight| !matches!(&flight.step, SessionStep::DeleteService { uid: of, .. } if of == uid));
    if session.service.gone(uid) {
        moved_on(session, at, SessionObject::Service);
    }
}

/// It was seen: an observation that carries our step's id settles that step, and what hindered its making is no matter any more.
pub(super) fn is_there(session: &mut Session, object: SessionObject, step: Option<RecordId>) {
    let act = (object, SessionDoing::Make);
    if let Some(step) = step
        && session.flights.get(&step.seq).is_some_and(|flight| flight.step.act() == act)
    {
        session.flights.remove(&step.seq);
    }
    let differs = session.service.there().and_then(|service| service.view.as_ref()).is_some_and(|view| !view.as_made);
    if object != SessionObject::Service || !differs {
        session.hindrances.remove(&act);
    }
}

/// What hindered was about the object that is gone, or about its name: the next one is another matter.
pub(super) fn moved_on(session: &mut Session, at: At, object: SessionObject) {
    session.hindrances.remove(&(object, SessionDoing::Make));
    session.hindrances.remove(&(object, SessionDoing::Remove));
    session.moved = at.seq;
}
