//! Containers of pods: what the server fills in and refuses. Pure.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::quantity;
use super::refusal::Cause;
use super::rules::{label_causes, list, list_mut, set, text};

/// The largest user and group id.
const ID_MAX: i64 = 2_147_483_647;

/// Fills in a container.
pub(super) fn defaults(container: &mut Value) {
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
    for port in list_mut(container, "ports") {
        set(port, "protocol", json!("TCP"));
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (field, value) in [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)] {
                set(probe, field, json!(value));
            }
        }
    }
    if let Some(limits) = container["resources"]["limits"].as_object().cloned() {
        for (name, value) in limits {
            set(&mut container["resources"]["requests"], &name, value);
        }
    }
}

/// What is wrong with a container; `volumes` are the pod's, `names` those of the containers before it.
pub(super) fn validate<'a>(field: &str, one: &'a Value, volumes: &BTreeSet<&str>, names: &mut BTreeSet<&'a str>, causes: &mut Vec<Cause>) {
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
    for (key, known) in [
        ("terminationMessagePolicy", &["File", "FallbackToLogsOnError"][..]),
        ("imagePullPolicy", &["Always", "IfNotPresent", "Never"][..]),
    ] {
        let value = text(one, &[key]);
        if !known.contains(&value) {
            causes.push(Cause::unsupported(&format!("{field}.{key}"), value, known));
        }
    }
    ports(field, one, causes);
    environment(field, one, causes);
    mounts(field, one, volumes, causes);
    causes.extend(quantity::validate(&format!("{field}.resources"), &one["resources"]));
    ids(&format!("{field}.securityContext"), &one["securityContext"], &["runAsUser", "runAsGroup"], causes);
}

/// User and group ids are not negative and not too large; the seccomp profile is known.
pub(super) fn ids(field: &str, context: &Value, keys: &[&str], causes: &mut Vec<Cause>) {
    for key in keys {
        if let Some(id) = context[*key].as_i64().filter(|id| !(0..=ID_MAX).contains(id)) {
            causes.push(Cause::invalid(&format!("{field}.{key}"), &id.to_string(), "must be between 0 and 2147483647, inclusive"));
        }
    }
    const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
    let profile = text(context, &["seccompProfile", "type"]);
    if context["seccompProfile"].is_object() && !PROFILES.contains(&profile) {
        causes.push(Cause::unsupported(&format!("{field}.seccompProfile.type"), profile, &PROFILES));
    }
}

fn ports(field: &str, one: &Value, causes: &mut Vec<Cause>) {
    for (index, port) in list(one, &["ports"]).iter().enumerate() {
        let field = format!("{field}.ports[{index}]");
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => causes.push(Cause::required(&format!("{field}.containerPort"), "")),
            1..=65_535 => {}
            number => {
                let why = "must be between 1 and 65535, inclusive";
                causes.push(Cause::invalid(&format!("{field}.containerPort"), &number.to_string(), why));
            }
        }
        let protocol = text(port, &["protocol"]);
        if !["SCTP", "TCP", "UDP"].contains(&protocol) {
            causes.push(Cause::unsupported(&format!("{field}.protocol"), protocol, &["SCTP", "TCP", "UDP"]));
        }
    }
}

fn environment(field: &str, one: &Value, causes: &mut Vec<Cause>) {
    const WORDS: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";
    for (index, variable) in list(one, &["env"]).iter().enumerate() {
        let name = text(variable, &["name"]);
        let field = format!("{field}.env[{index}].name");
        if name.is_empty() {
            causes.push(Cause::required(&field, ""));
        } else if name.contains('=') || !name.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            causes.push(Cause::invalid_text(&field, name, WORDS));
        }
    }
}

fn mounts(field: &str, one: &Value, volumes: &BTreeSet<&str>, causes: &mut Vec<Cause>) {
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
}
