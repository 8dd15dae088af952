//! The embedded world with the real daemon in it, brought to rest with so many live apps.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::process::Spent;
use super::timed_log::{Commits, TimedLog};
use crate::actors::Registry;
use crate::app::state::{App, Work};
use crate::cli::error::CliError;
use crate::cli::run::failed;
use crate::clock;
use crate::events::log::{LogReader, OpenOptions};
use crate::events::sled_log::SledLog;
use crate::gateway::Outbox;
use crate::ids::{HostName, Subject};
use crate::run::serve::ServeError;
use crate::run::{Incarnation, Outside, embedded};
use crate::sim::link::Link;
use crate::sim::node::{Pull, Register, Run, Schedule, Script, Start};
use crate::sim::world::{World, WorldOptions};

/// The gateway's bearer token.
const TOKEN: &str = "bench-token";
/// Organisations that the apps are spread over: the throttle is fair between them.
const ORGANISATIONS: usize = 20;
/// The beat while apps are brought up; measured is with the default one.
const QUICK_BEAT_MS: u64 = 250;
/// How long the apps may take to be live: far longer than they do.
const LIVE_LIMIT: Duration = Duration::from_secs(180);

/// How the daemon reaches the embedded gateway, which a revival asks for the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum By {
    /// By a call: what is measured is the daemon alone
    Process,
    /// By HTTP over loopback: a part of what is measured is the gateway
    Http,
}

/// The world and the daemon.
pub(super) struct Rig {
    pub(super) world: World,
    /// The live host of each app.
    pub(super) hosts: Vec<HostName>,
    /// How long the log's commits take.
    pub(super) commits: Commits,
    outside: Outside,
    log_dir: PathBuf,
    incarnation: Option<Incarnation>,
    /// Lives of the daemon so far.
    lives: u64,
}

impl Rig {
    /// A world without apps, and a daemon on an empty log.
    pub(super) async fn start(dir: &Path, gateway: By) -> Result<Self, CliError> {
        let options =
            WorldOptions { started_us: None, token: TOKEN.to_owned(), script: quick(), serve_gateway: true, ..WorldOptions::default() };
        let world = World::start(options).await?;
        let mut settings = embedded::settings(&world, dir);
        settings.gateway.beat_ms = QUICK_BEAT_MS;
        // Measured is the daemon, not the budget it would keep to a real API server.
        settings.kubernetes.calls_per_s = 10_000;
        settings.kubernetes.burst = 10_000;
        // Pods are taken away again and again: the pauses of a host that keeps vanishing are not what is measured.
        settings.plan.crash_window_s = 1;
        let joined = embedded::outside(&world, settings, TOKEN);
        let mut outside = joined.map_err(|error| CliError::refused(error.to_string(), "name another --dir").because(error))?;
        if gateway == By::Process {
            let limit = Duration::from_secs(u64::from(outside.settings.gateway.request_s));
            outside.gateway = Arc::new(Link::new(&world.gateway, TOKEN, limit));
        }
        let log_dir = dir.join("log");
        let mut rig = Self { world, hosts: Vec::new(), commits: Commits::default(), outside, log_dir, incarnation: None, lives: 0 };
        rig.begin().await?;
        Ok(rig)
    }

    async fn begin(&mut self) -> Result<(), CliError> {
        let options = OpenOptions::new(Subject::Daemon(self.outside.settings.instance().to_owned()));
        let opened = SledLog::open(&self.log_dir, &self.outside.clock, self.outside.entropy.clone(), &options);
        let (log, _) = opened.map_err(|error| failed(ServeError::Open(error)))?;
        let begun = Incarnation::begin(&self.outside, Box::new(TimedLog::new(log, self.outside.clock.clone(), self.commits.clone()))).await;
        self.lives += 1;
        self.incarnation = Some(begun.map_err(|error| failed(ServeError::NotBegun(error)))?);
        Ok(())
    }

