//! What the control listener shows of the incarnation that runs now, or that none does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::actors::{Health, Registry, Sessions, Vitals, WeakCommitter};
use crate::app::show;
use crate::app::state::App;
use crate::clock::Clock;
use crate::config::{Act, Settings};
use crate::events::archive;
use crate::events::erase::{Erasure, NotErased};
use crate::events::kinds::daemon::PlanSettings;
use crate::events::log::LogReader;
use crate::http::control::AppsView;
use crate::http::erase::{Erased, Refused, Wanted};
use crate::http::log::LogView;
use crate::http::readiness::{GatewayState, Readiness, Role};
use crate::ids::{AppId, Seq, Subject};
use crate::telemetry::Metrics;

/// A view of whatever runs; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Window(Arc<Inner>);

struct Inner {
    clock: Clock,
    metrics: Metrics,
    acts: bool,
    plan: PlanSettings,
    watch_limit_ms: u64,
    shown: Mutex<Shown>,
    log: Mutex<Option<OpenLog>>,
    /// Weak: what is shown keeps no committer from ending.
    committer: Mutex<Option<WeakCommitter>>,
    daemon: Subject,
    archive: Option<PathBuf>,
}

/// The log that is shown.
#[derive(Clone)]
struct OpenLog {
    /// Weak: what is shown keeps no folder locked.
    reader: Weak<dyn LogReader>,
    /// How far it is durable; `None` while nobody writes.
    heads: Option<watch::Receiver<Seq>>,
}

/// What there is to show.
#[derive(Clone, Default)]
enum Shown {
    /// No incarnation runs.
    #[default]
    Nothing,
    /// None runs, and what the last one knew stays in sight: why.
    Failed(Registry, Sessions, Health, String),
    /// One runs.
    Running(Registry, Sessions, Health),
    /// None may run: what the log says, and why.
    StandingBy(Arc<BTreeMap<AppId, Arc<App>>>, String),
}

impl Window {
    /// A view of nothing yet.
    #[must_use]
    pub fn new(settings: &Settings, clock: Clock, metrics: Metrics) -> Self {
        let watch_limit_ms = u64::from(settings.kubernetes.watch_silence_s) * 1_000;
        let acts = settings.act == Act::All;
        let plan = PlanSettings::from(&settings.plan);
        let Settings { log, data_dir, .. } = settings;
        let inner = Inner {
            clock,
            metrics,
            acts,
            plan,
            watch_limit_ms,
            shown: Mutex::default(),
            log: Mutex::default(),
            committer: Mutex::default(),
            daemon: Subject::Daemon(settings.instance().to_owned()),
            archive: (!log.archive.is_empty()).then(|| Path::new(data_dir).join(&log.archive)),
        };
        Self(Arc::new(inner))
    }

    /// Shows this incarnation from now on.
    pub fn show(&self, registry: Registry, sessions: Sessions, health: Health) {
        self.put(Shown::Running(registry, sessions, health));
    }

    /// Shows that none runs.
    pub fn show_nothing(&self) {
        self.put(Shown::Nothing);
    }

    /// Shows what the incarnation knew whose log failed, and why that was.
    pub fn show_failed(&self, why: &str) {
        let mut shown = self.0.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = match std::mem::take(&mut *shown) {
            Shown::Running(registry, sessions, health) | Shown::Failed(registry, sessions, health, _) => {
                Shown::Failed(registry, sessions, health, why.to_owned())
            }
            Shown::Nothing => Shown::Nothing,
            Shown::StandingBy(states, why) => Shown::StandingBy(states, why),
        };
    }

    /// Shows what the log says while another may act, and why that is so.
    pub fn show_standing_by(&self, states: Arc<BTreeMap<AppId, Arc<App>>>, why: String) {
        self.put(Shown::StandingBy(states, why));
    }

