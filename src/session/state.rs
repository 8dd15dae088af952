//! What is known of one session: the fold's result and the plan's input. Plain data; changed by `fold` alone.

use std::collections::{BTreeMap, BTreeSet};

use super::held::Held;
use crate::events::kinds::pod::NodeReady;
use crate::events::kinds::session::{ClaimSeen, ServiceSeen, SessionDoing, SessionFault, SessionObject, SessionStage, SessionStep};
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::EndCause;
use crate::ids::{HostName, Seq, SessionId, Tenant, Uid, Word};
use crate::subject::hindrance::Hindrance;
use crate::subject::pod::{End, Pod, Tail};

/// One session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Session {
    /// Its id, once a record of it was folded.
    pub id: Option<SessionId>,
    /// Which life of the process the following holds for; 0 before the first.
    pub incarnation: u64,
    /// Whether steps are sent at all (`act`).
    pub acts: bool,
    /// Whether an operator froze it.
    pub frozen: bool,
    /// Complete lists of claims, Services and pods were taken in this incarnation.
    pub listed: Option<Seq>,
    /// Its fold or plan broke an invariant: visible, not acted on in this life of the process.
    pub quarantined: bool,
    /// Whose it is, for life.
    pub tenant: Option<Tenant>,
    /// When a caller first asked for it, log time; `None`: it was only found, and is nobody's to stop.
    pub asked_us: Option<i64>,
    /// When a caller last asked for it or said that it is in use, log time.
    pub active_us: Option<i64>,
    /// What is to run.
    pub wanted: Option<Wanted>,
    /// What is to be removed; it comes before what is wanted.
    pub removing: Option<Removing>,
    /// What became of the last demand that is no more.
    pub closed: Option<Closed>,
    /// Its claim.
    pub claim: Held<ClaimSeen>,
    /// Its Service.
    pub service: Held<ServiceSeen>,
    /// Its pod.
    pub pod: Option<Pod>,
    /// The name that a pod of it was made or seen under.
    pub pod_name: Option<HostName>,
    /// A create of a pod that was never answered: for a while from then on it may still appear.
    pub pod_doubt_since_us: Option<i64>,
    /// Uids of pods that are gone, the last few.
    pub pod_gone_uids: Vec<Uid>,
    /// Since when its pod is ready, log time: a flap does not undo it.
    pub ready_since_us: Option<i64>,
    /// Since when there is a claim and nothing runs or is to, log time.
    pub suspended_since_us: Option<i64>,
    /// The first step that was to make the present claim; `None` when it was there before.
    pub made: Option<Seq>,
    /// Steps without an outcome.
    pub flights: BTreeMap<Seq, Flight>,
    /// Why the last step of each sort could not be done.
    pub hindrances: BTreeMap<(SessionObject, SessionDoing), Hindrance>,
    /// Ends that the log does not hold yet.
    pub unrecorded: Vec<End>,
    /// How its last pod ended; kept when that is gone.
    pub last_end: Option<End>,
    /// Tails that were asked for.
    pub tails: BTreeMap<TailOf, Tail>,
    /// The node of its pod, as far as anybody said.
    pub nodes: BTreeMap<Word, NodeReady>,
    /// Alarms that are raised.
    pub alarms: BTreeSet<Word>,
    /// The record that last moved it on: a call, an outcome, or an object being gone.
    pub moved: Seq,
    /// What came so far of the encoded state that a reaction carries; empty but within it.
    pub carrying: Vec<u8>,
}

/// A demand: the session is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The call's record.
    pub seq: Seq,
    /// When, log time.
    pub since_us: i64,
    /// After how long an old pod that does not end may be forced away, microseconds.
    pub force_after_us: Option<u64>,
    /// The pod that was on its way out when it was asked: its end is not this demand's.
    pub after: Option<Uid>,
}

/// A removal under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removing {
    /// The call's record.
    pub seq: Seq,
    /// When, log time.
    pub since_us: i64,
    /// Whether the claim and the Service stay.
    pub keep_workspace: bool,
    /// After how long a pod that does not end may be forced away, microseconds.
    pub force_after_us: Option<u64>,
}

/// What became of a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// The demand, by its call's record.
    pub of: Seq,
    /// The record that closed it.
    pub seq: Seq,
    /// How.
    pub how: ClosedHow,
}

/// How a demand is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedHow {
    /// The pod ended.
    Ended(EndCause),
    /// It was given up.
    Failed(SessionFault, SessionStage),
    /// The session was deleted or suspended.
    Removed,
}

/// A step without an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    /// What is to be done.
    pub step: SessionStep,
    /// The incarnation that issued it.
    pub incarnation: u64,
    /// When, log time.
    pub issued_us: i64,
    /// It was asked back.
    pub revoking: bool,
    /// It was not sent, because the daemon may not act.
    pub withheld: bool,
}
