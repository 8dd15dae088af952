//! The words in which answers name states, stages, reasons and refusals: stable, for programs. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::events::kinds::session::{SessionObject, SessionStage};
use crate::events::kinds::step::Refusal;
use crate::events::kinds::verdict::EndCause;
use crate::session::view::{State, WaitsFor};
use crate::telemetry::{cause_name, stage_name};

/// The state of a session, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Nothing of it is there or wanted.
    Absent,
    /// It is being brought.
    Provisioning,
    /// Its pod is ready.
    Ready,
    /// Its pod has ended and is still there.
    Exited,
    /// Its pod is gone and its claim kept.
    Suspended,
    /// It is being deleted or suspended.
    Deleting,
    /// It cannot be brought.
    Failed,
}

/// The part of a session's provisioning, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageName {
    /// The network policy is not confirmed.
    Policy,
    /// The claim is to be made, or an old one to go.
    Claim,
    /// The pod and its Service are to be made, or an old pod to go.
    Pod,
    /// The pod waits for a node.
    Scheduling,
    /// It waits for its volume and its image.
    Pull,
    /// Its container runs and is not ready.
    Starting,
}

/// One of a session's objects, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectName {
    /// Its claim.
    Claim,
    /// Its pod.
    Pod,
    /// Its Service.
    Service,
}

impl From<&State> for StateName {
    fn from(state: &State) -> Self {
        match state {
            State::Absent => Self::Absent,
            State::Provisioning { .. } => Self::Provisioning,
            State::Ready => Self::Ready,
            State::Exited => Self::Exited,
            State::Suspended => Self::Suspended,
            State::Deleting => Self::Deleting,
            State::Failed(_) => Self::Failed,
        }
    }
}

impl From<SessionStage> for StageName {
    fn from(stage: SessionStage) -> Self {
        match stage {
            SessionStage::Policy => Self::Policy,
            SessionStage::Claim => Self::Claim,
            SessionStage::Pod => Self::Pod,
            SessionStage::Scheduling => Self::Scheduling,
            SessionStage::Pull => Self::Pull,
            SessionStage::Starting => Self::Starting,
        }
    }
}

impl StageName {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Claim => "claim",
            Self::Pod => "pod",
            Self::Scheduling => "scheduling",
            Self::Pull => "pull",
            Self::Starting => "starting",
        }
    }
}

impl From<SessionObject> for ObjectName {
    fn from(object: SessionObject) -> Self {
        match object {
            SessionObject::Claim => Self::Claim,
            SessionObject::Pod => Self::Pod,
            SessionObject::Service => Self::Service,
        }
    }
}

/// What provisioning waits for, in one word; of a container's the kubelet's own.
#[must_use]
pub fn waits_for(what: &WaitsFor) -> String {
    match what {
        WaitsFor::OldPod => "old_pod".to_owned(),
        WaitsFor::OldClaim => "old_claim".to_owned(),
        WaitsFor::Node => "no_node".to_owned(),
        WaitsFor::Kubelet(reason) => reason.to_string(),
        WaitsFor::Api => "api_unanswered".to_owned(),
    }
}

/// How a pod ended, in one word; of what hung or never started, in which stage or why.
#[must_use]
pub fn cause(cause: EndCause) -> String {
    match cause {
        EndCause::Stuck(stage) => format!("stuck({})", stage_name(stage)),
        EndCause::NeverStarted(why) => format!("never_started({})", format!("{why:?}").to_lowercase()),
        EndCause::AppExit
        | EndCause::Oom
        | EndCause::InstallFailed
        | EndCause::Evicted
        | EndCause::Preempted
        | EndCause::NodeLost
        | EndCause::NodeShutdown
        | EndCause::NodeRefused
        | EndCause::DeletedByUs
        | EndCause::DeletedByOther
        | EndCause::Vanished => cause_name(cause).to_owned(),
    }
}

/// The code of what the cluster refuses, and what that means to a caller.
#[must_use]
pub fn refusal(refusal: Refusal) -> (&'static str, &'static str) {
    match refusal {
        Refusal::Invalid | Refusal::Source | Refusal::Environment => ("refused_invalid", "the cluster takes an object of it for invalid"),
        Refusal::Forbidden => ("refused_forbidden", "the daemon lacks a right in the cluster"),
        Refusal::Quota => ("refused_quota", "the namespace's quota is used up"),
        Refusal::Policy => ("refused_policy", "a policy of the cluster forbids its pod"),
        Refusal::Webhook => ("refused_webhook", "an admission webhook refuses it or is down"),
        Refusal::Namespace => ("refused_namespace", "the namespace is missing or going away"),
        Refusal::RuntimeClass => ("refused_runtime_class", "the runtime class is not there"),
        Refusal::Foreign => ("refused_foreign", "an object with one of its names is there and is not ours"),
        Refusal::Different => ("refused_different", "a different object of ours has one of its names"),
        Refusal::NetworkPolicy => {
            ("refused_network_policy", "the network policy of sessions is not confirmed: one of its name is not ours")
        }
    }
}
