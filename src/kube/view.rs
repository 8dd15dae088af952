//! The part of a pod, node or Secret that we read, and a decoding that no odd field can fail. Knows no HTTP.
//!
//! The quick way decodes straight into these structs (four times as fast as the whole object). When that fails, the object is
//! decoded as JSON, what has the wrong type is taken out and named, and the rest is decoded: one odd field of one object must
//! not stop a list or a stream (case B05).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What an object's metadata says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// Its name.
    pub name: Option<String>,
    /// Its identity.
    pub uid: Option<String>,
    /// Its version, or the list's.
    pub resource_version: Option<String>,
    /// When it was made, RFC 3339.
    pub creation_timestamp: Option<String>,
    /// Set while it is being deleted.
    pub deletion_timestamp: Option<String>,
    /// Its labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Its annotations.
    pub annotations: Option<BTreeMap<String, String>>,
    /// Who owns it; only whether anybody does is read.
    pub owner_references: Option<Vec<Owner>>,
}

/// One owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// Its identity.
    pub uid: Option<String>,
}

impl Meta {
    /// A label's value.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation's value.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The version as a number; `None` when it is none.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.resource_version.as_ref()?.parse().ok()
    }

    /// Whether it is being deleted.
    #[must_use]
    pub fn deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// An object of which only the metadata is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MetaView {
    /// Its metadata.
    pub metadata: Meta,
}

/// What we read of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodView {
    /// Its metadata.
    pub metadata: Meta,
    /// What it is to be.
    pub spec: Option<PodSpec>,
    /// What it is.
    pub status: Option<PodStatus>,
}

/// What a pod is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Its node.
    pub node_name: Option<String>,
    /// Its init containers: the package's digest is in the install's.
    pub init_containers: Option<Vec<InitContainer>>,
}

/// An init container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct InitContainer {
    /// Its name.
    pub name: Option<String>,
    /// Its command.
    pub command: Option<Vec<String>>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Its environment.
    pub env: Option<Vec<Variable>>,
}

/// A variable of a container's environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Variable {
    /// Its value.
    pub value: Option<String>,
}

/// What a pod is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Its phase.
    pub phase: Option<String>,
    /// Why it is in that phase.
    pub reason: Option<String>,
    /// The same in words.
    pub message: Option<String>,
    /// Its conditions.
    pub conditions: Option<Vec<Condition>>,
    /// Its init containers.
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
    /// Its containers.
    pub container_statuses: Option<Vec<ContainerStatus>>,
}

/// A condition of a pod or node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// Which.
    pub r#type: Option<String>,
    /// `True`, `False` or `Unknown`.
    pub status: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The same in words.
    pub message: Option<String>,
}

/// A container's status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Its name.
    pub name: Option<String>,
    /// How often it was restarted.
    pub restart_count: Option<i64>,
    /// What it does.
    pub state: Option<State>,
    /// What it did before the last restart.
    pub last_state: Option<State>,
}

/// What a container does: at most one is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct State {
    /// It waits.
    pub waiting: Option<Waiting>,
    /// It runs.
    pub running: Option<Running>,
    /// It ended.
    pub terminated: Option<Terminated>,
}

/// A container waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// Why.
    pub reason: Option<String>,
    /// The same in words.
    pub message: Option<String>,
}

/// A container runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Running {
    /// Since when, RFC 3339.
    pub started_at: Option<String>,
}

/// A container ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    /// Its exit code.
    pub exit_code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<i64>,
    /// Why.
    pub reason: Option<String>,
    /// Its termination message.
    pub message: Option<String>,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    pub finished_at: Option<String>,
}

/// What we read of a node: its conditions alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeView {
    /// Its metadata.
    pub metadata: Meta,
    /// What it is.
    pub status: Option<NodeStatus>,
}

/// What a node is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Its conditions.
    pub conditions: Option<Vec<Condition>>,
}

