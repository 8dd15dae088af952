//! All that is known of one app, as it is stored: in caches, and in the record that carries a subject over what is removed
//! before it. The fold's own types are others, and may change; these may not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::pod::{Disruption, NodeReady, PodSeen};
use super::step::{Purpose, Refusal, Step};
use super::tail::TailOf;
use super::verdict::{EndCause, Stage, Verdict};
use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};

/// The version of this layout: another one is another struct.
pub const STATE_VERSION: u16 = 1;

/// One app. Each field is the fold's of the same name (src/app/state.rs).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedApp {
    pub incarnation: u64,
    pub acts: bool,
    pub frozen: bool,
    pub listed: Option<Seq>,
    pub confirmed: bool,
    pub want: Option<CarriedWant>,
    pub missing: CarriedMissing,
    pub stop_asked: Option<Seq>,
    pub hosts: BTreeMap<HostName, CarriedHost>,
    pub nodes: BTreeMap<Word, NodeReady>,
    pub alarms: BTreeMap<Word, Option<HostName>>,
    pub quarantined: bool,
}

/// What the gateway wants of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedWant {
    pub seq: Seq,
    pub release: u64,
    pub sha256: PackageDigest,
    pub host: HostName,
    pub registered: bool,
    pub failed: bool,
    pub live_host: Option<HostName>,
    pub answered_us: i64,
}

/// Counted answers without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedMissing {
    pub in_row: u32,
    pub before_mass: u32,
    pub any_mass: bool,
    pub ended: (u32, u32),
    pub seq: Seq,
}

/// What is being done with a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedWork {
    Rest,
    Bringing(Purpose),
    Stopping,
}

/// What is known of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedSecret {
    Unknown,
    Absent,
    Present { uid: Uid, resource_version: u64 },
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedHost {
    pub release: u64,
    pub sha256: Option<PackageDigest>,
    pub pod: Option<CarriedPod>,
    pub gone: Option<CarriedEnd>,
    pub work: CarriedWork,
    pub moved: Seq,
    pub secret_put: bool,
    pub secret: CarriedSecret,
    pub flights: BTreeMap<Seq, CarriedFlight>,
    pub unrecorded: Vec<CarriedEnd>,
    pub exits: Vec<CarriedExit>,
    pub no_fault_us: Vec<i64>,
    pub verdict: Option<CarriedVerdict>,
    pub retried: bool,
    pub hindrance: Option<CarriedHindrance>,
    pub not_back: Option<Seq>,
    pub doubt_since_us: Option<i64>,
    pub secret_doubt_since_us: Option<i64>,
    pub gone_uids: Vec<Uid>,
    pub tails: BTreeMap<TailOf, CarriedTail>,
}

/// A host's pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedPod {
    pub uid: Uid,
    pub resource_version: u64,
    pub seq: Seq,
    pub view: Option<PodSeen>,
    pub seen_us: i64,
    pub stage: Stage,
    pub stage_since_us: i64,
    pub disruption: Option<Disruption>,
    pub deleting_since_us: Option<i64>,
    pub delete: Option<CarriedDelete>,
    pub end: Option<CarriedEnd>,
    pub restarts: u32,
    pub different: bool,
}

/// Our delete of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedDelete {
    pub step: Seq,
    pub revive: bool,
    pub forced: bool,
    pub unanswered: bool,
}

/// How a pod ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedEnd {
    pub seq: Seq,
    pub uid: Uid,
    pub container: Word,
    pub restart: u32,
    pub cause: EndCause,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub reason: Word,
    pub stage: Stage,
    pub node: Word,
    pub at_us: i64,
}

/// A counted exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedExit {
    pub at_us: i64,
    pub uid: Uid,
    pub container: Word,
    pub restart: u32,
}

/// A step without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedFlight {
    pub step: Step,
    pub purpose: Purpose,
    pub incarnation: u64,
    pub issued_us: i64,
    pub revoking: bool,
    pub withheld: bool,
}

/// A verdict that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedVerdict {
    pub seq: Seq,
    pub verdict: Verdict,
    pub uid: Option<Uid>,
    pub shown: bool,
}

/// Why the last step could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedHindrance {
    pub seq: Seq,
    pub what: CarriedHindered,
    pub times: u32,
    pub first_us: i64,
    pub since_us: i64,
}

/// What hinders a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedHindered {
    Refused(Refusal),
    NameHeld,
    Unanswered,
    Unsent,
}

/// A tail that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedTail {
    pub incarnation: u64,
    pub settled: bool,
    pub kept: Option<Seq>,
}
