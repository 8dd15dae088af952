//! Payloads about sessions: what was asked, what the cluster shows of their claims and Services, their steps. Pods, their ends and
//! tails, and what becomes of a step have the same kinds as an app's: the subject says whose they are.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::pod::GoneHow;
use super::step::{ObjectSeen, Refusal};
use crate::ids::{HostName, RecordId, SessionId, Tenant, Uid, Word};

/// What a session's plan reads of the settings; microseconds unless said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPlanSettings {
    /// What precedes the id in the name of a pod and of a Service.
    pub pod_prefix: Word,
    /// The same of a claim.
    pub claim_prefix: Word,
    /// The name of a pod's container.
    pub container: Word,
    /// From creation to a node.
    pub scheduling_us: u64,
    /// From a node to the image being there.
    pub pull_us: u64,
    /// From the container's start to ready.
    pub starting_us: u64,
    /// From being asked for to ready, all stages together.
    pub provision_us: u64,
    /// The grace of a stop, seconds.
    pub grace_s: u32,
    /// How long an object may stay terminating before that is an alarm.
    pub stuck_us: u64,
    /// How long a pod that still runs may stay terminating before it is forced away; `None`: for ever.
    pub force_after_us: Option<u64>,
    /// How long a suspended session keeps its claim; `None`: for ever.
    pub retain_us: Option<u64>,
    /// The pause before a step is tried again that quota or a webhook refused.
    pub waiting_us: u64,
    /// How long an unanswered write may still be carried out by the server.
    pub doubt_us: u64,
}

/// The settings that the following reactions of sessions are decided under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSettingsInForce {
    /// What their plan reads.
    pub plan: SessionPlanSettings,
}

/// A caller asked for the session to run: a call that says nothing new is not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionAsked {
    /// Who asked: the name of a token or of an account.
    pub by: Word,
    /// Whose it is.
    pub tenant: Tenant,
    /// After how long an old pod that does not end may be forced away; `None`: as the settings say.
    pub force_after_us: Option<u64>,
}

/// A caller asked for the session to be deleted or suspended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeleteAsked {
    /// Who asked: the name of a token or of an account.
    pub by: Word,
    /// Whether the claim stays: the session is suspended.
    pub keep_workspace: bool,
    /// After how long a pod that does not end may be forced away; `None`: as the settings say.
    pub force_after_us: Option<u64>,
}

/// A caller says that the session is in use; recorded at most once a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTouched {
    /// Who said so: the name of a token or of an account.
    pub by: Word,
}

/// What a caller asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SessionCall {
    /// To run.
    Create,
    /// To be deleted.
    Delete,
    /// To be suspended.
    Suspend,
    /// That it is in use.
    Touch,
}

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CallRefusal {
    /// There is no such session.
    Unknown,
    /// It is another tenant's, and the caller may not see it.
    Hidden,
    /// It is another tenant's.
    OtherTenant,
    /// There are as many sessions as there may be.
    TooMany,
    /// The tenant has as many as it may have.
    TooManyOfTenant,
    /// Too many were asked for within a second.
    TooFast,
    /// Too many callers wait.
    TooManyWaiting,
}

/// Calls were refused: nothing follows from them. A record tells of all that came within some seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCallRefused {
    /// Of which session; `None`: of more of them than are told apart.
    pub session: Option<SessionId>,
    /// Who asked, of one session: the name of a token or of an account.
    pub by: Word,
    /// What was asked.
    pub call: SessionCall,
    /// Why not.
    pub why: CallRefusal,
    /// How often.
    pub times: u64,
}

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimPhase {
    /// It has no volume yet: many classes wait for the first pod.
    Pending,
    /// It has one.
    Bound,
    /// Its volume is gone.
    Lost,
}

/// A claim of ours as a list, the watch or a write showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimSeen {
    /// Its name.
    pub name: Word,
    /// Its identity.
    pub uid: Uid,
    /// The version of it that was seen.
    pub resource_version: u64,
    /// The step that made it, by its annotation.
    pub step: Option<RecordId>,
    /// Whose it is, by its label; `None` when unreadable.
    pub tenant: Option<Tenant>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// How far it is.
    pub phase: ClaimPhase,
}

/// A claim's uid is gone and never comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimGone {
    /// Its identity.
    pub uid: Uid,
    /// The version at which it was gone; 0 when not known.
    pub resource_version: u64,
    /// How that became known.
    pub how: GoneHow,
}

/// A Service of ours as a list, the watch or a write showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSeen {
    /// Its name.
    pub name: Word,
    /// Its identity.
    pub uid: Uid,
    /// The version of it that was seen.
    pub resource_version: u64,
    /// The step that made it, by its annotation.
    pub step: Option<RecordId>,
    /// Whose it is, by its label; `None` when unreadable.
    pub tenant: Option<Tenant>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its address in the cluster.
    pub address: Option<IpAddr>,
    /// Whether it selects and offers what one that is made now would.
    pub as_made: bool,
}

