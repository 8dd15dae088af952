//! Whether every decision of a log is what planning again gives, under its own rules and settings.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::app::state::App;
use crate::events::carried::{DaemonParts, carried_settings};
use crate::events::kinds::carried::CarriedDaemon;
use crate::events::kinds::daemon::SettingsInForce;
use crate::events::kinds::session::SessionSettingsInForce;
use crate::events::log::{LogReader, ReadError};
use crate::events::record::{Event, Header, Record, Role};
use crate::events::stored::Body;
use crate::ids::{Seq, Subject};
use crate::session::state::Session;
use crate::subject::react::{self, Difference};
use crate::subject::rules::Rules;
use crate::subject::stored::{Stored, Waiting, in_parts};

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

/// The subjects of one sort, and the settings that they decide under, by their record.
struct Subjects<M: Stored> {
    states: BTreeMap<M::Key, M>,
    settings: BTreeMap<Seq, M::Settings>,
}

/// What holds for all subjects.
struct Common<'a> {
    known: &'a dyn Fn(u16) -> Option<Rules>,
    waiting: Waiting,
    /// See [`Verified::from`] and [`Verified::carried`].
    from: Option<Seq>,
    carried: u64,
}

struct Pass<'a> {
    verified: Verified,
    common: Common<'a>,
    apps: Subjects<App>,
    sessions: Subjects<Session>,
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
    let from = reader.removed().map(|removed| removed.kept);
    let settings = carried_settings(reader)?;
    let mut pass = Pass {
        verified: Verified { from, ..Verified::default() },
        common: Common { known, waiting: Waiting::of(reader.cut_subjects()), from, carried: 0 },
        apps: Subjects { states: BTreeMap::new(), settings: settings.apps },
        sessions: Subjects { states: BTreeMap::new(), settings: settings.sessions },
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
    Ok(Verified { carried: pass.common.carried, ..pass.verified })
}

/// What is carried must be what the records before it came to.
fn compare_carried<M: Stored>(state: &M, records: &[Record], compared: &mut u64) -> Option<Difference> {
    let parts = || records.iter().filter(|record| matches!(record.event, Event::SubjectCarried(_)));
    parts().next()?;
    *compared += 1;
    let mut expected = in_parts(state).unwrap_or_default().into_iter();
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
            self.common.carried += 1;
            if let Some(told) = self.first_wrong(&daemon) {
                let difference = Difference { seq: record.header.seq, recorded: Some(record.event.clone()), planned: told };
                self.verified.difference = Some((record.header.subject.clone(), difference));
            }
        }
    }

    /// The settings that the daemon carries otherwise than their own record has them: what that says, if it is there.
    fn first_wrong(&self, daemon: &CarriedDaemon) -> Option<Option<Event>> {
        let of_apps = || {
            let (seq, _) = daemon.settings.iter().find(|(seq, plan)| self.apps.settings.get(seq) != Some(plan))?;
            let plan = self.apps.settings.get(seq).cloned();
            Some(plan.map(|plan| Event::SettingsInForce(SettingsInForce { plan })))
        };
        let of_sessions = || {
            let (seq, _) = daemon.session_settings.iter().find(|(seq, plan)| self.sessions.settings.get(seq) != Some(plan))?;
            let plan = self.sessions.settings.get(seq).cloned();
            Some(plan.map(|plan| Event::SessionSettingsInForce(SessionSettingsInForce { plan })))
        };
        of_apps().or_else(of_sessions)
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
                self.apps.settings.insert(record.header.seq, settings.plan.clone());
            }
            if let Event::SessionSettingsInForce(settings) = &record.event {
                self.sessions.settings.insert(record.header.seq, settings.plan.clone());
            }
        }
        let Self { apps, sessions, common, .. } = self;
        let result = match &first.header.subject {
            Subject::Daemon(_) => return self.compare_daemon(&records),
            Subject::App(app) => apps.again(app, &records, common),
            Subject::Session(id) => sessions.again(id, &records, common),
        };
        self.count(result, &records);
    }

    fn count(&mut self, result: Again, records: &[Record]) {
        let Some(Header { seq, rules, settings, subject, .. }) = records.first().map(|record| &record.header) else { return };
        match result {
            Again::NoRules => self.give_up(*seq, &format!("was decided under rules {rules}, which this version does not know")),
            Again::NoSettings => self.give_up(*seq, &format!("was decided under settings {settings}, which are not in the log")),
            Again::PassedOver => self.verified.passed_over += 1,
            Again::NotCarriedSo(difference) => self.verified.difference = Some((subject.clone(), *difference)),
            Again::Verified(difference) => {
                self.verified.reactions += 1;
                let decided = records.iter().filter(|record| record.event.kind().role() == Role::Decision);
                self.verified.decisions += decided.count() as u64;
                if let Some(difference) = difference {
                    self.verified.difference = Some((subject.clone(), *difference));
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
    /// What was before it aged out and was not carried yet, or its settings did: it was folded at most.
    PassedOver,
    /// It carries another state than its records came to.
    NotCarriedSo(Box<Difference>),
    /// It was planned again; the first difference.
    Verified(Option<Box<Difference>>),
}

impl<M: Stored> Subjects<M> {
    fn again(&mut self, key: &M::Key, records: &[Record], common: &mut Common<'_>) -> Again {
        let Some(Header { rules, settings, subject, .. }) = records.first().map(|record| &record.header) else { return Again::PassedOver };
        let state = self.states.entry(key.clone()).or_default();
        if common.waiting.is_for(subject) {
            let left = records.iter().filter(|record| !common.waiting.passes_over(state, record)).count();
            if left == 0 && common.waiting.is_for(subject) {
                return Again::PassedOver;
            }
        } else if let Some(difference) = compare_carried(state, records, &mut common.carried) {
            return Again::NotCarriedSo(Box::new(difference));
        }
        let Some(rules) = (common.known)(*rules) else { return Again::NoRules };
        match self.settings.get(settings) {
            Some(settings) => Again::Verified(react::verify(state, rules, settings, records).err()),
            None if common.from.is_some_and(|from| *settings < from) => {
                react::committed(state, rules, records);
                Again::PassedOver
            }
            None => Again::NoSettings,
        }
    }
}
