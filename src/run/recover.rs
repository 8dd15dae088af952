//! Replay: the states of all subjects, by the log alone. Folds, and sends nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::app::carry::Waiting;
use crate::app::react::committed_safely;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::events::carried::DaemonParts;
use crate::events::log::LogReader;
use crate::events::record::{Event, Header, Record};
use crate::events::stored::{Body, StoredRecord};
use crate::ids::{AppId, Seq, Subject};

/// The longest run of records that is folded at once: what is held of them stays in the processor's cache.
const RUN_MAX: usize = 32;

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
    /// Records folded, with those that the fold has no use for.
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
    let mut run = Run::default();
    recovered.begin_at(reader, from);
    let read = reader.scan_deciding(from, &mut |item| {
        let step = match item {
            Ok(stored) if stored.header.seq > to => return ControlFlow::Break(()),
            Ok(StoredRecord { header, body, .. }) => {
                // What the log says of itself was decided under no rules, and nothing is planned for the daemon's own subject.
                let daemon = matches!(header.subject, Subject::Daemon(_));
                match (body, Rules::of(header.rules).or(daemon.then_some(Rules::CURRENT))) {
                    (Body::Known(event), Some(rules)) => {
                        if !run.continues(&header, rules) {
                            recovered.take(&mut run, &mut touched);
                        }
                        run.rules = rules;
                        run.records.push(Record { header, event });
                        Ok(())
                    }
                    // Nothing in it is for the fold.
                    (Body::Opaque(_) | Body::Withheld, _) => {
                        recovered.records += 1;
                        recovered.last_us = recovered.last_us.max(header.time_us);
                        Ok(())
                    }
                    (Body::Known(_), None) => {
                        Err((header.seq, format!("was decided under rules {}, which a newer version knows", header.rules)))
                    }
                    (Body::NeedsVersion(_), _) => Err((header.seq, "decides, and a newer version wrote it".to_owned())),
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
    recovered.take(&mut run, &mut touched);
    read.map_err(|error| NotRecovered::Unreadable(error.to_string()))?;
    match failed {
        Some((seq, why)) => Err(NotRecovered::Record { seq, why }),
        None => {
            recovered.give_up_waiting();
            Ok(touched)
        }
    }
}

/// Consecutive records of one subject: its state is looked up once for all of them.
struct Run {
    records: Vec<Record>,
    rules: Rules,
}

impl Default for Run {
    fn default() -> Self {
        Self { records: Vec::with_capacity(RUN_MAX), rules: Rules::CURRENT }
    }
}

impl Run {
    fn continues(&self, header: &Header, rules: Rules) -> bool {
        let same = |last: &Record| last.header.subject == header.subject && self.rules == rules && self.records.len() < RUN_MAX;
        self.records.last().is_none_or(same)
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

    fn take(&mut self, run: &mut Run, touched: &mut BTreeSet<AppId>) {
        let Some(last) = run.records.last() else { return };
        self.records += run.records.len() as u64;
        for record in &run.records {
            self.last_us = self.last_us.max(record.header.time_us);
            if let Event::IncarnationStarted(started) = &record.event {
                self.incarnations = self.incarnations.max(started.number);
            }
            if let (Event::SubjectCarried(part), Subject::Daemon(_)) = (&record.event, &record.header.subject)
                && let Some(daemon) = self.daemon.take(part)
            {
                self.incarnations = self.incarnations.max(daemon.started.number);
            }
        }
        if let Subject::App(app) = &last.header.subject {
            if !touched.contains(app) {
                touched.insert(app.clone());
            }
            if !self.broken.contains(app) {
                let state = match self.states.get_mut(app) {
                    Some(state) => state,
                    None => self.states.entry(app.clone()).or_default(),
                };
                let passed_over = run.records.iter().take_while(|record| self.waiting.passes_over(app, state, record)).count();
                if !committed_safely(state, run.rules, &run.records[passed_over..]) {
                    tracing::error!(%app, seq = last.header.seq.0, "a record up to here cannot be folded: the app is quarantined");
                    state.quarantined = true;
                    self.broken.insert(app.clone());
                }
            }
        }
        run.records.clear();
    }
}
