//! A subject's state as it is stored whole: in caches, and in the records that carry it over the removal of those before them.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::carry::Carry;
use super::react::Model;
use crate::events::codec::{CodecError, decode_state, encode_state};
use crate::events::kinds::carried::SubjectCarried;
use crate::events::record::{Event, Record};
use crate::ids::Subject;

/// The states of one sort of subjects.
pub trait Stored: Model + Default + Carry<Kept: Serialize + DeserializeOwned> {
    /// What tells them from each other.
    type Key: Ord + Clone + Debug + Display;

    /// The version of the stored form.
    const LAYOUT: u16;

    /// Which of them a subject is; `None` for a subject of another sort.
    fn key(subject: &Subject) -> Option<&Self::Key>;

    /// The subject.
    fn subject(key: &Self::Key) -> Subject;

    /// The parts of a carried state that came so far.
    fn carrying(&mut self) -> &mut Vec<u8>;

    /// What is known of it is worth nothing: it is shown, and not acted on.
    fn quarantine(&mut self);

    /// As bytes.
    ///
    /// # Errors
    /// When it is too large to be stored.
    fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        encode_state(&self.keep())
    }

    /// From bytes; `None` when they are no such state.
    #[must_use]
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        decode_state(bytes).ok().map(Self::back)
    }
}

/// The records that carry a subject over the removal of those before them.
///
/// # Errors
/// When the state is too large to be stored.
pub fn in_parts<M: Stored>(state: &M) -> Result<Vec<Event>, CodecError> {
    let bytes = state.to_bytes()?;
    Ok(SubjectCarried::of(M::LAYOUT, &bytes).into_iter().map(Event::SubjectCarried).collect())
}

/// Takes a part of a carried state; with the last one the state is what is carried. Says whether it is.
pub fn take_part<M: Stored>(state: &mut M, part: &SubjectCarried) -> bool {
    let whole = part.join(state.carrying()).filter(|_| part.layout == M::LAYOUT);
    let Some(carried) = whole.and_then(|bytes| M::from_bytes(&bytes)) else { return false };
    *state = carried;
    true
}

/// The subjects whose former records were removed and whose carried state has not come yet. What is left of them before it is
/// passed over: it says nothing without what was before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waiting(BTreeSet<Subject>);

impl Waiting {
    /// For the carried states of these.
    #[must_use]
    pub fn of(subjects: impl IntoIterator<Item = Subject>) -> Self {
        Self(subjects.into_iter().collect())
    }

    /// Whether the record is passed over; if it completes a carried state, those after it are not.
    pub fn passes_over<M: Stored>(&mut self, state: &mut M, record: &Record) -> bool {
        let subject = &record.header.subject;
        if !self.is_for(subject) {
            return false;
        }
        if let Event::SubjectCarried(part) = &record.event
            && take_part(state, part)
        {
            self.0.remove(subject);
        }
        true
    }

    /// Whether this one is still waited for.
    #[must_use]
    pub fn is_for(&self, subject: &Subject) -> bool {
        self.0.contains(subject)
    }

    /// Those whose carried state never came.
    #[must_use]
    pub fn left(&self) -> &BTreeSet<Subject> {
        &self.0
    }
}
