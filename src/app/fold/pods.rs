//! The fold over what the cluster shows of pods, their ends and their last words.

use super::At;
use crate::app::ends;
use crate::app::state::{App, End, Exit, Flight, Host, Pod, Tail, Work};
use crate::events::kinds::pod::{ContainerState, GoneHow, PodGone, PodSeen};
use crate::events::kinds::step::{ObjectSeen, Purpose, Step};
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::{EndCause, PodEnded, Stage};
use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};

/// Uids that are remembered as gone, a host: enough for every observation that can still be under way.
const GONE_UIDS: usize = 8;
/// Counted exits kept a host: the crash limit is far below.
const EXITS: usize = 64;
/// Restarts that one observation can add: more than the window ever asks about.
const RESTARTS: u32 = 64;

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
    let mut pod = host.pod.take().unwrap_or_else(|| known_pod(view.uid.clone(), view.resource_version, at));
    let adopted = pod.view.is_none() && pod.seq == at.seq;
    pod.disruption = pod.disruption.or(view.disruption);
    if view.deleting && pod.deleting_since_us.is_none() {
        pod.deleting_since_us = Some(at.time_us);
    }
    let stage = ends::stage_shown(view);
    if stage != pod.stage || adopted {
        pod.stage = stage;
        pod.stage_since_us = ends::believed(ends::stage_began_us(view, stage), pod.seen_us, at.time_us);
    }
    if pod.end.is_none() {
        restarted(host, &mut pod, at, view);
        pod.end = ends::end_shown(&pod, view, at.seq, at.time_us);
        host.unrecorded.extend(pod.end.clone());
    }
    if pod.end.is_none() && matches!(view.app.state, ContainerState::Running { .. }) {
        host.not_back = None;
    }
    pod.resource_version = pod.resource_version.max(view.resource_version);
    pod.seq = at.seq;
    pod.seen_us = at.time_us;
    pod.view = Some(view.clone());
    host.gone = None;
    if matches!(host.work, Work::Bringing(_)) && pod.delete.is_none() && !pod.different {
        brought(host);
    }
    host.pod = Some(pod);
}

/// Restarts that the kubelet counted: each is an end of its own, once, and a number that runs back is none (cases B08).
fn restarted(host: &mut Host, pod: &mut Pod, at: At, view: &PodSeen) {
    let Some(last) = &view.app.last_end else {
        pod.restarts = pod.restarts.max(view.app.restarts);
        return;
    };
    for restart in pod.restarts.max(view.app.restarts.saturating_sub(RESTARTS))..view.app.restarts {
        let mut shown = view.clone();
        shown.app.state = ContainerState::Ended(last.clone());
        shown.app.restarts = restart;
        host.unrecorded.extend(ends::end_shown(pod, &shown, at.seq, at.time_us));
    }
    pod.restarts = pod.restarts.max(view.app.restarts);
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

/// A pod that our own write, or a first observation, made known.
pub(super) fn known_pod(uid: Uid, resource_version: u64, at: At) -> Pod {
    Pod {
        uid,
        resource_version,
        seq: at.seq,
        view: None,
        seen_us: at.time_us,
        stage: Stage::Scheduling,
        stage_since_us: at.time_us,
        disruption: None,
        deleting_since_us: None,
        delete: None,
        end: None,
        restarts: 0,
        different: false,
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
    remember_gone(host, &gone.uid);
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

fn remember_gone(host: &mut Host, uid: &Uid) {
    if !host.gone_uids.contains(uid) {
        host.gone_uids.push(uid.clone());
    }
    if host.gone_uids.len() > GONE_UIDS {
        host.gone_uids.remove(0);
    }
}

/// The end is in the log: it counts now, once.
pub(super) fn end_recorded(app: &mut App, at: At, ended: &PodEnded) {
    let Some(host) = app.hosts.get_mut(&ended.host) else { return };
    let same = |uid: &Uid, container: &Word, restart: u32| *uid == ended.uid && *container == ended.container && restart == ended.restart;
    host.unrecorded.retain(|end| !same(&end.uid, &end.container, end.restart));
    if matches!(ended.cause, EndCause::InstallFailed | EndCause::Stuck(_) | EndCause::NeverStarted(_)) {
        host.not_back = Some(at.seq);
    }
    if let Some(pod) = host.pod.as_mut().filter(|pod| pod.uid == ended.uid && pod.end.is_none()) {
        // The plan gave it up: what never starts, and what hangs in a stage.
        if matches!(ended.cause, EndCause::Stuck(_) | EndCause::NeverStarted(_)) {
            pod.end = Some(given_up(at, ended));
        }
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

fn given_up(at: At, ended: &PodEnded) -> End {
    End {
        seq: at.seq,
        uid: ended.uid.clone(),
        container: ended.container.clone(),
        restart: ended.restart,
        cause: ended.cause,
        exit_code: ended.exit_code,
        signal: ended.signal,
        reason: ended.reason.clone(),
        stage: ended.stage,
        node: ended.node.clone(),
        at_us: ended.at_us,
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
