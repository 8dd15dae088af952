//! The fold over what the cluster shows of pods, their ends and their last words.

use super::At;
use crate::app::ends;
use crate::app::state::{App, Exit, Flight, Host, Pod, Tail, Work};
use crate::events::kinds::pod::{GoneHow, PodGone, PodSeen};
use crate::events::kinds::step::{ObjectSeen, Purpose, Step};
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::{EndCause, PodEnded};
use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};
use crate::subject::pod::remember_gone;

/// Counted exits kept a host: the crash limit is far below.
const EXITS: usize = 64;

/// A pod as a list or the watch showed it.
pub(super) fn seen(app: &mut App, at: At, view: &PodSeen) {
    let host = app.hosts.entry(view.host.clone()).or_default();
    if host.gone_uids.contains(&view.uid) {
        return;
    }
    if let Some(known) = &host.pod {
        if known.uid == view.uid {
            let newer = view.resource_version > known.resource_version;
            if !newer && known.view.is_some() {
                return;
            }
        } else if view.resource_version < known.resource_version {
            return;
        } else {
            // A name has one pod at a time: the former one went and nobody told.
            let uid = known.uid.clone();
            let gone = PodGone { host: view.host.clone(), uid, resource_version: view.resource_version, how: GoneHow::Absent };
            self::gone(app, at, &gone);
        }
    }
    let host = app.hosts.entry(view.host.clone()).or_default();
    take_view(host, at, view);
}

fn take_view(host: &mut Host, at: At, view: &PodSeen) {
    settle_create(host, view);
    if host.release == 0 {
        host.release = view.release;
    }
    host.sha256 = host.sha256.or(view.sha256);
    let mut pod = host.pod.take().unwrap_or_else(|| Pod::known(view.uid.clone(), view.resource_version, at));
    host.unrecorded.extend(pod.take(view, at));
    if pod.runs() {
        host.not_back = None;
    }
    host.gone = None;
    if matches!(host.work, Work::Bringing(_)) && pod.delete.is_none() && !pod.different {
        brought(host);
    }
    host.pod = Some(pod);
}

/// An observation that carries our step's id settles that step.
fn settle_create(host: &mut Host, view: &PodSeen) {
    let Some(step) = view.step else { return };
    let is_create = |flight: &Flight| matches!(flight.step, Step::CreatePod { .. });
    if host.flights.get(&step.seq).is_some_and(is_create) {
        host.flights.remove(&step.seq);
        host.hindrance = None;
    }
}

/// The start or revive under way has its pod.
pub(super) fn brought(host: &mut Host) {
    host.work = Work::Rest;
    host.secret_put = false;
    host.hindrance = None;
    host.doubt_since_us = None;
}

/// A pod's uid is gone.
pub(super) fn gone(app: &mut App, at: At, gone: &PodGone) {
    let Some(host) = app.hosts.get_mut(&gone.host) else { return };
    remember_gone(&mut host.gone_uids, &gone.uid);
    host.flights.retain(|_, flight| !matches!(&flight.step, Step::DeletePod { uid, .. } if *uid == gone.uid));
    let Some(pod) = host.pod.take_if(|pod| pod.uid == gone.uid) else { return };
    host.moved = at.seq;
    // What hindered was about this pod, or about making it: the next one is another matter.
    host.hindrance = None;
    let end = pod.end.clone().unwrap_or_else(|| {
        let node = pod.view.as_ref().and_then(|view| app.nodes.get(&view.node)).copied();
        let end = ends::end_unseen(&pod, gone.how, node, at.seq, at.time_us);
        host.unrecorded.push(end.clone());
        end
    });
    match host.work {
        Work::Bringing(Purpose::Revive { .. }) => {}
        Work::Stopping => host.work = Work::Rest,
        Work::Rest | Work::Bringing(Purpose::Start | Purpose::Stop) => {
            host.work = Work::Rest;
            host.gone = Some(end);
        }
    }
}

/// A write of ours showed another pod under the name than the one that is known: that one went, and nobody told.
pub(super) fn replaced(app: &mut App, at: At, host: &HostName, by: &ObjectSeen) {
    let known = app.hosts.get(host).filter(|host| !host.gone_uids.contains(&by.uid)).and_then(|host| host.pod.as_ref());
    let Some(pod) = known.filter(|pod| pod.uid != by.uid && pod.resource_version <= by.resource_version) else { return };
    let uid = pod.uid.clone();
    gone(app, at, &PodGone { host: host.clone(), uid, resource_version: by.resource_version, how: GoneHow::Absent });
}

/// The end is in the log: it counts now, once.
pub(super) fn end_recorded(app: &mut App, at: At, ended: &PodEnded) {
    let Some(host) = app.hosts.get_mut(&ended.host) else { return };
    let same = |uid: &Uid, container: &Word, restart: u32| *uid == ended.uid && *container == ended.container && restart == ended.restart;
    host.unrecorded.retain(|end| !same(&end.uid, &end.container, end.restart));
    if matches!(ended.cause, EndCause::InstallFailed | EndCause::Stuck(_) | EndCause::NeverStarted(_)) {
        host.not_back = Some(at.seq);
    }
    if let Some(pod) = &mut host.pod {
        pod.give_up(at, ended);
    }
    let known = host.exits.iter().any(|exit| same(&exit.uid, &exit.container, exit.restart));
    if ended.counted && !known {
        let exit = Exit { at_us: ended.at_us, uid: ended.uid.clone(), container: ended.container.clone(), restart: ended.restart };
        host.exits.push(exit);
        if host.exits.len() > EXITS {
            host.exits.remove(0);
        }
    }
}

/// The last lines were asked for.
pub(super) fn tail_asked(app: &mut App, of: &TailOf) {
    let incarnation = app.incarnation;
    let host = app.hosts.entry(of.host.clone()).or_default();
    // One pod's tails at a time: those of a former pod are in the log.
    host.tails.retain(|known, tail| known.uid == of.uid || !tail.settled);
    host.tails.insert(of.clone(), Tail { incarnation, settled: false, kept: None });
}

/// They are kept, or known not to be had.
pub(super) fn tail_settled(app: &mut App, of: &TailOf, kept: Option<Seq>) {
    if let Some(tail) = app.hosts.get_mut(&of.host).and_then(|host| host.tails.get_mut(of)) {
        tail.settled = true;
        tail.kept = kept;
    }
}

/// What a step says that a host runs.
pub(super) fn runs(host: &mut Host, release: u64, sha256: Option<PackageDigest>) {
    host.release = release;
    host.sha256 = sha256.or(host.sha256);
}
