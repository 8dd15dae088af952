//! The loop of a fleet: lists and watches the pods, gives each its task, passes on what tests and nodes do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ::kube::core::WatchEvent;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::driver::{Driver, Shared, Told};
use super::machine;
use super::order::{Loss, Order};
use super::parts::Command;
use super::script::{PodFacts, Scripts};

/// Before a failed list or watch is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Silence after which a watch is taken for dead: two bookmarks and a half.
const SILENCE: Duration = Duration::from_secs(150);

/// The state of the fleet's task.
pub(super) struct Fleet {
    pub(super) shared: Shared,
    pub(super) namespace: String,
    pub(super) scripts: Scripts,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) pods: BTreeMap<String, Known>,
    /// Pods that went while their node was cut off: it has not heard of it.
    pub(super) orphans: Vec<Known>,
    pub(super) tasks: JoinSet<()>,
    /// Nodes that are cut off, and whether their processes are dead.
    pub(super) lost: BTreeMap<String, bool>,
}

/// A pod with a task.
pub(super) struct Known {
    pod: Arc<Value>,
    told: mpsc::UnboundedSender<Told>,
}

type Events = BoxStream<'static, Result<WatchEvent<Value>, ::kube::Error>>;

/// What wakes the fleet.
enum Wake {
    Order(Option<Order>),
    Event(Option<Result<WatchEvent<Value>, ::kube::Error>>),
    Silence,
}

impl Fleet {
    /// Runs until all its handles are dropped.
    pub(super) async fn run(mut self) {
        self.register().await;
        loop {
            let Some(mut events) = self.list_and_watch().await else {
                tokio::time::sleep(RETRY).await;
                continue;
            };
            loop {
                match self.wake(&mut events).await {
                    Wake::Order(Some(order)) => self.obey(order).await,
                    Wake::Order(None) => return,
                    Wake::Event(Some(Ok(event))) if !matches!(event, WatchEvent::Error(_)) => self.on_event(event),
                    Wake::Event(_) | Wake::Silence => break,
                }
            }
        }
    }

    async fn wake(&mut self, events: &mut Events) -> Wake {
        loop {
            tokio::select! {
                biased;
                order = self.orders.recv() => return Wake::Order(order),
                event = events.next() => return Wake::Event(event),
                // A task that ended has said all it had to say.
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                () = tokio::time::sleep(SILENCE) => return Wake::Silence,
            }
        }
    }

