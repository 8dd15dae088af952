//! Pods: what the server fills in and refuses. Pure; admission (runtime class, Pod Security) is elsewhere.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::refusal::Cause;
use super::rules::{entries, key_causes, label_causes, label_value_causes, list, list_mut, remove, set, subdomain_causes, text};
use super::{container_rules, quantity};

const IMMUTABLE: &str = "pod updates may not change fields other than \
                         `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
                         additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                         previously negative)";

/// The status of a new pod.
pub(super) fn first_status(object: &Value) -> Value {
    json!({"phase": "Pending", "qosClass": quantity::class_of(&object["spec"])})
}

/// Fills in a pod's spec.
pub(super) fn defaults(object: &mut Value) {
    let spec = &mut object["spec"];
    if !spec.is_object() {
        return;
    }
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    // A negative grace is the shortest one.
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "serviceAccountName", json!("default"));
    let account = spec["serviceAccountName"].clone();
    set(spec, "serviceAccount", account);
    set(spec, "securityContext", json!({}));
    set(spec, "enableServiceLinks", json!(true));
    set(spec, "priority", json!(0));
    set(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    set(spec, "tolerations", json!([]));
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerations = spec["tolerations"].as_array_mut();
        if let Some(tolerations) = tolerations
            && !tolerations.iter().any(|known| tolerates(known, key))
        {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    for containers in ["initContainers", "containers"] {
        for container in list_mut(spec, containers) {
            container_rules::defaults(container);
        }
    }
    for volume in list_mut(spec, "volumes") {
        if volume.as_object().is_some_and(|fields| fields.len() == 1) {
            volume["emptyDir"] = json!({});
        }
        if let Some(secret) = volume.get_mut("secret").filter(|secret| secret.is_object()) {
            set(secret, "defaultMode", json!(0o644));
        }
    }
}

/// Whether a toleration covers what the server would add for this taint.
fn tolerates(toleration: &Value, taint: &str) -> bool {
    let effect = text(toleration, &["effect"]);
    let key = text(toleration, &["key"]);
    (key == taint || key.is_empty()) && (effect.is_empty() || effect == "NoExecute")
}

/// What is wrong with a pod's spec.
#[must_use]
pub(super) fn validate(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    let volumes = volumes(spec, &mut causes);
    let mut names = BTreeSet::new();
    if list(spec, &["containers"]).is_empty() {
        causes.push(Cause::required("spec.containers", ""));
    }
    for kind in ["containers", "initContainers"] {
        for (index, one) in list(spec, &[kind]).iter().enumerate() {
            container_rules::validate(&format!("spec.{kind}[{index}]"), one, &volumes, &mut names, &mut causes);
        }
    }
    let restart = text(spec, &["restartPolicy"]);
    if !["Always", "OnFailure", "Never"].contains(&restart) {
        causes.push(Cause::unsupported("spec.restartPolicy", restart, &["Always", "OnFailure", "Never"]));
    }
    dns(spec, &mut causes);
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64().filter(|seconds| *seconds < 1) {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid("spec.activeDeadlineSeconds", &seconds.to_string(), why));
    }
    placement(spec, &mut causes);
    container_rules::ids("spec.securityContext", &spec["securityContext"], &["fsGroup", "runAsUser", "runAsGroup"], &mut causes);
    for (field, value) in [("spec.hostname", &spec["hostname"]), ("spec.subdomain", &spec["subdomain"])] {
        if let Some(value) = value.as_str().filter(|value| !value.is_empty()) {
            causes.extend(label_causes(field, value));
        }
    }
    for field in ["runtimeClassName", "serviceAccountName", "nodeName", "priorityClassName"] {
        if let Some(value) = spec[field].as_str().filter(|value| !value.is_empty()) {
            causes.extend(subdomain_causes(&format!("spec.{field}"), value));
        }
    }
    causes
}

