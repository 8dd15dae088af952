//! From a record to the one that made it so. Pure.
//!
//! A decision names its cause. What was observed names none: it is joined with the step of ours that brought it about, by the
//! step's number in the object's annotation or by the uid that the step was decided on; else it is where the chain begins.

use super::about;
use super::history::{Entry, History};
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
    let shown = about::shows(event).and_then(|shown| {
        if shown.leaving {
            deleted_by(history, shown.uid, entry.header.seq)
        } else {
            Some(shown).filter(|shown| is_first_of(history, shown.uid, entry.header.seq)).and_then(|shown| made_by(history, shown, entry))
        }
    });
    match shown {
        Some(step) => (Because::Shows, Some(step)),
        None => decided(),
    }
}

/// The last step before `seq` that deletes the object.
fn deleted_by(history: &History, gone: &Uid, seq: Seq) -> Option<Seq> {
    history.before(seq).find(|(_, event)| about::deletes(event) == Some(gone)).map(|(header, _)| header.seq)
}

fn is_first_of(history: &History, uid: &Uid, seq: Seq) -> bool {
    !history.before(seq).any(|(_, event)| about::shows(event).is_some_and(|earlier| earlier.uid == uid))
}

/// The step that its annotation names, when it is one of this log and of this subject.
fn made_by(history: &History, shown: about::Shown<'_>, entry: &Entry) -> Option<Seq> {
    let step = shown.step.filter(|step| step.log == entry.log)?;
    let issued = history.entry(step.seq)?;
    matches!(&issued.event, Some(Event::StepIssued(_) | Event::SessionStepIssued(_))).then_some(step.seq)
}
