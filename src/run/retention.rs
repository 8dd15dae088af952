//! What ages out of the log: how far, and in which order. First every subject that has records there is carried behind it, then the
//! beginning is written to the archive, if there is one, and only then removed, a few blocks between two commits.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::checkpoints::lock;
use super::incarnation::Outside;
use super::snapshot::Keeper;
use crate::actors::{Committer, Kept, Registry, Sessions};
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::clock::Clock;
use crate::config::{Log, Settings};
use crate::events::archive::Archive;
use crate::events::block::Block;
use crate::events::carried::{CarriedSettings, carried_daemons, carried_settings};
use crate::events::codec::encode_state;
use crate::events::kinds::carried::{CarriedDaemon, DAEMON_VERSION, SubjectCarried};
use crate::events::kinds::daemon::LogRestarted;
use crate::events::log::{LogReader, ReadError};
use crate::events::record::{Draft, Event, Reaction};
use crate::events::stored::Body;
use crate::ids::{Seq, Subject};
use crate::session::state::Session;
use crate::subject::stored::Stored as _;
use crate::telemetry::Metrics;

/// Between two looks at whether something ages out.
const LOOK: Duration = Duration::from_secs(60);

/// Between two rounds while more is to go.
const PAUSE: Duration = Duration::from_secs(1);

/// The most bytes of blocks that go in a round, so that no round takes long.
const ROUND: u64 = 16 << 20;

/// Something goes when a sixteenth more is there than should be: rounds are few, and segments of an archive not tiny.
const SLACK: u64 = 16;

/// Subjects that are asked to carry their state at once.
const AT_ONCE: usize = 64;

/// How long they may take, and how often it is looked.
const CARRY_WITHIN: Duration = Duration::from_secs(30);
const CARRY_LOOK: Duration = Duration::from_millis(20);

/// Lets the log age until this is ended.
pub(super) struct Retention {
    task: AbortHandle,
    /// Held while blocks are read or an archive is written: true once no more is.
    ended: Arc<Mutex<bool>>,
}

impl Retention {
    pub(super) fn start(
        outside: &Outside,
        (started, settings): (Event, Seq),
        (registry, sessions): (&Registry, &Sessions),
        committer: Committer,
        reader: &Arc<dyn LogReader>,
        keeper: &Keeper,
    ) -> Self {
        let ended = Arc::new(Mutex::new(false));
        let Settings { log, data_dir, .. } = &outside.settings;
        let archive = (!log.archive.is_empty()).then(|| Arc::new(Mutex::new(Archive::new(&Path::new(data_dir).join(&log.archive)))));
        let aging = Aging {
            outside: outside.clone(),
            started,
            settings,
            registry: registry.clone(),
            sessions: sessions.registry().clone(),
            committer,
            reader: Arc::clone(reader),
            keeper: keeper.clone(),
            archive,
            ended: Arc::clone(&ended),
            carried: Seq::NONE,
            held: None,
        };
        Self { task: tokio::spawn(aging.run()).abort_handle(), ended }
    }

    /// Removes nothing more; returns when nothing is being read or written for it.
    pub(super) fn end(&self) {
        self.task.abort();
        *lock(&self.ended) = true;
    }
}

impl Drop for Retention {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why something that should age out cannot.
#[derive(Debug, thiserror::Error)]
enum Held {
    #[error("{0} of the subjects are not carried, {1} first")]
    NotCarried(usize, Subject),
    #[error("the daemon's own records are not carried: {0}")]
    Daemon(String),
    #[error("the archive cannot be written: {0}")]
    Archive(String),
    #[error("{0}")]
    Read(#[from] ReadError),
    #[error("{0}")]
    Log(String),
    #[error("the incarnation ends")]
    Ended,
}

struct Aging {
    outside: Outside,
    started: Event,
    settings: Seq,
    registry: Registry,
    sessions: Registry<Session>,
    /// Dropped before the committer is, so that whoever waits for that finds the folder free.
    reader: Arc<dyn LogReader>,
    committer: Committer,
    keeper: Keeper,
    archive: Option<Arc<Mutex<Archive>>>,
    ended: Arc<Mutex<bool>>,
    /// The last record of this life that carries what the daemon's own say.
    carried: Seq,
    /// What was last said of why nothing goes.
    held: Option<String>,
}

impl Aging {
    async fn run(mut self) {
        let mut pause = LOOK;
        loop {
            tokio::time::sleep(pause).await;
            pause = LOOK;
            match self.round().await {
                Ok(more) => {
                    if more {
                        pause = PAUSE;
                    }
                    self.say(None);
                }
                Err(Held::Ended) => return,
                Err(held) => self.say(Some(held.to_string())),
            }
        }
    }

    fn say(&mut self, held: Option<String>) {
        self.outside.metrics.log_retention(held.is_some());
        if let Some(why) = held.as_ref().filter(|why| self.held.as_ref() != Some(why)) {
            tracing::warn!(why, "what should age out of the log is kept");
        }
        self.held = held;
    }

