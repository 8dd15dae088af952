//! What a session is, as callers see it, and the answer that a call gets: functions of the state alone.

use std::net::IpAddr;

use super::known::{is_for_good, is_going};
use super::state::{ClosedHow, Session};
use crate::events::kinds::pod::Scheduling;
use crate::events::kinds::session::{SessionDoing, SessionFault, SessionObject, SessionStage};
use crate::events::kinds::step::Refusal;
use crate::events::kinds::verdict::EndCause;
use crate::ids::{HostName, Seq, Tenant, Uid, Word};
use crate::subject::hindrance::Hindered;
use crate::subject::pod::End;

/// The state that a session is in (sessions.md, "What a session is").
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing of it is there or wanted.
    Absent,
    /// It is being brought.
    Provisioning {
        /// What is made or waited for.
        stage: SessionStage,
        /// What that waits for, when something is known to be in the way.
        waits_for: Option<WaitsFor>,
    },
    /// Its pod is ready.
    Ready,
    /// Its pod has ended and is still there.
    Exited,
    /// Its pod is gone and its claim kept.
    Suspended,
    /// It is being deleted or suspended.
    Deleting,
    /// It cannot be brought.
    Failed(Failure),
}

/// What provisioning waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsFor {
    /// An old pod that is still terminating: its claim may be written still.
    OldPod,
    /// An old claim that is being deleted.
    OldClaim,
    /// A node that takes the pod.
    Node,
    /// What a container waits for, in the kubelet's word, for example `ImagePullBackOff`.
    Kubelet(Word),
    /// A write that nobody answered.
    Api,
}

/// Why there is no pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// Why.
    pub code: Code,
    /// In which stage.
    pub stage: SessionStage,
    /// Whether it is tried on; if not, the next call begins anew.
    pub retrying: bool,
}

/// Why a session cannot be brought, or is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The API server refuses an object, or its name is taken.
    Refused(Refusal),
    /// All stages together took too long.
    TooLong,
    /// Its pod ended.
    Ended(EndCause),
    /// It was deleted or suspended meanwhile.
    Removed,
    /// It broke an invariant and is not acted on.
    Quarantined,
}

/// A session as callers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View<'a> {
    /// Its state.
    pub state: State,
    /// Whose it is.
    pub tenant: Option<&'a Tenant>,
    /// Its pod's name, as far as there is or was one.
    pub pod_name: Option<&'a HostName>,
    /// Its pod's identity.
    pub pod_uid: Option<&'a Uid>,
    /// Its claim's name.
    pub claim_name: Option<&'a Word>,
    /// Its Service's name.
    pub service_name: Option<&'a Word>,
    /// Its Service's address.
    pub service_address: Option<IpAddr>,
    /// Its pod's node.
    pub node: Option<&'a Word>,
    /// Since when it is ready, log time.
    pub ready_at_us: Option<i64>,
    /// Whether the claim was made for what is wanted now, and holds nothing yet.
    pub fresh_data: bool,
    /// When it was first asked for, log time.
    pub asked_us: Option<i64>,
    /// When it was last asked for or in use, log time.
    pub active_us: Option<i64>,
    /// How its last pod ended.
    pub last_end: Option<&'a End>,
    /// The record that keeps that pod's last lines.
    pub tail: Option<Seq>,
    /// An operator froze it.
    pub frozen: bool,
}

/// What a call for the session to run gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet: ask again after the next reaction. At the caller's deadline it is what the view's state says.
    Wait,
    /// It is ready.
    Ready {
        /// An existing claim or pod was used.
        resumed: bool,
    },
    /// It is not, and waiting on would not help, or not soon.
    Failed(Failure),
}

/// What a call for the session to be deleted or suspended gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// Everything that was to go is gone.
    Done,
    /// That is left, and why no more can be done about it at this moment.
    Left {
        /// Its objects that are still there, or may be.
        objects: Vec<SessionObject>,
        /// What the API server has against deleting one of them.
        refused: Option<Refusal>,
    },
}

/// The session as callers see it.
#[must_use]
pub fn view(session: &Session) -> View<'_> {
    let pod = session.pod.as_ref();
    let service = session.service.there().and_then(|service| service.view.as_ref());
    let tail = session.tails.values().find_map(|tail| tail.kept);
    View {
        state: state(session),
        tenant: session.tenant(),
        pod_name: session.pod_name.as_ref(),
        pod_uid: pod.map(|pod| &pod.uid),
        claim_name: session.claim.name.as_ref(),
        service_name: session.service.name.as_ref(),
        service_address: service.and_then(|service| service.address),
        node: pod.and_then(|pod| pod.view.as_ref()).map(|view| &view.node).filter(|node| !node.is_empty()),
        ready_at_us: session.ready_since_us.filter(|_| session.is_ready()),
        fresh_data: is_fresh(session),
        asked_us: session.asked_us,
        active_us: session.active_us,
        last_end: pod.and_then(|pod| pod.end.as_ref()).or(session.unrecorded.last()).or(session.last_end.as_ref()),
        tail,
        frozen: session.frozen,
    }
}

