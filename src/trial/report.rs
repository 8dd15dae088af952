//! What came of a trial, in numbers and in words.

use std::fmt::Write as _;
use std::time::Duration;

use super::fault::Kind;
use super::history::{Broken, GatewayAsk, Happening, History, Moment, Tally};
use super::oracle::words::before;
use super::rounds::LEAST;
use crate::sim::api::DAEMON;

/// How many of the last moments are told of a trial that failed.
const LAST: usize = 60;

/// What came of a trial.
#[derive(Debug, Clone, Default)]
pub struct Played {
    /// SHA-256 of all bytes of its log, hexadecimal.
    pub digest: String,
    /// The log's size, bytes.
    pub log_bytes: u64,
    /// Records that became durable.
    pub records: u64,
    /// Requests of the daemon that write.
    pub writes: u64,
    /// Heartbeats.
    pub beats: u64,
    /// Lives of the daemon.
    pub lives: u32,
    /// How many of them were killed.
    pub crashes: u32,
    /// The kinds of fault that happened to somebody.
    pub kinds: Vec<Kind>,
    /// Further rounds of its safety phase, because too little had happened.
    pub rounds: u32,
    /// How long it was, for those in it.
    pub simulated: Duration,
    /// What did not hold.
    pub broken: Vec<Broken>,
    /// The last moments, when something did not.
    pub last: Vec<String>,
}

impl Played {
    /// Whether everything held.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.broken.is_empty()
    }

    /// Whether enough happened in it.
    #[must_use]
    pub fn is_rich(&self) -> bool {
        self.records >= LEAST.records && self.writes >= LEAST.writes && self.kinds.len() >= LEAST.kinds && self.crashes >= LEAST.crashes
    }

    /// Counts what happened.
    pub(super) fn count(&mut self, history: &History) {
        let Tally { records, writes, beats, .. } = history.tally();
        (self.records, self.writes, self.beats) = (records, writes, beats);
        if let Some(broken) = self.broken.first() {
            self.last = before(history, broken, LAST);
        }
    }
}

/// A moment in a line; `None` for one that tells a reader nothing.
#[must_use]
pub fn tell(moment: &Moment) -> Option<String> {
    let mut line = format!("{:>6} {:>12.6} ", moment.number, (moment.time_us % 1_000_000_000_000) as f64 / 1e6);
    match &moment.what {
        Happening::Phase(phase) => write!(line, "phase {phase:?}"),
        Happening::Began { life, log, head } => write!(line, "life {life} begins over log {log} at {head}"),
        Happening::Ended { life, how } => write!(line, "life {life} ends: {how:?}"),
        Happening::Durable { records, .. } => {
            let names: Vec<String> = records.iter().map(|record| format!("{} {:?}", record.header.seq, record.event)).collect();
            let subject = records.first().map(|record| record.header.subject.to_string()).unwrap_or_default();
            write!(line, "durable {subject}: {}", names.join("; "))
        }
        Happening::Attempted { log, last } => write!(line, "an append to log {log} up to {last} fails"),
        Happening::Requested(entry) if entry.user != DAEMON && matches!(entry.verb, "get" | "list" | "watch") => return None,
        Happening::Requested(entry) => {
            let (fault, uid) = (entry.fault.unwrap_or("-"), entry.uid_precondition.as_deref().unwrap_or("-"));
            let name = if entry.subresource.is_empty() { entry.name.clone() } else { format!("{}/{}", entry.name, entry.subresource) };
            write!(line, "{} {} {} {name} -> {} (fault {fault}, for uid {uid})", entry.user, entry.verb, entry.resource, entry.code)
        }
        Happening::Stored(stored) => {
            let how = match (&stored.before, &stored.after) {
                (None, _) => "made",
                (_, None) => "gone",
                _ => "changed",
            };
            let object = stored.after.as_ref().or(stored.before.as_ref());
            let state = object.map(|object| format!("{} {}", object["metadata"]["uid"], object["status"]["phase"])).unwrap_or_default();
            write!(line, "  {} {} {how} at {} {state}", stored.resource, stored.name, stored.revision)
        }
        Happening::Running { host, uid } => write!(line, "  processes of {host} {uid} run"),
        Happening::Exited { host, uid } => write!(line, "  processes of {host} {uid} have ended"),
        Happening::Wanted(apps) => write!(line, "wanted {apps:?}"),
        Happening::Asked { what: GatewayAsk::Beat(reports), taken, status } if !reports.is_empty() || *status != 200 => {
            write!(line, "heartbeat taken {taken}, {status}, {reports:?}")
        }
        Happening::Asked { what: GatewayAsk::Beat(_), .. } => return None,
        Happening::Asked { what, status, .. } => write!(line, "asked {what:?} -> {status}"),
        Happening::Answered { status: 200, world, apps: Some(_) } if world == "trial" => return None,
        Happening::Answered { status, world, apps } => write!(line, "answer {status} of {world:?}: {apps:?}"),
        Happening::Fault { number, kind, what, begins } => {
            write!(line, "fault {number} {kind} {} {what}", if *begins { "begins" } else { "ends" })
        }
        Happening::AtRest(_) => write!(line, "at rest"),
    }
    .ok()?;
    Some(line)
}