    /// Lets some of what is due age out; says whether more may be.
    async fn round(&mut self) -> Result<bool, Held> {
        let (log, clock, metrics) = (self.outside.settings.log.clone(), self.outside.clock.clone(), self.outside.metrics.clone());
        let reader = Arc::clone(&self.reader);
        let due = self.blocking(move || due(reader.as_ref(), &log, &clock, &metrics)).await??;
        // Before the first list it is not known what is under way.
        let Some(Due { upto, more }) = due.filter(|_| self.registry.is_listed()) else { return Ok(false) };
        let (reader, keeper) = (Arc::clone(&self.reader), self.keeper.clone());
        let in_snapshot = self.blocking(move || keeper.before_removal(reader.as_ref())).await?;
        let (reader, bound) = (Arc::clone(&self.reader), self.settled().min(in_snapshot.unwrap_or(upto)).min(upto));
        let Some(upto) = self.blocking(move || whole_blocks(reader.as_ref(), bound)).await?? else { return Ok(false) };
        self.carry_subjects(upto).await?;
        if self.carried <= upto {
            self.carry_daemon(upto).await?;
        }
        if let Some(archive) = &self.archive {
            let (archive, reader) = (Arc::clone(archive), Arc::clone(&self.reader));
            let written = self.blocking(move || lock(&archive).write(reader.as_ref(), upto, Clock::wall_now_us())).await?;
            written.map_err(|error| Held::Archive(error.to_string()))?;
        }
        let mut removed = None;
        while let Some(now) = self.committer.remove(upto).await.map_err(|error| Held::Log(error.to_string()))? {
            removed = Some(now);
            tokio::task::yield_now().await;
        }
        if let Some(removed) = removed {
            tracing::info!(from = removed.kept.0, "the log's beginning aged out");
        }
        Ok(more)
    }

    /// What waits for the disk, on a thread that may; on paused time in this one.
    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Held> {
        let ended = Arc::clone(&self.ended);
        let work = move || {
            let ended = lock(&ended);
            if *ended {
                drop(work);
                return None;
            }
            Some(work())
        };
        let done = if self.outside.inline { work() } else { tokio::task::spawn_blocking(work).await.ok().flatten() };
        done.ok_or(Held::Ended)
    }

    /// The last record before every step that is under way.
    fn settled(&self) -> Seq {
        let (apps, sessions) = (self.registry.states(), self.sessions.states());
        // What is withheld was not sent, and can be so for as long as an operator likes.
        let of_apps = apps.iter().flat_map(|(_, state)| state.hosts.values().flat_map(|host| &host.flights));
        let of_apps = of_apps.filter(|(_, flight)| !flight.withheld).map(|(seq, _)| seq);
        let of_sessions = sessions.iter().flat_map(|(_, state)| &state.flights).filter(|(_, flight)| !flight.withheld).map(|(seq, _)| seq);
        of_apps.chain(of_sessions).min().map_or(Seq(u64::MAX), |first| Seq(first.0.saturating_sub(1)))
    }

    /// Has every subject carried that has records up to there.
    async fn carry_subjects(&self, upto: Seq) -> Result<(), Held> {
        let subjects = self.reader.subjects_before(Seq(upto.0 + 1));
        carry_all(&self.registry, &subjects.iter().filter_map(App::key).collect::<Vec<_>>(), upto).await?;
        carry_all(&self.sessions, &subjects.iter().filter_map(Session::key).collect::<Vec<_>>(), upto).await
    }

