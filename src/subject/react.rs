//! One reaction: inputs are folded, the plan is made, and what follows is one atomic append. Live, replayed and verified alike.

use super::pod::At;
use super::rules::Rules;
use crate::events::kinds::daemon::PlanSettings;
use crate::events::record::{Draft, Event, Header, Reaction, Record, Role};
use crate::ids::{Seq, Subject};

/// The state of one subject, with its fold and its plan: both pure.
pub trait Model: Clone {
    /// What the plan reads of the settings.
    type Settings;

    /// Folds one record that is no note.
    fn fold(&mut self, rules: Rules, record: &Record);

    /// What to do about it at `now_us`, log time.
    fn plan(&self, settings: &Self::Settings, rules: Rules, now_us: i64) -> Plan;
}

/// What a plan concludes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Decisions, in the order in which they are to be appended and carried out.
    pub decisions: Vec<Draft>,
    /// When to plan again though nothing happens, log time.
    pub wake_us: Option<i64>,
}

/// What a subject decides under.
#[derive(Debug)]
pub struct Under<'a, S = PlanSettings> {
    /// The rules' number.
    pub rules: Rules,
    /// The settings in force.
    pub settings: &'a S,
    /// The record that holds them.
    pub settings_seq: Seq,
}

// Derived, they would ask the same of the settings.
impl<S> Clone for Under<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Under<'_, S> {}

/// What a reaction would append, and when to react again though nothing comes.
#[derive(Debug, Clone)]
pub struct Reacted {
    /// Inputs, then decisions.
    pub reaction: Reaction,
    /// How many of them the plan decided.
    pub decisions: usize,
    /// When to plan again, log time.
    pub wake_us: Option<i64>,
}

/// Folds `inputs` into a copy of the state and plans. The state itself is changed by [`committed`] alone, so that a reaction
/// whose append fails has changed nothing.
#[must_use]
pub fn react<M: Model>(state: &M, subject: &Subject, inputs: Vec<Draft>, under: Under<'_, M::Settings>, now_us: i64) -> Reacted {
    let mut ahead = state.clone();
    for (index, input) in (0_u64..).zip(&inputs) {
        if input.event.kind().role() != Role::Note {
            ahead.fold(under.rules, &provisional(subject, index, input, under, now_us));
        }
    }
    let plan = ahead.plan(under.settings, under.rules, now_us);
    let decisions = plan.decisions.len();
    let mut drafts = inputs;
    drafts.extend(plan.decisions);
    let reaction =
        Reaction { subject: subject.clone(), time_us: now_us, rules: under.rules.number(), settings: under.settings_seq, drafts };
    Reacted { reaction, decisions, wake_us: plan.wake_us }
}

/// Folds what was appended.
pub fn committed<M: Model>(state: &mut M, rules: Rules, records: &[Record]) {
    for record in records.iter().filter(|record| record.event.kind().role() != Role::Note) {
        state.fold(rules, record);
    }
}

/// The same, for records that an older build may have written: says whether they could be folded. A fold that panics is a broken
/// invariant of one subject; its state is worth nothing then, and the process goes on.
#[must_use]
pub fn committed_safely<M: Model>(state: &mut M, rules: Rules, records: &[Record]) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| committed(state, rules, records))).is_ok()
}

/// Folds an event that has no place in the log yet, as if it were `at`: to see whether the next one is still news.
pub fn look_ahead<M: Model>(state: &mut M, rules: Rules, event: &Event, at: At) {
    if event.kind().role() != Role::Note {
        let subject = Subject::Daemon(String::new());
        let header = Header {
            kind: event.kind().number(),
            kind_version: event.kind().version(),
            rules: rules.number(),
            seq: at.seq,
            subject,
            subject_seq: 0,
            time_us: at.time_us,
            reaction: Seq::provisional(0),
            cause: Seq::NONE,
            settings: Seq::NONE,
        };
        state.fold(rules, &Record { header, event: event.clone() });
    }
}

fn provisional<S>(subject: &Subject, index: u64, input: &Draft, under: Under<'_, S>, now_us: i64) -> Record {
    Record {
        header: Header {
            kind: input.event.kind().number(),
            kind_version: input.event.kind().version(),
            rules: under.rules.number(),
            seq: Seq::provisional(index),
            subject: subject.clone(),
            subject_seq: 0,
            time_us: now_us,
            reaction: Seq::provisional(0),
            cause: Seq::NONE,
            settings: under.settings_seq,
        },
        event: input.event.clone(),
    }
}

/// A decision that planning again does not give, or gives otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The record, or the reaction's last one when something is missing.
    pub seq: Seq,
    /// What the log holds there.
    pub recorded: Option<Event>,
    /// What planning again gives.
    pub planned: Option<Event>,
}

/// Folds a recorded reaction and compares its decisions with what planning it again gives.
///
/// # Errors
/// The first difference; the state is then that of the recorded reaction all the same.
pub fn verify<M: Model>(state: &mut M, rules: Rules, settings: &M::Settings, records: &[Record]) -> Result<(), Box<Difference>> {
    let Some(last) = records.last() else { return Ok(()) };
    let of_role = |role: Role| records.iter().filter(move |record| record.event.kind().role() == role);
    for input in of_role(Role::Input) {
        state.fold(rules, input);
    }
    let plan = state.plan(settings, rules, last.header.time_us);
    let mut planned = plan.decisions.into_iter();
    let mut result = Ok(());
    for record in of_role(Role::Decision) {
        let again = planned.next();
        let same = again.as_ref().is_some_and(|again| again.event == record.event && again.cause == record.header.cause);
        if !same && result.is_ok() {
            let recorded = Some(record.event.clone());
            result = Err(Box::new(Difference { seq: record.header.seq, recorded, planned: again.map(|again| again.event) }));
        }
    }
    if let (Some(missing), Ok(())) = (planned.next(), &result) {
        result = Err(Box::new(Difference { seq: last.header.seq, recorded: None, planned: Some(missing.event) }));
    }
    for decision in of_role(Role::Decision) {
        state.fold(rules, decision);
    }
    result
}
