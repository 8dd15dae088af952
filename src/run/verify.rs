//! Whether every decision of a log is what planning again gives, under its own rules and settings.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::recover::cut_apps;
use crate::app::carry::{self, Waiting};
use crate::app::state::App;
use crate::events::carried::{DaemonParts, carried_settings};
use crate::events::kinds::daemon::{PlanSettings, SettingsInForce};
use crate::events::kinds::session::SessionPlanSettings;
use crate::events::log::{LogReader, ReadError};
use crate::events::record::{Event, Header, Record};
use crate::events::stored::Body;
use crate::ids::{AppId, Seq, SessionId, Subject};
use crate::session::state::Session;
use crate::subject::react::{self, Difference, Model};
use crate::subject::rules::Rules;

/// What verifying the decisions gave.
#[derive(Debug, Default)]
pub struct Verified {
    /// Reactions planned again.
    pub reactions: u64,
    /// Decisions compared.
    pub decisions: u64,
    /// Where history is from, when what was before aged out: until its carried state comes, a subject is not planned again.
    pub from: Option<Seq>,
    /// Reactions before that of subjects whose former ones aged out.
    pub passed_over: u64,
    /// Carried states compared with what their records came to.
    pub carried: u64,
    /// The first difference.
    pub difference: Option<(Subject, Difference)>,
    /// The first record that cannot be verified, and why: unknown rules, a newer build, missing settings.
    pub unverifiable: Option<(Seq, String)>,
}

struct Pass<'a> {
    known: &'a dyn Fn(u16) -> Option<Rules>,
    verified: Verified,
    apps: BTreeMap<AppId, App>,
    sessions: BTreeMap<SessionId, Session>,
    waiting: Waiting,
    settings: BTreeMap<Seq, PlanSettings>,
    session_settings: BTreeMap<Seq, SessionPlanSettings>,
    daemon: DaemonParts,
    /// The records of the reaction that is being read.
    reaction: Vec<Record>,
}

/// Plans every reaction of the log again, up to the first difference.
///
/// # Errors
/// When the store does not answer.
pub fn verify_decisions(reader: &dyn LogReader) -> Result<Verified, ReadError> {
    verify_decisions_under(reader, &Rules::of)
}