/// A Service's uid is gone and never comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceGone {
    /// Its identity.
    pub uid: Uid,
    /// The version at which it was gone; 0 when not known.
    pub resource_version: u64,
    /// How that became known.
    pub how: GoneHow,
}

/// One intended effect on a session's objects, imperative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionStep {
    /// Create the claim.
    CreateClaim {
        /// Its name.
        name: Word,
        /// Whose it is.
        tenant: Tenant,
    },
    /// Create the pod, once the network policy of sessions is confirmed.
    CreatePod {
        /// Its name.
        name: HostName,
        /// Whose it is.
        tenant: Tenant,
        /// The claim that it mounts.
        claim: Word,
    },
    /// Create the Service, or make one that is there be as one that is made.
    PutService {
        /// Its name.
        name: Word,
        /// Whose it is.
        tenant: Tenant,
        /// The one that is replaced, as it was seen.
        replaces: Option<ObjectSeen>,
    },
    /// Delete exactly this pod.
    DeletePod {
        /// Its name.
        name: HostName,
        /// Its identity; a delete carries it as a precondition.
        uid: Uid,
        /// Seconds between TERM and KILL; 0 for one that has ended.
        grace_s: u32,
        /// Whether the object is removed though its node may still run it.
        forced: bool,
    },
    /// Delete exactly this Service.
    DeleteService {
        /// Its name.
        name: Word,
        /// Its identity.
        uid: Uid,
    },
    /// Delete exactly this claim, and what was written to it.
    DeleteClaim {
        /// Its name.
        name: Word,
        /// Its identity.
        uid: Uid,
    },
    /// Read whether a pod of that name is there, after a write that was never answered.
    ReadPod {
        /// Its name.
        name: HostName,
    },
    /// The same of a Service.
    ReadService {
        /// Its name.
        name: Word,
    },
    /// The same of a claim.
    ReadClaim {
        /// Its name.
        name: Word,
    },
}

/// A session's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SessionObject {
    /// Its claim.
    Claim,
    /// Its pod.
    Pod,
    /// Its Service.
    Service,
}

/// What a step does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SessionDoing {
    /// It makes it.
    Make,
    /// It deletes it.
    Remove,
    /// It reads whether it is there.
    Read,
}

impl SessionStep {
    /// Which object it is about, and what it does to it.
    #[must_use]
    pub fn act(&self) -> (SessionObject, SessionDoing) {
        match self {
            Self::CreateClaim { .. } => (SessionObject::Claim, SessionDoing::Make),
            Self::CreatePod { .. } => (SessionObject::Pod, SessionDoing::Make),
            Self::PutService { .. } => (SessionObject::Service, SessionDoing::Make),
            Self::DeletePod { .. } => (SessionObject::Pod, SessionDoing::Remove),
            Self::DeleteService { .. } => (SessionObject::Service, SessionDoing::Remove),
            Self::DeleteClaim { .. } => (SessionObject::Claim, SessionDoing::Remove),
            Self::ReadPod { .. } => (SessionObject::Pod, SessionDoing::Read),
            Self::ReadService { .. } => (SessionObject::Service, SessionDoing::Read),
            Self::ReadClaim { .. } => (SessionObject::Claim, SessionDoing::Read),
        }
    }

    /// The name of the object it is about.
    #[must_use]
    pub fn object(&self) -> &str {
        match self {
            Self::CreatePod { name, .. } | Self::DeletePod { name, .. } | Self::ReadPod { name } => name.as_str(),
            Self::CreateClaim { name, .. }
            | Self::PutService { name, .. }
            | Self::DeleteService { name, .. }
            | Self::DeleteClaim { name, .. }
            | Self::ReadService { name }
            | Self::ReadClaim { name } => name.as_str(),
        }
    }

    /// Its name as shown, for example `CreateClaim`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateClaim { .. } => "CreateClaim",
            Self::CreatePod { .. } => "CreatePod",
            Self::PutService { .. } => "PutService",
            Self::DeletePod { .. } => "DeletePod",
            Self::DeleteService { .. } => "DeleteService",
            Self::DeleteClaim { .. } => "DeleteClaim",
            Self::ReadPod { .. } => "ReadPod",
            Self::ReadService { .. } => "ReadService",
            Self::ReadClaim { .. } => "ReadClaim",
        }
    }
}

/// A step was decided; its id is the record's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStepIssued {
    /// What is to be done.
    pub step: SessionStep,
    /// The rule of the plan that asked for it, by its stable name.
    pub rule: Word,
}

/// The part of a session's provisioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SessionStage {
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

/// Why a session was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionFault {
    /// The API server refuses an object for good, or its name is taken.
    Refused(Refusal),
    /// It took longer than all stages together may.
    TooLong,
}

/// What was asked for is given up; the next call begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFailed {
    /// Why.
    pub fault: SessionFault,
    /// In which stage.
    pub stage: SessionStage,
    /// The rule of the plan, by its stable name.
    pub rule: Word,
}

/// What was asked to be removed is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRemoved {
    /// Whether the claim stays.
    pub keep_workspace: bool,
}
