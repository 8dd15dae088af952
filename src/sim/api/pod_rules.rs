//! Pods: what the server fills in and refuses. Pure; admission (runtime class, Pod Security) is elsewhere.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::quantity;
use super::refusal::Cause;
use super::rules::{label_causes, list, subdomain_causes, text};

const IMMUTABLE: &str = "pod updates may not change fields other than \
                         `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
                         additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                         previously negative)";

/// Fills in a pod's spec and its first status.
pub(super) fn defaults(object: &mut Value) {
    let spec = &mut object["spec"];
    if !spec.is_object() {
        return;
    }
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
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
            && !tolerations.iter().any(|known| known["key"] == json!(key))
        {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    for containers in ["initContainers", "containers"] {
        for container in list_mut(spec, containers) {
            container_defaults(container);
        }
    }
    for volume in list_mut(spec, "volumes") {
        if let Some(secret) = volume.get_mut("secret").filter(|secret| secret.is_object()) {
            set(secret, "defaultMode", json!(0o644));
        }
    }
    if object["status"]["phase"].is_null() {
        let class = quantity::class_of(&object["spec"]);
        object["status"] = json!({"phase": "Pending", "qosClass": class});
    }
}

fn container_defaults(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    set(container, "resources", json!({}));
    let image = text(container, &["image"]);
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let always = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    set(container, "imagePullPolicy", json!(if always { "Always" } else { "IfNotPresent" }));
    if let Some(limits) = container["resources"]["limits"].as_object().cloned() {
        for (name, value) in limits {
            set(&mut container["resources"]["requests"], &name, value);
        }
    }
}

fn list_mut<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn set(object: &mut Value, key: &str, value: Value) {
    if object[key].is_null() {
        object[key] = value;
    }
}

fn remove(object: &mut Value, key: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(key);
    }
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
    for kind in ["initContainers", "containers"] {
        for (index, one) in list(spec, &[kind]).iter().enumerate() {
            container(&format!("spec.{kind}[{index}]"), one, &volumes, &mut names, &mut causes);
        }
    }
    let restart = text(spec, &["restartPolicy"]);
    if !["Always", "OnFailure", "Never"].contains(&restart) {
        causes.push(Cause::unsupported("spec.restartPolicy", restart, &["Always", "OnFailure", "Never"]));
    }
    dns(spec, &mut causes);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        let value = spec["terminationGracePeriodSeconds"].to_string();
        causes.push(Cause::invalid("spec.terminationGracePeriodSeconds", &value, "must be greater than or equal to 0"));
    }
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
    if policy == "None" && servers.is_empty() {
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
        let field = format!("spec.volumes[{index}].name");
        let name = text(volume, &["name"]);
        causes.extend(label_causes(&field, name));
        if !names.insert(name) {
            causes.push(Cause::duplicate(&field, name));
        }
        if let Some(secret) = volume.get("secret") {
            if text(secret, &["secretName"]).is_empty() {
                causes.push(Cause::required(&format!("spec.volumes[{index}].secret.secretName"), ""));
            }
            let mode = secret["defaultMode"].as_i64().unwrap_or(0);
            if !(0..=0o777).contains(&mode) {
                let field = format!("spec.volumes[{index}].secret.defaultMode");
                let why = "must be a number between 0 and 0777 (octal), both inclusive";
                causes.push(Cause::invalid(&field, &mode.to_string(), why));
            }
        }
        let size = &volume["emptyDir"]["sizeLimit"];
        if let Some(size) = size.as_str().filter(|size| quantity::parse(size).is_none()) {
            causes.push(Cause::invalid_text(&format!("spec.volumes[{index}].emptyDir.sizeLimit"), size, quantity::WORDS));
        }
    }
    names
}

fn container<'a>(field: &str, one: &'a Value, volumes: &BTreeSet<&str>, names: &mut BTreeSet<&'a str>, causes: &mut Vec<Cause>) {
    let name = text(one, &["name"]);
    causes.extend(label_causes(&format!("{field}.name"), name));
    if !name.is_empty() && !names.insert(name) {
        causes.push(Cause::duplicate(&format!("{field}.name"), name));
    }
    let image = text(one, &["image"]);
    if image.is_empty() {
        causes.push(Cause::required(&format!("{field}.image"), ""));
    } else if image.trim() != image {
        causes.push(Cause::invalid_text(&format!("{field}.image"), image, "must not have leading or trailing whitespace"));
    }
    for (index, variable) in list(one, &["env"]).iter().enumerate() {
        let name = text(variable, &["name"]);
        let field = format!("{field}.env[{index}].name");
        if name.is_empty() {
            causes.push(Cause::required(&field, ""));
        } else if name.contains('=') || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            causes.push(Cause::invalid_text(
                &field,
                name,
                "a valid environment variable name must consist only of printable ASCII characters other than '='",
            ));
        }
    }
    let mut paths = BTreeSet::new();
    for (index, mount) in list(one, &["volumeMounts"]).iter().enumerate() {
        let field = format!("{field}.volumeMounts[{index}]");
        let (name, path) = (text(mount, &["name"]), text(mount, &["mountPath"]));
        if !volumes.contains(name) {
            causes.push(Cause::not_found(&format!("{field}.name"), name));
        }
        if path.is_empty() {
            causes.push(Cause::required(&format!("{field}.mountPath"), ""));
        } else if !paths.insert(path) {
            causes.push(Cause::invalid_text(&format!("{field}.mountPath"), path, "must be unique"));
        }
    }
    causes.extend(quantity::validate(&format!("{field}.resources"), &one["resources"]));
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
