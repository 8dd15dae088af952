//! The daemon's lives in a trial: each over the log that the one before it left.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::fault::Fuse;
use super::history::{End, Happening};
use super::ledger::Ledger;
use super::line::{GatewayLine, Heard, Line};
use super::plan::Plan;
use super::stage::{NAMESPACE, Stage, TOKEN, WORLD};
use crate::actors::Ended;
use crate::clock::{Clock, Entropy};
use crate::config::Settings;
use crate::events::log::{OpenError, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog, Unsynced};
use crate::gateway::SourceStore;
use crate::http::access::refusals::Refusals;
use crate::ids::{Seq, Subject};
use crate::kube::perform::Cluster;
use crate::run::{Incarnation, NotBegun, Outside, keys};
use crate::sim::link::Link;
use crate::telemetry::Metrics;

/// After a log has failed it is opened again after so long (run/serve.rs).
const LOG_AGAIN: Duration = Duration::from_secs(5);
/// A killed life must be gone within so long; it takes no time at all.
const KILL_LIMIT: Duration = Duration::from_secs(300);

/// The daemon over all its lives.
pub(super) struct Lives {
    seed: u64,
    settings: Settings,
    dir: PathBuf,
    pub(super) disk: MemDisk,
    heard: Arc<Mutex<Heard>>,
    life: Option<Life>,
    /// How many there were.
    pub(super) count: u32,
    /// How many of them were killed.
    pub(super) crashes: u32,
    /// How far the wall clock is stepped.
    stepped_us: i64,
    /// The last record of which the history knows.
    noted: Seq,
    /// When the next one begins, log time of the world; `None` while one runs.
    begins_us: Option<i64>,
    /// What is lost with the next crash.
    unsynced: Unsynced,
    down: Duration,
    lit: String,
}

struct Life {
    incarnation: Incarnation,
    line: Arc<Line>,
    clock: Clock,
}

/// What comes of a life without anybody asking.
pub(super) enum Came {
    /// It is to begin now.
    Begin,
    /// Its line was cut.
    Cut,
    /// It ended by itself.
    Ended(Ended),
}

impl Lives {
    pub(super) fn new(seed: u64, plan: &Plan, dir: &Path, now_us: i64) -> Self {
        Self {
            seed,
            settings: settings(plan),
            dir: dir.to_path_buf(),
            disk: MemDisk::new(),
            heard: Arc::default(),
            life: None,
            count: 0,
            crashes: 0,
            stepped_us: 0,
            noted: Seq::NONE,
            begins_us: Some(now_us),
            unsynced: Unsynced::Lost,
            down: Duration::ZERO,
            lit: String::new(),
        }
    }

    /// What all of them heard from the gateway.
    pub(super) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one runs.
    pub(super) fn runs(&self) -> bool {
        self.life.is_some()
    }

    /// Waits for what comes next.
    pub(super) async fn next(&mut self, stage: &Stage) -> Came {
        match &mut self.life {
            Some(life) => tokio::select! {
                biased;
                () = life.line.until_cut() => Came::Cut,
                ended = life.incarnation.ended() => Came::Ended(ended),
            },
            None => {
                stage.clock.sleep_until(self.begins_us.unwrap_or(i64::MAX)).await;
                Came::Begin
            }
        }
    }

    /// Takes in what came.
    pub(super) async fn take(&mut self, stage: &Stage, came: Came) {
        match came {
            Came::Begin => self.begin(stage).await,
            Came::Cut => self.crash(stage).await,
            Came::Ended(ended) => self.ended(stage, ended).await,
        }
    }

    /// Begins the next life.
    async fn begin(&mut self, stage: &Stage) {
        self.begins_us = None;
        self.count += 1;
        let line = Line::new(stage.history.clone(), stage.clock.clone());
        let clock = Clock::simulated(stage.clock.now_us() + self.stepped_us);
        let entropy = Entropy::seeded(self.seed ^ (u64::from(self.count) << 32) ^ 0xda);
        let options = OpenOptions::new(Subject::Daemon(self.settings.instance().to_owned()));
        let world = (&stage.history, &stage.clock);
        let opened = Ledger::open(&self.disk, (&clock, entropy.clone()), &options, &line, world, self.noted);
        let (ledger, found) = match opened {
            Ok(opened) => opened,
            // The disk failed or was full at this very moment: whoever runs the daemon starts it again.
            Err(OpenError::Io(_) | OpenError::Full(_)) => return self.rest(stage, LOG_AGAIN),
            Err(error) => return self.broken(stage, &format!("the log cannot be opened: {error}")),
        };
        stage.note(Happening::Began { life: self.count, log: found.log, head: found.head });
        let outside = match self.outside(stage, &line, &clock, entropy) {
            Ok(outside) => outside,
            Err(error) => return self.broken(stage, &format!("the data folder cannot be used: {error}")),
        };
        match Incarnation::begin(&outside, Box::new(ledger)).await {
            Ok(incarnation) => self.life = Some(Life { incarnation, line: Arc::clone(&line), clock }),
            // The disk failed at the first append.
            Err(NotBegun::NotRecorded(why)) => {
                line.cut();
                stage.note(Happening::Ended { life: self.count, how: End::LogFailed(why) });
                self.rest(stage, LOG_AGAIN);
            }
            Err(error) => self.broken(stage, &format!("the daemon does not begin: {error}")),
        }
    }

    fn broken(&mut self, stage: &Stage, why: &str) {
        stage.history.break_now(0, why.to_owned());
        self.begins_us = Some(i64::MAX);
    }

