//! Statuses of the embedded node against those recorded from a real kubelet: the recorded pod is created again and played to the
//! same stage; then phase, reasons, conditions, container states and the fields that are there have to be the same.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::support::{Cluster, cluster};
use crate::sim::node::{Pull, Run, Schedule, Script, Start};

fn recorded(name: &str) -> Value {
    let path = format!("{}/tests/data/podjson/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("a recorded pod")).expect("JSON")
}

/// What is compared of a status: every field's presence, and the words that mean something.
fn shape(value: &Value, field: &str) -> Value {
    const WORDS: [&str; 8] = ["phase", "type", "status", "reason", "exitCode", "ready", "started", "restartCount"];
    match value {
        // What the API server writes of an empty time, and what depends on the kubelet's configuration.
        Value::Object(fields) => {
            let skipped = |key: &str| matches!(key, "lastProbeTime" | "resources" | "allocatedResources" | "observedGeneration");
            let kept = fields.iter().filter(|(key, value)| !skipped(key) && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), shape(value, key))).collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| shape(item, field)).collect();
            items.sort_by_key(|item| item["type"].to_string());
            Value::Array(items)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) if WORDS.contains(&field) => value.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!("…"),
    }
}

/// Plays the recorded pod and compares.
async fn same_as(file: &str, script: Script, play: impl AsyncFn(&Cluster, &str)) {
    let expected = recorded(file);
    let cluster = cluster(script);
    cluster.api.add_runtime_class("gvisor");
    cluster.after(1).await;
    let mut spec = expected["spec"].clone();
    spec.as_object_mut().expect("a spec").remove("nodeName");
    let name = expected["metadata"]["name"].as_str().expect("a name");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    cluster.create(&pod).await;
    play(&cluster, name).await;
    let came = cluster.pod(name).expect("the pod is still there");
    pretty_equal(file, &shape(&came["status"], "status"), &shape(&expected["status"], "status"));
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        assert_eq!(came["metadata"][field].is_null(), expected["metadata"][field].is_null(), "{file}: {field}");
    }
}

fn pretty_equal(file: &str, came: &Value, expected: &Value) {
    let text = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
    let (came, expected) = (text(came), text(expected));
    if came != expected {
        let differing = came.lines().zip(expected.lines()).position(|(a, b)| a != b).unwrap_or(0);
        panic!("{file}, line {differing}:\ncame {came}\nexpected {expected}");
    }
}

async fn ms(cluster: &Cluster, milliseconds: u64) {
    let _ = cluster;
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

#[tokio::test(start_paused = true)]
async fn on_the_way_to_running() {
    let never = || Script { schedule: Schedule::After(Duration::from_secs(60)), ..Script::default() };
    same_as("pending-created", never(), async |_, _| {}).await;
    let stuck = || Script { pull: Pull::Stuck, ..Script::default() };
    same_as("pending-podinitializing", stuck(), async |cluster, _| ms(cluster, 1_000).await).await;
    same_as("init-running", Script::default(), async |cluster, _| ms(cluster, 1_000).await).await;
    same_as("init-done-main-waiting", Script::default(), async |cluster, _| ms(cluster, 2_600).await).await;
    same_as("running-ready", Script::default(), async |cluster, _| ms(cluster, 4_000).await).await;
    same_as("gvisor-running-ready", Script::default(), async |cluster, _| ms(cluster, 4_000).await).await;
}

#[tokio::test(start_paused = true)]
async fn what_never_runs() {
    let no_node = Script { schedule: Schedule::Never("0/1 nodes are available".to_owned()), ..Script::default() };
    same_as("unschedulable", no_node, async |cluster, _| ms(cluster, 1_000).await).await;
    let no_image = Script { pull: Pull::BackOff, ..Script::default() };
    same_as("errimagepull", no_image.clone(), async |cluster, _| ms(cluster, 3_000).await).await;
    same_as("imagepullbackoff", no_image, async |cluster, _| ms(cluster, 5_000).await).await;
    let misnamed = Script { pull: Pull::InvalidImageName, ..Script::default() };
    same_as("invalidimagename", misnamed, async |cluster, _| ms(cluster, 5_000).await).await;
    let config = Script { pull: Pull::ConfigError("secret \"absent\" not found".to_owned()), ..Script::default() };
    same_as("createcontainerconfigerror", config, async |cluster, _| ms(cluster, 5_000).await).await;
    let error = Script { start: Start::Error("no such file".to_owned()), ..Script::default() };
    same_as("gvisor-starterror", error, async |cluster, _| ms(cluster, 5_000).await).await;
    let volume = async |cluster: &Cluster, _: &str| ms(cluster, 5_000).await;
    same_as("containercreating-missing-secret-volume", Script::default(), volume).await;
}

#[tokio::test(start_paused = true)]
async fn every_end() {
    let end = async |cluster: &Cluster, _: &str| ms(cluster, 20_000).await;
    let install = Script::default().install_fails(Duration::from_secs(1), 3);
    same_as("init-failed", install.clone(), end).await;
    same_as("gvisor-init-failed", install, end).await;
    let exits =
        |code| Script::default().app(Run { message: (code != 0).then(|| "bad\n".to_owned()), ..Run::ends(Duration::from_secs(1), code) });
    same_as("exited-0", exits(0), end).await;
    same_as("exited-1", exits(1), end).await;
    let memory = Script::default().app(Run::out_of_memory(Duration::from_secs(1)));
    same_as("oomkilled", memory.clone(), end).await;
    same_as("gvisor-oom", memory, end).await;
    let evicted = async |cluster: &Cluster, name: &str| {
        ms(cluster, 5_000).await;
        cluster.nodes.evict(name);
        ms(cluster, 1_000).await;
    };
    same_as("evicted-node-pressure", Script::default(), evicted).await;
}

#[tokio::test(start_paused = true)]
async fn being_deleted() {
    let slow = || Script::default().app(Run { term_after: Some(Duration::from_secs(2)), ..Run::forever() });
    let deleted = async |cluster: &Cluster, name: &str| {
        ms(cluster, 5_000).await;
        assert_eq!(cluster.delete(name, &json!({})).await.0, 200);
        ms(cluster, 1_000).await;
    };
    same_as("being-deleted", slow(), deleted).await;
    let evicted = async |cluster: &Cluster, name: &str| {
        ms(cluster, 5_000).await;
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        let path = format!("/api/v1/namespaces/apps/pods/{name}/eviction");
        assert_eq!(cluster.ask("POST", &path, &eviction).await.0, 201);
        ms(cluster, 1_000).await;
    };
    same_as("evicted-by-eviction-api", slow(), evicted).await;
}
