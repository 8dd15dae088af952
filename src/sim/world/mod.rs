//! The whole embedded world: API server, nodes and gateway on one clock and one seed.

mod scripts;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use scripts::ScriptBook;

use super::api::http::Served;
use super::api::{ApiOptions, ClusterApi};
use super::gateway::Gateway;
use super::node::{NodeOptions, Nodes, Script};
use crate::clock::{Clock, Entropy};

/// What a world is made of.
#[derive(Debug, Clone)]
pub struct WorldOptions {
    /// The seed of uids and names.
    pub seed: u64,
    /// Simulated wall-clock time at the start, microseconds; `None` takes the machine's clock.
    pub started_us: Option<i64>,
    /// The gateway's world.
    pub world: String,
    /// The gateway's bearer token.
    pub token: String,
    /// The namespace of all pods.
    pub namespace: String,
    /// Whether the namespace enforces Pod Security `restricted`.
    pub restricted: bool,
    /// A runtime class to register; empty for none.
    pub runtime_class: String,
    /// The nodes' names.
    pub nodes: Vec<String>,
    /// How long a node is silent before it is marked unknown.
    pub unknown_after: Duration,
    /// How long a request to the API server takes.
    pub latency: Duration,
    /// What becomes of pods that no rule of the script book names.
    pub script: Script,
    /// Whether the gateway listens on a loopback port.
    pub serve_gateway: bool,
}

impl Default for WorldOptions {
    /// Simulated time from 2026-11-30T12:00:00Z, two nodes, no sockets.
    fn default() -> Self {
        Self {
            seed: 1,
            started_us: Some(1_796_040_000_000_000),
            world: "demo".to_owned(),
            token: "token".to_owned(),
            namespace: "apps".to_owned(),
            restricted: true,
            runtime_class: "gvisor".to_owned(),
            nodes: vec!["node1".to_owned(), "node2".to_owned()],
            unknown_after: Duration::from_secs(40),
            latency: Duration::ZERO,
            script: Script::default(),
            serve_gateway: false,
        }
    }
}

/// A running world; it ends when this is dropped.
#[derive(Debug)]
pub struct World {
    /// The API server.
    pub api: ClusterApi,
    /// The nodes.
    pub nodes: Nodes,
    /// The gateway.
    pub gateway: Gateway,
    /// What becomes of pods.
    pub scripts: ScriptBook,
    /// The clock of all.
    pub clock: Clock,
    /// The namespace of all pods.
    pub namespace: String,
    served: Option<Served>,
}

impl World {
    /// Starts a world. Must be called inside a runtime.
    ///
    /// # Errors
    /// When the gateway gets no port.
    pub async fn start(options: WorldOptions) -> io::Result<Self> {
        let clock = options.started_us.map_or_else(Clock::real, Clock::simulated);
        let entropy = if options.started_us.is_some() { Entropy::seeded(options.seed) } else { Entropy::os() };
        let api = ClusterApi::new(ApiOptions { latency: options.latency, ..ApiOptions::new(clock.clone(), entropy) });
        let enforce = [("pod-security.kubernetes.io/enforce", "restricted")];
        api.add_namespace(&options.namespace, if options.restricted { &enforce } else { &[] });
        if !options.runtime_class.is_empty() {
            api.add_runtime_class(&options.runtime_class);
        }
        let gateway = Gateway::new(&options.world, &options.token, clock.clone());
        let scripts = ScriptBook::new(options.script);
        let nodes = Nodes::start(NodeOptions {
            client: api.client_as("node", &options.namespace),
            namespace: options.namespace.clone(),
            names: options.nodes,
            clock: clock.clone(),
            scripts: scripts.chooser(),
            hooks: Arc::new(gateway.clone()),
            unknown_after: options.unknown_after,
            kubelet: None,
        });
        api.set_log_source(nodes.logs());
        let served = if options.serve_gateway { Some(gateway.serve().await?) } else { None };
        Ok(Self { api, nodes, gateway, scripts, clock, namespace: options.namespace, served })
    }

    /// The daemon's client.
    #[must_use]
    pub fn client(&self) -> ::kube::Client {
        self.api.client(&self.namespace)
    }

    /// The gateway's base URL; empty when it does not listen.
    #[must_use]
    pub fn gateway_url(&self) -> String {
        self.served.as_ref().map(Served::url).unwrap_or_default()
    }
}
