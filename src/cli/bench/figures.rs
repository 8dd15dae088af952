//! What `wharf bench react` found, as JSON and in words. Pure.

use serde::Serialize;

/// A distribution's p50 and p99; nothing when nothing was measured.
#[must_use]
pub(super) fn p50_p99_ms(mut micros: Vec<u64>) -> (f64, f64) {
    micros.sort_unstable();
    // The smallest value that so many percent do not exceed.
    let at = |percent: usize| {
        let rank = (micros.len() * percent).div_ceil(100).max(1) - 1;
        micros.get(rank).map_or(0.0, |us| *us as f64 / 1_000.0)
    };
    (at(50), at(99))
}

/// All of it. Times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Apps, each with a live host.
    pub(super) apps: usize,
    /// Changes measured.
    pub(super) changes: usize,
    /// Changes a second, as made.
    pub(super) events_per_s: f64,
    /// From the change to the arrival of its first API write.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// The part of it until the reaction was planned.
    pub(super) planned_p50_ms: f64,
    pub(super) planned_p99_ms: f64,
    /// The part from there until its records were durable: the commit before it and its own.
    pub(super) durable_p50_ms: f64,
    pub(super) durable_p99_ms: f64,
    /// The part from there until the request arrived: the queue, the environment, the request.
    pub(super) sent_p50_ms: f64,
    pub(super) sent_p99_ms: f64,
    /// A group commit of the log, synced.
    pub(super) sync_p50_ms: f64,
    pub(super) sync_p99_ms: f64,
    /// Reactions that took in a change, for each change.
    pub(super) reactions_per_change: f64,
    /// All reactions that were recorded, for each change: its outcomes and what the revived pod does are among them.
    pub(super) reactions_in_all_per_change: f64,
    /// The daemon's API writes, for each change.
    pub(super) writes_per_change: f64,
    /// Percent of one core while changes came, the embedded cluster's share included.
    pub(super) busy_cpu_percent: Option<f64>,
    /// The seed's way: every beat all pods are listed and everything is planned. Its beat, and one pass as measured.
    pub(super) seed_beat_ms: f64,
    pub(super) seed_pass_ms: f64,
    /// What a change waits for then: a beat that is uniformly far away, and half the pass or all of it.
    pub(super) seed_p50_ms: f64,
    pub(super) seed_p99_ms: f64,
    /// Resident memory an app, the embedded cluster's objects and node tasks included.
    pub(super) rss_bytes_per_app: Option<u64>,
    /// How long nothing happened.
    pub(super) idle_s: f64,
    /// API calls a minute while nothing happened, without lease renewals and watches.
    pub(super) idle_api_calls_per_min: f64,
    /// The state of an idle app, bytes.
    pub(super) state_bytes_per_app: Option<u64>,
    /// Percent of one core that the daemon takes while nothing happens: with it, less the embedded cluster and gateway alone.
    pub(super) idle_cpu_percent: Option<f64>,
    /// The same, the embedded cluster's share included.
    pub(super) idle_cpu_percent_with_cluster: Option<f64>,
    /// How the gateway was asked: `process` or `http`.
    pub(super) gateway: &'static str,
    pub(super) cores: usize,
    pub(super) file_system: String,
    /// Every commit was synced to the disk.
    pub(super) synced: bool,
}

impl Figures {
    /// For people.
    #[must_use]
    pub(super) fn text(&self) -> String {
        let percent = |percent: Option<f64>| percent.map_or_else(|| "unknown".to_owned(), |percent| format!("{percent:.1} %"));
        let kib = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{:.1} KiB", bytes as f64 / 1_024.0));
        let (bytes, state) = (kib(self.rss_bytes_per_app), kib(self.state_bytes_per_app));
        format!(
            "\
machine     {cores} cores; {file_system}, every commit synced; the gateway is asked by {gateway}
changes     {changes} pods of live hosts deleted by another, {events_per_s:.0} a second, {apps} apps
to write    p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms from the change to its first API write's arrival (limit: 2 and 10)
  planned   p50 {planned_p50_ms:.2} ms, p99 {planned_p99_ms:.2} ms until the reaction was planned
  durable   p50 {durable_p50_ms:.2} ms, p99 {durable_p99_ms:.2} ms from there until its records were
  sent      p50 {sent_p50_ms:.2} ms, p99 {sent_p99_ms:.2} ms from there until the request arrived
  sync      p50 {sync_p50_ms:.2} ms, p99 {sync_p99_ms:.2} ms a commit of the log
the seed    p50 {seed_p50_ms:.0} ms, p99 {seed_p99_ms:.0} ms by its beat of {seed_beat_ms:.0} ms; a pass over all takes {seed_pass_ms:.1} ms
reactions   {reactions_per_change:.3} took in each change; {reactions_in_all_per_change:.1} in all with outcomes and the revived pod
writes      {writes_per_change:.2} for each change; processor {busy} of one core, the embedded cluster's share included
idle        {idle_api_calls_per_min:.1} API calls a minute, {idle} of one core over {idle_s:.0} s (with the embedded cluster {idle_all})
memory      {state} the state of an idle app; {bytes} resident an app, the embedded cluster's objects included
",
            gateway = self.gateway,
            cores = self.cores,
            file_system = if self.file_system.is_empty() { "unknown file system" } else { &self.file_system },
            changes = self.changes,
            events_per_s = self.events_per_s,
            apps = self.apps,
            p50_ms = self.p50_ms,
            p99_ms = self.p99_ms,
            planned_p50_ms = self.planned_p50_ms,
            planned_p99_ms = self.planned_p99_ms,
            durable_p50_ms = self.durable_p50_ms,
            durable_p99_ms = self.durable_p99_ms,
            sent_p50_ms = self.sent_p50_ms,
            sent_p99_ms = self.sent_p99_ms,
            sync_p50_ms = self.sync_p50_ms,
            sync_p99_ms = self.sync_p99_ms,
            seed_p50_ms = self.seed_p50_ms,
            seed_p99_ms = self.seed_p99_ms,
            seed_beat_ms = self.seed_beat_ms,
            seed_pass_ms = self.seed_pass_ms,
            reactions_per_change = self.reactions_per_change,
            reactions_in_all_per_change = self.reactions_in_all_per_change,
            writes_per_change = self.writes_per_change,
            busy = percent(self.busy_cpu_percent),
            idle_api_calls_per_min = self.idle_api_calls_per_min,
            idle = percent(self.idle_cpu_percent),
            idle_all = percent(self.idle_cpu_percent_with_cluster),
            idle_s = self.idle_s,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(p50_p99_ms((1..=100).map(|ms| ms * 1_000).collect()), (50.0, 99.0));
        assert_eq!(p50_p99_ms(vec![3_000, 1_000, 2_000]), (2.0, 3.0));
        assert_eq!(p50_p99_ms(Vec::new()), (0.0, 0.0));
    }
}