    fn put(&self, shown: Shown) {
        *self.0.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn shown(&self) -> Shown {
        self.0.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows this log as long as it is open, and as it grows.
    pub fn show_log(&self, reader: &Arc<dyn LogReader>, heads: Option<watch::Receiver<Seq>>) {
        *self.log() = Some(OpenLog { reader: Arc::downgrade(reader), heads });
    }

    fn log(&self) -> MutexGuard<'_, Option<OpenLog>> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has this committer carry out what operators ask of the log, as long as it runs.
    pub fn show_committer(&self, committer: WeakCommitter) {
        *self.0.committer.lock().unwrap_or_else(PoisonError::into_inner) = Some(committer);
    }

    /// The incarnation that runs, or the last one while its log is opened again.
    fn running(&self) -> Option<(Registry, Health)> {
        match self.shown() {
            Shown::Running(registry, _, health) | Shown::Failed(registry, _, health, _) => Some((registry, health)),
            Shown::Nothing | Shown::StandingBy(..) => None,
        }
    }

    /// The sessions of the incarnation that runs, or of the last one while its log is opened again: those are all that can be seen.
    #[must_use]
    pub fn sessions(&self) -> Option<Sessions> {
        match self.shown() {
            Shown::Running(_, sessions, _) | Shown::Failed(_, sessions, ..) => Some(sessions),
            Shown::Nothing | Shown::StandingBy(..) => None,
        }
    }

    fn states(&self) -> Vec<(AppId, Arc<App>)> {
        match self.shown() {
            Shown::Running(registry, ..) | Shown::Failed(registry, ..) => registry.states(),
            Shown::StandingBy(states, _) => states.iter().map(|(app, state)| (app.clone(), Arc::clone(state))).collect(),
            Shown::Nothing => Vec::new(),
        }
    }

    /// How it is, for `/readyz`; brings the gauges up to date on the way.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let now_us = self.0.clock.now_us();
        let running = self.running();
        if let Some(sessions) = self.sessions() {
            self.0.metrics.sessions(sessions.count());
        }
        let (standing_by, failed) = match self.shown() {
            Shown::StandingBy(_, why) => (Some(why), None),
            Shown::Failed(.., why) => (None, Some(why)),
            Shown::Running(..) | Shown::Nothing => (None, None),
        };
        let vitals = running.as_ref().map_or_else(Vitals::default, |(_, health)| health.vitals());
        let log_failed = failed.or(vitals.log_failed);
        let age_ms = |since_us: i64| u64::try_from(now_us.saturating_sub(since_us) / 1_000).unwrap_or(0);
        let gateway = match (vitals.not_believed, vitals.answered_us) {
            (Some(reason), _) => GatewayState::Bad { reason },
            (None, Some(since_us)) => GatewayState::Good { age_ms: age_ms(since_us) },
            (None, None) => GatewayState::Waiting,
        };
        let watch_age_ms = vitals.watch_alive_us.map(age_ms);
        if let Some(age_ms) = watch_age_ms {
            self.0.metrics.watch_age(age_ms.saturating_mul(1_000));
        }
        Readiness {
            replayed: running.is_some() || standing_by.is_some(),
            listed: vitals.pods_listed,
            secrets_listed: vitals.secrets_listed,
            watch_age_ms,
            watch_limit_ms: self.0.watch_limit_ms,
            log_writable: running.is_some() && log_failed.is_none(),
            log_failed,
            nodes_unknown: vitals.nodes_unknown,
            role: match (&standing_by, self.0.acts) {
                (Some(_), _) => Role::StandingBy,
                (None, true) => Role::Active,
                (None, false) => Role::Observing,
            },
            standing_by,
            gateway,
        }
    }

    /// How many subjects hold each alarm.
    pub fn count_alarms(&self) {
        let states = self.states();
        for name in show::ALARMS {
            let raised = states.iter().filter(|(_, state)| show::alarms(state).any(|alarm| alarm == *name)).count();
            self.0.metrics.alarms(name, raised);
        }
    }
}

/// An app that is neither known nor broken is not worth a line.
fn is_shown(state: &App) -> bool {
    !state.is_empty() || state.quarantined
}

impl AppsView for Window {
    fn apps(&self) -> BoxFuture<'_, Value> {
        let apps = self.states();
        let apps: Vec<Value> =
            apps.iter().filter(|(_, state)| is_shown(state)).map(|(app, state)| show::brief(app, state, &self.0.plan)).collect();
        std::future::ready(json!({ "apps": apps })).boxed()
    }

    fn app<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Option<Value>> {
        let (state, looks_again_us) = match self.shown() {
            Shown::Running(registry, ..) | Shown::Failed(registry, ..) => (registry.state(app), registry.looks_again_us(app)),
            Shown::StandingBy(states, _) => (states.get(app).cloned(), None),
            Shown::Nothing => (None, None),
        };
        let shown = state.filter(|state| is_shown(state)).map(|state| show::whole(app, &state, &self.0.plan, looks_again_us));
        std::future::ready(shown).boxed()
    }
}

impl LogView for Window {
    fn reader(&self) -> Option<Arc<dyn LogReader>> {
        self.log().as_ref().and_then(|log| log.reader.upgrade())
    }

    fn heads(&self) -> Option<watch::Receiver<Seq>> {
        self.log().as_ref().and_then(|log| log.heads.clone())
    }

    fn erase(&self, wanted: Wanted) -> BoxFuture<'_, Result<Erased, Refused>> {
        async move {
            let committer = self.0.committer.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakCommitter::upgrade);
            let Wanted { seq, who, why } = wanted;
            // Before it is erased: whoever is not told of a copy believes that there is none.
            let archive = self.0.archive.clone();
            let holding = tokio::task::spawn_blocking(move || archive.map_or(Ok(Vec::new()), |dir| archive::holding(&dir, seq)));
            let holding = holding.await.map_err(std::io::Error::other).flatten().map_err(NotErased::Read)?;
            let erasure = Erasure { seq, daemon: self.0.daemon.clone(), time_us: self.0.clock.now_us(), who, why };
            let record = committer.ok_or(Refused::NoLog)?.erase(erasure).await?;
            let archived = holding.into_iter().map(|segment| segment.path.display().to_string()).collect();
            Ok(Erased { seq: seq.0, recorded: record.header.seq.0, archived })
        }
        .boxed()
    }
}
