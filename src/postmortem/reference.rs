//! What a person names, and which record that is: a number, a host, a pod's uid, or a subject.

use std::ops::ControlFlow;

use super::about;
use super::history::History;
use crate::events::log::{LogReader, ReadError};
use crate::events::record::Event;
use crate::events::stored::Body;
use crate::ids::{Seq, Subject, Uid};

/// Which record is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whose it is.
    pub subject: Subject,
    /// The record.
    pub seq: Seq,
}

/// Why nothing is found.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// No record has that number.
    #[error("there is no record {0}")]
    NoRecord(Seq),
    /// The record is there and cannot be read.
    #[error("record {0} cannot be read")]
    Unreadable(Seq),
    /// Nothing has that name.
    #[error("nothing in this log is named so: no record, host, pod or subject")]
    Nothing,
    /// Several subjects have it in their names.
    #[error("that may be {}", .0.join(", "))]
    Several(Vec<String>),
    /// The store does not answer.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The most subjects that are told when several fit.
const SEVERAL: usize = 20;

/// Finds the record that a text names. Of a pod or a host it is its end, else its removal, else its creation, else the last
/// that is known of it; of a subject the last decision.
///
/// # Errors
/// See [`NotFound`].
pub fn find(reader: &dyn LogReader, text: &str) -> Result<Found, NotFound> {
    if let Ok(seq) = text.parse::<u64>() {
        return match reader.record(Seq(seq))? {
            Some(Ok(stored)) => Ok(Found { subject: stored.header.subject, seq: stored.header.seq }),
            Some(Err(_)) => Err(NotFound::Unreadable(Seq(seq))),
            None => Err(NotFound::NoRecord(Seq(seq))),
        };
    }
    let subjects = reader.subjects();
    // A host's name has its app's in it, as a rule: those subjects are read before the whole log is.
    let (mut likely, rest): (Vec<_>, Vec<_>) = subjects.iter().partition(|subject| match subject {
        Subject::App(app) => text.contains(app.name()),
        Subject::Session(id) => text.contains(id.as_str()),
        Subject::Daemon(_) => false,
    });
    likely.sort();
    for subject in likely {
        let history = History::of(reader, subject)?;
        if let Some(seq) = of_host_or_pod(&history, text) {
            return Ok(Found { subject: subject.clone(), seq });
        }
    }
    match of_subjects(&subjects, text) {
        Ok(Some(subject)) => {
            let seq = last_decision(&History::of(reader, &subject)?).ok_or(NotFound::Nothing)?;
            return Ok(Found { subject, seq });
        }
        Ok(None) => {}
        Err(several) => return Err(NotFound::Several(several)),
    }
    if rest.is_empty() {
        return Err(NotFound::Nothing);
    }
    let subject = scan_for(reader, text)?.ok_or(NotFound::Nothing)?;
    let history = History::of(reader, &subject)?;
    let seq = of_host_or_pod(&history, text).ok_or(NotFound::Nothing)?;
    Ok(Found { subject, seq })
}

/// The subject whose name that is; without one, those of whose names it is a part.
#[must_use]
pub fn subjects_named<'a>(subjects: &'a [Subject], text: &str) -> Vec<&'a Subject> {
    let named = |fits: &dyn Fn(&str) -> bool| subjects.iter().filter(|subject| fits(&subject.to_string())).collect::<Vec<_>>();
    let found = named(&|name| name == text);
    if found.is_empty() { named(&|name| name.contains(text)) } else { found }
}

/// The one subject that the text names; those that it may be, when there are several.
fn of_subjects(subjects: &[Subject], text: &str) -> Result<Option<Subject>, Vec<String>> {
    match subjects_named(subjects, text).as_slice() {
        [] => Ok(None),
        [subject] => Ok(Some((*subject).clone())),
        several => Err(several.iter().take(SEVERAL).map(ToString::to_string).collect()),
    }
}

fn names_it(event: &Event, text: &str) -> bool {
    about::host(event).is_some_and(|host| host.as_str() == text) || about::uid(event).is_some_and(|uid| uid.as_str() == text)
}

/// The first subject with a record of that host or pod.
fn scan_for(reader: &dyn LogReader, text: &str) -> Result<Option<Subject>, ReadError> {
    let mut found = None;
    reader.scan(Seq(1), &mut |item| match item {
        Ok(stored) if matches!(&stored.body, Body::Known(event) if names_it(event, text)) => {
            found = Some(stored.header.subject);
            ControlFlow::Break(())
        }
        Ok(_) | Err(_) => ControlFlow::Continue(()),
    })?;
    Ok(found)
}

fn of_host_or_pod(history: &History, text: &str) -> Option<Seq> {
    let events = || history.entries.iter().rev().filter_map(|entry| Some((entry.header.seq, entry.event.as_ref()?)));
    let uid = Uid::new(text).ok();
    let removes = |event: &Event| {
        about::deletes(event).is_some()
            && (about::host(event).is_some_and(|host| host.as_str() == text) || about::uid(event) == uid.as_ref())
    };
    let makes = |event: &Event| about::makes_pod(event).is_some_and(|host| host.as_str() == text);
    // A step names no uid before it is done: its outcome does.
    let made_as = |event: &Event| {
        let step = about::step(event).filter(|_| uid.is_some() && about::uid(event) == uid.as_ref())?;
        history.entry(step).and_then(|entry| entry.event.as_ref()).is_some_and(|event| about::makes_pod(event).is_some()).then_some(step)
    };
    let ends = |event: &Event| matches!(event, Event::PodEnded(_)) && names_it(event, text);
    // The newest life of a host counts: an end before its last creation is of an earlier pod.
    let made = events().find_map(|(seq, event)| if makes(event) { Some(seq) } else { made_as(event) });
    let since = made.unwrap_or(Seq::NONE);
    let last =
        |fits: &dyn Fn(&Event) -> bool| events().take_while(|(seq, _)| *seq >= since).find(|(_, event)| fits(event)).map(|(seq, _)| seq);
    last(&ends).or_else(|| last(&removes)).or(made).or_else(|| last(&|event| names_it(event, text)))
}

fn last_decision(history: &History) -> Option<Seq> {
    let decided = |entry: &&super::history::Entry| entry.header.cause != Seq::NONE;
    history.entries.iter().rev().find(decided).or(history.entries.last()).map(|entry| entry.header.seq)
}
