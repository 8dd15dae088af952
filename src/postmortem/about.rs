//! Which host and which pod a record is about. Pure.

use crate::events::kinds::step::Step;
use crate::events::record::Event;
use crate::ids::{HostName, Seq, Uid};

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

/// The pod a record names, by its uid.
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
        Event::StepSettled(settled) => settled.object.as_ref().map(|object| &object.uid),
        _ => None,
    }
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