/// What a call gets that was recorded as `demand`, or joined it.
#[must_use]
pub fn answer(session: &Session, demand: Seq) -> Answer {
    if session.quarantined {
        return Answer::Failed(Failure { code: Code::Quarantined, stage: session.stage(), retrying: false });
    }
    if let Some(closed) = session.closed.filter(|closed| closed.of >= demand) {
        return Answer::Failed(failure(session, closed.how));
    }
    if session.is_ready() {
        return Answer::Ready { resumed: !is_fresh(session) };
    }
    match hindered(session) {
        Some(failure) if session.removing.is_none() => Answer::Failed(failure),
        Some(_) | None => Answer::Wait,
    }
}

/// What a call for a removal gets.
#[must_use]
pub fn removed(session: &Session) -> Removed {
    let Some(removing) = session.removing else { return Removed::Done };
    let flies = |object: SessionObject| session.flights.values().any(|flight| flight.step.act().0 == object);
    let mut objects = Vec::new();
    if session.pod.is_some() || session.pod_doubt_since_us.is_some() || flies(SessionObject::Pod) {
        objects.push(SessionObject::Pod);
    }
    if !removing.keep_workspace && (!session.service.is_clean() || flies(SessionObject::Service)) {
        objects.push(SessionObject::Service);
    }
    if !removing.keep_workspace && (!session.claim.is_clean() || flies(SessionObject::Claim)) {
        objects.push(SessionObject::Claim);
    }
    let refused = objects.iter().find_map(|object| match session.hindrances.get(&(*object, SessionDoing::Remove))?.what {
        Hindered::Refused(refusal) => Some(refusal),
        Hindered::NameHeld | Hindered::Unanswered | Hindered::Unsent => None,
    });
    Removed::Left { objects, refused }
}

/// Whether the claim was made for what is wanted, or for what was wanted last.
fn is_fresh(session: &Session) -> bool {
    let demand = session.wanted.as_ref().map(|wanted| wanted.seq).or(session.closed.map(|closed| closed.of));
    demand.is_some_and(|demand| session.made.is_some_and(|made| made > demand))
}

fn state(session: &Session) -> State {
    if session.removing.is_some() {
        return State::Deleting;
    }
    if session.is_ready() {
        return State::Ready;
    }
    if session.wanted.is_some() {
        let provisioning = || State::Provisioning { stage: session.stage(), waits_for: waits_for(session) };
        return hindered(session).map_or_else(provisioning, State::Failed);
    }
    match &session.pod {
        Some(pod) if pod.end.is_some() || is_going(pod) => State::Exited,
        Some(_) => State::Provisioning { stage: session.stage(), waits_for: waits_for(session) },
        None => match session.closed {
            Some(closed) if closed.how.is_failure() => State::Failed(failure(session, closed.how)),
            Some(_) | None if session.claim.there().is_some() => State::Suspended,
            Some(_) | None => State::Absent,
        },
    }
}

/// What the API server has against an object that is to be made.
fn hindered(session: &Session) -> Option<Failure> {
    session.wanted.as_ref()?;
    let objects = [SessionObject::Claim, SessionObject::Pod, SessionObject::Service].into_iter();
    let (object, refusal) = objects.filter_map(|object| Some((object, session.refused(object)?.0))).next()?;
    let stage = match (object, refusal) {
        (SessionObject::Claim, _) => SessionStage::Claim,
        (SessionObject::Pod, Refusal::NetworkPolicy) => SessionStage::Policy,
        (SessionObject::Pod | SessionObject::Service, _) => SessionStage::Pod,
    };
    Some(Failure { code: Code::Refused(refusal), stage, retrying: !is_for_good(refusal) })
}

fn failure(session: &Session, how: ClosedHow) -> Failure {
    let (code, stage) = match how {
        ClosedHow::Failed(SessionFault::Refused(refusal), stage) => (Code::Refused(refusal), stage),
        ClosedHow::Failed(SessionFault::TooLong, stage) => (Code::TooLong, stage),
        ClosedHow::Ended(cause) => (Code::Ended(cause), end_stage(session)),
        ClosedHow::Removed => (Code::Removed, session.stage()),
    };
    Failure { code, stage, retrying: false }
}

fn end_stage(session: &Session) -> SessionStage {
    use crate::events::kinds::verdict::Stage;
    match session.last_end.as_ref().map(|end| end.stage) {
        Some(Stage::Scheduling) => SessionStage::Scheduling,
        Some(Stage::Pull | Stage::Install) => SessionStage::Pull,
        Some(Stage::Register | Stage::Serving) => SessionStage::Starting,
        Some(Stage::Terminating) | None => SessionStage::Pod,
    }
}

fn waits_for(session: &Session) -> Option<WaitsFor> {
    if session.claim.there().is_some_and(super::held::Thing::is_going) {
        return Some(WaitsFor::OldClaim);
    }
    let unanswered = session
        .hindrances
        .iter()
        .any(|((_, doing), hindrance)| *doing == SessionDoing::Make && matches!(hindrance.what, Hindered::Unanswered | Hindered::Unsent));
    let Some(pod) = &session.pod else { return unanswered.then_some(WaitsFor::Api) };
    if pod.end.is_some() || is_going(pod) {
        return Some(WaitsFor::OldPod);
    }
    if pod.view.as_ref().is_some_and(|view| view.scheduling == Scheduling::Unschedulable) {
        return Some(WaitsFor::Node);
    }
    let reason = pod.waiting_reason();
    if reason.is_empty() { unanswered.then_some(WaitsFor::Api) } else { Some(WaitsFor::Kubelet(reason)) }
}
