//! Replay: the states of all subjects, by the log alone. Folds, and sends nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::app::carry::Waiting;
use crate::app::react::committed_safely;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::events::carried::DaemonParts;
use crate::events::log::LogReader;
use crate::events::record::{Event, Record};
use crate::events::stored::Body;
use crate::ids::{AppId, Seq, Subject};

/// What a replay gives.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The state of each app.
    pub states: BTreeMap<AppId, App>,
    /// The apps among them whose records cannot be folded: what is known of them is worth nothing, and they are not acted on.
    pub broken: BTreeSet<AppId>,
    /// The apps whose former records aged out and whose carried state has not come yet.
    pub waiting: Waiting,
    /// The daemon's own records, as they are carried.
    pub daemon: DaemonParts,
    /// Lives of the process so far.
    pub incarnations: u64,
    /// Log time of the last record.
    pub last_us: i64,
    /// Records folded.
    pub records: u64,
}

/// Why a log cannot be folded: then nothing is acted on.
#[derive(Debug, thiserror::Error)]
pub enum NotRecovered {
    /// The store does not answer.
    #[error("the log cannot be read: {0}")]
    Unreadable(String),
    /// A record cannot be read, or needs a newer build: what it decided is not known.
    #[error("record {seq}: {why}")]
    Record {
        /// Which.
        seq: Seq,
        /// Why.
        why: String,
    },
}

/// Folds the log's records from `from` to `to` into what is known of those before; gives the apps that they concern.
///
/// # Errors
/// At the first record that decides and cannot be folded.
pub fn fold_on(recovered: &mut Recovered, reader: &dyn LogReader, from: Seq, to: Seq) -> Result<BTreeSet<AppId>, NotRecovered> {
    let mut touched = BTreeSet::new();
    let mut failed = None;
    recovered.begin_at(reader, from);
    let read = reader.scan(from, &mut |item| {
        let step = match item {
            Ok(stored) if stored.header.seq > to => return ControlFlow::Break(()),
            Ok(stored) => {
                let (seq, rules) = (stored.header.seq, stored.header.rules);
                // What the log says of itself was decided under no rules, and nothing is planned for the daemon's own subject.
                let daemon = matches!(stored.header.subject, Subject::Daemon(_));
                match (stored.body, Rules::of(rules).or(daemon.then_some(Rules::CURRENT))) {
                    (Body::Known(event), Some(rules)) => {
                        if let Subject::App(app) = &stored.header.subject
                            && !touched.contains(app)
                        {
                            touched.insert(app.clone());
                        }
                        recovered.take(Record { header: stored.header, event }, rules);
                        Ok(())
                    }
                    (Body::Opaque(_) | Body::Withheld, _) => Ok(()),
                    (Body::Known(_), None) => Err((seq, format!("was decided under rules {rules}, which a newer version knows"))),
                    (Body::NeedsVersion(_), _) => Err((seq, "decides, and a newer version wrote it".to_owned())),
                }
            }
            Err(damage) => Err((damage.seq, damage.fault.to_string())),
        };
        match step {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => {
                failed = Some(why);
                ControlFlow::Break(())
            }
        }
    });
    read.map_err(|error| NotRecovered::Unreadable(error.to_string()))?;
    match failed {
        Some((seq, why)) => Err(NotRecovered::Record { seq, why }),
        None => {
            recovered.give_up_waiting();
            Ok(touched)
        }
    }
}

/// The apps of which records aged out.
#[must_use]
pub fn cut_apps(reader: &dyn LogReader) -> BTreeSet<AppId> {
    let app = |subject| if let Subject::App(app) = subject { Some(app) } else { None };
    reader.cut_subjects().into_iter().filter_map(app).collect()
}

impl Recovered {
    /// Where nothing was known before, what is known of an app of which records aged out is what was carried.
    fn begin_at(&mut self, reader: &dyn LogReader, from: Seq) {
        if reader.removed().is_some_and(|removed| from <= removed.to) {
            self.waiting = Waiting::of(cut_apps(reader));
        }
    }

    /// What was neither kept nor carried is not known, and is not acted on.
    fn give_up_waiting(&mut self) {
        for app in std::mem::take(&mut self.waiting).left() {
            tracing::error!(%app, "what aged out of it was not carried: the app is quarantined");
            self.states.entry(app.clone()).or_default().quarantined = true;
            self.broken.insert(app.clone());
        }
    }

    fn take(&mut self, record: Record, rules: Rules) {
        self.records += 1;
        self.last_us = self.last_us.max(record.header.time_us);
        if let Event::IncarnationStarted(started) = &record.event {
            self.incarnations = self.incarnations.max(started.number);
        }
        if let (Event::SubjectCarried(part), Subject::Daemon(_)) = (&record.event, &record.header.subject)
            && let Some(daemon) = self.daemon.take(part)
        {
            self.incarnations = self.incarnations.max(daemon.started.number);
        }
        if let Subject::App(app) = &record.header.subject
            && !self.broken.contains(app)
        {
            let state = match self.states.get_mut(app) {
                Some(state) => state,
                None => self.states.entry(app.clone()).or_default(),
            };
            if self.waiting.passes_over(app, state, &record) {
                return;
            }
            if !committed_safely(state, rules, std::slice::from_ref(&record)) {
                tracing::error!(%app, seq = record.header.seq.0, "a record cannot be folded: the app is quarantined");
                state.quarantined = true;
                self.broken.insert(app.clone());
            }
        }
    }
}
