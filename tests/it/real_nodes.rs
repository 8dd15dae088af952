//! The simulated nodes against a real API server: they must be able to do there what they do on the embedded one.

use std::sync::Arc;
use std::time::Duration;

use ::kube::Client;
use serde_json::{Value, json};
use wharfinger::clock::Clock;
use wharfinger::sim::node::{AppHooks, Kubelet, Loss, NodeOptions, Nodes, Register, Run, Script};

use crate::support::control_plane::ControlPlane;
use crate::support::{ask, expect, until};

/// Nobody listens.
struct Deaf;

impl AppHooks for Deaf {
    fn app_running(&self, _host: &str, _uid: &str, _register: Register) {}
    fn app_ended(&self, _host: &str, _uid: &str) {}
}

/// A namespace with one node of its own.
struct Stage {
    client: Client,
    namespace: String,
    nodes: Nodes,
}

impl Stage {
    async fn set(cluster: &ControlPlane, test: &str, script: Script) -> Self {
        let namespace = cluster.namespace(test).await;
        let client = cluster.admin_client(&namespace).await;
        let kubelet = Kubelet::start(&cluster.kubelet_identity()).await.expect("a port");
        let nodes = Nodes::start(NodeOptions {
            client: client.clone(),
            namespace: namespace.clone(),
            names: vec![format!("node-{namespace}")],
            clock: Clock::real(),
            scripts: Arc::new(move |_| script.clone()),
            hooks: Arc::new(Deaf),
            unknown_after: Duration::from_millis(300),
            kubelet: Some(Arc::new(kubelet)),
        });
        Self { client, namespace, nodes }
    }

    fn path(&self, tail: &str) -> String {
        format!("/api/v1/namespaces/{}/pods{tail}", self.namespace)
    }

    fn node(&self) -> String {
        format!("node-{}", self.namespace)
    }

    async fn create(&self, name: &str) -> Value {
        expect(&self.client, "POST", &self.path(""), &host(name), 201).await
    }

    async fn until(&self, name: &str, so: impl Fn(&str, &Value) -> bool) -> Value {
        until(&self.client, &self.path(""), name, "0", so).await
    }

    async fn phase(&self, name: &str, phase: &str) -> Value {
        self.until(name, |_, pod| pod["status"]["phase"] == phase).await
    }

    /// Deletes a pod that has to go with grace; gives it as it was marked.
    async fn delete(&self, name: &str, options: &Value) -> Value {
        let marked = expect(&self.client, "DELETE", &self.path(&format!("/{name}")), options, 200).await;
        assert_eq!(marked["kind"], "Pod", "{marked}");
        marked
    }

    /// Waits until a marked pod is gone; gives it as it was last.
    async fn gone(&self, marked: &Value) -> Value {
        let text = |field: &str| marked["metadata"][field].as_str().expect("it is there");
        until(&self.client, &self.path(""), text("name"), text("resourceVersion"), |kind, _| kind == "DELETED").await
    }

    /// Waits for the node's condition `Ready`.
    async fn node_ready(&self, status: &str) -> Value {
        until(&self.client, "/api/v1/nodes", &self.node(), "0", |_, node| condition(node, "Ready") == status).await
    }

    /// Status and text of a log read.
    async fn log(&self, name: &str, query: &str) -> (u16, String) {
        let (code, body) = ask(&self.client, "GET", &self.path(&format!("/{name}/log?{query}")), &Value::Null).await.expect("an answer");
        (code, body["message"].as_str().or(body.as_str()).unwrap_or_default().to_owned())
    }
}

/// Short stages, but none of no length: each must be seen.
fn quick() -> Script {
    let install = Run { lasts: Some(Duration::from_secs(1)), ..Script::default().install };
    Script { install, ..Script::default() }
}

/// A pod as a host's is.
fn host(name: &str) -> Value {
    let security = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 45, "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [{"name": "install", "image": "local/sandbox:1", "securityContext": security}],
            "containers": [{"name": "app", "image": "local/sandbox:1", "securityContext": security}],
        },
    })
}

/// A condition's status.
fn condition<'a>(pod: &'a Value, kind: &str) -> &'a Value {
    let conditions = pod["status"]["conditions"].as_array();
    let known = conditions.into_iter().flatten().find(|known| known["type"] == kind);
    known.map_or(&Value::Null, |known| &known["status"])
}

#[tokio::test]
async fn a_pod_is_bound_installs_runs_and_is_deleted() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let stage = Stage::set(cluster, "life", quick()).await;
    stage.create("h").await;
    let bound = stage.until("h", |_, pod| pod["spec"]["nodeName"] == stage.node().as_str()).await;
    assert_eq!(bound["status"]["phase"], "Pending");
    let installing = |pod: &Value| pod["status"]["initContainerStatuses"][0]["state"]["running"].is_object();
    stage.until("h", |_, pod| installing(pod)).await;
    assert_eq!(stage.log("h", "container=install").await, (200, "installing\n".to_owned()));
    let waiting = "container \"app\" in pod \"h\" is waiting to start: PodInitializing";
    assert_eq!(stage.log("h", "container=app").await, (400, waiting.to_owned()));

    let running = stage.phase("h", "Running").await;
    assert_eq!(running["status"]["hostIP"], "127.0.0.1");
    assert_eq!(condition(&running, "Ready"), "True");
    let marked = stage.delete("h", &json!({"gracePeriodSeconds": 7})).await;
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 7);
    let last = stage.gone(&marked).await;
    let ended = &last["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&last["status"]["phase"], &ended["exitCode"]), (&json!("Succeeded"), &json!(0)));
}

