//! Which host and which object a record is about. Pure.

use crate::events::kinds::pod::{PodGone, PodSeen};
use crate::events::kinds::session::{ClaimGone, ClaimSeen, ServiceGone, ServiceSeen, SessionStep, SessionStepIssued};
use crate::events::kinds::step::{Step, StepIssued};
use crate::events::record::Event;
use crate::ids::{HostName, RecordId, Seq, Uid};

/// The host a record names; `None` when it is about the whole subject, or another record.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "a record of any other kind names none")]
pub fn host(event: &Event) -> Option<&HostName> {
    match event {
        Event::PodSeen(seen) => Some(&seen.host),
        Event::PodGone(gone) => Some(&gone.host),
        Event::SecretSeen(seen) => Some(&seen.host),
        Event::SecretGone(gone) => Some(&gone.host),
        Event::VerdictReached(reached) => Some(&reached.host),
        Event::PodEnded(ended) => Some(&ended.host),
        Event::AlarmRaised(raised) => raised.host.as_ref(),
        Event::StepIssued(issued) => Some(issued.step.host()),
        Event::SessionStepIssued(issued) => match &issued.step {
            SessionStep::CreatePod { name, .. } | SessionStep::DeletePod { name, .. } | SessionStep::ReadPod { name } => Some(name),
            _ => None,
        },
        Event::TailAsked(asked) => Some(&asked.of.host),
        Event::TailKept(kept) => Some(&kept.of.host),
        Event::TailUnavailable(lacks) => Some(&lacks.of.host),
        Event::TailText(text) => Some(&text.of.host),
        Event::MessageText(text) => Some(&text.of.host),
        Event::RetryAsked(asked) => Some(&asked.host),
        Event::EnvironmentFetched(fetched) => Some(&fetched.host),
        _ => None,
    }
}

/// The object a record names, by its uid: a pod, a claim or a Service.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "a record of any other kind names none")]
pub fn uid(event: &Event) -> Option<&Uid> {
    match event {
        Event::PodSeen(seen) => Some(&seen.uid),
        Event::PodGone(gone) => Some(&gone.uid),
        Event::VerdictReached(reached) => reached.uid.as_ref(),
        Event::PodEnded(ended) => Some(&ended.uid),
        Event::StepIssued(issued) => match &issued.step {
            Step::DeletePod { uid, .. } => Some(uid),
            Step::PutSecret { .. }
            | Step::CreatePod { .. }
            | Step::DeleteSecret { .. }
            | Step::ReadPod { .. }
            | Step::ReadSecret { .. } => None,
        },
        Event::SessionStepIssued(issued) => match &issued.step {
            SessionStep::DeletePod { uid, .. } | SessionStep::DeleteService { uid, .. } | SessionStep::DeleteClaim { uid, .. } => Some(uid),
            _ => None,
        },
        Event::ClaimSeen(seen) => Some(&seen.uid),
        Event::ClaimGone(gone) => Some(&gone.uid),
        Event::ServiceSeen(seen) => Some(&seen.uid),
        Event::ServiceGone(gone) => Some(&gone.uid),
        Event::StepSettled(settled) => settled.object.as_ref().map(|object| &object.uid),
        _ => None,
    }
}

/// The object that a step deletes.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "no other record is a delete")]
pub fn deletes(event: &Event) -> Option<&Uid> {
    match event {
        Event::StepIssued(StepIssued { step: Step::DeletePod { .. }, .. }) => uid(event),
        // Of a session's steps those alone name one.
        Event::SessionStepIssued(_) => uid(event),
        _ => None,
    }
}

/// The host of the pod that a step makes.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "no other record makes one")]
pub fn makes_pod(event: &Event) -> Option<&HostName> {
    match event {
        Event::StepIssued(StepIssued { step: Step::CreatePod { .. }, .. })
        | Event::SessionStepIssued(SessionStepIssued { step: SessionStep::CreatePod { .. }, .. }) => host(event),
        _ => None,
    }
}

/// The object that an observation shows, with the step of ours that its annotation names.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "no other record shows one")]
pub fn shows(event: &Event) -> Option<Shown<'_>> {
    match event {
        Event::PodSeen(PodSeen { uid, step, deleting, .. })
        | Event::ClaimSeen(ClaimSeen { uid, step, deleting, .. })
        | Event::ServiceSeen(ServiceSeen { uid, step, deleting, .. }) => Some(Shown { uid, step: step.as_ref(), leaving: *deleting }),
        Event::PodGone(PodGone { uid, .. }) | Event::ClaimGone(ClaimGone { uid, .. }) | Event::ServiceGone(ServiceGone { uid, .. }) => {
            Some(Shown { uid, step: None, leaving: true })
        }
        _ => None,
    }
}

/// What an observation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// Which object.
    pub uid: &'a Uid,
    /// The step of ours that its annotation names.
    pub step: Option<&'a RecordId>,
    /// It is being deleted, or gone.
    pub leaving: bool,
}

/// The version that the API server gave what a record shows; `None` where it is not known.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "a record of any other kind has none")]
pub fn version(event: &Event) -> Option<u64> {
    let version = match event {
        Event::PodSeen(seen) => seen.resource_version,
        Event::PodGone(gone) => gone.resource_version,
        Event::ClaimSeen(seen) => seen.resource_version,
        Event::ClaimGone(gone) => gone.resource_version,
        Event::ServiceSeen(seen) => seen.resource_version,
        Event::ServiceGone(gone) => gone.resource_version,
        _ => 0,
    };
    Some(version).filter(|version| *version > 0)
}

/// The step a record tells something of.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "a record of any other kind names none")]
pub fn step(event: &Event) -> Option<Seq> {
    match event {
        Event::StepSettled(settled) => Some(settled.step),
        Event::StepRevoked(revoked) => Some(revoked.step),
        Event::StepWithheld(withheld) => Some(withheld.step),
        Event::ApiCalled(called) => Some(called.step),
        Event::StepExplained(explained) => Some(explained.step),
        _ => None,
    }
}
