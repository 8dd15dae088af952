//! Whether every decision of a log is what planning again gives, under its own rules and settings.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::app::react::{self, Difference};
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::events::kinds::daemon::PlanSettings;
use crate::events::log::{LogReader, ReadError};
use crate::events::record::{Event, Record};
use crate::events::stored::Body;
use crate::ids::{AppId, Seq, Subject};

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
    settings: BTreeMap<Seq, PlanSettings>,
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
    let mut pass = Pass { known, verified: Verified::default(), apps: BTreeMap::new(), settings: BTreeMap::new(), reaction: Vec::new() };
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
        }
        let Subject::App(app) = &first.header.subject else { return };
        let Some(rules) = (self.known)(first.header.rules) else {
            return self
                .give_up(first.header.seq, &format!("was decided under rules {}, which this version does not know", first.header.rules));
        };
        let Some(settings) = self.settings.get(&first.header.settings) else {
            return self
                .give_up(first.header.seq, &format!("was decided under settings {}, which are not in the log", first.header.settings));
        };
        self.verified.reactions += 1;
        let decided = records.iter().filter(|record| record.event.kind().role() == crate::events::record::Role::Decision);
        self.verified.decisions += decided.count() as u64;
        let state = self.apps.entry(app.clone()).or_default();
        if let Err(difference) = react::verify(state, rules, settings, &records) {
            self.verified.difference = Some((first.header.subject.clone(), *difference));
        }
    }
}
