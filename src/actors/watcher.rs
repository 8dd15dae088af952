//! The watch's actor: takes one thing at a time from the list and watch loops and gives it to the subjects it concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

use super::committer::Committer;
use super::environments::Words;
use super::facts::SeenPod;
use super::health::Health;
use super::perform::Performer;
use super::registry::Registry;
use super::secrets::{self, Secrets};
use crate::app::rules::Rules;
use crate::clock::Clock;
use crate::events::kinds::daemon::{Listed, WatchLossReason, WatchLost};
use crate::events::kinds::pod::{GoneHow, NodeReady, NodeSeen, PodGone};
use crate::events::kinds::tail::TailOf;
use crate::events::record::{Draft, Event, Reaction};
use crate::ids::{AppId, Seq, Subject, Word};
use crate::kube::convert::{APP, INSTALL, MessageOf, Observation};
use crate::kube::decode::{Nodes, Pods};
use crate::kube::labels::Ownership;
use crate::kube::watch::{Watch, Watched};
use crate::session::state::Session;
use crate::telemetry::Metrics;

/// Observations between a watch and its actor: the stream is slowed down past it, nothing is lost.
const SINK: usize = 256;

/// Take the next thing.
pub(super) struct Next;

/// The actor.
pub(super) struct WatchActor;

/// What the watch works with.
pub(super) struct WatchParts {
    pub(super) registry: Registry,
    /// The sessions: they have pods on nodes too.
    pub(super) sessions: Registry<Session>,
    pub(super) performer: Arc<Performer>,
    pub(super) committer: Committer,
    pub(super) health: Health,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    pub(super) daemon: Subject,
    pub(super) settings_seq: Seq,
    pub(super) pods: Watch<Pods>,
    pub(super) nodes: Watch<Nodes>,
}

pub(super) struct WatchState {
    parts: WatchParts,
    pods: mpsc::Receiver<Watched<Observation>>,
    nodes: mpsc::Receiver<Watched<NodeSeen>>,
    secrets: mpsc::Receiver<Secrets>,
    /// Asks for a list of the Secrets.
    list_secrets: Arc<Notify>,
    /// The incarnation's first list, while nothing is planned on it yet.
    to_plan_on: Option<Event>,
    loops: [AbortHandle; 3],
}

impl Actor for WatchActor {
    type Msg = Next;
    type State = WatchState;
    type Arguments = WatchParts;

    async fn pre_start(&self, myself: ActorRef<Next>, parts: WatchParts) -> Result<WatchState, ActorProcessingErr> {
        let (pod_sink, pods) = mpsc::channel(SINK);
        let (node_sink, nodes) = mpsc::channel(SINK);
        let (secret_sink, secret_lists) = mpsc::channel(1);
        let list_secrets = Arc::new(Notify::new());
        let loops = [
            tokio::spawn(parts.pods.clone().run(pod_sink)).abort_handle(),
            tokio::spawn(parts.nodes.clone().run(node_sink)).abort_handle(),
            tokio::spawn(secrets::run(parts.performer.cluster.clone(), Arc::clone(&list_secrets), secret_sink)).abort_handle(),
        ];
        myself.cast(Next)?;
        Ok(WatchState { parts, pods, nodes, secrets: secret_lists, list_secrets, to_plan_on: None, loops })
    }

    async fn handle(&self, myself: ActorRef<Next>, _next: Next, state: &mut WatchState) -> Result<(), ActorProcessingErr> {
        Box::pin(state.take_one()).await?;
        Ok(myself.cast(Next)?)
    }
}

impl Drop for WatchState {
    fn drop(&mut self) {
        for each in &self.loops {
            each.abort();
        }
    }
}

impl WatchState {
    async fn take_one(&mut self) -> Result<(), ActorProcessingErr> {
        tokio::select! {
            biased;
            // Nodes change rarely: they do not keep the pods waiting, and pods could.
            watched = self.nodes.recv() => match watched {
                Some(watched) => self.node(watched),
                None => return Err("the watch of nodes has ended".into()),
            },
            listed = self.secrets.recv() => match listed {
                Some(listed) => self.secrets(listed),
                None => return Err("the list of secrets has ended".into()),
            },
            watched = self.pods.recv() => match watched {
                Some(watched) => self.pod(watched).await,
                None => return Err("the watch of pods has ended".into()),
            },
        }
        Ok(())
    }

    async fn pod(&mut self, watched: Watched<Observation>) {
        if !matches!(watched, Watched::Lost { .. } | Watched::Odd(_)) {
            let now_us = self.parts.clock.now_us();
            self.parts.health.note(|vitals| vitals.watch_alive_us = Some(now_us));
        }
        match watched {
            Watched::Listed { resource_version, seen, odd } => {
                for odd in &odd {
                    tracing::warn!(name = odd.name, why = odd.why, "a pod cannot be read: it is left as it is");
                }
                let odd = Arc::new(odd.into_iter().map(|odd| odd.name).collect());
                self.listed(resource_version, seen, &odd).await;
            }
            Watched::Seen(observation) => self.seen(observation),
            Watched::Deleted(observation) => {
                let gone = PodGone {
                    host: observation.seen.host.clone(),
                    uid: observation.seen.uid.clone(),
                    resource_version: observation.seen.resource_version,
                    how: GoneHow::Deleted,
                };
                if let Ownership::Ours(app) = observation.ownership.clone() {
                    let last = self.seen_pod(&app, observation);
                    self.parts.registry.went(&app, last, gone);
                }
            }
            Watched::Alive { .. } => {}
            Watched::Lost { reason, since_us, resource_version } => {
                tracing::warn!(?reason, "nobody watches the pods");
                self.lost("pods", reason, since_us, resource_version).await;
            }
            Watched::Odd(odd) => tracing::warn!(name = odd.name, why = odd.why, "a pod cannot be read: it is left as it is"),
        }
    }

