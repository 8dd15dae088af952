//! One life of the daemon over one open log: replay, say so, start the actors; and its end.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::recover::NotRecovered;
use super::refused::RefusalsRecorder;
use super::retention::Retention;
use super::snapshot::{Keeper, recover};
use super::steps::ClockWatch;
use crate::actors::{Committer, CommitterThread, Daemon, Ended, Health, Parts, Registry, Sessions};
use crate::app::rules::Rules;
use crate::clock::{self, Clock, Entropy};
use crate::config::{Act, Settings};
use crate::events::kinds::daemon::IncarnationStarted;
use crate::events::log::{EventLog, LogReader};
use crate::events::record::{Draft, Event, Reaction};
use crate::gateway::{Gateway, SourceStore};
use crate::http::access::refusals::Refusals;
use crate::ids::{Seq, Subject};
use crate::kube::perform::Cluster;
use crate::telemetry::Metrics;

/// What every incarnation of a process shares.
#[derive(Clone)]
pub struct Outside {
    /// The settings.
    pub settings: Settings,
    /// Log time.
    pub clock: Clock,
    /// Randomness.
    pub entropy: Entropy,
    /// Counters.
    pub metrics: Metrics,
    /// The cluster's edge.
    pub cluster: Cluster,
    /// The gateway.
    pub gateway: Arc<dyn Gateway>,
    /// The packages.
    pub sources: SourceStore,
    /// Keys digests of environments.
    pub digest_key: [u8; 32],
    /// What the control listener refused and no record says yet.
    pub refusals: Refusals,
    /// Whether the log is written inside the runtime: for paused time.
    pub inline: bool,
}

/// Why an incarnation did not begin.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// The log cannot be folded.
    #[error(transparent)]
    NotRecovered(#[from] NotRecovered),
    /// The log takes no appends.
    #[error("the start cannot be recorded: {0}")]
    NotRecorded(String),
    /// A part did not start.
    #[error("{0}")]
    Part(String),
}

/// A running incarnation with its log.
pub struct Incarnation {
    daemon: Daemon,
    committer: CommitterThread,
    reader: Arc<dyn LogReader>,
    clock_watch: ClockWatch,
    refusals: RefusalsRecorder,
    retention: Retention,
    keeper: Keeper,
    /// Writes snapshots meanwhile; not on paused time, where no other thread may work.
    keeping: Option<JoinHandle<()>>,
}

impl Incarnation {
    /// Replays the log and starts.
    ///
    /// # Errors
    /// See [`NotBegun`].
    pub async fn begin(outside: &Outside, log: Box<dyn EventLog>) -> Result<Self, NotBegun> {
        let reader = log.reader();
        let begun = clock::now();
        let (recovered, keeper) = recover(reader.as_ref())?;
        outside.metrics.replay(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
        outside.clock.raise(recovered.last_us);
        tracing::info!(
            records = recovered.records,
            apps = recovered.apps.states.len(),
            sessions = recovered.sessions.states.len(),
            "the log is replayed"
        );
        let (committer, thread) = if outside.inline {
            CommitterThread::start_inline(log, outside.metrics.clone())
        } else {
            CommitterThread::start(log, outside.metrics.clone()).map_err(|error| NotBegun::Part(error.to_string()))?
        };
        let started = Event::IncarnationStarted(IncarnationStarted {
            number: recovered.incarnations + 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            world: outside.settings.world.clone(),
            acts: outside.settings.act == Act::All,
        });
        let has_sessions = outside.settings.sessions.serve.is_on() || !recovered.sessions.states.is_empty();
        let (settings_seq, session_settings_seq) = record_start(outside, &committer, &started, has_sessions).await?;
        let daemon = Subject::Daemon(outside.settings.instance().to_owned());
        let clock_watch = ClockWatch::start(&outside.clock, &committer, daemon.clone(), settings_seq);
        let refusals = RefusalsRecorder::start(outside, &committer, daemon, settings_seq);
        let (own_committer, own_start) = (committer.clone(), started.clone());
        let parts = Parts {
            settings: outside.settings.clone(),
            clock: outside.clock.clone(),
            metrics: outside.metrics.clone(),
            committer,
            reader: Arc::clone(&reader),
            log_failure: thread.failure(),
            states: recovered.apps.states,
            broken: recovered.apps.broken,
            sessions: recovered.sessions.states,
            broken_sessions: recovered.sessions.broken,
            started,
            settings_seq,
            session_settings_seq,
            cluster: outside.cluster.clone(),
            gateway: Arc::clone(&outside.gateway),
            sources: outside.sources.clone(),
            digest_key: outside.digest_key,
        };
        let daemon = Box::pin(Daemon::start(parts)).await.map_err(NotBegun::Part)?;
        let keeping = (!outside.inline).then(|| keeper.run(&reader));
        let started = (own_start, settings_seq);
        let subjects = (daemon.registry(), daemon.sessions());
        let retention = Retention::start(outside, started, subjects, own_committer, &reader, &keeper);
        Ok(Self { daemon, committer: thread, reader, clock_watch, refusals, retention, keeper, keeping })
    }

    /// The subjects.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        self.daemon.registry()
    }

