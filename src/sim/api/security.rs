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
    let mut each = |what: &str, must: &str, bad: &dyn Fn(&Value) -> bool| {
        let names: Vec<&str> = containers.iter().filter(|one| bad(one)).map(|one| text(one, &["name"])).collect();
        if !names.is_empty() {
            found.push(format!("{what} ({} must {must})", named("container", &names)));
        }
    };
    let context = |one: &Value, key: &str| at(one, &["securityContext", key]).clone();
    each("privileged", "not set securityContext.privileged=true", &|one| context(one, "privileged") == json!(true));
    each("allowPrivilegeEscalation != false", "set securityContext.allowPrivilegeEscalation=false", &|one| {
        context(one, "allowPrivilegeEscalation") != json!(false)
    });
    each("unrestricted capabilities", "set securityContext.capabilities.drop=[\"ALL\"]", &|one| {
        let capabilities = context(one, "capabilities");
        let dropped = list(&capabilities, &["drop"]).contains(&json!("ALL"));
        let added = list(&capabilities, &["add"]).iter().any(|added| added != "NET_BIND_SERVICE");
        !dropped || added
    });
    if let Some(why) = volumes(spec) {
        found.push(why);
    }
    host(spec, &mut found);
    user(spec, &containers, &mut found);
    (!found.is_empty()).then(|| format!("violates PodSecurity \"restricted:latest\": {}", found.join(", ")))
}

fn named(word: &str, names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{word}{plural} {}", quoted.join(", "))
}

fn volumes(spec: &Value) -> Option<String> {
    let bad: Vec<&Value> = list(spec, &["volumes"])
        .iter()
        .filter(|volume| {
            volume.as_object().is_some_and(|fields| fields.keys().any(|key| key != "name" && !VOLUMES.contains(&key.as_str())))
        })
        .collect();
    let names: Vec<&str> = bad.iter().map(|volume| text(volume, &["name"])).collect();
    let kind = bad.first()?.as_object()?.keys().find(|key| *key != "name")?;
    Some(format!("restricted volume types ({} uses restricted volume type {kind:?})", named("volume", &names)))
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

fn user(spec: &Value, containers: &[&Value], found: &mut Vec<String>) {
    let pod = |key: &str| at(spec, &["securityContext", key]).clone();
    let own = |one: &Value, key: &str| at(one, &["securityContext", key]).clone();
    let effective = |one: &Value, key: &str| if own(one, key).is_null() { pod(key) } else { own(one, key) };
    let roots: Vec<&str> =
        containers.iter().filter(|one| effective(one, "runAsNonRoot") != json!(true)).map(|one| text(one, &["name"])).collect();
    if !roots.is_empty() {
        let names = named("container", &roots);
        found.push(format!("runAsNonRoot != true (pod or {names} must set securityContext.runAsNonRoot=true)"));
    }
    if pod("runAsUser") == json!(0) || containers.iter().any(|one| own(one, "runAsUser") == json!(0)) {
        found.push("runAsUser=0 (pod or containers must not set runAsUser=0)".to_owned());
    }
    let open: Vec<&str> = containers
        .iter()
        .filter(|one| {
            let profile = effective(one, "seccompProfile");
            !["RuntimeDefault", "Localhost"].contains(&text(&profile, &["type"]))
        })
        .map(|one| text(one, &["name"]))
        .collect();
    if !open.is_empty() {
        let names = named("container", &open);
        let must = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
        found.push(format!("seccompProfile (pod or {names} {must})"));
    }
}