    fn outside(&self, stage: &Stage, line: &Arc<Line>, clock: &Clock, entropy: Entropy) -> std::io::Result<Outside> {
        let settings = self.settings.clone();
        let link = Link::new(&stage.gateway, TOKEN, Duration::from_secs(u64::from(settings.gateway.request_s)));
        let gateway = GatewayLine { line: Arc::clone(line), link, heard: Arc::clone(&self.heard) };
        Ok(Outside {
            cluster: Cluster::new(line.client(&stage.api, NAMESPACE), NAMESPACE, &settings),
            gateway: Arc::new(gateway),
            sources: SourceStore::open_inline(&self.dir, settings.sources.max_bytes)?,
            digest_key: keys::digest_key(&self.dir, &entropy)?,
            clock: clock.clone(),
            metrics: Metrics::default(),
            refusals: Refusals::default(),
            inline: true,
            entropy,
            settings,
        })
    }

    /// Lets the life that runs end at this; whatever else was lit is forgotten.
    pub(super) fn light(&mut self, fuse: Fuse, unsynced: Unsynced, down: Duration) {
        if let Some(life) = &self.life {
            (self.unsynced, self.down, self.lit) = (unsynced, down, format!("{fuse:?}"));
            life.line.light(fuse);
        }
    }

    /// What was lit burns down now.
    pub(super) fn burn(&mut self) {
        if let Some(life) = self.life.as_ref().filter(|life| life.line.is_lit()) {
            life.line.light(Fuse::Now);
        }
    }

    /// Steps the wall clock.
    pub(super) fn step(&mut self, by_us: i64) {
        self.stepped_us += by_us;
        if let Some(life) = &self.life {
            life.clock.step_wall(by_us);
        }
    }

    async fn crash(&mut self, stage: &Stage) {
        let Some(life) = self.life.take() else { return };
        // At this instant: what its tasks do until they are gone reaches nobody.
        self.disk.crash(self.unsynced);
        self.crashes += 1;
        let how = End::Crashed { at: std::mem::take(&mut self.lit), lost: self.unsynced != Unsynced::Kept };
        stage.note(Happening::Ended { life: self.count, how });
        if tokio::time::timeout(KILL_LIMIT, life.incarnation.crash()).await.is_err() {
            stage.history.break_now(0, "a killed incarnation does not go away".to_owned());
        }
        self.rest(stage, self.down);
    }

    /// Ends the life that runs in order.
    pub(super) async fn stop(&mut self, stage: &Stage, down: Duration) {
        let Some(life) = self.life.take() else { return };
        let cut = Arc::clone(&life.line);
        let stopped = tokio::select! {
            biased;
            () = cut.until_cut() => None,
            stopped = life.incarnation.stop("trial") => Some(stopped),
        };
        let how = match stopped {
            Some(Ok(())) => End::Stopped,
            Some(Err(error)) => End::LogFailed(error.to_string()),
            None => {
                self.crashes += 1;
                End::Crashed { at: format!("{} while it stopped", self.lit), lost: self.unsynced != Unsynced::Kept }
            }
        };
        cut.cut();
        if how != End::Stopped {
            self.disk.crash(self.unsynced);
        }
        stage.note(Happening::Ended { life: self.count, how });
        self.rest(stage, down);
    }

    async fn ended(&mut self, stage: &Stage, ended: Ended) {
        let Some(life) = self.life.take() else { return };
        match ended {
            Ended::LogFailed(why) => {
                drop(life.incarnation.stop_and_keep("log_failed").await);
                life.line.cut();
                stage.note(Happening::Ended { life: self.count, how: End::LogFailed(why) });
                self.rest(stage, LOG_AGAIN);
            }
            Ended::PartFailed(why) => {
                let _ = life.incarnation.stop("part_failed").await;
                life.line.cut();
                stage.note(Happening::Ended { life: self.count, how: End::PartFailed(why.clone()) });
                stage.history.break_now(0, format!("the daemon ended by itself: {why}"));
                self.rest(stage, LOG_AGAIN);
            }
        }
    }

    fn rest(&mut self, stage: &Stage, down: Duration) {
        self.noted = stage.history.tally().last;
        self.begins_us = Some(stage.clock.now_us() + i64::try_from(down.as_micros()).unwrap_or(0));
    }

    /// Begins at once, if none runs.
    pub(super) fn hurry(&mut self, now_us: i64) {
        if self.begins_us.is_some_and(|begins_us| begins_us < i64::MAX) {
            self.begins_us = Some(now_us);
        }
    }

    /// What is wrong with the log as a whole.
    pub(super) fn judge_log(&self) -> Vec<(u8, String)> {
        match MemLog::open_for_reading(&self.disk) {
            Ok(reader) => super::oracle::replay::judge(&*reader),
            Err(error) => vec![(1, format!("the log cannot be opened: {error}"))],
        }
    }

    /// Goes through the log's blocks as stored.
    pub(super) fn blocks(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Ok(reader) = MemLog::open_for_reading(&self.disk) {
            let _ = reader.blocks(Seq(1), &mut |_, bytes| {
                visit(bytes);
                std::ops::ControlFlow::Continue(())
            });
        }
    }
}

/// The daemon's settings in a trial.
pub(super) fn settings(plan: &Plan) -> Settings {
    // The folder has another name each time, and the settings are told in the log.
    let mut settings = Settings { world: WORLD.to_owned(), ..Settings::default() };
    settings.kubernetes.namespace = NAMESPACE.to_owned();
    settings.gateway.url = "http://127.0.0.1:1".to_owned();
    settings.gateway.beat_ms = plan.beat_ms;
    settings.pod.image = "registry.example/agent:1".to_owned();
    settings.sources.url = "http://10.96.0.7:7071".to_owned();
    settings
}
