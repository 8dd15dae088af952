//! What is known of one app: the fold's result and the plan's input. Plain data; changed by `fold` alone.
//!
//! Knowledge has three values: absent, known (at a resourceVersion), and unknown, when a write of ours may have been carried
//! out and nobody saw it. Unknown is resolved by reading, never by guessing.

use std::collections::BTreeMap;

use crate::events::kinds::pod::NodeReady;
use crate::events::kinds::step::{Purpose, Step};
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::Verdict;
use crate::ids::{HostName, PackageDigest, Seq, Uid, Word};
pub use crate::subject::hindrance::{Hindered, Hindrance};
pub use crate::subject::pod::{Delete, End, Pod, Tail};

/// One app.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct App {
    /// Which life of the process the following holds for; 0 before the first.
    pub incarnation: u64,
    /// Whether steps are sent at all (`act`).
    pub acts: bool,
    /// Whether an operator froze it.
    pub frozen: bool,
    /// A complete list was taken in this incarnation.
    pub listed: Option<Seq>,
    /// A good answer of the gateway was seen in this incarnation.
    pub confirmed: bool,
    /// What the gateway wants, as last believed.
    pub want: Option<Want>,
    /// Counted answers without the app, in a row.
    pub missing: Missing,
    /// An operator asked to stop what no want names.
    pub stop_asked: Option<Seq>,
    /// Its hosts, by name.
    pub hosts: BTreeMap<HostName, Host>,
    /// The nodes of its pods, as far as anybody said.
    pub nodes: BTreeMap<Word, NodeReady>,
    /// Alarms that are raised.
    pub alarms: BTreeMap<Word, Option<HostName>>,
    /// Its fold or plan broke an invariant: visible, not acted on in this life of the process.
    pub quarantined: bool,
    /// What came so far of the encoded state that a reaction carries; empty but within it.
    pub carrying: Vec<u8>,
}

/// What the gateway wants of the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// The record that says so.
    pub seq: Seq,
    /// The release.
    pub release: u64,
    /// Its package.
    pub sha256: PackageDigest,
    /// The host to run it as.
    pub host: HostName,
    /// A process of that host is connected to the gateway.
    pub registered: bool,
    /// That host was reported failed.
    pub failed: bool,
    /// The host that last went live; a null after a named one keeps the named one.
    pub live_host: Option<HostName>,
    /// When an answer last said so, log time, as far as it was recorded.
    pub answered_us: i64,
}

/// Counted answers in a row that did not name the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// How many.
    pub in_row: u32,
    /// How many of them came before one that missed most apps.
    pub before_mass: u32,
    /// Whether any of them missed most apps.
    pub any_mass: bool,
    /// The longest row that a refused want ended, and its `before_mass`: what was withdrawn by it stays so until a want is believed.
    pub ended: (u32, u32),
    /// The last one's record.
    pub seq: Seq,
}

/// What is being done with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Work {
    /// Nothing.
    #[default]
    Rest,
    /// It is being started or revived: ends when its pod is known.
    Bringing(Purpose),
    /// It is being removed: ends when its pod is gone.
    Stopping,
}

/// What is known of an object that has no view of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Secret {
    /// Nobody looked, or a write was never answered.
    #[default]
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    Present {
        /// Its identity.
        uid: Uid,
        /// The version seen.
        resource_version: u64,
    },
}

/// One host of the app.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// The release it runs; 0 when nothing said.
    pub release: u64,
    /// The package it runs, the log's word before the pod's.
    pub sha256: Option<PackageDigest>,
    /// Its pod.
    pub pod: Option<Pod>,
    /// Its pod went without our stop; until revived or dropped.
    pub gone: Option<End>,
    /// What is being done.
    pub work: Work,
    /// The record that last moved it on: an outcome, or its pod being gone.
    pub moved: Seq,
    /// Its environment was put for the start or revive under way.
    pub secret_put: bool,
    /// Its Secret.
    pub secret: Secret,
    /// Steps without an outcome.
    pub flights: BTreeMap<Seq, Flight>,
    /// Ends that the log does not hold yet.
    pub unrecorded: Vec<End>,
    /// Own exits that were counted, log time, oldest first.
    pub exits: Vec<Exit>,
    /// When it was revived without counting, log time.
    pub no_fault_us: Vec<i64>,
    /// What was concluded of it.
    pub verdict: Option<HeldVerdict>,
    /// An operator's retry covers the want's `failed` until it goes live or fails again.
    pub retried: bool,
    /// Why its last step could not be done, and how often in a row.
    pub hindrance: Option<Hindrance>,
    /// The end by which it last could not come back; until its app runs again.
    pub not_back: Option<Seq>,
    /// A create that was never answered: for a while from then on a pod may still appear.
    pub doubt_since_us: Option<i64>,
    /// The same of a Secret.
    pub secret_doubt_since_us: Option<i64>,
    /// Uids that are gone, the last few: a uid once gone never comes back.
    pub gone_uids: Vec<Uid>,
    /// Tails that were asked for.
    pub tails: BTreeMap<TailOf, Tail>,
}

/// A counted exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// When, log time.
    pub at_us: i64,
    /// Of which pod.
    pub uid: Uid,
    /// Of which container.
    pub container: Word,
    /// Of which restart.
    pub restart: u32,
}

/// A step without an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    /// What is to be done.
    pub step: Step,
    /// What it is a part of.
    pub purpose: Purpose,
    /// The incarnation that issued it.
    pub incarnation: u64,
    /// When, log time.
    pub issued_us: i64,
    /// It was asked back.
    pub revoking: bool,
    /// It was not sent, because the daemon may not act.
    pub withheld: bool,
}

/// A verdict that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldVerdict {
    /// The record that says so.
    pub seq: Seq,
    /// What.
    pub verdict: Verdict,
    /// The pod it was concluded of.
    pub uid: Option<Uid>,
    /// A good answer has shown it.
    pub shown: bool,
}