/// The same with other rules than this build's: `known` gives those of a number.
///
/// # Errors
/// When the store does not answer.
pub fn verify_decisions_under(reader: &dyn LogReader, known: &dyn Fn(u16) -> Option<Rules>) -> Result<Verified, ReadError> {
    let mut pass = Pass {
        known,
        verified: Verified { from: reader.removed().map(|removed| removed.kept), ..Verified::default() },
        apps: BTreeMap::new(),
        sessions: BTreeMap::new(),
        waiting: Waiting::of(cut_apps(reader)),
        settings: carried_settings(reader)?,
        session_settings: BTreeMap::new(),
        daemon: DaemonParts::default(),
        reaction: Vec::new(),
    };
    reader.scan(Seq(1), &mut |item| {
        match item {
            Ok(stored) => {
                let seq = stored.header.seq;
                if pass.reaction.first().is_some_and(|first| first.header.reaction != stored.header.reaction) {
                    pass.end_reaction();
                }
                match stored.body {
                    Body::Known(event) => pass.reaction.push(Record { header: stored.header, event }),
                    Body::Opaque(_) | Body::Withheld => {}
                    Body::NeedsVersion(_) => pass.give_up(seq, "decides, and a newer version wrote it"),
                }
            }
            Err(damage) => pass.give_up(damage.seq, &damage.fault.to_string()),
        }
        if pass.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if !pass.is_over() {
        pass.end_reaction();
    }
    Ok(pass.verified)
}

/// What is carried must be what the records before it came to.
fn compare_carried(state: &App, records: &[Record], compared: &mut u64) -> Option<Difference> {
    let parts = || records.iter().filter(|record| matches!(record.event, Event::SubjectCarried(_)));
    parts().next()?;
    *compared += 1;
    let mut expected = carry::in_parts(state).unwrap_or_default().into_iter();
    for record in parts() {
        let planned = expected.next();
        if planned.as_ref() != Some(&record.event) {
            return Some(Difference { seq: record.header.seq, recorded: Some(record.event.clone()), planned });
        }
    }
    let last = parts().next_back().map_or(Seq::NONE, |last| last.header.seq);
    expected.next().map(|missing| Difference { seq: last, recorded: None, planned: Some(missing) })
}

impl Pass<'_> {
    /// What the daemon carries must be what its records say, as far as they are there.
    fn compare_daemon(&mut self, records: &[Record]) {
        for record in records {
            let Event::SubjectCarried(part) = &record.event else { continue };
            let Some(daemon) = self.daemon.take(part) else { continue };
            self.verified.carried += 1;
            let differs = |(seq, plan): &(Seq, PlanSettings)| self.settings.get(seq).is_none_or(|known| known != plan);
            if let Some((seq, _)) = daemon.settings.iter().find(|settings| differs(settings)) {
                let known = self.settings.get(seq).map(|plan| Event::SettingsInForce(SettingsInForce { plan: plan.clone() }));
                let difference = Difference { seq: record.header.seq, recorded: Some(record.event.clone()), planned: known };
                self.verified.difference = Some((record.header.subject.clone(), difference));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.verified.difference.is_some() || self.verified.unverifiable.is_some()
    }

    fn give_up(&mut self, seq: Seq, why: &str) {
        self.verified.unverifiable.get_or_insert_with(|| (seq, why.to_owned()));
    }

    fn end_reaction(&mut self) {
        let records = std::mem::take(&mut self.reaction);
        let Some(first) = records.first() else { return };
        for record in &records {
            if let Event::SettingsInForce(settings) = &record.event {
                self.settings.insert(record.header.seq, settings.plan.clone());
            }
            if let Event::SessionSettingsInForce(settings) = &record.event {
                self.session_settings.insert(record.header.seq, settings.plan.clone());
            }
        }
        let Header { seq, rules, settings, .. } = first.header;
        let aged_out = self.verified.from.is_some_and(|from| settings < from);
        let result = match &first.header.subject {
            Subject::Daemon(_) => return self.compare_daemon(&records),
            Subject::App(app) => {
                let state = self.apps.entry(app.clone()).or_default();
                if self.waiting.is_for(app) {
                    let left = records.iter().filter(|record| !self.waiting.passes_over(app, state, record)).count();
                    if left == 0 && self.waiting.is_for(app) {
                        self.verified.passed_over += 1;
                        return;
                    }
                } else if let Some(difference) = compare_carried(state, &records, &mut self.verified.carried) {
                    self.verified.difference = Some((first.header.subject.clone(), difference));
                    return;
                }
                again(state, (self.known)(rules), self.settings.get(&settings), aged_out, &records)
            }
            Subject::Session(id) => {
                let state = self.sessions.entry(id.clone()).or_default();
                again(state, (self.known)(rules), self.session_settings.get(&settings), aged_out, &records)
            }
        };
        match result {
            Again::NoRules => self.give_up(seq, &format!("was decided under rules {rules}, which this version does not know")),
            Again::NoSettings => self.give_up(seq, &format!("was decided under settings {settings}, which are not in the log")),
            Again::AgedOut => self.verified.passed_over += 1,
            Again::Verified(difference) => {
                self.verified.reactions += 1;
                let decided = records.iter().filter(|record| record.event.kind().role() == crate::events::record::Role::Decision);
                self.verified.decisions += decided.count() as u64;
                if let Some(difference) = difference {
                    self.verified.difference = Some((first.header.subject.clone(), *difference));
                }
            }
        }
    }
}

/// What planning a reaction again gives.
enum Again {
    /// Its rules are not known.
    NoRules,
    /// Its settings are not in the log.
    NoSettings,
    /// Its settings aged out, and were not carried yet where this ends: it was folded.
    AgedOut,
    /// It was planned again; the first difference.
    Verified(Option<Box<Difference>>),
}

fn again<M: Model>(state: &mut M, rules: Option<Rules>, settings: Option<&M::Settings>, aged_out: bool, records: &[Record]) -> Again {
    let Some(rules) = rules else { return Again::NoRules };
    match settings {
        Some(settings) => Again::Verified(react::verify(state, rules, settings, records).err()),
        None if aged_out => {
            react::committed(state, rules, records);
            Again::AgedOut
        }
        None => Again::NoSettings,
    }
}
