//! What the tests of the embedded cluster share: one cluster with one node, and a pod like a host's.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::{Clock, Entropy};
use crate::sim::api::{ApiOptions, ClusterApi, Object};
use crate::sim::node::{AppHooks, NodeOptions, Nodes, Register, Script};

/// 2026-11-30T12:00:00Z.
pub(super) const START_US: i64 = 1_796_040_000_000_000;

/// Writes down what it hears.
#[derive(Default)]
pub(super) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no test panics while it holds this").clone()
    }
}

impl AppHooks for Heard {
    fn app_running(&self, host: &str, _uid: &str, _register: Register) {
        self.0.lock().expect("no test panics while it holds this").push(format!("{host} runs"));
    }

    fn app_ended(&self, host: &str, _uid: &str) {
        self.0.lock().expect("no test panics while it holds this").push(format!("{host} ended"));
    }
}

pub(super) struct Cluster {
    pub(super) api: ClusterApi,
    pub(super) client: ::kube::Client,
    pub(super) nodes: Nodes,
    pub(super) heard: Arc<Heard>,
}

pub(super) fn api() -> ClusterApi {
    let api = ClusterApi::new(ApiOptions::new(Clock::simulated(START_US), Entropy::seeded(1)));
    api.add_namespace("apps", &[]);
    api
}

/// A cluster whose pods all have this script.
pub(super) fn cluster(script: Script) -> Cluster {
    cluster_of(&["node1"], script)
}

pub(super) fn cluster_of(names: &[&str], script: Script) -> Cluster {
    let clock = Clock::simulated(START_US);
    let api = ClusterApi::new(ApiOptions::new(clock.clone(), Entropy::seeded(1)));
    api.add_namespace("apps", &[]);
    let heard = Arc::new(Heard::default());
    let nodes = Nodes::start(NodeOptions {
        client: api.client_as("node", "apps"),
        namespace: "apps".to_owned(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        clock,
        scripts: Arc::new(move |_| script.clone()),
        hooks: heard.clone(),
        unknown_after: Duration::from_secs(40),
        kubelet: None,
    });
    api.set_log_source(nodes.logs());
    let client = api.client("apps");
    Cluster { api, client, nodes, heard }
}

/// A pod with an install and an app, as a host's is.
pub(super) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 45, "automountServiceAccountToken": false,
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            "initContainers": [{"name": "install", "image": "local/sandbox:1", "command": ["true"]}],
            "containers": [{"name": "app", "image": "local/sandbox:1", "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}],
        },
    })
}

impl Cluster {
    pub(super) async fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        ask(&self.client, method, path, body).await
    }

    pub(super) async fn create(&self, pod: &Value) -> Value {
        let (code, body) = self.ask("POST", "/api/v1/namespaces/apps/pods", pod).await;
        assert_eq!(code, 201, "{body}");
        body
    }

    pub(super) async fn delete(&self, name: &str, options: &Value) -> (u16, Value) {
        self.ask("DELETE", &format!("/api/v1/namespaces/apps/pods/{name}"), options).await
    }

    pub(super) fn pod(&self, name: &str) -> Option<Arc<Object>> {
        self.api.object("pods", "apps", name)
    }

    /// Lets the time pass.
    pub(super) async fn after(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

/// One request by hand: the status and the body, text as a JSON string.
pub(super) async fn ask(client: &::kube::Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let media_type = match method {
        "PATCH" => "application/strategic-merge-patch+json",
        _ => "application/json",
    };
    let request = http::Request::builder().method(method).uri(path).header("content-type", media_type);
    let request = request.body(::kube::client::Body::from(bytes)).expect("a valid request");
    let response = client.send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.expect("a whole body");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::String(text)))
}

/// One line a pod: phase, reason, true conditions, containers.
pub(super) fn shown(pod: &Value) -> String {
    let status = &pod["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut conditions: Vec<String> = conditions.filter(|known| known["status"] == "True").map(|known| text(&known["type"])).collect();
    conditions.sort();
    let statuses = |field: &str| status[field].as_array().cloned().unwrap_or_default();
    let containers = [statuses("initContainerStatuses"), statuses("containerStatuses")].concat();
    let containers = containers.iter().map(|one| {
        let (state, detail) = one["state"].as_object().and_then(|state| state.iter().next()).expect("a state");
        let code = detail["exitCode"].as_i64().map(|code| format!(" {code}")).unwrap_or_default();
        format!("{} {state} {}{code}", text(&one["name"]), text(&detail["reason"])).trim_end().to_owned()
    });
    let containers: Vec<String> = containers.collect();
    let phase = format!("{} {}", text(&status["phase"]), text(&status["reason"]));
    format!("{} [{}] {}", phase.trim_end(), conditions.join(" "), containers.join(", ")).trim_end().to_owned()
}

/// The one provider of cryptography, for tests that build an HTTP client.
pub(super) fn install_provider() {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
