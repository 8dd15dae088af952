//! The root of an incarnation: starts the actors, gives each subject one while it has something to do, and restarts a subject
//! whose actor failed from the log. When anything but a subject fails, the incarnation ends.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::beat::{BeatActor, BeatParts};
use super::cluster::{ClusterActor, ClusterHandle};
use super::committer::Committer;
use super::health::Health;
use super::perform::Performer;
use super::registry::Registry;
use super::reports::Reports;
use super::subject::{AppActor, Shared};
use super::watcher::{WatchActor, WatchParts};
use super::wheel::Wheel;
use crate::app::react::committed;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::clock::Clock;
use crate::config::Settings;
use crate::events::kinds::daemon::{IncarnationStopped, PlanSettings, Quarantined};
use crate::events::log::LogReader;
use crate::events::record::{Draft, Event, Reaction, Record};
use crate::events::stored::Body;
use crate::gateway::{Gateway, Outbox, SourceStore};
use crate::ids::{AppId, RecordId, Seq, Subject, Word};
use crate::kube::decode::{Nodes, Pods};
use crate::kube::perform::Cluster;
use crate::kube::throttle::Limits;
use crate::kube::watch::{Watch, WatchLimits};
use crate::telemetry::Metrics;

/// Failures of a subject's actor in a row after which the subject is quarantined.
const FAILURES: u32 = 3;

/// Everything an incarnation is made of.
pub struct Parts {
    /// The settings.
    pub settings: Settings,
    /// Log time.
    pub clock: Clock,
    /// Counters.
    pub metrics: Metrics,
    /// The log's writer.
    pub committer: Committer,
    /// The log's reader.
    pub reader: Arc<dyn LogReader>,
    /// The log's failure, when it comes.
    pub log_failure: tokio::sync::watch::Receiver<Option<String>>,
    /// What the replay gave.
    pub states: BTreeMap<AppId, App>,
    /// What each subject learns first.
    pub started: Event,
    /// The record of the settings in force.
    pub settings_seq: Seq,
    /// The cluster's edge.
    pub cluster: Cluster,
    /// The gateway.
    pub gateway: Arc<dyn Gateway>,
    /// The packages.
    pub sources: SourceStore,
    /// Keys digests of environments.
    pub digest_key: [u8; 32],
}

/// Why an incarnation ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The log takes no more appends.
    LogFailed(String),
    /// A part that everything needs failed.
    PartFailed(String),
}

/// A running incarnation.
pub struct Daemon {
    registry: Registry,
    health: Health,
    committer: Committer,
    cluster: ClusterHandle,
    supervisor: ActorRef<Order>,
    supervising: JoinHandle<()>,
    ended: oneshot::Receiver<Ended>,
    daemon: Subject,
    clock: Clock,
    settings_seq: Seq,
}

/// What the supervisor is told.
pub(super) enum Order {
    /// A subject has something to do.
    Activate(AppId),
    /// The log failed.
    LogFailed(String),
    /// Everything stops taking in.
    StopSources(ractor::RpcReplyPort<()>),
}

struct Supervisor;

struct State {
    shared: Shared,
    reader: Arc<dyn LogReader>,
    subjects: BTreeMap<ActorId, AppId>,
    /// Actors without which nothing goes on, by name.
    parts: BTreeMap<ActorId, &'static str>,
    sources: Vec<ActorCell>,
    ended: Option<oneshot::Sender<Ended>>,
    tasks: tokio::task::JoinSet<()>,
}

struct Arguments {
    parts: Parts,
    registry: Registry,
    wheel: Wheel,
    health: Health,
    to_activate: mpsc::UnboundedReceiver<AppId>,
    ended: oneshot::Sender<Ended>,
    handle: oneshot::Sender<ClusterHandle>,
}

