//! The objects of an app as they are sent: the pod and the Secret (hosted-apps.md, "The pod"). Pure.
//!
//! `config check` has looked at the settings; what the API server would still refuse, it refuses, and nothing starts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::convert::{APP, INSTALL};
use super::install;
use super::labels::Scheme;
use crate::config::{Pod, Profile, Settings};
use crate::ids::{AppId, HostName, PackageDigest, RecordId, hex};

/// The user and group of everything that runs a tenant's code.
pub(super) const USER: u32 = 1000;

/// The one writable place of an app besides its install, in memory.
const SCRATCH: &str = "/scratch";

/// Where the app is installed.
const APP_DIR: &str = "/app";

/// The install's home: the package managers' caches.
const HOME_DIR: &str = "/home/app";

/// For which host an object is made, and by which step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Whose.
    pub app: AppId,
    /// Which host.
    pub host: HostName,
    /// Of which release.
    pub release: u64,
    /// The step that asked for it.
    pub step: RecordId,
    /// Attempts that were sent for the step so far; the next one has the number after.
    pub attempts: u32,
}

/// Makes the objects of one daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The names of our labels.
    pub scheme: Scheme,
    pod: Pod,
    environment_dir: String,
    variable_prefix: &'static str,
    sources_url: String,
    max_bytes: u64,
}

impl Template {
    /// The template of these settings; the profile `pinecall` has the seed's names.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let (environment_dir, variable_prefix) = match settings.profile {
            Profile::Wharf | Profile::Poimen => (settings.pod.environment_dir.clone(), "WHARF"),
            Profile::Pinecall => ("/run/pinecall".to_owned(), "PINECALL"),
        };
        Self {
            scheme: Scheme::new(settings),
            pod: settings.pod.clone(),
            environment_dir,
            variable_prefix,
            sources_url: settings.sources.url.trim_end_matches('/').to_owned(),
            max_bytes: settings.sources.max_bytes,
        }
    }

    /// The pod of a host.
    #[must_use]
    pub fn pod(&self, order: &Order, sha256: &PackageDigest) -> Value {
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": order.host.as_str(),
                "labels": self.labels(order),
                "annotations": self.scheme.annotations(&order.app, order.step, Some(sha256)),
            },
            "spec": self.spec(order, sha256),
        });
        let digest = self.digest(&pod);
        pod["metadata"]["annotations"][self.scheme.key("digest")] = Value::String(digest);
        pod
    }

    /// The Secret of a host's environment: one file, `env`.
    #[must_use]
    pub fn secret(&self, order: &Order, file: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": order.host.secret(),
                "labels": self.labels(order),
                "annotations": self.scheme.annotations(&order.app, order.step, None),
            },
            "data": {"env": BASE64_STANDARD.encode(file)},
        })
    }

    fn labels(&self, order: &Order) -> BTreeMap<String, String> {
        let mut labels: BTreeMap<String, String> =
            pairs(&self.pod.labels).into_iter().filter(|(key, _)| !self.scheme.is_our_key(key)).collect();
        labels.extend(self.scheme.labels(&order.app, order.release));
        labels
    }

    /// What shows that a pod was made by an equal manifest: SHA-256 of its canonical JSON without the step's annotation.
    #[must_use]
    pub fn digest(&self, pod: &Value) -> String {
        digest(&self.scheme, pod)
    }

    fn spec(&self, order: &Order, sha256: &PackageDigest) -> Value {
        let mut spec = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": self.pod.grace_s,
            "hostname": hostname(&order.host),
            "securityContext": {
                "runAsNonRoot": true,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": self.volumes(order),
            "initContainers": [self.install(sha256)],
            "containers": [self.app()],
        });
        let resolvers = &self.pod.resolvers;
        spec["dnsPolicy"] = json!(if resolvers.is_empty() { "Default" } else { "None" });
        if !resolvers.is_empty() {
            spec["dnsConfig"] = json!({"nameservers": resolvers});
        }
        let pod = &self.pod;
        place(
            &mut spec,
            &Placement {
                runtime_class: &pod.runtime_class,
                priority_class: &pod.priority_class,
                image_pull_secrets: &pod.image_pull_secrets,
                node_selector: &pod.node_selector,
                tolerations: &pod.tolerations,
            },
        );
        spec
    }

    fn volumes(&self, order: &Order) -> Value {
        json!([
            {"name": "app", "emptyDir": {"sizeLimit": self.pod.volume_size}},
            {"name": "home", "emptyDir": {"sizeLimit": self.pod.volume_size}},
            {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": self.pod.scratch_size}},
            {"name": "environment", "secret": {"secretName": order.host.secret(), "defaultMode": 0o444}},
        ])
    }

    fn install(&self, sha256: &PackageDigest) -> Value {
        let source = format!("{}_SOURCE", self.variable_prefix);
        let url = format!("{}/sources/{sha256}", self.sources_url);
        let digest = sha256.to_string();
        let most = self.max_bytes.to_string();
        let within = self.pod.install_s.to_string();
        // The rest is for unpacking and installing.
        let fetch_within = (self.pod.install_s / 2).to_string();
        json!({
            "name": INSTALL,
            "image": self.pod.image,
            "command": ["timeout", within, "sh", "-c", install::script(), INSTALL, url, digest, APP_DIR, most, fetch_within],
            "env": [variable("HOME", HOME_DIR), variable("TMPDIR", SCRATCH), variable(&source, &url)],
            "securityContext": locked(),
            "resources": self.resources(&self.pod.install_memory),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                {"name": "app", "mountPath": APP_DIR},
                {"name": "home", "mountPath": HOME_DIR},
                {"name": "scratch", "mountPath": SCRATCH},
            ],
        })
    }

    fn app(&self) -> Value {
        let mut command = vec!["sh".to_owned(), "-c".to_owned(), install::read_then_run(&self.environment_dir), "sh".to_owned()];
        command.extend(self.pod.command.iter().cloned());
        json!({
            "name": APP,
            "image": self.pod.image,
            "command": command,
            "workingDir": APP_DIR,
            "env": [variable("HOME", SCRATCH), variable("TMPDIR", SCRATCH), variable("NO_COLOR", "1")],
            "securityContext": locked(),
            "resources": self.resources(&self.pod.memory),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [
                {"name": "app", "mountPath": APP_DIR, "readOnly": true},
                {"name": "scratch", "mountPath": SCRATCH},
                {"name": "environment", "mountPath": self.environment_dir, "readOnly": true},
            ],
        })
    }

    /// Memory and CPU are asked for whole. Disk is limited and not asked for: no node has room for every pod's worst case.
    fn resources(&self, memory: &str) -> Value {
        json!({
            "requests": {"memory": memory, "cpu": self.pod.cpu, "ephemeral-storage": "0"},
            "limits": {"memory": memory, "cpu": self.pod.cpu, "ephemeral-storage": self.pod.ephemeral_storage},
        })
    }
}

