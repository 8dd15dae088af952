//! What goes over the wire to and from the gateway, as JSON has it. Knows no I/O and believes nothing: `judge` does.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The heartbeat's path under the gateway's base URL.
pub const HEARTBEAT: &str = "/v1/runner/heartbeat";

/// The longest `why` of a report, characters; its end is kept (hosted-apps.md, "The gateway's protocol").
pub const WHY_CHARS: usize = 2_000;

/// The most bytes of one host's `lines`; the end is kept.
pub const LINES_BYTES: usize = 256 << 10;

/// The largest heartbeat body, bytes; what does not fit goes with the next beat.
pub const BODY_BYTES: usize = 4 << 20;

/// What a report says of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportState {
    /// It serves.
    Live,
    /// It is not tried any more.
    Failed,
}

/// One verdict as the gateway is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The app's organisation.
    pub org: String,
    /// The app's name.
    pub name: String,
    /// The host.
    pub host: String,
    /// What became of it.
    pub state: ReportState,
    /// Why, in words; at most [`WHY_CHARS`].
    pub why: String,
}

/// The last lines of a host that the gateway asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLines {
    /// The app's organisation.
    pub org: String,
    /// The app's name.
    pub name: String,
    /// The host.
    pub host: String,
    /// The lines; at most [`LINES_BYTES`].
    pub lines: String,
}

/// A heartbeat's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// This runner's name.
    pub runner: String,
    /// Verdicts that are owed.
    pub reports: Vec<Report>,
    /// Lines that were asked for.
    pub logs: Vec<LogLines>,
}

/// A heartbeat's answer, before it is judged: each want is still JSON, so that a bad one spoils no other.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Answer {
    /// The world it speaks of.
    pub world: String,
    /// Its wants.
    pub apps: Vec<Value>,
}

/// The answer to a request for an app's environment.
#[derive(Clone, Deserialize)]
pub struct EnvironmentAnswer {
    /// Names and values, as the gateway has them.
    pub environment: BTreeMap<String, String>,
}