    async fn register(&self) {
        let names = self.shared.roster.lock().unwrap_or_else(PoisonError::into_inner).names();
        for name in names {
            let address = self.shared.roster.lock().unwrap_or_else(PoisonError::into_inner).address(&name);
            let (requests, endpoint) = (&self.shared.requests, self.shared.endpoint);
            while let Err(failed) = machine::register(requests, &name, &address, endpoint, self.shared.clock.now_us()).await {
                tracing::warn!(node = name, error = %failed, "node not registered");
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    async fn list_and_watch(&mut self) -> Option<Events> {
        let list = self.shared.requests.get(&self.path()).await.ok()?;
        let version = list["metadata"]["resourceVersion"].as_str()?.to_owned();
        let items = list["items"].as_array()?;
        let mut present = BTreeSet::new();
        for pod in items {
            present.insert(uid(pod).to_owned());
            self.on_pod(Arc::new(pod.clone()));
        }
        let gone: Vec<String> = self.pods.keys().filter(|uid| !present.contains(*uid)).cloned().collect();
        for uid in gone {
            self.on_gone(&uid);
        }
        let path = format!("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion={version}", self.path());
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        let watch = self.shared.requests.client().request_events::<Value>(request);
        let events = tokio::time::timeout(Duration::from_secs(30), watch).await.ok()?.ok()?;
        Some(events.boxed())
    }

    fn on_event(&mut self, event: WatchEvent<Value>) {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => self.on_pod(Arc::new(pod)),
            WatchEvent::Deleted(pod) => self.on_gone(uid(&pod)),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
    }

    fn on_gone(&mut self, uid: &str) {
        if let Some(known) = self.pods.remove(uid) {
            // A task that has ended already needs no word.
            let _ = known.told.send(Told::Vanished);
            if self.lost.contains_key(node_of(&known)) {
                self.orphans.push(known);
            }
        }
    }

    fn on_pod(&mut self, pod: Arc<Value>) {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        let ours = if node.is_empty() {
            pod["spec"]["schedulerName"] == "default-scheduler"
        } else {
            self.shared.roster.lock().unwrap_or_else(PoisonError::into_inner).has(&node)
        };
        if !ours {
            return;
        }
        if let Some(known) = self.pods.get_mut(uid(&pod)) {
            known.pod = pod.clone();
            let _ = known.told.send(Told::Seen(pod));
            return;
        }
        // An end that was told before this fleet began stays as it is.
        if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) && pod["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let script = (self.scripts)(&PodFacts::of(&pod));
        let (told, hears) = mpsc::unbounded_channel();
        let driver = Driver::new(self.shared.clone(), pod.clone(), script);
        self.tasks.spawn(driver.run(hears));
        if let Some(dead) = self.lost.get(&node) {
            let _ = told.send(Told::Lost { dead: *dead });
        }
        self.pods.insert(uid(&pod).to_owned(), Known { pod, told });
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Pod(name, command) => self.command(&name, &command),
            Order::Lose(node, loss) => self.lose(&node, loss),
            Order::Mark(node, evict) if self.lost.contains_key(&node) => self.mark_unknown(&node, evict).await,
            // It came back before anyone noticed.
            Order::Mark(..) => {}
            Order::Back(node) => self.back(&node).await,
            Order::Shutdown(node, eviction) => {
                for known in self.pods.values().filter(|known| node_of(known) == node) {
                    let _ = known.told.send(Told::Command(Command::Evict(eviction.clone())));
                }
            }
        }
    }

    /// The newest pod of a name is meant.
    fn command(&self, name: &str, command: &Command) {
        let named = self.pods.values().filter(|known| known.pod["metadata"]["name"] == *name);
        let newest = named.max_by_key(|known| known.pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned());
        match newest {
            Some(known) => {
                let _ = known.told.send(Told::Command(command.clone()));
            }
            None => tracing::info!(pod = name, "command for a pod that is not there"),
        }
    }

    fn lose(&mut self, node: &str, loss: Loss) {
        let dead = loss == Loss::Dead;
        self.lost.insert(node.to_owned(), dead);
        self.shared.roster.lock().unwrap_or_else(PoisonError::into_inner).set_ready(node, false);
        self.tell_node(node, &Told::Lost { dead });
    }

    async fn mark_unknown(&self, node: &str, evict: bool) {
        let now_us = self.shared.clock.now_us();
        if let Err(failed) = machine::mark(&self.shared.requests, node, false, now_us).await {
            tracing::warn!(node, error = %failed, "node not marked unknown");
        }
        for known in self.pods.values().filter(|known| node_of(known) == node) {
            if let Err(failed) = machine::mark_pod_unreachable(&self.shared.requests, &known.pod, evict, now_us).await {
                tracing::info!(node, error = %failed, "pod not marked");
            }
        }
    }

    async fn back(&mut self, node: &str) {
        self.lost.remove(node);
        if let Err(failed) = machine::mark(&self.shared.requests, node, true, self.shared.clock.now_us()).await {
            tracing::warn!(node, error = %failed, "node not marked ready");
        }
        self.shared.roster.lock().unwrap_or_else(PoisonError::into_inner).set_ready(node, true);
        self.tell_node(node, &Told::Back);
        self.orphans.retain(|orphan| node_of(orphan) != node);
    }

    fn tell_node(&self, node: &str, told: &Told) {
        for known in self.pods.values().chain(&self.orphans).filter(|known| node_of(known) == node) {
            let _ = known.told.send(told.clone());
        }
    }
}

fn node_of(known: &Known) -> &str {
    known.pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap_or_default()
}
