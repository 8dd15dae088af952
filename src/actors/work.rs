//! What the cluster actor is given: steps to carry out and tails to read, of apps and of sessions, by a typed handle.

use std::time::Duration;

use ractor::ActorRef;

use super::perform::Tried;
use crate::clock::Clock;
use crate::events::kinds::session::{SessionDoing, SessionObject, SessionStep};
use crate::events::kinds::step::{Purpose, Step};
use crate::events::kinds::tail::TailOf;
use crate::ids::{RecordId, Seq, Subject};
use crate::kube::throttle::{Entry, Lane};

/// How long the steps under way may take to come back when the daemon stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// What waits for its turn.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) of: Subject,
    pub(super) id: RecordId,
    pub(super) what: What,
    /// When it was handed over, log time.
    pub(super) since_us: i64,
    /// API attempts sent so far: the next one's `Audit-ID` has the number after.
    pub(super) attempts: u32,
    /// Tries so far.
    pub(super) tries: u32,
    /// One of them may have been carried out: given up, the outcome is unknown whatever the last answer said.
    pub(super) doubtful: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A step of an app's host.
    Step(Step),
    /// A step of a session.
    Session(SessionStep),
    /// A container's last lines.
    Tail(TailOf),
}

pub(super) enum Message {
    Submit(Box<Work>, Lane),
    /// Something that may have been submitted before, by an actor that failed.
    Again(Box<Work>, Lane),
    Revoke(Seq),
    Tried(Box<Entry<Work>>, Box<Tried>),
    Look,
    Drain(ractor::RpcReplyPort<()>),
}

/// Hands steps to the cluster actor; cheap to clone.
#[derive(Clone)]
pub(super) struct ClusterHandle {
    actor: ActorRef<Message>,
    clock: Clock,
}

impl ClusterHandle {
    pub(super) fn new(actor: ActorRef<Message>, clock: Clock) -> Self {
        Self { actor, clock }
    }

    /// Carries out a step whose record is durable.
    pub(super) fn submit(&self, of: &Subject, id: RecordId, what: What, lane: Lane) {
        self.send(Message::Submit(self.work(of, id, what), lane));
    }

    /// The same for a step that may have been submitted before: it is carried out once.
    pub(super) fn submit_again(&self, of: &Subject, id: RecordId, what: What, lane: Lane) {
        self.send(Message::Again(self.work(of, id, what), lane));
    }

    /// Takes a step back if it is still unsent; its outcome tells.
    pub(super) fn revoke(&self, step: Seq) {
        self.send(Message::Revoke(step));
    }

    /// Reads a container's last words, in the lane of the removal that they gate.
    pub(super) fn read_tail(&self, subject: &Subject, id: RecordId, of: TailOf) {
        self.send(Message::Submit(self.work(subject, id, What::Tail(of)), Lane::Drain));
    }

    /// The same for one that may have been asked for before.
    pub(super) fn read_tail_again(&self, subject: &Subject, id: RecordId, of: TailOf) {
        self.send(Message::Again(self.work(subject, id, What::Tail(of)), Lane::Drain));
    }

    fn work(&self, of: &Subject, id: RecordId, what: What) -> Box<Work> {
        Box::new(Work { of: of.clone(), id, what, since_us: self.clock.now_us(), attempts: 0, tries: 0, doubtful: false })
    }

    fn send(&self, message: Message) {
        // Without the cluster actor the incarnation is at its end.
        let _ = self.actor.cast(message);
    }

    /// Sends nothing more, and waits for what is under way, at most [`DRAIN_LIMIT`].
    pub(super) async fn drain(&self) {
        let _ = self.actor.call(Message::Drain, Some(DRAIN_LIMIT)).await;
    }
}

/// The lane of an app's step.
pub(super) fn lane_of(step: &Step, purpose: Purpose) -> Lane {
    match (step, purpose) {
        (Step::DeletePod { .. }, Purpose::Stop) => Lane::Drain,
        (Step::DeleteSecret { .. } | Step::ReadPod { .. } | Step::ReadSecret { .. }, _) | (_, Purpose::Stop) => Lane::Delete,
        (_, Purpose::Revive { .. }) => Lane::Resume,
        (_, Purpose::Start) => Lane::Create,
    }
}

/// The lane of a session's step: a caller waits for what is made, and what is made next waits for a pod that goes.
pub(super) fn lane_of_session(step: &SessionStep) -> Lane {
    match step.act() {
        (SessionObject::Pod, SessionDoing::Remove) => Lane::Drain,
        (_, SessionDoing::Make) => Lane::Resume,
        (_, SessionDoing::Remove | SessionDoing::Read) => Lane::Delete,
    }
}
