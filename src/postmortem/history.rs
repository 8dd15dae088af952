//! All that a log has of one subject, in memory: a subject's records are few beside the log's.

use std::ops::ControlFlow;

use crate::events::log::{LogReader, ReadError};
use crate::events::record::{Event, Header};
use crate::events::stored::{Body, Damage};
use crate::ids::{LogId, Seq, Subject};

/// One record, as far as it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Which log it belongs to.
    pub log: LogId,
    /// Where and when.
    pub header: Header,
    /// What; `None` when it was erased or left out, or a newer version wrote it.
    pub event: Option<Event>,
}

/// The records of one subject.
#[derive(Debug)]
pub struct History {
    /// Whose.
    pub subject: Subject,
    /// In order.
    pub entries: Vec<Entry>,
    /// What cannot be read.
    pub damage: Vec<Damage>,
}

impl History {
    /// Reads a subject's records.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn of(reader: &dyn LogReader, subject: &Subject) -> Result<Self, ReadError> {
        let mut history = Self { subject: subject.clone(), entries: Vec::new(), damage: Vec::new() };
        reader.subject(subject, Seq(1), &mut |item| {
            match item {
                Ok(stored) => {
                    let event = match stored.body {
                        Body::Known(event) => Some(event),
                        Body::Opaque(_) | Body::NeedsVersion(_) | Body::Withheld => None,
                    };
                    history.entries.push(Entry { log: stored.log, header: stored.header, event });
                }
                Err(damage) => history.damage.push(damage),
            }
            ControlFlow::Continue(())
        })?;
        Ok(history)
    }

    /// Leaves out what tenants wrote, for a reader who may not have it.
    pub fn leave_texts_out(&mut self) {
        for entry in &mut self.entries {
            entry.event.take_if(|event| event.kind().is_text());
        }
    }

    /// Whether earlier records aged out, or are left out of a part: what they came to is in the record that carries it.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.entries.first().is_some_and(|first| first.header.subject_seq > 1)
    }

    /// The record of that number.
    #[must_use]
    pub fn entry(&self, seq: Seq) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&seq, |entry| entry.header.seq).ok()?;
        self.entries.get(at)
    }

    /// The records before that one, newest first.
    pub fn before(&self, seq: Seq) -> impl Iterator<Item = (&Header, &Event)> {
        let end = self.entries.partition_point(|entry| entry.header.seq < seq);
        self.entries[..end].iter().rev().filter_map(known)
    }

    /// The records after that one, in order.
    pub fn after(&self, seq: Seq) -> impl Iterator<Item = (&Header, &Event)> {
        let begin = self.entries.partition_point(|entry| entry.header.seq <= seq);
        self.entries[begin..].iter().filter_map(known)
    }
}

fn known(entry: &Entry) -> Option<(&Header, &Event)> {
    entry.event.as_ref().map(|event| (&entry.header, event))
}
