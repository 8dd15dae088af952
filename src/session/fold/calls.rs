//! The fold over what callers ask for, and over what becomes of it.

use crate::events::kinds::session::{SessionAsked, SessionDeleteAsked, SessionDoing, SessionFailed};
use crate::session::known::is_going;
use crate::session::state::{Closed, ClosedHow, Removing, Session, Wanted};
use crate::subject::pod::At;

/// It is to run. A tenant is for life: a session of which nothing is left begins another one.
pub(super) fn asked(session: &mut Session, at: At, asked: &SessionAsked) {
    if session.is_vacant() || session.tenant.is_none() {
        session.tenant = Some(asked.tenant.clone());
    } else if session.tenant.as_ref() != Some(&asked.tenant) {
        return;
    }
    // What was refused before is tried again, so that this caller hears why; what was to go is not any more, unless it is removed.
    let removing = session.removing.is_some();
    session.hindrances.retain(|(_, doing), _| *doing == SessionDoing::Remove && removing);
    let leaving = session.pod.as_ref().filter(|pod| session.removing.is_some() || pod.end.is_some() || is_going(pod));
    let after = leaving.map(|pod| pod.uid.clone()).or_else(|| session.unrecorded.last().map(|end| end.uid.clone()));
    session.wanted = Some(Wanted { seq: at.seq, since_us: at.time_us, force_after_us: asked.force_after_us, after });
    session.asked_us.get_or_insert(at.time_us);
    session.active_us = Some(at.time_us);
    session.moved = at.seq;
}

/// It is to go, or its pod alone: a deletion under way does not become less by another call, and what was wanted is not any more.
pub(super) fn delete_asked(session: &mut Session, at: At, asked: &SessionDeleteAsked) {
    close(session, at, ClosedHow::Removed);
    session.hindrances.retain(|(_, doing), _| *doing != SessionDoing::Remove);
    let before = session.removing;
    session.removing = Some(Removing {
        seq: at.seq,
        since_us: at.time_us,
        keep_workspace: asked.keep_workspace && before.is_none_or(|before| before.keep_workspace),
        force_after_us: asked.force_after_us.or(before.and_then(|before| before.force_after_us)),
    });
    session.asked_us.get_or_insert(at.time_us);
    session.moved = at.seq;
}

/// It is given up.
pub(super) fn failed(session: &mut Session, at: At, failed: &SessionFailed) {
    close(session, at, ClosedHow::Failed(failed.fault, failed.stage));
}

/// What was to go is gone.
pub(super) fn removed(session: &mut Session, at: At, keep_workspace: bool) {
    session.removing = None;
    session.moved = at.seq;
    if !keep_workspace {
        session.made = None;
        session.pod_name = None;
        session.claim.name = None;
        session.service.name = None;
    }
}

/// The demand is no more.
pub(super) fn close(session: &mut Session, at: At, how: ClosedHow) {
    if let Some(wanted) = session.wanted.take() {
        session.closed = Some(Closed { of: wanted.seq, seq: at.seq, how });
        session.moved = at.seq;
    }
}
