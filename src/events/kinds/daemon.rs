//! Payloads about the process, the log and the watch.

use serde::{Deserialize, Serialize};

use crate::ids::{LogId, Seq, Word};

/// Why a log id began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartReason {
    /// A folder without a log.
    NewFolder,
    /// The store ended before a record that had been acknowledged.
    LostTail,
    /// The store could not be opened and was set aside.
    SetAside,
    /// An operator took over from another log.
    TakeOver,
}

/// The log that a new one follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerLog {
    /// Its id.
    pub id: LogId,
    /// The last record that is still there.
    pub last: Seq,
    /// The last record that had been acknowledged, as far as the mark knows.
    pub acknowledged: Seq,
    /// Its tree's size.
    pub size: u64,
    /// Its tree's root.
    pub root: [u8; 32],
}

/// The log whose records come before a new one's in the same store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogBefore {
    /// Its id.
    pub id: LogId,
    /// Its last record.
    pub last: Seq,
    /// Its tree's size.
    pub size: u64,
    /// Its tree's root.
    pub root: [u8; 32],
}

/// A log began. Its leaf is the first of the tree: whoever holds a root of this log holds the log's id and all that is before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRestarted {
    /// The id of the log that begins.
    pub log: LogId,
    /// Why.
    pub reason: RestartReason,
    /// The log whose place it takes, when that is known; it may be of another store, or lost.
    pub former: Option<FormerLog>,
    /// What is before it in this store; `None` for the first.
    pub before: Option<LogBefore>,
}

/// A life of the process began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncarnationStarted {
    /// Counts the lives of this log, from 1.
    pub number: u64,
    /// The daemon's version.
    pub version: String,
    /// The world it serves.
    pub world: String,
    /// Whether it may act; `false` under `act = "none"`.
    pub acts: bool,
}

/// A life of the process ended in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncarnationStopped {
    /// What asked for it, for example `SIGTERM`.
    pub reason: Word,
}

/// What the plan reads of the settings; microseconds unless said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSettings {
    /// Own exits within the window that are still revived.
    pub crash_limit: u32,
    /// How long an own exit counts; at exactly this age it no longer does.
    pub crash_window_us: u64,
    /// From creation to scheduled.
    pub scheduling_us: u64,
    /// From scheduled to the image being there.
    pub pull_us: u64,
    /// How long the install may run.
    pub install_us: u64,
    /// From the app container's start to registered.
    pub register_us: u64,
    /// The grace of a stop, seconds.
    pub drain_s: u32,
    /// The first pause between no-fault revivals.
    pub no_fault_first_us: u64,
    /// The longest such pause.
    pub no_fault_max_us: u64,
    /// No-fault revivals within the crash window after which an alarm says so.
    pub no_fault_alarm: u32,
    /// How long a pod may stay terminating on a node that is not ready before it is forced.
    pub force_us: u64,
    /// Counted answers in a row without the app that withdraw it.
    pub withdraw_after: u32,
    /// The same when any of them missed most apps.
    pub withdraw_after_mass: u32,
    /// The pause before a step is tried again that quota or a webhook refused.
    pub waiting_us: u64,
    /// How long an unanswered write may still be carried out by the server.
    pub doubt_us: u64,
}

/// One setting as an operator reads it; no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its key in the file.
    pub key: String,
    /// Its value as written.
    pub value: String,
}

/// The settings that the following reactions are decided under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsInForce {
    /// What the plan reads.
    pub plan: PlanSettings,
}

/// Everything that was set, for the reader: paths and addresses are the operator's words, so that they only inform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsTold {
    /// Every setting; secrets left out.
    pub all: Vec<Setting>,
}

/// The wall clock was stepped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStepped {
    /// How far wall clock and log time now differ, microseconds; positive when the wall clock is ahead.
    pub ahead_us: i64,
}

/// Why nobody watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchLossReason {
    /// The server no longer has the resourceVersion (410).
    Expired,
    /// Neither event nor bookmark for the limit.
    Silent,
    /// The server could not be reached, or refused.
    Unreachable,
}

/// Nobody watched for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchLost {
    /// Which resource, for example `pods`.
    pub resource: Word,
    /// Why.
    pub reason: WatchLossReason,
    /// The last resourceVersion that was seen.
    pub resource_version: u64,
    /// Log time of the last sign of life.
    pub since_us: i64,
}

/// A complete list was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The list's own resourceVersion.
    pub resource_version: u64,
    /// Pods in the whole list, of all subjects.
    pub pods: u64,
}

/// The subject's fold broke an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The invariant's stable name.
    pub invariant: Word,
    /// The record at which it broke.
    pub at: Seq,
}
