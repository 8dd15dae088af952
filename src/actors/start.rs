//! Joins the parts of an incarnation: makes the actors and the tasks beside them, and hands each what it works with.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::beat::{BeatActor, BeatParts};
use super::cluster::{ClusterActor, Registries};
use super::committer::Committer;
use super::daemon::{Ended, Parts, daemon_subject};
use super::health::Health;
use super::kept::Kept;
use super::perform::Performer;
use super::registry::Registry;
use super::reports::Reports;
use super::sessions::policy::PolicyGuard;
use super::sessions::watching::{SessionWatchActor, SessionWatchParts};
use super::sessions::{Sessions, refusals};
use super::subject::Shared;
use super::supervisor::{Order, State};
use super::watcher::{WatchActor, WatchParts};
use super::wheel::Wheel;
use super::work::ClusterHandle;
use crate::clock::Clock;
use crate::config::{Act, Settings};
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::session::SessionPlanSettings;
use crate::events::log::LogReader;
use crate::gateway::Outbox;
use crate::ids::{AppId, LogId, Seq, SessionId, Subject};
use crate::kube::decode::{Nodes, Pods};
use crate::kube::perform::SessionCluster;
use crate::kube::throttle::Limits;
use crate::kube::watch::{Watch, WatchLimits};
use crate::telemetry::Metrics;

/// What the supervisor begins with.
pub(super) struct Arguments {
    pub(super) parts: Parts,
    pub(super) registries: Registries,
    pub(super) sessions: Sessions,
    pub(super) wheels: (Wheel<AppId>, Wheel<SessionId>),
    pub(super) health: Health,
    pub(super) to_activate: mpsc::UnboundedReceiver<Subject>,
    pub(super) ended: oneshot::Sender<Ended>,
    pub(super) handle: oneshot::Sender<ClusterHandle>,
}

/// Starts everything; the watch and the beat last.
pub(super) async fn start(myself: &ActorRef<Order>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
    let Arguments { parts, registries, sessions, wheels, health, to_activate, ended, handle } = arguments;
    let registry = registries.apps.clone();
    let Parts {
        settings,
        clock,
        metrics,
        committer,
        reader,
        log_failure,
        settings_seq,
        session_settings_seq,
        cluster,
        gateway,
        sources,
        digest_key,
        ..
    } = parts;
    let guard = settings.sessions.serve.is_on().then(|| {
        let own = SessionCluster::new(cluster.client().clone(), cluster.namespace(), &settings);
        PolicyGuard::new(own, settings.sessions.strict_policy.is_on())
    });
    let performer = Arc::new(Performer::new(cluster, gateway, sources, digest_key, guard));
    let limits = Limits {
        per_s: settings.kubernetes.calls_per_s,
        burst: settings.kubernetes.burst,
        in_flight: settings.kubernetes.in_flight,
        queue: settings.kubernetes.queue,
    };
    let arguments = (limits, Arc::clone(&performer), registries.clone(), clock.clone(), metrics.clone());
    let (actor, _) = Actor::spawn_linked(None, ClusterActor, arguments, myself.get_cell()).await?;
    let mut running = BTreeMap::from([(actor.get_id(), "the cluster actor")]);
    let cluster = ClusterHandle::new(actor, clock.clone());
    let _ = handle.send(cluster.clone());
    let reports = Reports::new(Outbox::new(&settings.gateway.runner, settings.gateway.beat_ms), Arc::clone(&reader));
    for (app, state) in registry.states() {
        reports.state(&app, &state, false);
    }
    let plan = Arc::new(PlanSettings::from(&settings.plan));
    let of_sessions = Shared {
        registry: registries.sessions.clone(),
        committer: committer.clone(),
        cluster: cluster.clone(),
        beside: (),
        clock: clock.clone(),
        metrics: metrics.clone(),
        log: reader.id(),
        settings: Arc::new(SessionPlanSettings::from(settings.sessions.as_ref())),
        settings_seq: session_settings_seq,
    };
    let of_apps = Shared {
        registry: registry.clone(),
        committer: committer.clone(),
        cluster,
        beside: reports.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
        log: reader.id(),
        settings: Arc::clone(&plan),
        settings_seq,
    };
    let watch = watch_parts(&settings, &performer, &registries, &committer, &health, &clock, &metrics, settings_seq, &reader);
    let session_watch = performer.sessions.is_some().then(|| session_watch_parts(&settings, &watch, reader.id()));
    let (watch, _) = Actor::spawn_linked(None, WatchActor, watch, myself.get_cell()).await?;
    running.insert(watch.get_id(), "the watch");
    let mut sources = vec![watch.get_cell()];
    if let Some(parts) = session_watch {
        let (watch, _) = Actor::spawn_linked(None, SessionWatchActor, parts, myself.get_cell()).await?;
        running.insert(watch.get_id(), "the watch of sessions");
        sources.push(watch.get_cell());
    }
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
    sources.push(beat.get_cell());
    let mut tasks = tasks(myself, registries, wheels, clock, to_activate, log_failure, health);
    watch_over(
        &mut tasks,
        myself,
        "the record of refused calls",
        refusals::record(sessions, committer, daemon_subject(&settings), settings_seq),
    );
    let (apps, sessions) = (of_apps, of_sessions);
    Ok(State { apps, sessions, reader, subjects: BTreeMap::new(), parts: running, sources, ended: Some(ended), tasks })
}

