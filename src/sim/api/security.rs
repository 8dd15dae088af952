//! Pod Security: the profile `restricted`, for namespaces that enforce it. Pure; the words are the admission plugin's.

use serde_json::{Value, json};

use super::rules::{at, list, text};

/// Volume kinds that `restricted` allows.
const VOLUMES: [&str; 8] = ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"];

/// Why a pod violates `restricted`, as one text; `None` when it does not.
#[must_use]
pub(super) fn violation(spec: &Value) -> Option<String> {
    let containers: Vec<&Value> = list(spec, &["initContainers"]).iter().chain(list(spec, &["containers"])).collect();
    let mut found = Vec::new();
    host(spec, &mut found);
    ports(&containers, &mut found);
    let which = |bad: &dyn Fn(&Value) -> bool| -> Vec<&str> {
        containers.iter().filter(|one| bad(at(one, &["securityContext"]))).map(|one| text(one, &["name"])).collect()
    };
    let privileged = which(&|context| context["privileged"] == json!(true));
    add(&mut found, "privileged", &privileged, "must not set securityContext.privileged=true");
    let escalating = which(&|context| context["allowPrivilegeEscalation"] != json!(false));
    add(&mut found, "allowPrivilegeEscalation != false", &escalating, "must set securityContext.allowPrivilegeEscalation=false");
    capabilities(&containers, &which(&|context| !list(context, &["capabilities", "drop"]).contains(&json!("ALL"))), &mut found);
    volumes(spec, &mut found);
    user(spec, &containers, &mut found);
    (!found.is_empty()).then(|| format!("violates PodSecurity \"restricted:latest\": {}", found.join(", ")))
}

fn add(found: &mut Vec<String>, what: &str, names: &[&str], must: &str) {
    if !names.is_empty() {
        found.push(format!("{what} ({} {must})", named("container", names)));
    }
}

fn named(word: &str, names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{word}{plural} {}", quoted.join(", "))
}

fn capabilities(containers: &[&Value], keeping: &[&str], found: &mut Vec<String>) {
    let more = |one: &Value| -> Vec<String> {
        let added = list(one, &["securityContext", "capabilities", "add"]).iter().filter_map(Value::as_str);
        added.filter(|added| *added != "NET_BIND_SERVICE").map(|added| format!("{added:?}")).collect()
    };
    let adding: Vec<&str> = containers.iter().filter(|one| !more(one).is_empty()).map(|one| text(one, &["name"])).collect();
    let mut whys = Vec::new();
    if !keeping.is_empty() {
        whys.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named("container", keeping)));
    }
    if !adding.is_empty() {
        let added: Vec<String> = containers.iter().flat_map(|one| more(one)).collect();
        let names = named("container", &adding);
        whys.push(format!("{names} must not include {} in securityContext.capabilities.add", added.join(", ")));
    }
    if !whys.is_empty() {
        found.push(format!("unrestricted capabilities ({})", whys.join("; ")));
    }
}

fn volumes(spec: &Value, found: &mut Vec<String>) {
    let kind = |volume: &'_ Value| -> Option<String> {
        let mut kinds = volume.as_object()?.keys().filter(|key| *key != "name");
        kinds.find(|kind| !VOLUMES.contains(&kind.as_str())).cloned()
    };
    let bad: Vec<(&str, String)> =
        list(spec, &["volumes"]).iter().filter_map(|volume| Some((text(volume, &["name"]), kind(volume)?))).collect();
    let names: Vec<&str> = bad.iter().map(|(name, _)| *name).collect();
    if let Some((_, kind)) = bad.first() {
        let verb = if names.len() == 1 { "uses" } else { "use" };
        found.push(format!("restricted volume types ({} {verb} restricted volume type {kind:?})", named("volume", &names)));
    }
}

fn host(spec: &Value, found: &mut Vec<String>) {
    let spaces: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|field| spec[**field] == json!(true))
        .map(|field| format!("{field}=true"))
        .collect();
    if !spaces.is_empty() {
        found.push(format!("host namespaces ({})", spaces.join(", ")));
    }
}

fn ports(containers: &[&Value], found: &mut Vec<String>) {
    for one in containers {
        let ports = list(one, &["ports"]).iter().filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0);
        for port in ports {
            found.push(format!("hostPort (container {:?} uses hostPort {port})", text(one, &["name"])));
        }
    }
}

/// Users and seccomp: the pod's own word is to blame before its containers', and a wrong word before a missing one.
fn user(spec: &Value, containers: &[&Value], found: &mut Vec<String>) {
    let pod = at(spec, &["securityContext"]);
    let own = |one: &Value, path: &[&str]| at(at(one, &["securityContext"]), path).clone();
    let blame = |bad: &dyn Fn(&Value) -> bool, path: &[&str]| -> Option<String> {
        let names: Vec<&str> = containers.iter().filter(|one| bad(&own(one, path))).map(|one| text(one, &["name"])).collect();
        let names = (!names.is_empty()).then(|| named("container", &names));
        if bad(at(pod, path)) { Some("pod".to_owned()) } else { names }
    };
    let missing = |path: &[&str]| -> Option<String> {
        let names: Vec<&str> = containers.iter().filter(|one| own(one, path).is_null()).map(|one| text(one, &["name"])).collect();
        (at(pod, path).is_null() && !names.is_empty()).then(|| format!("pod or {}", named("container", &names)))
    };
    if let Some(who) = blame(&|value| *value == json!(false), &["runAsNonRoot"]) {
        found.push(format!("runAsNonRoot != true ({who} must not set securityContext.runAsNonRoot=false)"));
    } else if let Some(who) = missing(&["runAsNonRoot"]) {
        found.push(format!("runAsNonRoot != true ({who} must set securityContext.runAsNonRoot=true)"));
    }
    if let Some(who) = blame(&|value| *value == json!(0), &["runAsUser"]) {
        found.push(format!("runAsUser=0 ({who} must not set runAsUser=0)"));
    }
    let profile = ["seccompProfile", "type"];
    let open = |value: &Value| value.as_str().is_some_and(|kind| !["RuntimeDefault", "Localhost"].contains(&kind));
    if let Some(who) = blame(&open, &profile) {
        found.push(format!("seccompProfile ({who} must not set securityContext.seccompProfile.type to \"Unconfined\")"));
    } else if let Some(who) = missing(&profile) {
        let must = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
        found.push(format!("seccompProfile ({who} {must})"));
    }
}