/// How and where a pod runs.
pub(super) struct Placement<'a> {
    pub(super) runtime_class: &'a str,
    pub(super) priority_class: &'a str,
    pub(super) image_pull_secrets: &'a [String],
    pub(super) node_selector: &'a [String],
    pub(super) tolerations: &'a [String],
}

/// Says in a pod's spec how and where it runs; what is empty is not said.
pub(super) fn place(spec: &mut Value, placement: &Placement<'_>) {
    for (key, class) in [("runtimeClassName", placement.runtime_class), ("priorityClassName", placement.priority_class)] {
        if !class.is_empty() {
            spec[key] = json!(class);
        }
    }
    let secrets: Vec<Value> = placement.image_pull_secrets.iter().map(|name| json!({"name": name})).collect();
    let tolerations: Vec<Value> = placement.tolerations.iter().map(|text| toleration(text)).collect();
    for (key, list) in [("imagePullSecrets", secrets), ("tolerations", tolerations)] {
        if !list.is_empty() {
            spec[key] = json!(list);
        }
    }
    let selector = pairs(placement.node_selector);
    if !selector.is_empty() {
        spec["nodeSelector"] = json!(selector);
    }
}

/// What shows that an object was made by an equal manifest: SHA-256 of its canonical JSON without the step's annotation.
#[must_use]
pub fn digest(scheme: &Scheme, object: &Value) -> String {
    let mut object = object.clone();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(&scheme.key("step"));
        annotations.remove(&scheme.key("digest"));
    }
    hex(&Sha256::digest(canonical(&object).as_bytes()))
}

/// The name inside the pod: the host's, cut to what a host name may be, without a '-' at the cut.
#[must_use]
pub fn hostname(host: &HostName) -> &str {
    let name = host.as_str();
    name.get(..63).unwrap_or(name).trim_end_matches('-')
}

fn variable(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

/// What every container of a tenant's code runs under.
pub(super) fn locked() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "capabilities": {"drop": ["ALL"]},
    })
}

/// `key=value` words as a map.
#[must_use]
pub fn pairs(words: &[String]) -> BTreeMap<String, String> {
    words.iter().map(|word| word.split_once('=').unwrap_or((word, ""))).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// `key[=value][:effect]` as a toleration.
fn toleration(text: &str) -> Value {
    let (key, effect) = text.rsplit_once(':').unwrap_or((text, ""));
    let mut toleration = Map::new();
    let mut set = |name: &str, value: &str| toleration.insert(name.to_owned(), json!(value));
    match key.split_once('=') {
        Some((key, value)) => {
            set("key", key);
            set("operator", "Equal");
            set("value", value);
        }
        None => {
            set("key", key);
            set("operator", "Exists");
        }
    }
    if !effect.is_empty() {
        set("effect", effect);
    }
    Value::Object(toleration)
}

/// A JSON value with its keys in order and nothing between: equal values have equal text.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                let _ = write!(out, "{}{}:", if index == 0 { "{" } else { "," }, Value::String(key.clone()));
                write_canonical(value, out);
            }
            out.push_str(if map.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                out.push(if index == 0 { '[' } else { ',' });
                write_canonical(item, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(out, "{value}");
        }
    }
}
