//! Whether every decision of a log is what planning again gives, under its own rules and settings.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::app::state::App;
use crate::events::kinds::daemon::PlanSettings;
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
    settings: BTreeMap<Seq, PlanSettings>,
    session_settings: BTreeMap<Seq, SessionPlanSettings>,
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
        verified: Verified::default(),
        apps: BTreeMap::new(),
        sessions: BTreeMap::new(),
        settings: BTreeMap::new(),
        session_settings: BTreeMap::new(),
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

impl Pass<'_> {
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
        let result = match &first.header.subject {
            Subject::Daemon(_) => return,
            Subject::App(app) => {
                let state = self.apps.entry(app.clone()).or_default();
                again(state, (self.known)(rules), self.settings.get(&settings), &records)
            }
            Subject::Session(id) => {
                let state = self.sessions.entry(id.clone()).or_default();
                again(state, (self.known)(rules), self.session_settings.get(&settings), &records)
            }
        };
        match result {
            Again::NoRules => self.give_up(seq, &format!("was decided under rules {rules}, which this version does not know")),
            Again::NoSettings => self.give_up(seq, &format!("was decided under settings {settings}, which are not in the log")),
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
    /// It was planned again; the first difference.
    Verified(Option<Box<Difference>>),
}

fn again<M: Model>(state: &mut M, rules: Option<Rules>, settings: Option<&M::Settings>, records: &[Record]) -> Again {
    let Some(rules) = rules else { return Again::NoRules };
    let Some(settings) = settings else { return Again::NoSettings };
    Again::Verified(react::verify(state, rules, settings, records).err())
}
