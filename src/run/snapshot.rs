//! Snapshots of every subject's state: written while the daemon runs and when it ends, read when it starts. Only time depends on
//! them: they are the fold of the log, made from the log alone.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::recover::{NotRecovered, Recovered, fold_on};
use crate::app::state::App;
use crate::events::block::Block;
use crate::events::log::{Acknowledged, LogReader};
use crate::events::snapshot::{Schema, Snapshot, Totals};
use crate::ids::{Seq, Subject};
use crate::session::state::Session;
use crate::subject::rules::Rules;
use crate::subject::stored::Stored;

/// So many records after the last snapshot the next is due: what a start has to fold at most, a fraction of a second.
const EVERY: u64 = 50_000;

/// How often it is looked whether one is due.
const LOOK: Duration = Duration::from_secs(10);

/// The layouts of both sorts of states, as one number.
const STATES: u16 = App::LAYOUT << 8 | Session::LAYOUT;

fn schema() -> Schema {
    Schema { rules: Rules::CURRENT.number(), state: STATES }
}

/// Replays a log: from its snapshot, if there is one that fits, else from its begin. What was folded is kept as the next one.
///
/// # Errors
/// See [`NotRecovered`].
pub fn recover(reader: &dyn LogReader) -> Result<(Recovered, Keeper), NotRecovered> {
    let at = reader.acknowledged();
    let (mut recovered, mut snapshot) = load(reader);
    let from = snapshot.map_or(Seq(1), |snapshot| Seq(snapshot.seq.0 + 1));
    let touched = fold_on(&mut recovered, reader, from, at.head)?;
    if snapshot.is_none_or(|snapshot| at.head.0 - snapshot.seq.0 >= EVERY) {
        snapshot = keep(reader, snapshot, at, &recovered, &touched);
    }
    Ok((recovered, Keeper(Arc::new(Mutex::new(Kept { last: snapshot, ended: false })))))
}

/// The states of a snapshot that fits; nothing and `None` when there is none.
pub fn load(reader: &dyn LogReader) -> (Recovered, Option<Snapshot>) {
    let mut recovered = Recovered::default();
    let snapshot = Snapshot::load(reader, schema(), &mut |subject, state| put(&mut recovered, subject, state).is_some());
    match snapshot {
        Ok(Some(snapshot)) => {
            let Totals { incarnations, last_us, records } = snapshot.totals;
            (Recovered { incarnations, last_us, records, ..recovered }, Some(snapshot))
        }
        Ok(None) => (Recovered::default(), None),
        Err(error) => {
            tracing::warn!(%error, "the snapshot cannot be read: the log is replayed from its begin");
            (Recovered::default(), None)
        }
    }
}

fn put(recovered: &mut Recovered, subject: &str, state: &[u8]) -> Option<()> {
    match Subject::parse(subject).ok()? {
        Subject::App(app) => drop(recovered.apps.states.insert(app, App::from_bytes(state)?)),
        Subject::Session(id) => drop(recovered.sessions.states.insert(id, Session::from_bytes(state)?)),
        Subject::Daemon(_) => return None,
    }
    Some(())
}

/// Keeps the states of these subjects, and that all are those at `at`. Gives what is kept now.
fn keep(
    reader: &dyn LogReader,
    before: Option<Snapshot>,
    at: Acknowledged,
    recovered: &Recovered,
    touched: &BTreeSet<Subject>,
) -> Option<Snapshot> {
    let cache = reader.cache()?;
    let Recovered { incarnations, last_us, records, ref apps, ref sessions, .. } = *recovered;
    let broken = apps.broken.len() + sessions.broken.len();
    if broken > 0 {
        // A build that can fold them has to see their records.
        tracing::warn!(subjects = broken, "the states are not kept: the next start takes longer");
        return None;
    }
    let state = |subject: &Subject| {
        let state = match subject {
            Subject::App(app) => apps.states.get(app)?.to_bytes(),
            Subject::Session(id) => sessions.states.get(id)?.to_bytes(),
            Subject::Daemon(_) => return None,
        };
        Some((subject.to_string(), state.ok()?))
    };
    let states: Vec<(String, Vec<u8>)> = touched.iter().map(state).collect::<Option<_>>()?;
    let totals = Totals { incarnations, last_us, records };
    match Snapshot::store(cache, before, at, (schema(), totals), states.into_iter()) {
        Ok(snapshot) => {
            tracing::debug!(at = snapshot.seq.0, subjects = touched.len(), "the states are kept");
            Some(snapshot)
        }
        Err(error) => {
            tracing::warn!(%error, "the states cannot be kept: the next start takes longer");
            None
        }
    }
}