#[tokio::test]
async fn a_pod_of_a_runtime_class_runs_once_there_is_one() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let stage = Stage::set(cluster, "class", quick()).await;
    let mut pod = host("h");
    pod["spec"]["runtimeClassName"] = json!("gvisor");
    // Any test may have registered it already: what is asked here is that it can be done.
    cluster.register_runtime_class("gvisor").await;
    expect(&stage.client, "POST", &stage.path(""), &pod, 201).await;
    stage.phase("h", "Running").await;
}

#[tokio::test]
async fn a_log_is_read_through_the_api_server() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let script = quick().app(Run { first_lines: vec!["one".to_owned(), "two".to_owned()], ..Run::ends(Duration::from_secs(1), 3) });
    let stage = Stage::set(cluster, "logs", script).await;
    stage.create("h").await;
    let failed = stage.phase("h", "Failed").await;
    assert_eq!(failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    assert_eq!(stage.log("h", "container=install").await, (200, "installing\ninstalled\n".to_owned()));
    assert_eq!(stage.log("h", "container=app").await, (200, "one\ntwo\nending with 3\n".to_owned()));
    assert_eq!(stage.log("h", "").await, (200, "one\ntwo\nending with 3\n".to_owned()), "the only container needs no name");
    assert_eq!(stage.log("h", "container=app&tailLines=2").await, (200, "two\nending with 3\n".to_owned()));
    assert_eq!(stage.log("h", "container=app&tailLines=2&limitBytes=5").await, (200, "two\ne".to_owned()));
    let previous = "previous terminated container \"app\" in pod \"h\" not found";
    assert_eq!(stage.log("h", "container=app&previous=true").await, (400, previous.to_owned()));
    assert_eq!(stage.log("h", "container=no").await, (400, "container no is not valid for pod h".to_owned()));
}

#[tokio::test]
async fn a_pod_is_evicted_by_its_node() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let stage = Stage::set(cluster, "evict", quick()).await;
    stage.create("h").await;
    stage.phase("h", "Running").await;
    stage.nodes.evict("h");
    let evicted = stage.phase("h", "Failed").await;
    assert_eq!(evicted["status"]["reason"], "Evicted");
    assert_eq!(condition(&evicted, "DisruptionTarget"), "True");
    expect(&stage.client, "DELETE", &stage.path("/h"), &json!({}), 200).await;
    expect(&stage.client, "GET", &stage.path("/h"), &Value::Null, 404).await;
}

#[tokio::test]
async fn a_pod_that_ignores_term_goes_when_its_grace_is_over() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let stage = Stage::set(cluster, "grace", quick().app(Run::forever().ignoring_term())).await;
    let pod = stage.create("h").await;
    stage.phase("h", "Running").await;
    let options = json!({"gracePeriodSeconds": 2, "preconditions": {"uid": pod["metadata"]["uid"]}});
    let marked = stage.delete("h", &options).await;
    let last = stage.gone(&marked).await;
    assert_eq!(last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137);
}

#[tokio::test]
async fn a_lost_node_leaves_its_pods_terminating_until_it_is_back() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let stage = Stage::set(cluster, "lost", quick()).await;
    stage.create("h").await;
    stage.phase("h", "Running").await;
    stage.nodes.lose(&stage.node(), Loss::Unreachable, true);
    let node = stage.node_ready("Unknown").await;
    assert_eq!(node["status"]["addresses"][0], json!({"type": "InternalIP", "address": "127.0.0.1"}));
    let lost = stage.until("h", |_, pod| pod["metadata"]["deletionTimestamp"].is_string()).await;
    assert_eq!((&lost["status"]["phase"], condition(&lost, "Ready")), (&json!("Running"), &json!("False")));
    let log = expect(&stage.client, "GET", &stage.path("/h/log?container=app"), &Value::Null, 500).await;
    assert!(log["reason"].is_null() && log["message"].as_str().is_some_and(|why| why.contains("/containerLogs/")), "{log}");
    stage.nodes.bring_back(&stage.node());
    stage.gone(&lost).await;
    let node = stage.node_ready("True").await;
    assert!(node["spec"]["taints"].is_null(), "{node}");
}

#[tokio::test]
async fn a_pod_of_a_dead_node_goes_when_it_is_deleted_by_force() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let stage = Stage::set(cluster, "dead", quick()).await;
    stage.create("h").await;
    stage.phase("h", "Running").await;
    stage.nodes.lose(&stage.node(), Loss::Dead, false);
    stage.node_ready("Unknown").await;
    stage.delete("h", &json!({})).await;
    let waits = expect(&stage.client, "GET", &stage.path("/h"), &Value::Null, 200).await;
    assert!(waits["metadata"]["deletionTimestamp"].is_string(), "it waits for its node");
    expect(&stage.client, "DELETE", &stage.path("/h"), &json!({"gracePeriodSeconds": 0}), 200).await;
    expect(&stage.client, "GET", &stage.path("/h"), &Value::Null, 404).await;
}
