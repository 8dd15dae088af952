//! What the daemon's own records say, where they were carried over the removal of earlier ones: put together from its parts.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::codec::decode_daemon;
use super::kinds::carried::{CarriedDaemon, DAEMON_VERSION, SubjectCarried};
use super::kinds::daemon::PlanSettings;
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
        let bytes = part.join(&mut self.0).filter(|_| part.layout == DAEMON_VERSION)?;
        decode_daemon(&bytes).ok()
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

/// The settings whose own records aged out.
///
/// # Errors
/// When the store does not answer.
pub fn carried_settings(reader: &dyn LogReader) -> Result<BTreeMap<Seq, PlanSettings>, ReadError> {
    let kept = reader.removed().map_or(Seq::NONE, |removed| removed.kept);
    let all = carried_daemons(reader)?.into_iter().flat_map(|(_, daemon)| daemon.settings);
    Ok(all.filter(|(seq, _)| *seq < kept).collect())
}
