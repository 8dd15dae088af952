//! The words of a pod's life: containers, stages, actions, commands. Pure data.

use std::time::Duration;

/// A container that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its exit code.
    pub exit_code: i32,
    /// `Completed`, `Error`, `OOMKilled`, `StartError`, ...
    pub reason: String,
    /// Its termination message.
    pub message: Option<String>,
    /// When it started, microseconds; the epoch for what never did.
    pub started_us: i64,
    /// When it ended, microseconds.
    pub finished_us: i64,
}

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Container {
    /// Not started, for a reason and perhaps a message.
    Waiting(String, Option<String>),
    /// Running since, microseconds.
    Running(i64),
    /// Ended.
    Ended(End),
}

/// Where the pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It has no node.
    Unscheduled,
    /// It has a node; its volumes are not there yet.
    Volumes,
    /// Sandbox and image are on their way, or never come.
    Pulling,
    /// Its init container of this number runs.
    Installing(usize),
    /// Its containers are about to start.
    Starting,
    /// Its containers run.
    Running,
    /// All have ended; the phase does not say so yet.
    Ending,
    /// The phase says so.
    Ended,
}

/// What the pod's node has to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Give it a node.
    Bind,
    /// See whether its Secrets are there.
    CheckVolumes,
    /// Publish its status.
    Publish,
    /// Remove the object: it was asked to go and has ended.
    Remove,
}

/// What is done to a pod from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Its object is marked for deletion, with this grace from now.
    Delete(Duration),
    /// Its processes end at once so.
    Kill(i32, Option<String>),
    /// The node evicts it, for this reason.
    Evict(Eviction),
    /// The app prints a line.
    Print(String),
    /// The machine under it stopped.
    Crash,
}

/// How a node ends a pod on its own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// The pod's reason: `Evicted`, `Terminated`, `Preempting`, ...
    pub reason: String,
    /// The pod's message.
    pub message: String,
    /// The reason of the `DisruptionTarget` condition; some evictions set none.
    pub disruption: Option<String>,
    /// The grace.
    pub grace: Duration,
}
