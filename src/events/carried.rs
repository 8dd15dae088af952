//! What the daemon's own records say, where they were carried over the removal of earlier ones: put together from its parts.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::codec::decode_daemon;
use super::kinds::carried::{CarriedDaemon, SubjectCarried};
use super::kinds::daemon::PlanSettings;
use super::kinds::session::SessionPlanSettings;
use super::log::{LogReader, ReadError};
use super::record::Event;
use super::stored::Body;
use crate::ids::{Seq, Subject};

/// The parts that came so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DaemonParts(Vec<u8>);

impl DaemonParts {
    /// Takes a part; gives what is carried with the last one.
    pub fn take(&mut self, part: &SubjectCarried) -> Option<CarriedDaemon> {
        decode_daemon(part.layout, &part.join(&mut self.0)?).ok()
    }
}

/// All that is carried of the daemons of a log, each with its last record, in order.
///
/// # Errors
/// When the store does not answer.
pub fn carried_daemons(reader: &dyn LogReader) -> Result<Vec<(Seq, CarriedDaemon)>, ReadError> {
    let mut found = Vec::new();
    if reader.removed().is_none() {
        return Ok(found);
    }
    for subject in reader.subjects().into_iter().filter(|subject| matches!(subject, Subject::Daemon(_))) {
        let mut parts = DaemonParts::default();
        reader.subject(&subject, Seq(1), &mut |item| {
            if let Ok(record) = item
                && let Body::Known(Event::SubjectCarried(part)) = record.body
                && let Some(daemon) = parts.take(&part)
            {
                found.push((record.header.seq, daemon));
            }
            ControlFlow::Continue(())
        })?;
    }
    found.sort_by_key(|(seq, _)| *seq);
    Ok(found)
}

/// The settings whose own records aged out, by those.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CarriedSettings {
    /// What apps are decided under.
    pub apps: BTreeMap<Seq, PlanSettings>,
    /// What sessions are decided under.
    pub sessions: BTreeMap<Seq, SessionPlanSettings>,
}

/// The settings whose own records aged out.
///
/// # Errors
/// When the store does not answer.
pub fn carried_settings(reader: &dyn LogReader) -> Result<CarriedSettings, ReadError> {
    let kept = reader.removed().map_or(Seq::NONE, |removed| removed.kept);
    let mut settings = CarriedSettings::default();
    for (_, daemon) in carried_daemons(reader)? {
        settings.apps.extend(daemon.settings.into_iter().filter(|(seq, _)| *seq < kept));
        settings.sessions.extend(daemon.session_settings.into_iter().filter(|(seq, _)| *seq < kept));
    }
    Ok(settings)
}