fn dns(spec: &Value, causes: &mut Vec<Cause>) {
    const POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    let policy = text(spec, &["dnsPolicy"]);
    let servers = list(spec, &["dnsConfig", "nameservers"]);
    if !POLICIES.contains(&policy) {
        causes.push(Cause::unsupported("spec.dnsPolicy", policy, &POLICIES));
    }
    if policy == "None" && !spec["dnsConfig"].is_object() {
        let why = "must provide `dnsConfig` when `dnsPolicy` is None";
        causes.push(Cause::required("spec.dnsConfig", why));
    } else if policy == "None" && servers.is_empty() {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        causes.push(Cause::required("spec.dnsConfig.nameservers", why));
    }
    if servers.len() > 3 {
        let value = serde_json::Value::from(servers.to_vec()).to_string();
        causes.push(Cause::invalid("spec.dnsConfig.nameservers", &value, "must not have more than 3 nameservers"));
    }
    for (index, server) in servers.iter().enumerate() {
        let address = server.as_str().unwrap_or_default();
        if address.parse::<std::net::IpAddr>().is_err() {
            let field = format!("spec.dnsConfig.nameservers[{index}]");
            causes.push(Cause::invalid_text(&field, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
        }
    }
}

fn volumes<'a>(spec: &'a Value, causes: &mut Vec<Cause>) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (index, volume) in list(spec, &["volumes"]).iter().enumerate() {
        let field = format!("spec.volumes[{index}]");
        let name = text(volume, &["name"]);
        causes.extend(label_causes(&format!("{field}.name"), name));
        if !names.insert(name) {
            causes.push(Cause::duplicate(&format!("{field}.name"), name));
        }
        let kinds = volume.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| *key != "name");
        for kind in kinds.skip(1) {
            causes.push(Cause::forbidden(&format!("{field}.{kind}"), "may not specify more than 1 volume type"));
        }
        secret_causes(&format!("{field}.secret"), &volume["secret"], causes);
        let size = volume["emptyDir"]["sizeLimit"].as_str().and_then(quantity::parse);
        if size.is_some_and(|size| size < 0) {
            let why = "SizeLimit field must be a valid resource quantity";
            causes.push(Cause::forbidden(&format!("{field}.emptyDir.sizeLimit"), why));
        }
        if volume["persistentVolumeClaim"].is_object() && text(volume, &["persistentVolumeClaim", "claimName"]).is_empty() {
            causes.push(Cause::required(&format!("{field}.persistentVolumeClaim.claimName"), ""));
        }
    }
    names
}

fn secret_causes(field: &str, secret: &Value, causes: &mut Vec<Cause>) {
    if !secret.is_object() {
        return;
    }
    if text(secret, &["secretName"]).is_empty() {
        causes.push(Cause::required(&format!("{field}.secretName"), ""));
    }
    let mode = secret["defaultMode"].as_i64().unwrap_or(0);
    if !(0..=0o777).contains(&mode) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        causes.push(Cause::invalid(&format!("{field}.defaultMode"), &mode.to_string(), why));
    }
    for (index, item) in list(secret, &["items"]).iter().enumerate() {
        let path = text(item, &["path"]);
        for key in ["key", "path"] {
            if text(item, &[key]).is_empty() {
                causes.push(Cause::required(&format!("{field}.items[{index}].{key}"), ""));
            }
        }
        if path.split('/').any(|part| part == "..") {
            causes.push(Cause::invalid_text(&format!("{field}.items[{index}].path"), path, "must not contain '..'"));
        }
    }
}

fn placement(spec: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in entries(spec, &["nodeSelector"]) {
        causes.extend(key_causes("spec.nodeSelector", key));
        causes.extend(label_value_causes("spec.nodeSelector", value.as_str().unwrap_or_default()));
    }
    for (index, toleration) in list(spec, &["tolerations"]).iter().enumerate() {
        let field = format!("spec.tolerations[{index}]");
        let (key, operator) = (text(toleration, &["key"]), text(toleration, &["operator"]));
        if !key.is_empty() {
            causes.extend(key_causes(&format!("{field}.key"), key));
        }
        let value = text(toleration, &["value"]);
        if !["", "Equal", "Exists"].contains(&operator) {
            causes.push(Cause::unsupported(&format!("{field}.operator"), operator, &["Equal", "Exists"]));
        } else if operator == "Exists" && !value.is_empty() {
            let why = "value must be empty when `operator` is 'Exists'";
            causes.push(Cause::invalid_text(&format!("{field}.operator"), value, why));
        } else if operator != "Exists" && key.is_empty() {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(Cause::invalid_text(&format!("{field}.operator"), operator, why));
        }
        const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        let effect = text(toleration, &["effect"]);
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            causes.push(Cause::unsupported(&format!("{field}.effect"), effect, &EFFECTS));
        } else if effect != "NoExecute" && !toleration["tolerationSeconds"].is_null() {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(Cause::invalid_text(&format!("{field}.effect"), effect, why));
        }
    }
}

/// Of a pod's spec only images, the deadline, added tolerations and a negative grace may change.
#[must_use]
pub(super) fn validate_update(old: &Value, new: &Value) -> Vec<Cause> {
    let (mut before, mut after) = (old["spec"].clone(), new["spec"].clone());
    for spec in [&mut before, &mut after] {
        remove(spec, "activeDeadlineSeconds");
        for kind in ["initContainers", "containers"] {
            for container in list_mut(spec, kind) {
                remove(container, "image");
            }
        }
    }
    let added = after["tolerations"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let kept = before["tolerations"].as_array_mut().map(std::mem::take).unwrap_or_default();
    if before == after && kept.iter().all(|toleration| added.contains(toleration)) {
        Vec::new()
    } else {
        vec![Cause::forbidden("spec", IMMUTABLE)]
    }
}
