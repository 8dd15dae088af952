//! A pod's status as its node publishes it, in the shapes of the recorded ones. Pure.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::life::Life;
use super::parts::{Container, Eviction, Stage};
use crate::ids::hex;
use crate::sim::api::stamps;

/// What a node is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// The node's address.
    pub host: String,
    /// The pod's address.
    pub pod: String,
}

/// The patch of `status`, strategic: nulls take away what a former status said.
#[must_use]
pub fn patch(life: &mut Life, pod: &Value, addresses: &Addresses, now_us: i64) -> Value {
    let (phase, reason, message) = phase(life);
    let mut status = json!({"phase": phase, "reason": reason, "message": message, "conditions": conditions(life, phase, now_us)});
    if life.stage > Stage::Unscheduled {
        status["observedGeneration"] = pod["metadata"]["generation"].clone();
        status["hostIP"] = json!(addresses.host);
        status["hostIPs"] = json!([{"ip": addresses.host}]);
        status["startTime"] = json!(life.started_us.map(stamps::seconds));
        if sandbox_is_up(life) || life.stage > Stage::Pulling {
            status["podIP"] = json!(addresses.pod);
            status["podIPs"] = json!([{"ip": addresses.pod}]);
        }
        for (field, kind, containers) in
            [("initContainerStatuses", "initContainers", &life.inits), ("containerStatuses", "containers", &life.mains)]
        {
            let specs = pod["spec"][kind].as_array().into_iter().flatten();
            let statuses: Vec<Value> =
                specs.zip(containers).map(|(spec, (_, one))| container_status(pod, spec, one, kind == "initContainers")).collect();
            if !statuses.is_empty() {
                status[field] = json!(statuses);
            }
        }
    }
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        condition["observedGeneration"] = pod["metadata"]["generation"].clone();
    }
    json!({"metadata": {"uid": pod["metadata"]["uid"]}, "status": status})
}

/// Phase, reason, message. An eviction whose app ends well is a success that only the condition gives away.
fn phase(life: &Life) -> (&'static str, Option<&str>, Option<&str>) {
    match life.stage {
        Stage::Running => ("Running", None, None),
        Stage::Ending if life.mains.iter().any(|(_, one)| has_run(one)) => ("Running", None, None),
        Stage::Ended => match &life.eviction {
            Some(eviction) if !life.ended_well() || eviction.reason == "DeadlineExceeded" => {
                ("Failed", Some(&eviction.reason), Some(&eviction.message))
            }
            _ if life.ended_well() => ("Succeeded", None, None),
            _ => ("Failed", None, None),
        },
        Stage::Unscheduled | Stage::Volumes | Stage::Pulling | Stage::Installing(_) | Stage::Starting | Stage::Ending => {
            ("Pending", None, None)
        }
    }
}

/// What never started has no time of it.
fn has_run(container: &Container) -> bool {
    match container {
        Container::Waiting(..) => false,
        Container::Running(_) => true,
        Container::Ended(end) => end.started_us > 0,
    }
}

fn sandbox_is_up(life: &Life) -> bool {
    let tried = |container: &Container| matches!(container, Container::Waiting(_, Some(_)));
    match life.stage {
        Stage::Installing(_) | Stage::Starting | Stage::Running | Stage::Ending => true,
        Stage::Pulling => life.containers().any(|(_, container)| tried(container)),
        Stage::Unscheduled | Stage::Volumes | Stage::Ended => false,
    }
}

