//! What the gateway was told, for tests and oracles. Pure data.

use serde_json::Value;

/// The most characters of a report's `why`.
pub const WHY_MAX: usize = 2_000;

/// One heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// When, microseconds.
    pub time_us: i64,
    /// Who.
    pub runner: String,
    /// How many reports it carried.
    pub reports: usize,
    /// The status of the answer.
    pub answered: u16,
}

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportSeen {
    /// When, microseconds.
    pub time_us: i64,
    /// `org/name`.
    pub app: String,
    /// The host.
    pub host: String,
    /// `live` or `failed`.
    pub state: String,
    /// Why it failed.
    pub why: String,
}

/// Lines of a host's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogsSeen {
    /// When, microseconds.
    pub time_us: i64,
    /// `org/name`.
    pub app: String,
    /// The host.
    pub host: String,
    /// The lines as they came.
    pub lines: Value,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Seen {
    /// Heartbeats that were taken in, in order.
    pub beats: Vec<Beat>,
    /// Reports, in order, repetitions too.
    pub reports: Vec<ReportSeen>,
    /// Logs, in order.
    pub logs: Vec<LogsSeen>,
    /// What broke the protocol.
    pub violations: Vec<String>,
}