#[expect(clippy::too_many_arguments, reason = "the one place that joins these parts")]
fn watch_parts(
    settings: &Settings,
    performer: &Arc<Performer>,
    registries: &Registries,
    committer: &Committer,
    health: &Health,
    clock: &Clock,
    metrics: &Metrics,
    settings_seq: Seq,
    reader: &Arc<dyn LogReader>,
) -> WatchParts {
    let cluster = &performer.cluster;
    let scheme = cluster.template().scheme.clone();
    let id = reader.id();
    let jitter = u64::from_le_bytes(std::array::from_fn(|at| id.0[at]));
    let limits = WatchLimits::new(&settings.kubernetes, jitter);
    WatchParts {
        registry: registries.apps.clone(),
        sessions: registries.sessions.clone(),
        performer: Arc::clone(performer),
        committer: committer.clone(),
        health: health.clone(),
        clock: clock.clone(),
        metrics: metrics.clone(),
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

fn session_watch_parts(settings: &Settings, watch: &WatchParts, log: LogId) -> SessionWatchParts {
    SessionWatchParts {
        registry: watch.sessions.clone(),
        performer: Arc::clone(&watch.performer),
        committer: watch.committer.clone(),
        clock: watch.clock.clone(),
        daemon: watch.daemon.clone(),
        settings_seq: watch.settings_seq,
        log,
        limits: watch.pods.limits,
        sweep: Duration::from_secs(u64::from(settings.sessions.reaper_interval_s)),
        acts: settings.act == Act::All,
    }
}

/// What is no actor: forwarding who needs one, the timer of all subjects, the log's failure. They end with the supervisor, and
/// nothing goes on when one of them ends before.
fn tasks(
    myself: &ActorRef<Order>,
    registries: Registries,
    (wheel, session_wheel): (Wheel<AppId>, Wheel<SessionId>),
    clock: Clock,
    mut to_activate: mpsc::UnboundedReceiver<Subject>,
    mut log_failure: tokio::sync::watch::Receiver<Option<String>>,
    health: Health,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let supervisor = myself.clone();
    watch_over(&mut tasks, myself, "the activation of subjects", async move {
        while let Some(subject) = to_activate.recv().await {
            if supervisor.cast(Order::Activate(subject)).is_err() {
                return;
            }
        }
    });
    watch_over(&mut tasks, myself, "the timer of apps", look_again(registries.apps, wheel, clock.clone()));
    watch_over(&mut tasks, myself, "the timer of sessions", look_again(registries.sessions, session_wheel, clock));
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

/// Has each subject look again when it is due.
async fn look_again<M: Kept>(registry: Registry<M>, wheel: Wheel<M::Key>, clock: Clock) {
    loop {
        let key = wheel.due(&clock).await;
        registry.nudge(&key);
    }
}

fn watch_over(tasks: &mut JoinSet<()>, supervisor: &ActorRef<Order>, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
    let supervisor = supervisor.clone();
    tasks.spawn(async move {
        let _ = AssertUnwindSafe(task).catch_unwind().await;
        let _ = supervisor.cast(Order::TaskEnded(name));
    });
}