fn conditions(life: &mut Life, phase: &str, now_us: i64) -> Vec<Value> {
    if life.stage == Stage::Unscheduled {
        let why = life.unschedulable.clone().unwrap_or_default();
        return vec![condition(life, "PodScheduled", false, Some("Unschedulable"), Some(why), now_us)];
    }
    let done = |container: &Container| matches!(container, Container::Ended(end) if end.exit_code == 0);
    let undone: Vec<String> = life.inits.iter().filter(|(_, one)| !done(one)).map(|(name, _)| name.clone()).collect();
    let initialized = undone.is_empty();
    let running = life.stage == Stage::Running;
    let mains: Vec<&str> = life.mains.iter().map(|(name, _)| name.as_str()).collect();
    let unready = format!("containers with unready status: [{}]", mains.join(" "));
    let (why, text) = match phase {
        _ if running => (None, None),
        "Succeeded" => (Some("PodCompleted"), None),
        "Failed" => (Some("PodFailed"), None),
        _ => (Some("ContainersNotReady"), Some(unready)),
    };
    let init_why = match (initialized, phase) {
        (true, "Succeeded") => (Some("PodCompleted"), None),
        (true, _) => (None, None),
        (false, _) => {
            let text = format!("containers with incomplete status: [{}]", undone.join(" "));
            (Some("ContainersNotInitialized"), Some(text))
        }
    };
    let up = sandbox_is_up(life);
    let mut conditions = vec![
        condition(life, "PodReadyToStartContainers", up, None, None, now_us),
        condition(life, "Initialized", initialized, init_why.0, init_why.1, now_us),
        condition(life, "Ready", running, why, text.clone(), now_us),
        condition(life, "ContainersReady", running, why, text, now_us),
        condition(life, "PodScheduled", true, None, None, now_us),
    ];
    let disruption = life.eviction.as_ref().filter(|_| life.stage == Stage::Ended);
    if let Some(Eviction { disruption: Some(reason), message, .. }) = disruption {
        let (reason, message) = (reason.clone(), message.clone());
        conditions.push(condition(life, "DisruptionTarget", true, Some(&reason), Some(message), now_us));
    }
    conditions
}

/// A condition; its time is that of its status's last change.
fn condition(life: &mut Life, kind: &'static str, holds: bool, reason: Option<&str>, message: Option<String>, now_us: i64) -> Value {
    let known = life.conditions.entry(kind).or_insert((holds, now_us));
    if known.0 != holds {
        *known = (holds, now_us);
    }
    json!({"type": kind, "status": if holds { "True" } else { "False" }, "lastProbeTime": null,
        "lastTransitionTime": stamps::seconds(known.1), "reason": reason, "message": message})
}

fn container_status(pod: &Value, spec: &Value, container: &Container, init: bool) -> Value {
    let image = spec["image"].as_str().unwrap_or_default();
    let mut status = json!({"name": spec["name"], "lastState": {}, "restartCount": 0, "image": image, "imageID": ""});
    let id = {
        let seed = format!("{}/{}/0", pod["metadata"]["uid"].as_str().unwrap_or_default(), spec["name"].as_str().unwrap_or_default());
        format!("containerd://{}", hex(&Sha256::digest(seed.as_bytes())))
    };
    if !matches!(container, Container::Waiting(..)) {
        status["image"] = json!(full_name(image));
        status["imageID"] = json!(format!("sha256:{}", hex(&Sha256::digest(image.as_bytes()))));
        status["containerID"] = json!(id);
        status["resources"] = spec["resources"].clone();
        if let Some(requests) = spec["resources"].get("requests") {
            status["allocatedResources"] = requests.clone();
        }
    }
    if let Some(mounts) = spec["volumeMounts"].as_array() {
        status["volumeMounts"] = mounts.iter().map(mount_status).collect();
    }
    let (state, ready, started) = match container {
        Container::Waiting(reason, message) => (without_null(&json!({"waiting": {"reason": reason, "message": message}})), false, false),
        Container::Running(since) => (json!({"running": {"startedAt": stamps::seconds(*since)}}), !init, true),
        Container::Ended(end) => {
            let state = json!({"terminated": {"exitCode": end.exit_code, "reason": end.reason, "message": end.message,
                "startedAt": stamps::seconds(end.started_us), "finishedAt": stamps::seconds(end.finished_us), "containerID": id}});
            (without_null(&state), init && end.exit_code == 0, false)
        }
    };
    status["state"] = state;
    status["ready"] = json!(ready);
    status["started"] = json!(started);
    status
}

fn mount_status(mount: &Value) -> Value {
    let mut status = json!({"name": mount["name"], "mountPath": mount["mountPath"]});
    if mount["readOnly"] == json!(true) {
        status["readOnly"] = json!(true);
        status["recursiveReadOnly"] = json!("Disabled");
    }
    status
}

/// Lists are replaced whole, so that a null in one would stay.
fn without_null(value: &Value) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let kept = fields.iter().filter(|(_, value)| !value.is_null());
    Value::Object(kept.map(|(key, value)| (key.clone(), without_null(value))).collect::<Map<_, _>>())
}

/// An image's name with its registry, as a runtime reports it.
fn full_name(image: &str) -> String {
    match image.split_once('/') {
        None => format!("docker.io/library/{image}"),
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => image.to_owned(),
        Some(_) => format!("docker.io/{image}"),
    }
}