impl Daemon {
    /// Starts everything; nothing is planned before the cluster is listed.
    ///
    /// # Errors
    /// When an actor does not start.
    pub async fn start(parts: Parts) -> Result<Self, String> {
        let wheel = Wheel::default();
        let (asking, to_activate) = mpsc::unbounded_channel();
        let mut parts = parts;
        let states = std::mem::take(&mut parts.states);
        let registry = Registry::new(states, parts.started.clone(), &parts.settings.limits, wheel.clone(), asking);
        let health = Health::default();
        let (ending, ended) = oneshot::channel();
        let (handing, handed) = oneshot::channel();
        let daemon = daemon_subject(&parts.settings);
        let (committer, clock, settings_seq) = (parts.committer.clone(), parts.clock.clone(), parts.settings_seq);
        let arguments =
            Arguments { parts, registry: registry.clone(), wheel, health: health.clone(), to_activate, ended: ending, handle: handing };
        let started = Actor::spawn(None, Supervisor, arguments).await;
        let (supervisor, supervising) = started.map_err(|error| error.to_string())?;
        let cluster = handed.await.map_err(|_| "the cluster actor did not start".to_owned())?;
        Ok(Self { registry, health, committer, cluster, supervisor, supervising, ended, daemon, clock, settings_seq })
    }

    /// The subjects.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> Ended {
        (&mut self.ended).await.unwrap_or_else(|_| Ended::PartFailed("the supervisor is gone".to_owned()))
    }

    /// Ends at once, in the middle of whatever goes on.
    pub async fn kill(self) {
        self.registry.close();
        self.supervisor.kill();
        let _ = self.supervising.await;
    }

    /// Ends in order: takes in nothing more, lets what is under way come back and be recorded, then stops every actor.
    pub async fn stop(self, reason: &str) {
        let _ = self.supervisor.call(Order::StopSources, Some(std::time::Duration::from_secs(5))).await;
        self.cluster.drain().await;
        let settled = async {
            while self.registry.active() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        self.registry.settle_down();
        let _ = tokio::time::timeout(std::time::Duration::from_secs(2), settled).await;
        self.registry.close();
        let stopped = Event::IncarnationStopped(IncarnationStopped { reason: Word::new(reason) });
        let reaction = Reaction {
            subject: self.daemon,
            time_us: self.clock.now_us(),
            rules: Rules::CURRENT.number(),
            settings: self.settings_seq,
            drafts: vec![Draft::input(stopped)],
        };
        if let Err(error) = self.committer.append(reaction).await {
            tracing::warn!(%error, "the end of this incarnation is not recorded");
        }
        self.supervisor.stop(None);
        let _ = self.supervising.await;
    }
}

/// The subject of the daemon's own records.
#[must_use]
pub(crate) fn daemon_subject(settings: &Settings) -> Subject {
    Subject::Daemon(settings.instance().to_owned())
}