    /// Carries what the daemon's own records up to there say, and tells the settings again for the reader.
    async fn carry_daemon(&mut self, upto: Seq) -> Result<(), Held> {
        let subject = Subject::Daemon(self.outside.settings.instance().to_owned());
        let (reader, about, started) = (Arc::clone(&self.reader), subject.clone(), self.started.clone());
        let parts = self.blocking(move || daemon_parts(reader.as_ref(), &about, &started, upto)).await??;
        let count = parts.len();
        let told = Event::SettingsTold(self.outside.settings.told());
        let drafts = parts.into_iter().map(Event::SubjectCarried).chain([told]).map(Draft::input).collect();
        let time_us = self.outside.clock.now_us();
        let reaction = Reaction { subject, time_us, rules: Rules::CURRENT.number(), settings: self.settings, drafts };
        let records = self.committer.append(reaction).await.map_err(|error| Held::Daemon(error.to_string()))?;
        self.carried = records.get(count.saturating_sub(1)).map_or(self.carried, |record| record.header.seq);
        Ok(())
    }
}

/// What is due.
#[derive(Clone, Copy)]
struct Due {
    upto: Seq,
    /// More than goes in this round.
    more: bool,
}

/// How far the log is too old or too large.
fn due(reader: &dyn LogReader, log: &Log, clock: &Clock, metrics: &Metrics) -> Result<Option<Due>, ReadError> {
    let (now_us, stored) = (clock.now_us(), reader.stored());
    let keep_us = i64::try_from(log.keep_s.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
    let is_large = log.keep_bytes > 0 && stored.block_bytes > log.keep_bytes;
    let enough = log.keep_bytes - log.keep_bytes / SLACK;
    let (mut left, mut gone, mut due) = (stored.block_bytes, 0, None);
    let mut old = None;
    reader.blocks(Seq::NONE, &mut |_, bytes| {
        let Ok(block) = Block::read(bytes) else { return ControlFlow::Break(()) };
        let latest = block.records().filter_map(|(_, frame)| frame.ok()).map(|frame| frame.time_us()).max().unwrap_or(now_us);
        let age_us = now_us.saturating_sub(latest);
        let is_old = *old.get_or_insert_with(|| {
            metrics.log_kept(u64::try_from(age_us).unwrap_or(0), stored.block_bytes);
            log.keep_s > 0 && age_us > keep_us.saturating_add(keep_us / SLACK.cast_signed())
        });
        if !(is_old && age_us > keep_us || is_large && left > enough) {
            return ControlFlow::Break(());
        }
        if gone >= ROUND {
            due = due.map(|due: Due| Due { more: true, ..due });
            return ControlFlow::Break(());
        }
        (left, gone) = (left.saturating_sub(bytes.len() as u64), gone + bytes.len() as u64);
        due = Some(Due { upto: block.last(), more: false });
        ControlFlow::Continue(())
    })?;
    Ok(due)
}

/// The last record up to there at which a block and a reaction end, and behind which there is another block.
fn whole_blocks(reader: &dyn LogReader, bound: Seq) -> Result<Option<Seq>, ReadError> {
    let (mut ends, mut whole) = (None, None);
    reader.blocks(Seq::NONE, &mut |_, bytes| {
        whole = ends.or(whole);
        let Ok(block) = Block::read(bytes) else { return ControlFlow::Break(()) };
        let ends_here = block.records().last().is_some_and(|(_, frame)| frame.is_ok_and(|frame| frame.following() == 0));
        ends = ends_here.then(|| block.last());
        if block.last() > bound { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(whole)
}

/// What the daemon's own records say that what is left relies on, when those up to `upto` are gone.
fn daemon_parts(reader: &dyn LogReader, daemon: &Subject, started: &Event, upto: Seq) -> Result<Vec<SubjectCarried>, ReadError> {
    let Event::IncarnationStarted(started) = started else { return Ok(Vec::new()) };
    let log = reader.id();
    let CarriedSettings { apps: mut settings, sessions: mut session_settings } = carried_settings(reader)?;
    let mut began: Option<LogRestarted> = carried_daemons(reader)?.into_iter().rev().find_map(|(_, daemon)| daemon.began);
    reader.subject(daemon, Seq(1), &mut |item| {
        match item.map(|record| (record.header.seq, record.body)) {
            Ok((seq, Body::Known(Event::SettingsInForce(in_force)))) => drop(settings.insert(seq, in_force.plan)),
            Ok((seq, Body::Known(Event::SessionSettingsInForce(in_force)))) => drop(session_settings.insert(seq, in_force.plan)),
            Ok((_, Body::Known(Event::LogRestarted(restarted)))) if restarted.log == log => began = Some(restarted),
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    // Those that were in force when what goes ended, and all that came since.
    let (settings, session_settings) = (in_force_at(settings, upto), in_force_at(session_settings, upto));
    let daemon = CarriedDaemon { began: began.filter(|began| began.log == log), started: started.clone(), settings, session_settings };
    let encoded = encode_state(&daemon).map_err(|error| ReadError(std::io::Error::other(error)))?;
    Ok(SubjectCarried::of(DAEMON_VERSION, &encoded))
}

/// Has these subjects carried, a few at once.
async fn carry_all<M: Kept>(registry: &Registry<M>, subjects: &[&M::Key], upto: Seq) -> Result<(), Held> {
    let to_do: Vec<&M::Key> = subjects.iter().copied().filter(|key| registry.carried(key) <= upto).collect();
    for some in to_do.chunks(AT_ONCE) {
        some.iter().for_each(|key| registry.carry(key));
        let left = || some.iter().filter(|key| registry.carried(key) <= upto);
        let all = async {
            while left().next().is_some() {
                tokio::time::sleep(CARRY_LOOK).await;
            }
        };
        if tokio::time::timeout(CARRY_WITHIN, all).await.is_err()
            && let Some(first) = left().next()
        {
            return Err(Held::NotCarried(left().count(), M::subject(first)));
        }
    }
    Ok(())
}

fn in_force_at<S>(mut settings: BTreeMap<Seq, S>, upto: Seq) -> Vec<(Seq, S)> {
    let first = settings.range(..=upto).next_back().map_or(Seq::NONE, |(seq, _)| *seq);
    settings.split_off(&first).into_iter().collect()
}
