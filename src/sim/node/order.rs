//! What tests make nodes do. Pure data.

use super::parts::{Command, Eviction};

/// How a node is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It is cut off from the API server; its processes go on.
    Unreachable,
    /// The machine is gone, with its processes.
    Dead,
}

/// One order.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// To the newest pod of a name.
    Pod(String, Command),
    /// A node is lost.
    Lose(String, Loss),
    /// The cluster notices; it may delete the node's pods.
    Mark(String, bool),
    /// A node is back.
    Back(String),
    /// A node shuts down in order: all its pods are ended so.
    Shutdown(String, Eviction),
}