/// What type a field has to have to be read.
#[derive(Debug)]
pub enum Shape {
    /// A string.
    Text,
    /// An integer of 64 bits.
    Number,
    /// A map from strings to strings.
    Texts,
    /// A list.
    List(&'static Shape),
    /// An object; fields that are not named here are not read.
    Object(&'static [(&'static str, &'static Shape)]),
}

use Shape::{List, Number, Object, Text, Texts};

pub(super) const META: Shape = Object(&[
    ("name", &Text),
    ("uid", &Text),
    ("resourceVersion", &Text),
    ("creationTimestamp", &Text),
    ("deletionTimestamp", &Text),
    ("labels", &Texts),
    ("annotations", &Texts),
    ("ownerReferences", &List(&Object(&[("uid", &Text)]))),
]);
const CONDITIONS: Shape = List(&Object(&[("type", &Text), ("status", &Text), ("reason", &Text), ("message", &Text)]));
const STATE: Shape = Object(&[
    ("waiting", &Object(&[("reason", &Text), ("message", &Text)])),
    ("running", &Object(&[("startedAt", &Text)])),
    (
        "terminated",
        &Object(&[
            ("exitCode", &Number),
            ("signal", &Number),
            ("reason", &Text),
            ("message", &Text),
            ("startedAt", &Text),
            ("finishedAt", &Text),
        ]),
    ),
]);
const CONTAINERS: Shape = List(&Object(&[("name", &Text), ("restartCount", &Number), ("state", &STATE), ("lastState", &STATE)]));
const INIT_CONTAINERS: Shape =
    List(&Object(&[("name", &Text), ("command", &List(&Text)), ("args", &List(&Text)), ("env", &List(&Object(&[("value", &Text)])))]));

/// Something that has a view: the struct, its shape, and its metadata.
pub trait Viewed: DeserializeOwned + Default + Send {
    /// The shape that decodes into it.
    const SHAPE: Shape;

    /// The object's metadata.
    fn meta(&self) -> &Meta;
}

impl Viewed for PodView {
    const SHAPE: Shape = Object(&[
        ("metadata", &META),
        ("spec", &Object(&[("nodeName", &Text), ("initContainers", &INIT_CONTAINERS)])),
        (
            "status",
            &Object(&[
                ("phase", &Text),
                ("reason", &Text),
                ("message", &Text),
                ("conditions", &CONDITIONS),
                ("initContainerStatuses", &CONTAINERS),
                ("containerStatuses", &CONTAINERS),
            ]),
        ),
    ]);

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Viewed for NodeView {
    const SHAPE: Shape = Object(&[("metadata", &META), ("status", &Object(&[("conditions", &CONDITIONS)]))]);

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Viewed for MetaView {
    const SHAPE: Shape = Object(&[("metadata", &META)]);

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The most oddities of one object that are named.
const ODDITIES: usize = 8;

/// The view of an object whose fields may have any type, and the paths of those that were left out.
#[must_use]
pub fn tolerant<V: Viewed>(object: &Value) -> (V, Vec<String>) {
    let mut odd = Vec::new();
    let pruned = prune(object, &V::SHAPE, "", &mut odd);
    match pruned.map_or_else(|| Ok(V::default()), V::deserialize) {
        Ok(view) => (view, odd),
        Err(error) => {
            odd.push(format!("not decoded: {error}"));
            (V::default(), odd)
        }
    }
}

/// The view of an object's JSON; `None` when it is no JSON.
#[must_use]
pub fn read<V: Viewed>(json: &[u8]) -> Option<(V, Vec<String>)> {
    match serde_json::from_slice::<V>(json) {
        Ok(view) => Some((view, Vec::new())),
        Err(_) => serde_json::from_slice::<Value>(json).ok().map(|object| tolerant(&object)),
    }
}

fn prune(value: &Value, shape: &Shape, path: &str, odd: &mut Vec<String>) -> Option<Value> {
    let kept = match (shape, value) {
        (_, Value::Null) => return None,
        (Text, Value::String(_)) => Some(value.clone()),
        (Number, Value::Number(number)) if number.as_i64().is_some() => Some(value.clone()),
        (Texts, Value::Object(map)) => {
            let texts = map.iter().filter_map(|(key, value)| Some((key.clone(), prune(value, &Text, path, odd)?)));
            Some(Value::Object(texts.collect()))
        }
        (List(inner), Value::Array(items)) => {
            Some(Value::Array(items.iter().filter_map(|item| prune(item, inner, &format!("{path}[]"), odd)).collect()))
        }
        (Object(fields), Value::Object(map)) => {
            let read = fields.iter().filter_map(|(name, inner)| {
                let at = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
                Some(((*name).to_owned(), prune(map.get(*name)?, inner, &at, odd)?))
            });
            Some(Value::Object(read.collect()))
        }
        _ => None,
    };
    if kept.is_none() && odd.len() < ODDITIES {
        odd.push(if path.is_empty() { "the object itself".to_owned() } else { path.to_owned() });
    }
    kept
}
