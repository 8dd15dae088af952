//! Invariant 1: no write without a durable step, nothing acknowledged and lost, no number used twice. And of invariant 2: what an
//! earlier life issued is not sent by a later one.

use std::collections::{BTreeMap, BTreeSet};

use super::Found;
use super::view::{View, is_exempt, is_write};
use crate::events::kinds::step::Step;
use crate::events::record::{Event, Record};
use crate::ids::{LogId, RecordId, Seq};
use crate::kube::call::{audit_id, uuid};
use crate::sim::api::Entry;
use crate::trial::history::{End, Happening, Moment};

/// Attempts of one step that are looked for: more than the daemon makes of any.
const ATTEMPTS: u32 = 96;
/// So many are looked for before one is missing.
const USUAL_ATTEMPTS: u32 = 6;

/// A step that is in the durable log.
#[derive(Debug, Clone)]
pub(super) struct Issued {
    pub(super) seq: Seq,
    /// The life that issued it.
    pub(super) life: u32,
    pub(super) step: Step,
    durable_us: i64,
}

/// What is known of the log.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The step of each Audit-ID that a write may bear.
    steps: BTreeMap<String, Issued>,
    /// What each step is to do.
    decided: BTreeMap<Seq, Step>,
    /// The steps of which only the usual attempts are among them.
    issued: Vec<(LogId, Issued)>,
    /// Audit-IDs that were used.
    used: BTreeSet<String>,
    /// The last durable record of each log.
    last: BTreeMap<LogId, Seq>,
    /// The log that is written, and the number that its next record must have; `None` when any higher one will do.
    writing: Option<(LogId, Option<Seq>)>,
    /// Numbers up to this one may have been written and lost.
    attempted: Option<(LogId, Seq)>,
    /// The last life ended in order.
    stopped: bool,
    life: u32,
}

impl Log {
    /// What the step of this number is to do.
    pub(super) fn issued(&self, seq: Seq) -> Option<&Step> {
        self.decided.get(&seq)
    }

    /// The step that a write belongs to.
    pub(super) fn step_of(&self, entry: &Entry) -> Option<&Issued> {
        self.steps.get(&entry.audit_id)
    }

    pub(super) fn see(&mut self, view: &View, moment: &Moment) -> Vec<Found> {
        match &moment.what {
            Happening::Began { life, log, head } => self.begins(*life, *log, *head),
            Happening::Ended { how, .. } => {
                self.stopped = *how == End::Stopped;
                Vec::new()
            }
            Happening::Attempted { log, last } => {
                self.attempted = Some((*log, *last));
                Vec::new()
            }
            Happening::Durable { log, records } => self.durable(*log, records, moment.time_us),
            Happening::Requested(entry) if is_write(entry) && !is_exempt(entry) => self.write(view, entry),
            _ => Vec::new(),
        }
    }

    fn begins(&mut self, life: u32, log: LogId, head: Seq) -> Vec<Found> {
        self.life = life;
        let mut found = Vec::new();
        if let Some(last) = self.last.get(&log).filter(|last| **last > head) {
            found.push((1, format!("record {last} was durable and is lost: life {life} finds the log ending at {head}")));
        }
        let next = self.stopped.then(|| Seq(head.0 + 1));
        self.writing = Some((log, next));
        self.last.entry(log).and_modify(|last| *last = (*last).max(head)).or_insert(head);
        found
    }

    fn durable(&mut self, log: LogId, records: &[Record], time_us: i64) -> Vec<Found> {
        let mut found = Vec::new();
        for record in records {
            let seq = record.header.seq;
            let last = self.last.get(&log).copied().unwrap_or(Seq::NONE);
            if seq <= last {
                found.push((1, format!("record {seq} is written after record {last}: its number is used twice or out of order")));
            }
            if let Some((_, Some(next))) =
                self.writing.filter(|(writing, _)| *writing == log).filter(|(_, next)| next.is_some_and(|next| next != seq))
            {
                found.push((1, format!("record {seq} follows where record {next} must: a gap without a name")));
            }
            let lost = self.attempted.filter(|(of, last)| *of == log && seq <= *last && self.writing == Some((log, None)));
            if let Some((_, lost)) = lost {
                found.push((
                    1,
                    format!("record {seq} is written by a later life, though numbers up to {lost} may have been written and lost"),
                ));
            }
            self.writing = Some((log, Some(Seq(seq.0 + 1))));
            self.last.insert(log, seq.max(last));
            if let Event::StepIssued(issued) = &record.event {
                self.decided.insert(seq, issued.step.clone());
                let issued = Issued { seq, life: self.life, step: issued.step.clone(), durable_us: time_us };
                self.steps.extend((1..=USUAL_ATTEMPTS).map(|attempt| (id(log, seq, attempt), issued.clone())));
                self.issued.push((log, issued));
            }
        }
        found
    }

    fn write(&mut self, view: &View, entry: &Entry) -> Vec<Found> {
        let what = format!("{} {} {}", entry.verb, entry.resource, entry.name);
        if !self.steps.contains_key(&entry.audit_id) {
            for (log, issued) in std::mem::take(&mut self.issued) {
                self.steps.extend((USUAL_ATTEMPTS + 1..=ATTEMPTS).map(|attempt| (id(log, issued.seq, attempt), issued.clone())));
            }
        }
        let Some(issued) = self.steps.get(&entry.audit_id) else {
            return vec![(1, format!("{what} was sent without a durable step"))];
        };
        let mut found = Vec::new();
        let seq = issued.seq;
        if entry.asked_us < issued.durable_us {
            found.push((1, format!("{what} was sent before its step {seq} was durable")));
        }
        if !fits(&issued.step, entry) {
            found.push((1, format!("{what} is not what its step {seq} says: {} of {}", issued.step.name(), issued.step.host())));
        }
        if !self.used.insert(entry.audit_id.clone()) {
            found.push((1, format!("{what} bears the Audit-ID of another request of step {seq}")));
        }
        let later = view.lives.iter().find(|life| life.number > issued.life && life.began_us < entry.asked_us);
        if let Some(later) = later {
            found.push((2, format!("{what} was sent by life {} for step {seq}, which life {} issued", later.number, issued.life)));
        }
        found
    }
}

fn id(log: LogId, seq: Seq, attempt: u32) -> String {
    uuid(&audit_id(RecordId { log, seq }, attempt))
}

/// Whether a write is one that this step asks for, its policy and its renewed environment included.
fn fits(step: &Step, entry: &Entry) -> bool {
    let host = step.host().as_str();
    let put = matches!(entry.verb, "create" | "update");
    let is_secret = entry.resource == "secrets" && entry.name == step.host().secret();
    let uid_is = |uid: &str| entry.uid_precondition.as_deref().is_none_or(|given| given == uid);
    match step {
        Step::PutSecret { .. } => is_secret && put,
        Step::CreatePod { .. } => {
            (entry.resource == "pods" && entry.name == host && entry.verb == "create")
                || (put && (is_secret || entry.resource == "networkpolicies"))
        }
        Step::DeletePod { uid, .. } => entry.resource == "pods" && entry.name == host && entry.verb == "delete" && uid_is(uid.as_str()),
        Step::DeleteSecret { uid, .. } => is_secret && entry.verb == "delete" && uid_is(uid.as_str()),
        Step::ReadPod { .. } | Step::ReadSecret { .. } => false,
    }
}
