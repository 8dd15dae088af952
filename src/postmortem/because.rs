//! From a record to the one that made it so. Pure.
//!
//! A decision names its cause. What was observed names none: it is joined with the step of ours that brought it about, by the
//! step's number in the pod's annotation or by the uid that the step was decided on; else it is where the chain begins.

use super::about;
use super::history::{Entry, History};
use crate::events::kinds::pod::PodSeen;
use crate::events::kinds::step::Step;
use crate::events::record::Event;
use crate::ids::{Seq, Uid};

/// How a record hangs on the next one of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It was decided because of it.
    Decided,
    /// It is what became of that step.
    OutcomeOf,
    /// It shows what that step of ours did.
    Shows,
    /// Nothing in the log made it so: it came from outside.
    Input,
}

impl Because {
    /// As programs read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::OutcomeOf => "outcome_of",
            Self::Shows => "shows",
            Self::Input => "input",
        }
    }
}

/// What made a record so; nothing for an input that no step of ours explains.
#[must_use]
pub fn because(history: &History, entry: &Entry) -> (Because, Option<Seq>) {
    let decided = || match entry.header.cause {
        Seq::NONE => (Because::Input, None),
        cause => (Because::Decided, Some(cause)),
    };
    let Some(event) = &entry.event else { return decided() };
    if let Some(step) = about::step(event)
        && !matches!(event, Event::StepRevoked(_))
    {
        return (Because::OutcomeOf, Some(step));
    }
    let shown = if let Event::PodGone(gone) = event {
        deleted_by(history, &gone.uid, entry.header.seq)
    } else if let Event::PodSeen(seen) = event {
        if seen.deleting {
            deleted_by(history, &seen.uid, entry.header.seq)
        } else {
            Some(seen).filter(|seen| is_first_of_its_pod(history, seen, entry.header.seq)).and_then(|seen| made_by(history, seen, entry))
        }
    } else {
        None
    };
    match shown {
        Some(step) => (Because::Shows, Some(step)),
        None => decided(),
    }
}

/// The last step before `seq` that deletes the pod.
fn deleted_by(history: &History, gone: &Uid, seq: Seq) -> Option<Seq> {
    let deletes =
        |event: &Event| matches!(event, Event::StepIssued(issued) if matches!(&issued.step, Step::DeletePod { uid, .. } if uid == gone));
    history.before(seq).find(|(_, event)| deletes(event)).map(|(header, _)| header.seq)
}

fn is_first_of_its_pod(history: &History, seen: &PodSeen, seq: Seq) -> bool {
    !history.before(seq).any(|(_, event)| matches!(event, Event::PodSeen(earlier) if earlier.uid == seen.uid))
}

/// The step that its annotation names, when it is one of this log and of this subject.
fn made_by(history: &History, seen: &PodSeen, entry: &Entry) -> Option<Seq> {
    let step = seen.step.as_ref().filter(|step| step.log == entry.log)?;
    let issued = history.entry(step.seq)?;
    matches!(&issued.event, Some(Event::StepIssued(_))).then_some(step.seq)
}