    /// The sessions.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        self.daemon.sessions()
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> &Health {
        self.daemon.health()
    }

    /// The log's reader.
    #[must_use]
    pub fn reader(&self) -> &Arc<dyn LogReader> {
        &self.reader
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> Ended {
        self.daemon.ended().await
    }

    /// Ends it in order and closes the log.
    ///
    /// # Errors
    /// When the log cannot be closed: the next opening counts as after a crash, and nothing is lost.
    pub async fn stop(self, reason: &str) -> std::io::Result<()> {
        let keeper = self.keeper.clone();
        match self.stop_and_keep(reason).await {
            Some(log) => {
                keeper.finish(log.reader().as_ref());
                log.close()
            }
            None => Ok(()),
        }
    }

    /// Ends it as a kill would: nothing more is recorded, the log is not closed. Returns when its folder is free again.
    pub async fn crash(self) {
        drop(self.clock_watch);
        drop(self.refusals);
        self.retention.end();
        self.daemon.kill().await;
        self.keeping.inspect(JoinHandle::abort);
        self.keeper.end();
        drop(self.reader);
        drop(self.committer.ended().await);
    }

    /// Ends it in order and gives the log back, unclosed.
    pub async fn stop_and_keep(self, reason: &str) -> Option<Box<dyn EventLog>> {
        drop(self.clock_watch);
        drop(self.refusals);
        self.retention.end();
        self.daemon.stop(reason).await;
        self.keeping.inspect(JoinHandle::abort);
        self.keeper.end();
        self.committer.ended().await
    }
}

/// The daemon's own first records; gives those of the settings, of apps and of sessions.
async fn record_start(outside: &Outside, committer: &Committer, started: &Event, has_sessions: bool) -> Result<(Seq, Seq), NotBegun> {
    let settings = Event::SettingsInForce(outside.settings.in_force());
    let of_sessions = has_sessions.then(|| Event::SessionSettingsInForce(outside.settings.sessions_in_force()));
    let told = Event::SettingsTold(outside.settings.told());
    let reaction = Reaction {
        subject: Subject::Daemon(outside.settings.instance().to_owned()),
        time_us: outside.clock.now_us(),
        rules: Rules::CURRENT.number(),
        settings: Seq::NONE,
        drafts: [Draft::input(started.clone()), Draft::input(settings), Draft { event: told, cause: Seq::provisional(1) }]
            .into_iter()
            .chain(of_sessions.map(Draft::input))
            .collect(),
    };
    let records = committer.append(reaction).await.map_err(|error| NotBegun::NotRecorded(error.to_string()))?;
    let seq_of = |is: fn(&Event) -> bool| records.iter().find(|record| is(&record.event)).map_or(Seq::NONE, |record| record.header.seq);
    let settings = seq_of(|event| matches!(event, Event::SettingsInForce(_)));
    Ok((settings, seq_of(|event| matches!(event, Event::SessionSettingsInForce(_)))))
}
