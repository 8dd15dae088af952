//! Replay: the states of all subjects, by the log alone. Folds, and sends nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use crate::app::state::App;
use crate::events::carried::DaemonParts;
use crate::events::log::LogReader;
use crate::events::record::{Event, Header, Record};
use crate::events::stored::{Body, StoredRecord};
use crate::ids::{Seq, Subject};
use crate::session::state::Session;
use crate::subject::react::committed_safely;
use crate::subject::rules::Rules;
use crate::subject::stored::{Stored, Waiting};

/// The longest run of records that is folded at once: what is held of them stays in the processor's cache.
const RUN_MAX: usize = 32;

/// What a replay gives.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The apps.
    pub apps: Folded<App>,
    /// The sessions.
    pub sessions: Folded<Session>,
    /// The subjects whose former records aged out and whose carried state has not come yet.
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

/// All subjects of one sort.
#[derive(Debug)]
pub struct Folded<M: Stored> {
    /// The state of each.
    pub states: BTreeMap<M::Key, M>,
    /// Those among them whose records cannot be folded: what is known of them is worth nothing, and they are not acted on.
    pub broken: BTreeSet<M::Key>,
}

// Derived, it would ask for defaults of names.
impl<M: Stored> Default for Folded<M> {
    fn default() -> Self {
        Self { states: BTreeMap::new(), broken: BTreeSet::new() }
    }
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

/// Folds the log's records from `from` to `to` into what is known of those before; gives the apps and sessions that they concern.
///
/// # Errors
/// At the first record that decides and cannot be folded.
pub fn fold_on(recovered: &mut Recovered, reader: &dyn LogReader, from: Seq, to: Seq) -> Result<BTreeSet<Subject>, NotRecovered> {
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

impl<M: Stored> Folded<M> {
    fn take(&mut self, key: &M::Key, run: &Run, waiting: &mut Waiting) {
        if self.broken.contains(key) {
            return;
        }
        let state = match self.states.get_mut(key) {
            Some(state) => state,
            None => self.states.entry(key.clone()).or_default(),
        };
        let passed_over = run.records.iter().take_while(|record| waiting.passes_over(state, record)).count();
        if !committed_safely(state, run.rules, &run.records[passed_over..]) {
            let seq = run.records.last().map_or(0, |last| last.header.seq.0);
            tracing::error!(subject = %M::subject(key), seq, "a record up to here cannot be folded: the subject is quarantined");
            self.give_up(key);
        }
    }

    fn give_up(&mut self, key: &M::Key) {
        self.states.entry(key.clone()).or_default().quarantine();
        self.broken.insert(key.clone());
    }
}

impl Recovered {
    /// Where nothing was known before, what is known of a subject of which records aged out is what was carried.
    fn begin_at(&mut self, reader: &dyn LogReader, from: Seq) {
        if reader.removed().is_some_and(|removed| from <= removed.to) {
            self.waiting = Waiting::of(reader.cut_subjects());
        }
    }

    /// What was neither kept nor carried is not known, and is not acted on.
    fn give_up_waiting(&mut self) {
        for subject in std::mem::take(&mut self.waiting).left() {
            match subject {
                Subject::App(app) => self.apps.give_up(app),
                Subject::Session(id) => self.sessions.give_up(id),
                // Put together from its parts, and not waited for.
                Subject::Daemon(_) => continue,
            }
            tracing::error!(%subject, "what aged out of it was not carried: the subject is quarantined");
        }
    }

    fn take(&mut self, run: &mut Run, touched: &mut BTreeSet<Subject>) {
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
        let subject = &last.header.subject;
        match subject {
            Subject::App(app) => self.apps.take(app, run, &mut self.waiting),
            Subject::Session(id) => self.sessions.take(id, run, &mut self.waiting),
            Subject::Daemon(_) => {}
        }
        if !matches!(subject, Subject::Daemon(_)) && !touched.contains(subject) {
            touched.insert(subject.clone());
        }
        run.records.clear();
    }
}
