//! The fold over what the cluster shows of a session's pod, its end and its last words.

use super::calls::close;
use super::objects::{is_there, moved_on};
use crate::events::kinds::pod::{GoneHow, PodSeen};
use crate::events::kinds::session::{SessionObject, SessionStep};
use crate::events::kinds::step::ObjectSeen;
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::PodEnded;
use crate::ids::{Seq, Uid};
use crate::session::known::is_going;
use crate::session::state::{ClosedHow, Session};
use crate::subject::ends;
use crate::subject::pod::{At, End, Pod, Tail, remember_gone};

/// The pod as a list or the watch showed it.
pub(super) fn seen(session: &mut Session, at: At, view: &PodSeen) {
    if session.pod_gone_uids.contains(&view.uid) {
        return;
    }
    if let Some(known) = &session.pod {
        if known.uid == view.uid {
            if view.resource_version <= known.resource_version && known.view.is_some() {
                return;
            }
        } else if view.resource_version < known.resource_version {
            return;
        } else {
            // A name has one pod at a time: the former one went and nobody told.
            let former = known.uid.clone();
            gone(session, at, &former, GoneHow::Absent);
            // What has its place goes on with what is wanted.
            came_after(session, former);
        }
    }
    is_there(session, SessionObject::Pod, view.step);
    let first = session.pod.is_none();
    session.pod_name = Some(view.host.clone());
    let mut pod = session.pod.take().unwrap_or_else(|| Pod::known(view.uid.clone(), view.resource_version, at));
    session.unrecorded.extend(pod.take(view, at));
    if view.ready && pod.runs() && !is_going(&pod) {
        session.ready_since_us.get_or_insert(at.time_us);
    }
    let of_the_demand = session.wanted.as_ref().is_some_and(|wanted| view.step.is_some_and(|step| step.seq > wanted.seq));
    if first && (pod.end.is_some() || is_going(&pod)) && !of_the_demand {
        // One that nobody knew was on its way out before it was wanted.
        came_after(session, view.uid.clone());
    }
    session.pod = Some(pod);
}

/// What is wanted is wanted after that pod: its end is another matter.
fn came_after(session: &mut Session, uid: Uid) {
    if let Some(wanted) = &mut session.wanted {
        wanted.after = Some(uid);
    }
}

/// A write of ours showed it.
pub(super) fn written(session: &mut Session, at: At, object: &ObjectSeen) {
    if session.pod_gone_uids.contains(&object.uid) {
        return;
    }
    match &mut session.pod {
        Some(pod) if pod.uid == object.uid => {
            pod.resource_version = pod.resource_version.max(object.resource_version);
            return;
        }
        Some(pod) if pod.resource_version > object.resource_version => return,
        Some(former) => {
            let former = former.uid.clone();
            gone(session, at, &former, GoneHow::Absent);
        }
        None => {}
    }
    session.pod = Some(Pod::known(object.uid.clone(), object.resource_version, at));
}

/// A pod's uid is gone.
pub(super) fn gone(session: &mut Session, at: At, uid: &Uid, how: GoneHow) {
    remember_gone(&mut session.pod_gone_uids, uid);
    session.flights.retain(|_, flight| !matches!(&flight.step, SessionStep::DeletePod { uid: of, .. } if of == uid));
    let Some(pod) = session.pod.take_if(|pod| pod.uid == *uid) else { return };
    if pod.end.is_none() {
        let node = pod.view.as_ref().and_then(|view| session.nodes.get(&view.node)).copied();
        session.unrecorded.push(ends::end_unseen(&pod, how, node, at.seq, at.time_us));
    }
    session.ready_since_us = None;
    moved_on(session, at, SessionObject::Pod);
}

/// The end is in the log: what was wanted is over, unless it was wanted after that pod.
pub(super) fn end_recorded(session: &mut Session, at: At, ended: &PodEnded) {
    session.unrecorded.retain(|end| end.uid != ended.uid);
    if let Some(pod) = &mut session.pod {
        pod.give_up(at, ended);
    }
    session.last_end = Some(End::of(at.seq, ended));
    if session.closes(&ended.uid) {
        close(session, at, ClosedHow::Ended(ended.cause));
    }
}

/// The last lines were asked for.
pub(super) fn tail_asked(session: &mut Session, of: &TailOf) {
    session.tails.insert(of.clone(), Tail { incarnation: session.incarnation, settled: false, kept: None });
}

/// They are kept, or known not to be had.
pub(super) fn tail_settled(session: &mut Session, of: &TailOf, kept: Option<Seq>) {
    if let Some(tail) = session.tails.get_mut(of) {
        tail.settled = true;
        tail.kept = kept;
    }
}
