//! Payloads about effects on the cluster: intended, carried out, refused.

use serde::{Deserialize, Serialize};

use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};

/// One intended effect, imperative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Create or replace the host's environment; the package is made ready first.
    PutSecret {
        /// Whose.
        host: HostName,
        /// Of which release.
        release: u64,
        /// The package that must be on disk; `None` when an adopted pod did not say.
        sha256: Option<PackageDigest>,
        /// Whether a present Secret will do when the environment cannot be fetched.
        present_will_do: bool,
    },
    /// Create the host's pod, once the network policy is confirmed.
    CreatePod {
        /// Which.
        host: HostName,
        /// Of which release.
        release: u64,
        /// Of which package; `None`: the gateway's source of that release, unproved.
        sha256: Option<PackageDigest>,
    },
    /// Delete exactly this pod.
    DeletePod {
        /// Its name.
        host: HostName,
        /// Its identity; a delete carries it as a precondition.
        uid: Uid,
        /// Seconds between TERM and KILL; 0 for one that has ended.
        grace_s: u32,
        /// Whether the object is removed though its node may still run it.
        forced: bool,
    },
    /// Delete the host's Secret.
    DeleteSecret {
        /// Whose.
        host: HostName,
        /// Its identity; a delete carries it as a precondition.
        uid: Uid,
    },
    /// Read whether a pod of that name is there, after a write that was never answered.
    ReadPod {
        /// Which.
        host: HostName,
    },
    /// Read the metadata of the host's Secret, after a write that was never answered.
    ReadSecret {
        /// Whose.
        host: HostName,
    },
}

impl Step {
    /// The host it is about.
    #[must_use]
    pub fn host(&self) -> &HostName {
        match self {
            Self::PutSecret { host, .. }
            | Self::CreatePod { host, .. }
            | Self::DeletePod { host, .. }
            | Self::DeleteSecret { host, .. }
            | Self::ReadPod { host }
            | Self::ReadSecret { host } => host,
        }
    }

    /// Its name as shown, for example `CreatePod`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::PutSecret { .. } => "PutSecret",
            Self::CreatePod { .. } => "CreatePod",
            Self::DeletePod { .. } => "DeletePod",
            Self::DeleteSecret { .. } => "DeleteSecret",
            Self::ReadPod { .. } => "ReadPod",
            Self::ReadSecret { .. } => "ReadSecret",
        }
    }
}

/// What a step is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// The host is started for the first time, or after a stop.
    Start,
    /// The host is run again under its name.
    Revive {
        /// Whether an own exit made it so.
        counted: bool,
    },
    /// The host is removed.
    Stop,
}

/// A step was decided; its id is the record's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepIssued {
    /// What is to be done.
    pub step: Step,
    /// What it is a part of.
    pub purpose: Purpose,
    /// The rule of the plan that asked for it, by its stable name.
    pub rule: Word,
}

/// Why something was refused for good, or until somebody changes something.
#[derive(Debug, Clone, PartialEq, Eq, Copy, Serialize, Deserialize)]
pub enum Refusal {
    /// The object is invalid (400, 413, 422).
    Invalid,
    /// We have no right to (401, 403 by RBAC).
    Forbidden,
    /// The quota is used up (403).
    Quota,
    /// Pod Security or another policy forbids it (403).
    Policy,
    /// A webhook is down or says no (500, 403).
    Webhook,
    /// The namespace is missing or going away (403, 404).
    Namespace,
    /// The runtime class is not there (403).
    RuntimeClass,
    /// An object of that name is there and is not ours.
    Foreign,
    /// A different object of ours has that name and served.
    Different,
    /// The package is missing, too large, or has another digest.
    Source,
    /// The environment is not usable: a name, a NUL, or its size.
    Environment,
    /// A NetworkPolicy of the needed name is not ours to use.
    NetworkPolicy,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq, Copy, Serialize, Deserialize)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was so already: an equal object was adopted, or one being deleted was found.
    AlreadySo,
    /// What it was about is gone.
    Gone,
    /// The object was another than the one decided on.
    Conflict,
    /// The name is still held by an object that is being deleted.
    NameHeld,
    /// Refused.
    Refused(Refusal),
    /// It was asked back in time.
    Revoked,
    /// Nobody knows: no answer came, and the request may still be carried out.
    Unknown,
    /// It was given up before it was sent: the daemon stops, or the queue was full.
    Unsent,
}

/// The object that an outcome showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectSeen {
    /// Its identity.
    pub uid: Uid,
    /// Its version.
    pub resource_version: u64,
}

/// What became of a step, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSettled {
    /// Which.
    pub step: Seq,
    /// What.
    pub outcome: Outcome,
    /// The object as the answer showed it.
    pub object: Option<ObjectSeen>,
    /// Attempts that were sent.
    pub attempts: u32,
    /// The last attempt's `Audit-ID`; zeros when none was sent.
    pub audit_id: [u8; 16],
    /// The last answer's HTTP status; 0 when there was none.
    pub status: u16,
    /// From the step being handed over to its outcome, microseconds.
    pub took_us: u64,
}

/// A step was asked back while still unsent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRevoked {
    /// Which.
    pub step: Seq,
    /// The rule of the plan, by its stable name.
    pub rule: Word,
}

/// A step was decided and not sent: `act = "none"`, or frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepWithheld {
    /// Which.
    pub step: Seq,
}

/// One attempt of a mutating API call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCalled {
    /// The step it belongs to.
    pub step: Seq,
    /// Counts from 1.
    pub attempt: u32,
    /// Its `Audit-ID`.
    pub audit_id: [u8; 16],
    /// `create`, `update`, `patch` or `delete`.
    pub verb: Word,
    /// For example `pods`.
    pub resource: Word,
    /// The object's name.
    pub name: Word,
    /// The uid precondition, when there was one.
    pub uid: Option<Uid>,
    /// The HTTP status; 0 when no answer came.
    pub status: u16,
    /// How the answer was taken, by its stable name, for example `retry_later`.
    pub answer: Word,
    /// From written to answered, microseconds.
    pub took_us: u64,
}

/// The server's words about a refused step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepExplained {
    /// Which.
    pub step: Seq,
    /// At most 4 KiB.
    pub text: String,
}
