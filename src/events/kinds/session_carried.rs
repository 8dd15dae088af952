//! All that is known of one session, as it is stored: in caches, and in the record that carries a subject over what is removed
//! before it. The fold's own types are others, and may change; these may not.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::carried::{CarriedDelete, CarriedEnd, CarriedHindrance, CarriedPod, CarriedTail};
use super::pod::NodeReady;
use super::session::{ClaimSeen, ServiceSeen, SessionDoing, SessionFault, SessionObject, SessionStage, SessionStep};
use super::tail::TailOf;
use super::verdict::EndCause;
use crate::ids::{HostName, Seq, SessionId, Tenant, Uid, Word};

/// The version of this layout: another one is another struct.
pub const SESSION_STATE_VERSION: u16 = 1;

/// One session. Each field is the fold's of the same name (src/session/state.rs).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedSession {
    pub id: Option<SessionId>,
    pub incarnation: u64,
    pub acts: bool,
    pub frozen: bool,
    pub listed: Option<Seq>,
    pub quarantined: bool,
    pub tenant: Option<Tenant>,
    pub asked_us: Option<i64>,
    pub active_us: Option<i64>,
    pub wanted: Option<CarriedWanted>,
    pub removing: Option<CarriedRemoving>,
    pub closed: Option<CarriedClosed>,
    pub claim: CarriedHeld<ClaimSeen>,
    pub service: CarriedHeld<ServiceSeen>,
    pub pod: Option<CarriedPod>,
    pub pod_name: Option<HostName>,
    pub pod_doubt_since_us: Option<i64>,
    pub pod_gone_uids: Vec<Uid>,
    pub ready_since_us: Option<i64>,
    pub suspended_since_us: Option<i64>,
    pub made: Option<Seq>,
    pub flights: BTreeMap<Seq, CarriedSessionFlight>,
    pub hindrances: BTreeMap<(SessionObject, SessionDoing), CarriedHindrance>,
    pub unrecorded: Vec<CarriedEnd>,
    pub last_end: Option<CarriedEnd>,
    pub tails: BTreeMap<TailOf, CarriedTail>,
    pub nodes: BTreeMap<Word, NodeReady>,
    pub alarms: BTreeSet<Word>,
    pub moved: Seq,
}

/// What is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedWanted {
    pub seq: Seq,
    pub since_us: i64,
    pub force_after_us: Option<u64>,
    pub after: Option<Uid>,
}

/// What is to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedRemoving {
    pub seq: Seq,
    pub since_us: i64,
    pub keep_workspace: bool,
    pub force_after_us: Option<u64>,
}

/// What became of the last demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedClosed {
    pub of: Seq,
    pub seq: Seq,
    pub how: CarriedClosedHow,
}

/// How a demand is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedClosedHow {
    Ended(EndCause),
    Failed(SessionFault, SessionStage),
    Removed,
}

/// What is known of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedHeld<V> {
    pub name: Option<Word>,
    pub known: CarriedKnown<V>,
    pub doubt_since_us: Option<i64>,
    pub gone_uids: Vec<Uid>,
}

/// Whether an object is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedKnown<V> {
    Unknown,
    Absent,
    Present(CarriedThing<V>),
}

/// An object that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedThing<V> {
    pub uid: Uid,
    pub resource_version: u64,
    pub seq: Seq,
    pub view: Option<V>,
    pub deleting_since_us: Option<i64>,
    pub delete: Option<CarriedDelete>,
}

/// A step without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedSessionFlight {
    pub step: SessionStep,
    pub incarnation: u64,
    pub issued_us: i64,
    pub revoking: bool,
    pub withheld: bool,
}