/// Who writes snapshots while an incarnation runs; cheap to clone, all clones are one.
#[derive(Debug, Clone)]
pub struct Keeper(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    /// The last one. Without one to fold on none is written in this life: the next start makes one.
    last: Option<Snapshot>,
    /// None is written any more.
    ended: bool,
}

impl Keeper {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks from time to time whether a snapshot is due, on a thread that may wait for the disk.
    #[must_use]
    pub fn run(&self, reader: &Arc<dyn LogReader>) -> JoinHandle<()> {
        let (keeper, reader) = (self.clone(), Arc::downgrade(reader));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                let (keeper, reader) = (keeper.clone(), Weak::clone(&reader));
                let looked = tokio::task::spawn_blocking(move || keeper.look(&reader)).await;
                if looked.is_err() {
                    return;
                }
            }
        })
    }

    fn look(&self, reader: &Weak<dyn LogReader>) {
        let mut kept = self.kept();
        let Some(reader) = reader.upgrade().filter(|_| !kept.ended) else { return };
        if kept.last.is_some_and(|last| reader.head().0 - last.seq.0 >= EVERY) {
            kept.advance(reader.as_ref());
        }
    }

    /// Brings the last one up to now, if there is one, so that what is removed is in it. Gives its last record.
    pub(super) fn before_removal(&self, reader: &dyn LogReader) -> Option<Seq> {
        let mut kept = self.kept();
        if !kept.ended {
            kept.advance(reader);
        }
        kept.last.map(|last| last.seq)
    }

    /// Writes no more from here on; returns when nothing is being written.
    pub fn end(&self) {
        self.kept().ended = true;
    }

    /// Writes a last one, of all that is acknowledged.
    pub fn finish(&self, reader: &dyn LogReader) {
        let mut kept = self.kept();
        kept.ended = true;
        kept.advance(reader);
    }
}

impl Kept {
    /// Folds what came since the last snapshot into the states that it concerns, and keeps those.
    fn advance(&mut self, reader: &dyn LogReader) {
        let at = reader.acknowledged();
        let (Some(cache), Some(before)) = (reader.cache(), self.last.take_if(|last| last.seq < at.head)) else { return };
        let Totals { incarnations, last_us, records } = before.totals;
        let mut recovered = Recovered { incarnations, last_us, records, ..Recovered::default() };
        for subject in subjects_since(reader, before.seq, at.head) {
            let subject = subject.to_string();
            match Snapshot::state(cache, &subject) {
                Ok(Some(state)) if put(&mut recovered, &subject, &state).is_some() => {}
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return,
            }
        }
        match fold_on(&mut recovered, reader, Seq(before.seq.0 + 1), at.head) {
            Ok(touched) => self.last = keep(reader, Some(before), at, &recovered, &touched),
            Err(error) => tracing::warn!(%error, "the states cannot be kept: the next start takes longer"),
        }
    }
}

/// The apps and sessions that have records after `after`, up to `to`.
fn subjects_since(reader: &dyn LogReader, after: Seq, to: Seq) -> BTreeSet<Subject> {
    let mut subjects = BTreeSet::new();
    let mut last = String::new();
    // What cannot be read here cannot be folded either, and that says so.
    let _ = reader.blocks(Seq(after.0 + 1), &mut |key, bytes| {
        if key > to {
            return ControlFlow::Break(());
        }
        let records = Block::read(bytes).into_iter().flat_map(|block| block.records().collect::<Vec<_>>());
        for (_, frame) in records {
            if let Ok(frame) = frame
                && frame.subject != last
            {
                frame.subject.clone_into(&mut last);
                if let Ok(subject @ (Subject::App(_) | Subject::Session(_))) = Subject::parse(&last) {
                    subjects.insert(subject);
                }
            }
        }
        ControlFlow::Continue(())
    });
    subjects
}
