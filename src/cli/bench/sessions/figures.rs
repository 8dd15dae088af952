//! What `wharf bench sessions` found, as JSON and in words. Pure.

use std::fmt::Write as _;

use serde::Serialize;

/// All of it. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) rates: Vec<Rate>,
    pub(super) suspended: Suspended,
    pub(super) cores: usize,
    pub(super) file_system: String,
    /// Every commit was synced to the disk.
    pub(super) synced: bool,
}

/// Creates at one rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Rate {
    pub(super) creates_per_s: u32,
    /// Creates measured.
    pub(super) creates: usize,
    /// The daemon's own time: from the call to the arrival of its last API write, and from the pod being shown ready to the answer.
    pub(super) own_p50_ms: f64,
    pub(super) own_p99_ms: f64,
    /// The first part of it.
    pub(super) to_write_p50_ms: f64,
    pub(super) to_write_p99_ms: f64,
    /// The second.
    pub(super) to_answer_p50_ms: f64,
    pub(super) to_answer_p99_ms: f64,
    pub(super) writes_per_create: f64,
    /// Reads beyond the watch.
    pub(super) reads_per_create: f64,
    /// The same creates with the seed's way of waiting: a look every 2 s in place of the watch.
    pub(super) seed_p50_ms: f64,
    pub(super) seed_p99_ms: f64,
}

/// Suspended sessions at rest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Suspended {
    pub(super) count: usize,
    /// Resident for each, in a process that has opened their log and nothing else.
    pub(super) rss_bytes_each: Option<u64>,
    /// From opening the log to knowing all of them.
    pub(super) open_ms: f64,
}

impl Figures {
    /// For people.
    #[must_use]
    pub(super) fn text(&self) -> String {
        let file_system = if self.file_system.is_empty() { "unknown file system" } else { &self.file_system };
        let mut out = format!("machine     {} cores; {file_system}, every commit synced\n", self.cores);
        for rate in &self.rates {
            let _ = writeln!(
                out,
                "{:>3} a second p50 {:.2} ms, p99 {:.2} ms of its own over {} creates (limit: 10 and 50): {:.2} and {:.2} to the last write, \
                 {:.2} and {:.2} from ready to the answer; {:.2} writes and {:.2} reads each; the seed's way p50 {:.0} ms, p99 {:.0} ms",
                rate.creates_per_s,
                rate.own_p50_ms,
                rate.own_p99_ms,
                rate.creates,
                rate.to_write_p50_ms,
                rate.to_write_p99_ms,
                rate.to_answer_p50_ms,
                rate.to_answer_p99_ms,
                rate.writes_per_create,
                rate.reads_per_create,
                rate.seed_p50_ms,
                rate.seed_p99_ms,
            );
        }
        let Suspended { count, rss_bytes_each, open_ms } = &self.suspended;
        let each = rss_bytes_each.map_or_else(|| "unknown".to_owned(), |bytes| format!("{bytes} bytes"));
        let _ = writeln!(out, "suspended   {count}: {each} resident each (limit: 2048), all known {open_ms:.0} ms after opening the log");
        out
    }
}
