//! A running incarnation, as the rest of the program holds it: begins, is looked at, ends in order or at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorRef};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::cluster::Registries;
use super::committer::Committer;
use super::health::Health;
use super::registry::{Bounds, Registry};
use super::sessions::Sessions;
use super::start::Arguments;
use super::supervisor::{Order, Supervisor};
use super::wheel::Wheel;
use super::work::ClusterHandle;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::clock::Clock;
use crate::config::{Limits, Settings};
use crate::events::kinds::daemon::IncarnationStopped;
use crate::events::log::LogReader;
use crate::events::record::{Draft, Event, Reaction};
use crate::gateway::{Gateway, SourceStore};
use crate::ids::{AppId, Seq, SessionId, Subject, Word};
use crate::kube::perform::Cluster;
use crate::session::state::Session;
use crate::telemetry::Metrics;

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
    /// The same of sessions.
    pub sessions: BTreeMap<SessionId, Session>,
    /// The sessions among them whose log cannot be folded.
    pub broken_sessions: BTreeSet<SessionId>,
    /// What each subject learns first.
    pub started: Event,
    /// The record of the settings in force.
    pub settings_seq: Seq,
    /// The same of sessions.
    pub session_settings_seq: Seq,
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
    sessions: Sessions,
    session_registry: Registry<Session>,
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

impl Daemon {
    /// Starts everything; nothing is planned before the cluster is listed.
    ///
    /// # Errors
    /// When an actor does not start.
    pub async fn start(parts: Parts) -> Result<Self, String> {
        let (wheel, session_wheel) = (Wheel::default(), Wheel::default());
        let (asking, to_activate) = mpsc::unbounded_channel();
        let mut parts = parts;
        let Limits { inbox, inbox_subject, apps, .. } = parts.settings.limits;
        let places = Arc::new(Semaphore::new(inbox as usize));
        let bounds = Bounds { inbox: inbox_subject as usize, subjects: apps as usize };
        let (states, admits) = (std::mem::take(&mut parts.states), (bounds, Arc::clone(&places)));
        let registry = Registry::new(states, &parts.broken, parts.started.clone(), admits, wheel.clone(), asking.clone());
        // Whoever asks for one more is refused by the limits of sessions.
        let admits = (Bounds { subjects: usize::MAX, ..bounds }, places);
        let (states, started) = (std::mem::take(&mut parts.sessions), parts.started.clone());
        let session_registry = Registry::new(states, &parts.broken_sessions, started, admits, session_wheel.clone(), asking);
        let sessions = Sessions::new(session_registry.clone(), &parts.settings, &parts.clock);
        let health = Health::default();
        let (ending, ended) = oneshot::channel();
        let (handing, handed) = oneshot::channel();
        let daemon = daemon_subject(&parts.settings);
        let (committer, clock, settings_seq) = (parts.committer.clone(), parts.clock.clone(), parts.settings_seq);
        let arguments = Arguments {
            parts,
            registries: Registries { apps: registry.clone(), sessions: session_registry.clone() },
            sessions: sessions.clone(),
            wheels: (wheel, session_wheel),
            health: health.clone(),
            to_activate,
            ended: ending,
            handle: handing,
        };
        let started = Actor::spawn(None, Supervisor, arguments).await;
        let (supervisor, supervising) = started.map_err(|error| error.to_string())?;
        let cluster = handed.await.map_err(|_| "the cluster actor did not start".to_owned())?;
        Ok(Self {
            registry,
            sessions,
            session_registry,
            health,
            committer,
            cluster,
            supervisor,
            supervising,
            ended,
            daemon,
            clock,
            settings_seq,
        })
    }

    /// The subjects.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The sessions.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
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

    /// Subjects with a reaction under way or due.
    fn busy(&self) -> usize {
        self.registry.busy() + self.session_registry.busy()
    }

    /// Ends at once, in the middle of whatever goes on.
    pub async fn kill(self) {
        self.registry.close();
        self.session_registry.close();
        self.supervisor.kill();
        let _ = self.supervising.await;
    }

    /// Ends in order: takes in nothing more, lets what is under way come back and be recorded, then stops every actor.
    pub async fn stop(self, reason: &str) {
        let _ = self.supervisor.call(Order::StopSources, Some(STOP_SOURCES_LIMIT)).await;
        self.cluster.drain().await;
        self.registry.settle_down();
        self.session_registry.settle_down();
        let settled = async {
            // Without a log nothing settles any more.
            while self.busy() > 0 && self.health.vitals().log_failed.is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(SETTLE_LIMIT, settled).await.is_err() {
            tracing::warn!(subjects = self.busy(), "what came in last is not recorded: the next start finds it again");
        }
        self.registry.close();
        self.session_registry.close();
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
