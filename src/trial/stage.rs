//! The world that a trial is played in: API server, nodes and gateway on one clock, and one onlooker who writes down all of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::history::{AppTruth, Fate, GatewayAsk, Happening, History, Report, Rest};
use super::plan::Plan;
use crate::clock::{Clock, Entropy};
use crate::sim::api::{self, ApiOptions, ClusterApi, Entry, Stored};
use crate::sim::gateway::{self, Gateway, GatewayAnswer, GatewayRequest};
use crate::sim::node::{AppHooks, NodeOptions, Nodes, Register};
use crate::sim::world::ScriptBook;

/// The namespace of all pods.
pub(super) const NAMESPACE: &str = "apps";
/// The gateway's token.
pub(super) const TOKEN: &str = "token";
/// The world.
pub(super) const WORLD: &str = "trial";
/// 2026-11-30T12:00:00Z.
const BEGIN_US: i64 = 1_796_040_000_000_000;

/// The world.
pub(super) struct Stage {
    pub(super) api: ClusterApi,
    pub(super) gateway: Gateway,
    pub(super) nodes: Nodes,
    pub(super) scripts: ScriptBook,
    pub(super) clock: Clock,
    pub(super) history: History,
    pub(super) onlooker: Arc<Onlooker>,
}

impl Stage {
    /// Sets it up. Must be called inside a runtime.
    pub(super) fn new(seed: u64, plan: &Plan, history: History) -> Self {
        let clock = Clock::simulated(BEGIN_US);
        let options = ApiOptions { latency: plan.latency, ..ApiOptions::new(clock.clone(), Entropy::seeded(seed ^ 0xa91)) };
        let api = ClusterApi::new(options);
        let gateway = Gateway::new(WORLD, TOKEN, clock.clone());
        let (running, truth) = (Mutex::default(), Mutex::default());
        let onlooker = Onlooker { history: history.clone(), clock: clock.clone(), gateway: gateway.unwitnessed(), running, truth };
        let onlooker = Arc::new(onlooker);
        api.set_witness(Arc::clone(&onlooker) as Arc<dyn api::Witness>);
        gateway.set_witness(Arc::clone(&onlooker) as Arc<dyn gateway::Witness>);
        api.add_namespace(NAMESPACE, &[("pod-security.kubernetes.io/enforce", "restricted")]);
        api.add_runtime_class("gvisor");
        let scripts = ScriptBook::new(plan.otherwise.clone());
        let nodes = Nodes::start(NodeOptions {
            client: api.client_as("node", NAMESPACE),
            namespace: NAMESPACE.to_owned(),
            names: plan.nodes.clone(),
            clock: clock.clone(),
            scripts: scripts.chooser(),
            hooks: Arc::clone(&onlooker) as Arc<dyn AppHooks>,
            unknown_after: Duration::from_secs(40),
            kubelet: None,
        });
        api.set_log_source(nodes.logs());
        Self { api, gateway, nodes, scripts, clock, history, onlooker }
    }

    /// Notes something of the trial's own.
    pub(super) fn note(&self, what: Happening) {
        self.history.note(self.clock.now_us(), what);
    }

    /// How everything is.
    pub(super) fn rest(&self, fates: BTreeMap<String, Fate>) -> Rest {
        let all = |plural| self.api.objects(plural, Some(NAMESPACE));
        Rest {
            pods: all("pods"),
            secrets: all("secrets"),
            services: all("services"),
            policies: all("networkpolicies"),
            apps: truth(&self.gateway),
            fates,
            running: self.onlooker.running().keys().cloned().collect(),
        }
    }
}

/// What the gateway wants and knows.
fn truth(gateway: &Gateway) -> BTreeMap<String, AppTruth> {
    let state = gateway.lock();
    let apps = state.apps.iter().map(|(name, app)| {
        let truth = AppTruth { release: app.release, host: app.host.clone(), failed: app.failed, live_host: app.live_host.clone() };
        (name.clone(), truth)
    });
    apps.collect()
}

/// Writes down what the world does.
pub(super) struct Onlooker {
    history: History,
    clock: Clock,
    gateway: Gateway,
    /// Processes that run, by host and pod, and how each registers.
    running: Mutex<BTreeMap<(String, String), Register>>,
    /// What the gateway wanted and knew when it was last noted.
    truth: Mutex<BTreeMap<String, AppTruth>>,
}

impl Onlooker {
    fn note(&self, what: Happening) {
        self.history.note(self.clock.now_us(), what);
    }

    pub(super) fn running(&self) -> MutexGuard<'_, BTreeMap<(String, String), Register>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the gateway wants and knows, if that changed.
    pub(super) fn note_truth(&self) {
        let now = truth(&self.gateway);
        let mut before = self.truth.lock().unwrap_or_else(PoisonError::into_inner);
        if *before != now {
            before.clone_from(&now);
            self.note(Happening::Wanted(now));
        }
    }
}

impl api::Witness for Onlooker {
    fn stored(&self, change: Stored) {
        self.note(Happening::Stored(change));
    }

    fn requested(&self, entry: &Entry) {
        self.note(Happening::Requested(Box::new(entry.clone())));
    }
}

impl gateway::Witness for Onlooker {
    fn asked(&self, request: &GatewayRequest, answer: &GatewayAnswer, taken: bool) {
        let segments: Vec<&str> = request.path.split('/').filter(|segment| !segment.is_empty()).collect();
        let what = match segments.as_slice() {
            [_, _, "apps", org, name, "environment"] => GatewayAsk::Environment(format!("{org}/{name}")),
            [_, _, "apps", org, name, ..] => GatewayAsk::Source(format!("{org}/{name}")),
            _ => GatewayAsk::Beat(reports_of(&request.body)),
        };
        let status = if answer.hangs { 0 } else { answer.status };
        self.note(Happening::Asked { what, taken, status });
        self.note_truth();
    }
}

fn reports_of(body: &[u8]) -> Vec<Report> {
    let beat: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let reports = beat["reports"].as_array().into_iter().flatten();
    let report = |report: &serde_json::Value| {
        let text = |field: &str| report[field].as_str().unwrap_or_default().to_owned();
        let app = format!("{}/{}", text("org"), text("name"));
        Report { app, host: text("host"), state: text("state"), why: text("why") }
    };
    reports.map(report).collect()
}

impl AppHooks for Onlooker {
    fn app_running(&self, host: &str, uid: &str, register: Register) {
        self.note(Happening::Running { host: host.to_owned(), uid: uid.to_owned() });
        self.running().insert((host.to_owned(), uid.to_owned()), register);
        self.gateway.app_running(host, uid, register);
    }

    fn app_ended(&self, host: &str, uid: &str) {
        self.note(Happening::Exited { host: host.to_owned(), uid: uid.to_owned() });
        self.running().remove(&(host.to_owned(), uid.to_owned()));
        self.gateway.app_ended(host, uid);
    }
}
