//! Payloads about what the cluster shows: our own projections, never a foreign object.

use serde::{Deserialize, Serialize};

use crate::ids::{HostName, PackageDigest, RecordId, Uid, Word};

/// A pod's phase as the API server says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Not all containers have started.
    Pending,
    /// At least one container runs or is being restarted.
    Running,
    /// All containers ended with 0.
    Succeeded,
    /// All containers ended, one not with 0; or the node gave up on it.
    Failed,
    /// The node cannot be asked.
    Unknown,
}

/// What the scheduler says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheduling {
    /// Nothing yet.
    Waiting,
    /// No node takes it.
    Unschedulable,
    /// It has a node.
    Done,
}

/// Who disturbed the pod, from its condition `DisruptionTarget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Disruption {
    /// The eviction API.
    Evicted,
    /// The scheduler, for a more important pod.
    Preempted,
    /// The taint manager: its node is lost or was tainted.
    Tainted,
    /// The pod garbage collector: its node is gone.
    Collected,
    /// The kubelet: node pressure or shutdown.
    Kubelet,
    /// A reason that this build does not know.
    Other,
}

/// What a container does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerState {
    /// No status for it.
    Absent,
    /// It waits; the kubelet's reason, for example `ImagePullBackOff`.
    Waiting {
        /// The reason's word.
        reason: Word,
    },
    /// It runs since then, microseconds since 1970 by the kubelet's clock; 0 when that is not known.
    Running {
        /// The kubelet's `startedAt`.
        started_us: i64,
    },
    /// It ended.
    Ended(ContainerEnd),
}

/// How a container ended, by the kubelet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerEnd {
    /// Its exit code.
    pub exit_code: i32,
    /// The signal, 0 when none is said.
    pub signal: i32,
    /// The reason's word, for example `OOMKilled`.
    pub reason: Word,
    /// `startedAt`, microseconds since 1970; 0 when not known.
    pub started_us: i64,
    /// `finishedAt`, microseconds since 1970; 0 when not known.
    pub finished_us: i64,
}

/// One container by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// What it does.
    pub state: ContainerState,
    /// How often the kubelet restarted it.
    pub restarts: u32,
    /// The end before the last restart, when there was one.
    pub last_end: Option<ContainerEnd>,
}

/// A pod of ours as seen; recorded when something in it changed besides the resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSeen {
    /// Its name.
    pub host: HostName,
    /// Its identity.
    pub uid: Uid,
    /// The version of it that was seen.
    pub resource_version: u64,
    /// The release it says it runs; 0 when unreadable.
    pub release: u64,
    /// The package it says it runs; `None` when unreadable.
    pub sha256: Option<PackageDigest>,
    /// The step that made it, by its annotation.
    pub step: Option<RecordId>,
    /// Its phase.
    pub phase: Phase,
    /// The pod's own reason, for example `Evicted`.
    pub reason: Word,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its node, empty before it has one.
    pub node: Word,
    /// What the scheduler says.
    pub scheduling: Scheduling,
    /// Who disturbed it.
    pub disruption: Option<Disruption>,
    /// Its condition `Ready`.
    pub ready: bool,
    /// Its creation by the API server's clock, microseconds since 1970; 0 when not known.
    pub created_us: i64,
    /// The init container `install`.
    pub install: Container,
    /// The container `app`.
    pub app: Container,
}

/// How it became known that a pod is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GoneHow {
    /// The watch said that it was deleted.
    Deleted,
    /// A list did not name it: it went while nobody watched.
    Absent,
    /// A read or a delete by uid answered that it is not there.
    NotFound,
}

/// A pod's uid is gone and never comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGone {
    /// Its name.
    pub host: HostName,
    /// Its identity.
    pub uid: Uid,
    /// The version at which it was gone; 0 when not known.
    pub resource_version: u64,
    /// How that became known.
    pub how: GoneHow,
}

/// A Secret of ours, its metadata alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretSeen {
    /// Whose environment it holds.
    pub host: HostName,
    /// Its identity.
    pub uid: Uid,
    /// The version of it that was seen.
    pub resource_version: u64,
}

/// A host's Secret is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretGone {
    /// Whose environment it held.
    pub host: HostName,
    /// Its identity, when one is known.
    pub uid: Option<Uid>,
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeReady {
    /// Its condition `Ready` is true.
    Ready,
    /// It is false, or the node controller lost it.
    NotReady,
    /// The node object is not there.
    Gone,
    /// It was one of the above, and nodes cannot be watched any more: nobody knows.
    Unwatched,
}

/// A node's condition changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSeen {
    /// Which.
    pub node: Word,
    /// How it is.
    pub ready: NodeReady,
}
