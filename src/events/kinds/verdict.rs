//! Payloads that the plan concludes besides steps: verdicts, ends, alarms.

use serde::{Deserialize, Serialize};

use super::step::Refusal;
use crate::ids::{HostName, Uid, Word};

/// The part of a pod's life that a deadline belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// From creation to a node.
    Scheduling,
    /// From a node to the image being there.
    Pull,
    /// The install runs.
    Install,
    /// The app runs and has not registered.
    Register,
    /// The app serves, or served.
    Serving,
    /// It is being deleted.
    Terminating,
}

/// Why a pod cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NeverStarted {
    /// The image's name is invalid, or it may not be pulled.
    Image,
    /// The container's configuration does not resolve.
    Config,
    /// No node takes it.
    Unschedulable,
    /// The namespace's quota is used up.
    Quota,
    /// An admission webhook refuses or is down.
    Webhook,
    /// The runtime class is missing, or the runtime cannot start it.
    Runtime,
}

/// The cause of an end (DESIGN.md, "Words").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndCause {
    /// The app's own process ended.
    AppExit,
    /// It used more memory than it may.
    Oom,
    /// The install ended with a failure.
    InstallFailed,
    /// It was evicted.
    Evicted,
    /// It made room for a more important pod.
    Preempted,
    /// Its node is lost.
    NodeLost,
    /// Its node was shut down.
    NodeShutdown,
    /// Its node refused it.
    NodeRefused,
    /// We deleted it.
    DeletedByUs,
    /// Somebody else deleted it.
    DeletedByOther,
    /// It went while nobody watched.
    Vanished,
    /// It passed a stage's deadline.
    Stuck(Stage),
    /// It could not start.
    NeverStarted(NeverStarted),
}

/// A pod's end; durable before the pod is removed, and readable after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodEnded {
    /// Its name.
    pub host: HostName,
    /// Its identity.
    pub uid: Uid,
    /// The container that ended it, empty when none did.
    pub container: Word,
    /// That container's restart number.
    pub restart: u32,
    /// Why.
    pub cause: EndCause,
    /// The exit code, when a container ended.
    pub exit_code: Option<i32>,
    /// The signal, when one is said.
    pub signal: Option<i32>,
    /// The raw reason.
    pub reason: Word,
    /// The stage it was in.
    pub stage: Stage,
    /// Its node.
    pub node: Word,
    /// When, log time: the kubelet's where believable, else when we saw it.
    pub at_us: i64,
    /// Whether it counts as the host's own exit.
    pub counted: bool,
}

/// Why a host failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailedWhy {
    /// It ended before it went live.
    Exited,
    /// It ran and did not register in time.
    NeverRegistered,
    /// It went live and exits too often.
    KeepsExiting,
    /// Its install failed.
    InstallFailed,
    /// It passed a stage's deadline.
    Stuck(Stage),
    /// It cannot start.
    NeverStarted(NeverStarted),
    /// The API server refuses it for good, or its package or environment is not usable.
    Refused(Refusal),
}

/// What was concluded of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It serves: the gateway is to make it the live host.
    Live,
    /// It is not tried any more.
    Failed(FailedWhy),
}

/// A verdict was reached; it is owed to the gateway until a good answer shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictReached {
    /// Of which host.
    pub host: HostName,
    /// Of which pod, when there was one: where the last lines are to be found.
    pub uid: Option<Uid>,
    /// What.
    pub verdict: Verdict,
    /// The rule of the plan, by its stable name.
    pub rule: Word,
}

/// Something that a person should look at began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmRaised {
    /// Its stable name.
    pub name: Word,
    /// The host concerned, when it is one.
    pub host: Option<HostName>,
}

/// It ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmCleared {
    /// Its stable name.
    pub name: Word,
}