    fn seen(&self, observation: Observation) {
        if let Ownership::Ours(app) = &observation.ownership {
            let app = app.clone();
            self.parts.registry.saw(&app, self.seen_pod(&app, observation));
        }
    }

    /// Termination messages are free text: kept only redacted, so only while the environment is in memory. Redacted by the subject,
    /// not here: what one tenant's takes holds nobody else up.
    fn seen_pod(&self, app: &AppId, observation: Observation) -> SeenPod {
        let seen = observation.seen;
        let of = |container: &str| TailOf { host: seen.host.clone(), uid: seen.uid.clone(), container: Word::new(container), ended: true };
        let words = observation.messages.into_iter().filter(|message| message.ended && !message.text.is_empty());
        let words: Vec<(TailOf, String)> = words
            .filter_map(|message| match message.of {
                MessageOf::Install => Some((of(INSTALL), message.text)),
                MessageOf::App => Some((of(APP), message.text)),
                MessageOf::Pod | MessageOf::Scheduling => None,
            })
            .collect();
        SeenPod { words: Words::new(words, || self.parts.performer.environments.get(app, &seen.host)), seen }
    }

    async fn listed(&mut self, version: u64, seen: Vec<Observation>, odd: &Arc<BTreeSet<String>>) {
        let count = seen.len() as u64;
        let mut pods: BTreeMap<AppId, Vec<SeenPod>> = BTreeMap::new();
        for observation in seen {
            if let Ownership::Ours(app) = observation.ownership.clone() {
                let pod = self.seen_pod(&app, observation);
                pods.entry(app).or_default().push(pod);
            }
        }
        self.parts.registry.listed(version, pods, odd);
        self.list_secrets.notify_one();
        let listed = Event::Listed(Listed { resource_version: version, pods: count });
        self.tell_log(listed.clone()).await;
        tracing::info!(pods = count, "the pods are listed");
        if !self.parts.registry.is_listed() {
            self.parts.health.note(|vitals| vitals.pods_listed = true);
            self.to_plan_on.get_or_insert(listed);
        }
    }

    /// What became of listing the Secrets: the first plans of an incarnation wait for it.
    fn secrets(&mut self, secrets: Secrets) {
        match secrets {
            Secrets::Listed { version, seen } => {
                tracing::info!(secrets = seen.values().map(Vec::len).sum::<usize>(), "the secrets are listed");
                self.parts.health.note(|vitals| vitals.secrets_listed = true);
                self.parts.metrics.secrets_late(false);
                let complete = self.parts.performer.cluster.template().scheme.labels_every_secret();
                self.parts.registry.secrets_listed(version, seen, complete);
            }
            Secrets::Late => {
                let waited_s = secrets::WAIT.as_secs();
                tracing::warn!(waited_s, "the secrets are not listed: those that nobody saw are read one by one");
                self.parts.metrics.secrets_late(true);
            }
        }
        if let Some(listed) = self.to_plan_on.take() {
            self.parts.registry.may_plan(listed);
        }
    }

    fn node(&mut self, watched: Watched<NodeSeen>) {
        match watched {
            Watched::Listed { seen, .. } => {
                self.parts.health.note(|vitals| vitals.nodes_unknown = false);
                self.parts.registry.nodes_listed(&seen);
                self.parts.sessions.nodes_listed(&seen);
            }
            Watched::Seen(node) => self.one_node(&node),
            Watched::Deleted(node) => self.one_node(&NodeSeen { node: node.node, ready: NodeReady::Gone }),
            Watched::Lost { reason: WatchLossReason::Unreachable, .. } => {
                if !self.parts.health.vitals().nodes_unknown {
                    tracing::warn!("nodes cannot be watched: their state is unknown, and nothing is forced away");
                }
                self.parts.health.note(|vitals| vitals.nodes_unknown = true);
                self.parts.registry.nodes_lost();
                self.parts.sessions.nodes_lost();
            }
            Watched::Lost { .. } | Watched::Alive { .. } | Watched::Odd(_) => {}
        }
    }

    fn one_node(&self, seen: &NodeSeen) {
        self.parts.registry.node(seen);
        self.parts.sessions.node(seen);
    }

    async fn lost(&self, resource: &str, reason: WatchLossReason, since_us: i64, resource_version: u64) {
        self.tell_log(Event::WatchLost(WatchLost { resource: Word::new(resource), reason, resource_version, since_us })).await;
    }

    async fn tell_log(&self, event: Event) {
        let reaction = Reaction {
            subject: self.parts.daemon.clone(),
            time_us: self.parts.clock.now_us(),
            rules: Rules::CURRENT.number(),
            settings: self.parts.settings_seq,
            drafts: vec![Draft::input(event)],
        };
        if let Err(error) = self.parts.committer.append(reaction).await {
            tracing::error!(%error, "what the watch did cannot be recorded");
        }
    }
}