    /// Deploys the apps, waits until each is live, and starts the daemon again as it usually runs.
    pub(super) async fn bring_up(&mut self, apps: usize) -> Result<(), CliError> {
        let names: Vec<String> = (0..apps).map(|index| format!("org{}/app{index}", index % ORGANISATIONS)).collect();
        let hosts: Result<Vec<HostName>, _> = names.iter().map(|app| HostName::new(&self.world.gateway.deploy(app))).collect();
        self.hosts = hosts.map_err(|error| CliError::refused(format!("the embedded gateway names a host badly: {error}"), "report it"))?;
        self.until("every app is live", || self.world.gateway.lock().apps.values().all(|app| app.live_host.as_ref() == Some(&app.host)))
            .await?;
        self.stop().await?;
        self.outside.settings.gateway.beat_ms = crate::config::Gateway::default().beat_ms;
        self.begin().await?;
        self.wait_for_all().await
    }

    /// Waits until every app's host runs, the gateway knows of it in this life of the daemon, and nobody has anything to do.
    pub(super) async fn wait_for_all(&self) -> Result<(), CliError> {
        let registry = self.registry()?.clone();
        let at_rest = move || {
            let states = registry.states();
            registry.is_listed()
                && states.len() == self.hosts.len()
                && registry.busy() == 0
                && states.iter().all(|(_, app)| is_at_rest(app, self.lives))
                // A pod that was just taken away may be news that is still on its way.
                && self.hosts.iter().all(|host| self.world.api.object("pods", &self.world.namespace, host.as_str()).is_some())
        };
        self.until("every app is at rest", at_rest).await
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<(), CliError> {
        let begun = clock::now();
        while !holds() {
            if begun.elapsed() > LIVE_LIMIT {
                return Err(CliError::refused(format!("it hangs: waiting until {what}"), "report it with the log"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    fn running(&self) -> Result<&Incarnation, CliError> {
        self.incarnation.as_ref().ok_or_else(|| CliError::refused("the daemon does not run", "report it"))
    }

    /// The subjects.
    pub(super) fn registry(&self) -> Result<&Registry, CliError> {
        Ok(self.running()?.registry())
    }

    /// The log.
    pub(super) fn reader(&self) -> Result<&Arc<dyn LogReader>, CliError> {
        Ok(self.running()?.reader())
    }

    /// The world alone for so long, its gateway asked at the daemon's beat: what it takes of the processor, percent of one core.
    pub(super) async fn without_daemon(&mut self, span: Duration) -> Result<Option<f64>, CliError> {
        self.stop().await?;
        let beat_ms = self.outside.settings.gateway.beat_ms;
        let mut outbox = Outbox::new("bench", beat_ms);
        let (begun, spent) = (clock::now(), Spent::begin());
        let mut beats = tokio::time::interval(Duration::from_millis(beat_ms));
        while begun.elapsed() < span {
            let _ = tokio::time::timeout(span.saturating_sub(begun.elapsed()), beats.tick()).await;
            let asked = self.outside.gateway.heartbeat(outbox.beat(self.world.clock.now_us()).body).await;
            asked.map_err(|error| CliError::refused(format!("the embedded gateway does not answer: {error}"), "report it"))?;
        }
        let percent = spent.and_then(|spent| spent.percent());
        self.begin().await?;
        self.wait_for_all().await?;
        Ok(percent)
    }

    /// Ends the daemon in order.
    pub(super) async fn stop(&mut self) -> Result<(), CliError> {
        if let Some(incarnation) = self.incarnation.take() {
            incarnation.stop("bench").await?;
        }
        Ok(())
    }
}

fn is_at_rest(app: &App, life: u64) -> bool {
    let live = app.want.as_ref().and_then(|want| want.live_host.as_ref());
    let rests = live
        .and_then(|live| app.hosts.get(live))
        .is_some_and(|host| host.work == Work::Rest && host.flights.is_empty() && host.pod.as_ref().is_some_and(|pod| pod.runs()));
    app.incarnation == life && app.confirmed && rests
}

/// A healthy app that is up at once: the embedded nodes' work is not what is measured, so there is as little of it as can be.
pub(super) fn quick() -> Script {
    let usual = Script::default();
    Script {
        schedule: Schedule::After(Duration::ZERO),
        pull: Pull::Takes(Duration::ZERO),
        install: Run { lasts: Some(Duration::ZERO), ..usual.install },
        start: Start::Takes(Duration::ZERO),
        app: Run { term_after: Some(Duration::ZERO), ..usual.app },
        register: Register::After(Duration::ZERO),
    }
}
