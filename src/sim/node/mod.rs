//! Nodes: a scheduler, kubelets and node controller stand-in that drives pods through a `::kube::Client` alone, by scripts. It
//! works against a real API server as well; there it touches the pods of its namespace that are its own or have no node yet.
//!
//! Only `restartPolicy: Never` is played: a container that ended stays so.

mod driver;
mod fleet;
mod kubelet;
mod life;
mod log_book;
mod machine;
mod order;
mod parts;
mod requests;
mod roster;
mod script;
mod status;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::kube::Client;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

pub use driver::AppHooks;
pub use kubelet::{Identity, Kubelet};
pub use life::Life;
pub use log_book::LogBook;
pub use machine::object as node_object;
pub use order::Loss;
pub use parts::{Action, Command, Container, End, Eviction, Stage};
pub use requests::{Failed, Requests};
pub use roster::Roster;
pub use script::{PodFacts, Pull, Register, Run, Schedule, Script, Scripts, Start};
pub use status::{Addresses, patch as status_patch};

use crate::clock::Clock;
use driver::Shared;
use fleet::Fleet;
use order::Order;

/// What nodes are made of.
#[derive(Clone)]
pub struct NodeOptions {
    /// Their access to the API server.
    pub client: Client,
    /// The namespace whose pods they run.
    pub namespace: String,
    /// Their names.
    pub names: Vec<String>,
    /// Times in statuses.
    pub clock: Clock,
    /// What becomes of each pod.
    pub scripts: Scripts,
    /// Who hears of apps that run.
    pub hooks: Arc<dyn AppHooks>,
    /// How long after its last word a node is marked unknown.
    pub unknown_after: Duration,
    /// Where their logs are served, for an API server that is not embedded; without it the nodes have no endpoint.
    pub kubelet: Option<Arc<Kubelet>>,
}

/// A fleet of nodes; it stops when this is dropped.
pub struct Nodes {
    orders: mpsc::UnboundedSender<Order>,
    logs: Arc<LogBook>,
    kubelet: Option<Arc<Kubelet>>,
    requests: Requests,
    namespace: String,
    unknown_after: Duration,
    task: JoinHandle<()>,
    marks: Mutex<JoinSet<()>>,
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Nodes {
    /// Registers the nodes and begins to run pods. Must be called inside a runtime.
    #[must_use]
    pub fn start(options: NodeOptions) -> Self {
        let (orders, obeyed) = mpsc::unbounded_channel();
        let kubelet = options.kubelet;
        let logs = kubelet.as_ref().map_or_else(Arc::default, |kubelet| kubelet.logs());
        let requests = Requests::new(options.client);
        let roster = Roster::new(&options.names);
        let roster = kubelet.as_ref().map_or(roster.clone(), |kubelet| roster.at(kubelet.address().ip()));
        let shared = Shared {
            requests: requests.clone(),
            clock: options.clock,
            roster: Arc::new(Mutex::new(roster)),
            logs: logs.clone(),
            endpoint: kubelet.as_ref().map(|kubelet| kubelet.address().port()),
            hooks: options.hooks,
        };
        let fleet = Fleet {
            shared,
            namespace: options.namespace.clone(),
            scripts: options.scripts,
            orders: obeyed,
            pods: BTreeMap::new(),
            orphans: Vec::new(),
            tasks: JoinSet::new(),
            lost: BTreeMap::new(),
        };
        let task = tokio::spawn(fleet.run());
        let (namespace, unknown_after) = (options.namespace, options.unknown_after);
        Self { orders, logs, kubelet, requests, namespace, unknown_after, task, marks: Mutex::default() }
    }

    /// Where their logs are served, if they are.
    #[must_use]
    pub fn kubelet(&self) -> Option<&Arc<Kubelet>> {
        self.kubelet.as_ref()
    }

    /// What the containers have printed: the embedded API server's log source.
    #[must_use]
    pub fn logs(&self) -> Arc<LogBook> {
        self.logs.clone()
    }

    fn order(&self, order: Order) {
        // The fleet ends only with this handle.
        let _ = self.orders.send(order);
    }

    /// Ends the processes of a pod at once.
    pub fn kill_app(&self, pod: &str, exit_code: i32) {
        self.order(Order::Pod(pod.to_owned(), Command::Kill(exit_code, None)));
    }

    /// The kernel kills the processes of a pod for their memory.
    pub fn out_of_memory(&self, pod: &str) {
        self.order(Order::Pod(pod.to_owned(), Command::Kill(137, Some("OOMKilled".to_owned()))));
    }

    /// The node evicts a pod for its own shortage of memory: TERM, then KILL at once.
    pub fn evict(&self, pod: &str) {
        let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ".to_owned();
        let disruption = Some("TerminationByKubelet".to_owned());
        let eviction = Eviction { reason: "Evicted".to_owned(), message, disruption, grace: Duration::ZERO };
        self.order(Order::Pod(pod.to_owned(), Command::Evict(eviction)));
    }

    /// Does anything to a pod.
    pub fn command(&self, pod: &str, command: Command) {
        self.order(Order::Pod(pod.to_owned(), command));
    }

    /// The app prints a line.
    pub fn print(&self, pod: &str, line: &str) {
        self.order(Order::Pod(pod.to_owned(), Command::Print(line.to_owned())));
    }

    /// A node is lost. The cluster notices after a while; with `evict` it then deletes the node's pods.
    pub fn lose(&self, node: &str, loss: Loss, evict: bool) {
        self.order(Order::Lose(node.to_owned(), loss));
        let (orders, node, after) = (self.orders.clone(), node.to_owned(), self.unknown_after);
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            tokio::time::sleep(after).await;
            let _ = orders.send(Order::Mark(node, evict));
        });
    }

    /// A lost node is back.
    pub fn bring_back(&self, node: &str) {
        self.order(Order::Back(node.to_owned()));
    }

    /// A node shuts down in order.
    pub fn shut_down(&self, node: &str, grace: Duration) {
        let message = "Pod was terminated in response to imminent node shutdown.".to_owned();
        let disruption = Some("TerminationByKubelet".to_owned());
        self.order(Order::Shutdown(node.to_owned(), Eviction { reason: "Terminated".to_owned(), message, disruption, grace }));
    }

    /// Another deletes a pod.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn delete_by_other(&self, pod: &str, grace_s: u32) -> Result<(), Failed> {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}", self.namespace);
        let uid = self.requests.get(&path).await?["metadata"]["uid"].clone();
        self.requests.delete(&path, &uid, grace_s).await?;
        Ok(())
    }
}
