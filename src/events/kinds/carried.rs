//! All that is known of one app, as it is stored: in caches, and in the record that carries a subject over what is removed
//! before it. The fold's own types are others, and may change; these may not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::daemon::{IncarnationStarted, LogRestarted, PlanSettings};
use super::pod::{Disruption, NodeReady, PodSeen};
use super::session::SessionPlanSettings;
use super::step::{Purpose, Refusal, Step};
use super::tail::TailOf;
use super::verdict::{EndCause, Stage, Verdict};
use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};

/// The version of this layout: another one is another struct.
pub const STATE_VERSION: u16 = 1;

/// The version of the layout of [`CarriedDaemon`]; of 1 it is [`CarriedDaemonV1`].
pub const DAEMON_VERSION: u16 = 2;

/// The bytes of a part, but for the last: with what is around it, it fits the largest payload.
pub const PART_BYTES: usize = 16_000;

/// A subject's whole state as its records before this one came to, or a part of it. It equals their fold: that it is written changes
/// nothing, and who no longer has them begins here. All parts are in one reaction, before everything else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectCarried {
    /// The version of the state's layout: an app's is [`STATE_VERSION`], a session's
    /// [`SESSION_STATE_VERSION`](super::session_carried::SESSION_STATE_VERSION), the daemon's [`DAEMON_VERSION`].
    pub layout: u16,
    /// Which part, from 0.
    pub part: u32,
    /// How many there are.
    pub parts: u32,
    /// The part: [`PART_BYTES`] of the encoded state, the last one what is left.
    pub bytes: Vec<u8>,
}

impl SubjectCarried {
    /// An encoded state in parts.
    #[must_use]
    pub fn of(layout: u16, state: &[u8]) -> Vec<Self> {
        let parts = u32::try_from(state.len().div_ceil(PART_BYTES)).unwrap_or(u32::MAX);
        (0..).zip(state.chunks(PART_BYTES)).map(|(part, bytes)| Self { layout, part, parts, bytes: bytes.to_vec() }).collect()
    }

    /// Adds the part to those before it; gives the encoded state when it was the last. Parts that do not follow each other give
    /// nothing.
    pub fn join(&self, so_far: &mut Vec<u8>) -> Option<Vec<u8>> {
        if self.part == 0 {
            so_far.clear();
        }
        let place = usize::try_from(self.part).ok().and_then(|part| part.checked_mul(PART_BYTES));
        if place != Some(so_far.len()) {
            so_far.clear();
            return None;
        }
        so_far.extend_from_slice(&self.bytes);
        (self.part.checked_add(1) == Some(self.parts)).then(|| std::mem::take(so_far))
    }
}

/// What the daemon's own records say that later ones rely on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedDaemon {
    /// How the log that is being written began.
    pub began: Option<LogRestarted>,
    /// The life of the process that goes on.
    pub started: IncarnationStarted,
    /// The settings that reactions which are left may have been decided under, each with its record.
    pub settings: Vec<(Seq, PlanSettings)>,
    /// The same of sessions.
    pub session_settings: Vec<(Seq, SessionPlanSettings)>,
}

/// The same before there were sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedDaemonV1 {
    pub began: Option<LogRestarted>,
    pub started: IncarnationStarted,
    pub settings: Vec<(Seq, PlanSettings)>,
}

impl From<CarriedDaemonV1> for CarriedDaemon {
    fn from(former: CarriedDaemonV1) -> Self {
        let CarriedDaemonV1 { began, started, settings } = former;
        Self { began, started, settings, session_settings: Vec::new() }
    }
}

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
