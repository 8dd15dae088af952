//! What belongs together in the feed: of an app a rollout, by its host's name; of a session a life, by the call that began it. The
//! answer for a record is the same wherever a reader began.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::events::log::{LogReader, ReadError};
use crate::events::record::Event;
use crate::events::stored::{Body, StoredRecord};
use crate::ids::{HostName, RecordId, Seq, Subject};
use crate::postmortem::about;

/// Steps and subjects that are remembered: what is forgotten is read again.
const REMEMBERED: usize = 4_096;

/// What was learned from the records that were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Correlation {
    /// The hosts that steps are about.
    hosts: BTreeMap<Seq, HostName>,
    /// The last call for each session to run.
    lives: BTreeMap<Subject, RecordId>,
}

impl Correlation {
    /// Learns what a record says, and looks up what it relies on.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn see(&mut self, reader: &dyn LogReader, record: &StoredRecord) -> Result<(), ReadError> {
        if self.hosts.len() >= REMEMBERED {
            self.hosts.clear();
        }
        if self.lives.len() >= REMEMBERED {
            self.lives.clear();
        }
        let seq = record.header.seq;
        match &record.header.subject {
            Subject::App(_) => {
                let Body::Known(event) = &record.body else { return Ok(()) };
                if let (Event::StepIssued(_), Some(host)) = (event, about::host(event)) {
                    self.hosts.insert(seq, host.clone());
                } else if let (None, Some(step)) = (about::host(event), about::step(event))
                    && !self.hosts.contains_key(&step)
                    && let Some(Ok(StoredRecord { body: Body::Known(issued), .. })) = reader.record(step)?
                    && let Some(host) = about::host(&issued)
                {
                    self.hosts.insert(step, host.clone());
                }
            }
            subject @ Subject::Session(_) => {
                if matches!(record.body, Body::Known(Event::SessionAsked(_))) {
                    self.lives.insert(subject.clone(), record.id());
                } else if !self.lives.contains_key(subject)
                    && let Some(life) = last_call(reader, subject, seq)?
                {
                    self.lives.insert(subject.clone(), life);
                }
            }
            Subject::Daemon(_) => {}
        }
        Ok(())
    }

    /// What the record belongs to, when that is known; after [`Self::see`] of it.
    #[must_use]
    pub fn of(&self, record: &StoredRecord) -> Option<String> {
        match (&record.header.subject, &record.body) {
            (Subject::App(_), Body::Known(event)) => {
                let of_step = || about::step(event).and_then(|step| self.hosts.get(&step));
                about::host(event).or_else(of_step).map(|host| host.as_str().to_owned())
            }
            (subject @ Subject::Session(_), _) => self.lives.get(subject).map(ToString::to_string),
            (Subject::App(_) | Subject::Daemon(_), _) => None,
        }
    }
}

fn last_call(reader: &dyn LogReader, subject: &Subject, before: Seq) -> Result<Option<RecordId>, ReadError> {
    let mut last = None;
    reader.subject(subject, Seq(1), &mut |item| {
        match item {
            Ok(stored) if stored.header.seq >= before => return ControlFlow::Break(()),
            Ok(stored) if matches!(stored.body, Body::Known(Event::SessionAsked(_))) => last = Some(stored.id()),
            Ok(_) | Err(_) => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(last)
}
