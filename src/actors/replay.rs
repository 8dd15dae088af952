//! One subject's state by the log alone: what a subject whose actor failed starts again from. Folds, and sends nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::events::kinds::tail::TailOf;
use crate::events::log::LogReader;
use crate::events::record::{Event, Record};
use crate::events::stored::Body;
use crate::ids::{Seq, Subject};
use crate::subject::react::committed_safely;
use crate::subject::rules::Rules;
use crate::subject::stored::{Stored, Waiting};

/// What a subject's log gives.
#[derive(Debug, Default)]
pub(super) struct Replayed<M> {
    pub(super) state: M,
    /// The records that ask for tails.
    pub(super) tails: BTreeMap<TailOf, Seq>,
    /// Its carried state, when its former records aged out and that has not come yet.
    waiting: Waiting,
    /// A record of it cannot be folded: the state is worth nothing.
    pub(super) broken: bool,
}

/// Replays a subject.
///
/// # Errors
/// In words, when its records cannot be read.
pub(super) fn replay<M: Stored>(reader: &dyn LogReader, subject: &Subject) -> Result<Replayed<M>, String> {
    loop {
        let begins = reader.removed();
        let replayed = replay_once(reader, subject)?;
        // What aged out meanwhile may be missing in the middle of what was read.
        if reader.removed() == begins {
            return Ok(replayed);
        }
    }
}

fn replay_once<M: Stored>(reader: &dyn LogReader, subject: &Subject) -> Result<Replayed<M>, String> {
    let mut replayed = Replayed::<M>::default();
    if reader.cut_subjects().contains(subject) {
        replayed.waiting = Waiting::of([subject.clone()]);
    }
    let mut failed = None;
    let read = reader.subject(subject, Seq(1), &mut |item| {
        let why = match item {
            Ok(stored) => {
                let seq = stored.header.seq;
                match (stored.body, Rules::of(stored.header.rules)) {
                    (Body::Known(event), Some(rules)) => {
                        replayed.take(Record { header: stored.header, event }, rules);
                        return if replayed.broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                    }
                    (Body::Opaque(_) | Body::Withheld, _) => return ControlFlow::Continue(()),
                    (Body::Known(_) | Body::NeedsVersion(_), _) => format!("record {seq} is of a newer build"),
                }
            }
            Err(damage) => damage.to_string(),
        };
        failed = Some(why);
        ControlFlow::Break(())
    });
    read.map_err(|error| error.to_string())?;
    replayed.broken |= !replayed.waiting.left().is_empty();
    failed.map_or(Ok(replayed), Err)
}

impl<M: Stored> Replayed<M> {
    fn take(&mut self, record: Record, rules: Rules) {
        if let Event::TailAsked(asked) = &record.event {
            self.tails.insert(asked.of.clone(), record.header.seq);
        }
        if self.waiting.passes_over(&mut self.state, &record) {
            return;
        }
        self.broken |= !committed_safely(&mut self.state, rules, std::slice::from_ref(&record));
    }
}
