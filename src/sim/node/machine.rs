//! The Node objects of a fleet: registered, kept ready, marked unknown when cut off, as the node controller would.

use serde_json::{Value, json};

use super::requests::{Failed, Requests};
use crate::sim::api::stamps;

const CONDITIONS: [(&str, &str, &str); 4] = [
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "KubeletReady", "kubelet is posting ready status"),
];

/// A node as its kubelet registers it. `endpoint` is the kubelet's port, if it serves logs itself.
#[must_use]
pub fn object(name: &str, address: &str, endpoint: Option<u16>, now_us: i64) -> Value {
    let resources = json!({"cpu": "64", "ephemeral-storage": "1Ti", "memory": "256Gi", "pods": "20000"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "status": {
            "capacity": resources, "allocatable": resources,
            "conditions": conditions(true, now_us),
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.unwrap_or(0)}},
            "nodeInfo": {"machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "simulated", "osImage": "simulated",
                "containerRuntimeVersion": "containerd://simulated", "kubeletVersion": "v1.36.2", "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": "amd64"},
        },
    })
}

fn conditions(heard: bool, now_us: i64) -> Vec<Value> {
    let now = stamps::seconds(now_us);
    let condition = |(kind, reason, message): &(&str, &str, &str)| {
        let status = if *kind == "Ready" { "True" } else { "False" };
        let (status, reason, message) =
            if heard { (status, *reason, *message) } else { ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.") };
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now})
    };
    CONDITIONS.iter().map(condition).collect()
}

/// Registers a node, or takes over the object of its name.
///
/// # Errors
/// When the API server does not take it.
pub(super) async fn register(requests: &Requests, name: &str, address: &str, endpoint: Option<u16>, now_us: i64) -> Result<(), Failed> {
    match requests.post("/api/v1/nodes", &object(name, address, endpoint, now_us)).await {
        Ok(_) => Ok(()),
        Err(Failed::Conflict(_)) => mark(requests, name, true, now_us).await,
        Err(failed) => Err(failed),
    }
}

/// Marks a node ready, or not heard of, with the taint that goes with it.
///
/// # Errors
/// When the API server does not take it.
pub(super) async fn mark(requests: &Requests, name: &str, heard: bool, now_us: i64) -> Result<(), Failed> {
    let path = format!("/api/v1/nodes/{name}");
    let taint = json!({"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule", "timeAdded": stamps::seconds(now_us)});
    let taints = if heard { Value::Null } else { json!([taint]) };
    requests.patch(&format!("{path}/status"), &json!({"status": {"conditions": conditions(heard, now_us)}})).await?;
    requests.patch(&path, &json!({"spec": {"taints": taints}})).await?;
    Ok(())
}

/// Marks a pod of an unreachable node not ready; optionally deletes it for its taint.
///
/// # Errors
/// When the API server does not take it.
pub(super) async fn mark_pod_unreachable(requests: &Requests, pod: &Value, evict: bool, now_us: i64) -> Result<(), Failed> {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    let path = format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"));
    let now = stamps::seconds(now_us);
    let mut conditions = vec![json!({"type": "Ready", "status": "False", "lastTransitionTime": now, "reason": null, "message": null})];
    if evict {
        conditions.push(json!({"type": "DisruptionTarget", "status": "True", "lastTransitionTime": now,
            "reason": "DeletionByTaintManager", "message": "Taint manager: deleting due to NoExecute taint"}));
    }
    let uid = &pod["metadata"]["uid"];
    requests.patch(&format!("{path}/status"), &json!({"metadata": {"uid": uid}, "status": {"conditions": conditions}})).await?;
    if evict {
        let grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().and_then(|seconds| u32::try_from(seconds).ok());
        requests.delete(&path, uid, grace.unwrap_or(30)).await?;
    }
    Ok(())
}