impl Actor for Supervisor {
    type Msg = Order;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<Order>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        Box::pin(start(&myself, arguments)).await
    }

    async fn handle(&self, myself: ActorRef<Order>, order: Order, state: &mut State) -> Result<(), ActorProcessingErr> {
        match order {
            Order::Activate(app) => {
                let arguments = (app.clone(), state.shared.clone());
                let (actor, _) = Actor::spawn_linked(None, AppActor, arguments, myself.get_cell()).await?;
                state.subjects.insert(actor.get_id(), app.clone());
                state.shared.registry.activated(&app, actor);
            }
            Order::LogFailed(why) => state.end(Ended::LogFailed(why)),
            Order::StopSources(reply) => {
                state.parts.clear();
                for source in std::mem::take(&mut state.sources) {
                    source.kill();
                }
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Order>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                if let Some(part) = state.parts.remove(&cell.get_id()) {
                    state.end(Ended::PartFailed(format!("{part}: {}", reason.unwrap_or_else(|| "ended".to_owned()))));
                }
                state.subjects.remove(&cell.get_id());
            }
            SupervisionEvent::ActorFailed(cell, error) => {
                if let Some(part) = state.parts.remove(&cell.get_id()) {
                    state.end(Ended::PartFailed(format!("{part}: {error}")));
                } else if let Some(app) = state.subjects.remove(&cell.get_id()) {
                    tracing::error!(%app, %error, "a subject's actor failed: it is restarted from the log");
                    Box::pin(state.restart(&app)).await;
                }
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

async fn start(myself: &ActorRef<Order>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
    let Arguments { parts, registry, wheel, health, to_activate, ended, handle } = arguments;
    let Parts { settings, clock, metrics, committer, reader, log_failure, settings_seq, cluster, gateway, sources, digest_key, .. } = parts;
    let performer = Arc::new(Performer::new(cluster, gateway, sources, digest_key));
    let limits = Limits {
        per_s: settings.kubernetes.calls_per_s,
        burst: settings.kubernetes.burst,
        in_flight: settings.kubernetes.in_flight,
        queue: settings.kubernetes.queue,
    };
    let arguments = (limits, Arc::clone(&performer), registry.clone(), clock.clone(), metrics.clone());
    let (actor, _) = Actor::spawn_linked(None, ClusterActor, arguments, myself.get_cell()).await?;
    let mut running = BTreeMap::from([(actor.get_id(), "the cluster actor")]);
    let cluster = ClusterHandle::new(actor, clock.clone());
    let _ = handle.send(cluster.clone());
    let reports = Reports::new(Outbox::new(&settings.gateway.runner, settings.gateway.beat_ms), Arc::clone(&reader));
    for (app, state) in registry.states() {
        reports.state(&app, &state);
    }
    let plan = Arc::new(PlanSettings::from(&settings.plan));
    let shared = Shared {
        registry: registry.clone(),
        committer: committer.clone(),
        cluster,
        reports: reports.clone(),
        clock: clock.clone(),
        metrics,
        log: reader.id(),
        settings: Arc::clone(&plan),
        settings_seq,
    };
    let watch = watch_parts(&settings, &performer, &registry, &committer, &health, &clock, settings_seq, &reader);
    let (watch, _) = Actor::spawn_linked(None, WatchActor, watch, myself.get_cell()).await?;
    running.insert(watch.get_id(), "the watch");
    let beat = BeatParts {
        registry: registry.clone(),
        performer,
        reports,
        health: health.clone(),
        clock: clock.clone(),
        settings: plan,
        world: settings.world.clone(),
        beat_ms: settings.gateway.beat_ms,
        apps_max: settings.limits.apps as usize,
    };
    let (beat, _) = Actor::spawn_linked(None, BeatActor, beat, myself.get_cell()).await?;
    running.insert(beat.get_id(), "the gateway's beat");
    let sources = vec![watch.get_cell(), beat.get_cell()];
    let tasks = tasks(myself, registry, wheel, clock, to_activate, log_failure, health);
    Ok(State { shared, reader, subjects: BTreeMap::new(), parts: running, sources, ended: Some(ended), tasks })
}

#[expect(clippy::too_many_arguments, reason = "the one place that joins these parts")]
fn watch_parts(
    settings: &Settings,
    performer: &Arc<Performer>,
    registry: &Registry,
    committer: &Committer,
    health: &Health,
    clock: &Clock,
    settings_seq: Seq,
    reader: &Arc<dyn LogReader>,
) -> WatchParts {
    let cluster = &performer.cluster;
    let scheme = cluster.template().scheme.clone();
    let id = reader.id();
    let jitter = u64::from_le_bytes(std::array::from_fn(|at| id.0[at]));
    let limits = WatchLimits::new(&settings.kubernetes, jitter);
    WatchParts {
        registry: registry.clone(),
        performer: Arc::clone(performer),
        committer: committer.clone(),
        health: health.clone(),
        clock: clock.clone(),
        daemon: daemon_subject(settings),
        settings_seq,
        pods: Watch {
            client: cluster.client().clone(),
            path: format!("/api/v1/namespaces/{}/pods", cluster.namespace()),
            selector: scheme.selector(),
            decode: Pods(scheme),
            limits,
            clock: clock.clone(),
        },
        nodes: Watch {
            client: cluster.client().clone(),
            path: "/api/v1/nodes".to_owned(),
            selector: String::new(),
            decode: Nodes,
            limits,
            clock: clock.clone(),
        },
    }
}

/// What is no actor: forwarding who needs one, the timer of all subjects, the log's failure. They end with the supervisor.
fn tasks(
    myself: &ActorRef<Order>,
    registry: Registry,
    wheel: Wheel,
    clock: Clock,
    mut to_activate: mpsc::UnboundedReceiver<AppId>,
    mut log_failure: tokio::sync::watch::Receiver<Option<String>>,
    health: Health,
) -> tokio::task::JoinSet<()> {
    let mut tasks = tokio::task::JoinSet::new();
    let supervisor = myself.clone();
    tasks.spawn(async move {
        while let Some(app) = to_activate.recv().await {
            if supervisor.cast(Order::Activate(app)).is_err() {
                return;
            }
        }
    });
    tasks.spawn(async move {
        loop {
            let app = wheel.due(&clock).await;
            registry.nudge(&app);
        }
    });
    let supervisor = myself.clone();
    tasks.spawn(async move {
        let failed = log_failure.wait_for(Option::is_some).await.map(|why| why.clone().unwrap_or_default());
        if let Ok(why) = failed {
            health.note(|vitals| vitals.log_failed = Some(why.clone()));
            let _ = supervisor.cast(Order::LogFailed(why));
        }
    });
    tasks
}

impl State {
    fn end(&mut self, ended: Ended) {
        if let Some(sender) = self.ended.take() {
            tracing::error!(?ended, "the incarnation ends");
            let _ = sender.send(ended);
        }
        self.tasks.abort_all();
    }

    /// Gives a subject whose actor failed its state of the log, and what its actor had in hand if that is not in there; after
    /// too many failures it is quarantined: visible, not acted on.
    async fn restart(&mut self, app: &AppId) {
        let subject = Subject::App(app.clone());
        let mut state = match replay(self.reader.as_ref(), &subject) {
            Ok(state) => state,
            Err(why) => return self.end(Ended::PartFailed(format!("{app} cannot be replayed: {why}"))),
        };
        if self.shared.registry.failed(app, &state) < FAILURES {
            self.submit_again(app, &state);
            return self.shared.registry.nudge(app);
        }
        tracing::error!(%app, "quarantined: its actor fails again and again");
        let quarantined = Quarantined { invariant: Word::new("no_panic"), at: self.reader.head() };
        let reaction = Reaction {
            subject,
            time_us: self.shared.clock.now_us(),
            rules: Rules::CURRENT.number(),
            settings: self.shared.settings_seq,
            drafts: vec![Draft::input(Event::Quarantined(quarantined))],
        };
        if let Ok(records) = self.shared.committer.append(reaction).await {
            committed(&mut state, Rules::CURRENT, &records);
            self.shared.registry.replace(app, state);
        }
    }

    /// Steps that are durable and that the cluster actor may never have been given: it takes each once.
    fn submit_again(&self, app: &AppId, state: &App) {
        for host in state.hosts.values() {
            for (seq, flight) in &host.flights {
                let ours = flight.incarnation == state.incarnation && !flight.withheld && !flight.revoking;
                if ours && !self.shared.registry.awaits_outcome(app, *seq) {
                    let id = RecordId { log: self.shared.log, seq: *seq };
                    self.shared.cluster.submit(app, id, flight.step.clone(), flight.purpose);
                }
            }
        }
    }
}

/// The state of one subject, by the log alone.
fn replay(reader: &dyn LogReader, subject: &Subject) -> Result<App, String> {
    let mut app = App::default();
    let mut failed = None;
    let read = reader.subject(subject, Seq(1), &mut |item| match item {
        Ok(stored) => {
            match stored.body {
                Body::Known(event) => committed(&mut app, Rules::CURRENT, &[Record { header: stored.header, event }]),
                Body::Opaque(_) | Body::Withheld => {}
                Body::NeedsVersion(_) => failed = Some(format!("record {} is of a newer build", stored.header.seq)),
            }
            ControlFlow::Continue(())
        }
        Err(damage) => {
            failed = Some(damage.to_string());
            ControlFlow::Break(())
        }
    });
    read.map_err(|error| error.to_string())?;
    failed.map_or(Ok(app), Err)
}
