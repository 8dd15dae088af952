//! Which records a reader wants. Pure.

use std::collections::BTreeSet;

use super::cloudevent::dotted;
use crate::events::record::{Header, Kind};
use crate::ids::Subject;

/// A reader's filter; empty, it takes everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    subject: Option<Subject>,
    kinds: BTreeSet<u16>,
}

impl Filter {
    /// Reads a filter: a subject, and kinds with commas between them, each by its name or as in an event's type.
    ///
    /// # Errors
    /// In words, when one of them is not known.
    pub fn parse(subject: Option<&str>, kinds: Option<&str>) -> Result<Self, String> {
        let subject = subject.map(Subject::parse).transpose().map_err(|error| error.to_string())?;
        let of = |name: &str| Kind::ALL.iter().find(|kind| kind.name() == name || dotted(kind.name()) == name);
        let unknown = |name: &str| format!("no kind of record is named {}", crate::ids::shown(name, 60));
        let names = kinds.into_iter().flat_map(|kinds| kinds.split(','));
        let kinds = names.map(|name| of(name).map(|kind| kind.number()).ok_or_else(|| unknown(name))).collect::<Result<_, _>>()?;
        Ok(Self { subject, kinds })
    }

    /// Whether it leaves anything out.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.subject.is_none() && self.kinds.is_empty()
    }

    /// Whether the record is wanted.
    #[must_use]
    pub fn takes(&self, header: &Header) -> bool {
        let subject = self.subject.as_ref().is_none_or(|subject| *subject == header.subject);
        subject && (self.kinds.is_empty() || self.kinds.contains(&header.kind))
    }
}
