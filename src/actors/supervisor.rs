//! The root of an incarnation: starts the actors, gives each subject one while it has something to do, and restarts a subject
//! whose actor failed from the log. When anything but a subject fails, the incarnation ends.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::beat::{BeatActor, BeatParts};
use super::cluster::{ClusterActor, ClusterHandle};
use super::committer::Committer;
use super::health::Health;
use super::perform::Performer;
use super::registry::Registry;
use super::replay::{Replayed, replay};
use super::reports::Reports;
use super::subject::{AppActor, Shared};
use super::watcher::{WatchActor, WatchParts};
use super::wheel::Wheel;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::clock::Clock;
use crate::config::Settings;
use crate::events::kinds::daemon::{IncarnationStopped, PlanSettings, Quarantined};
use crate::events::kinds::step::StepWithheld;
use crate::events::kinds::tail::TailOf;
use crate::events::log::LogReader;
use crate::events::record::{Draft, Event, Reaction};
use crate::gateway::{Gateway, Outbox, SourceStore};
use crate::ids::{AppId, RecordId, Seq, Subject, Word};
use crate::kube::decode::{Nodes, Pods};
use crate::kube::perform::Cluster;
use crate::kube::throttle::Limits;
use crate::kube::watch::{Watch, WatchLimits};
use crate::telemetry::Metrics;

/// Failures of a subject's actor in a row after which the subject is quarantined.
const FAILURES: u32 = 3;

/// How long the supervisor may take to stop what brings new facts.
const STOP_SOURCES_LIMIT: Duration = Duration::from_secs(5);

/// How long the subjects may take to record what came back.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

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
    /// The apps among them whose log cannot be folded: shown, not acted on.
    pub broken: BTreeSet<AppId>,
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
    /// One of the tasks beside the actors is over.
    TaskEnded(&'static str),
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
    tasks: JoinSet<()>,
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
        let registry = Registry::new(states, &parts.broken, parts.started.clone(), &parts.settings.limits, wheel.clone(), asking);
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
        let _ = self.supervisor.call(Order::StopSources, Some(STOP_SOURCES_LIMIT)).await;
        self.cluster.drain().await;
        self.registry.settle_down();
        let settled = async {
            // Without a log nothing settles any more.
            while self.registry.busy() > 0 && self.health.vitals().log_failed.is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(SETTLE_LIMIT, settled).await.is_err() {
            tracing::warn!(subjects = self.registry.busy(), "what came in last is not recorded: the next start finds it again");
        }
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
            Order::TaskEnded(name) => state.end(Ended::PartFailed(format!("{name} has ended"))),
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

/// What is no actor: forwarding who needs one, the timer of all subjects, the log's failure. They end with the supervisor, and
/// nothing goes on when one of them ends before.
fn tasks(
    myself: &ActorRef<Order>,
    registry: Registry,
    wheel: Wheel,
    clock: Clock,
    mut to_activate: mpsc::UnboundedReceiver<AppId>,
    mut log_failure: tokio::sync::watch::Receiver<Option<String>>,
    health: Health,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let supervisor = myself.clone();
    watch_over(&mut tasks, myself, "the activation of subjects", async move {
        while let Some(app) = to_activate.recv().await {
            if supervisor.cast(Order::Activate(app)).is_err() {
                return;
            }
        }
    });
    watch_over(&mut tasks, myself, "the timer of subjects", async move {
        loop {
            let app = wheel.due(&clock).await;
            registry.nudge(&app);
        }
    });
    let supervisor = myself.clone();
    watch_over(&mut tasks, myself, "the watch over the log", async move {
        let why = match log_failure.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            // It ends after all its users, unless it panicked.
            Err(_) => "the committer is gone".to_owned(),
        };
        health.note(|vitals| vitals.log_failed = Some(why.clone()));
        let _ = supervisor.cast(Order::LogFailed(why));
    });
    tasks
}

fn watch_over(tasks: &mut JoinSet<()>, supervisor: &ActorRef<Order>, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    let supervisor = supervisor.clone();
    tasks.spawn(async move {
        let _ = AssertUnwindSafe(task).catch_unwind().await;
        let _ = supervisor.cast(Order::TaskEnded(name));
    });
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
    /// too many failures, or when its log cannot be folded, it is quarantined: visible, not acted on.
    async fn restart(&mut self, app: &AppId) {
        let subject = Subject::App(app.clone());
        let Replayed { state, tails, broken } = match replay(self.reader.as_ref(), &subject) {
            Ok(replayed) => replayed,
            Err(why) => return self.end(Ended::PartFailed(format!("{app} cannot be replayed: {why}"))),
        };
        if broken {
            let last = self.shared.registry.state(app).map(|state| App::clone(&state)).unwrap_or_default();
            return self.quarantine(app, last).await;
        }
        if self.shared.registry.failed(app, state.clone()) >= FAILURES {
            return self.quarantine(app, state).await;
        }
        self.hand_on_again(app, &state, &tails);
        self.shared.reports.state(app, &state);
        self.shared.registry.nudge(app);
    }

    async fn quarantine(&mut self, app: &AppId, state: App) {
        tracing::error!(%app, "quarantined: its actor fails again and again");
        self.shared.registry.quarantine(app, state);
        let quarantined = Quarantined { invariant: Word::new("no_panic"), at: self.reader.head() };
        let reaction = Reaction {
            subject: Subject::App(app.clone()),
            time_us: self.shared.clock.now_us(),
            rules: Rules::CURRENT.number(),
            settings: self.shared.settings_seq,
            drafts: vec![Draft::input(Event::Quarantined(quarantined))],
        };
        if let Err(error) = self.shared.committer.append(reaction).await {
            tracing::error!(%app, %error, "the quarantine cannot be recorded");
        }
    }

    /// What is durable and was perhaps never handed on: the cluster actor takes each once.
    fn hand_on_again(&self, app: &AppId, state: &App, tails: &BTreeMap<TailOf, Seq>) {
        let Shared { registry, cluster, log, .. } = &self.shared;
        let id = |seq: Seq| RecordId { log: *log, seq };
        let mut withheld = Vec::new();
        for host in state.hosts.values() {
            for (seq, flight) in host.flights.iter().filter(|(_, flight)| flight.incarnation == state.incarnation && !flight.withheld) {
                if !state.acts || state.frozen {
                    let is_word = |event: &Event| matches!(event, Event::StepWithheld(withheld) if withheld.step == *seq);
                    if registry.awaits(app, |_| true, is_word) {
                        withheld.push(Event::StepWithheld(StepWithheld { step: *seq }));
                    }
                    continue;
                }
                cluster.submit_again(app, id(*seq), flight.step.clone(), flight.purpose);
                if flight.revoking {
                    cluster.revoke(*seq);
                }
            }
            let unread = host.tails.iter().filter(|(_, tail)| tail.incarnation == state.incarnation && !tail.settled);
            for (of, seq) in unread.filter_map(|(of, _)| Some((of, tails.get(of)?))) {
                cluster.read_tail_again(app, id(*seq), of.clone());
            }
        }
        if !withheld.is_empty() {
            registry.bring(app, withheld);
        }
    }
}
