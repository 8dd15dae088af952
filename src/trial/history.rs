//! What happened in a trial, in order: what the API server did, what the nodes ran, what the gateway was told and told, what
//! became durable in the log, and what the trial itself did to all of them. The oracle reads this and nothing else.
//!
//! Nothing here is the daemon's opinion: but for [`Happening::Durable`], which is the log as a disk has it after its sync, all of
//! it is told by the other side of an edge. Each moment is told at once, before anything else happens, and is never taken back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

use crate::events::record::Record;
use crate::ids::{LogId, Seq};
use crate::sim::api::{DAEMON, Entry, Object};

pub use crate::sim::api::Stored;

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Counts from 0, over the whole trial.
    pub number: usize,
    /// When, microseconds; the world's clock, which no fault steps. Many moments can share a time: their order is `number`.
    pub time_us: i64,
    /// What.
    pub what: Happening,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Happening {
    /// A part of the trial began: until then the one before it.
    Phase(Phase),
    /// A life of the daemon began: its log is open, nothing of it is replayed yet.
    Began {
        /// Counts from 1.
        life: u32,
        /// The log id it writes.
        log: LogId,
        /// The last record that it found.
        head: Seq,
    },
    /// A life of the daemon ended.
    Ended {
        /// Which.
        life: u32,
        /// How.
        how: End,
    },
    /// Records became durable, in the order of the log: told before anybody in the daemon learns of it. One reaction's records
    /// are together. The daemon is told of them next, unless it crashes at this very moment.
    Durable {
        /// The log id.
        log: LogId,
        /// The records with their real numbers.
        records: Vec<Record>,
    },
    /// An append failed: numbers up to this one may have been written, and are known to nobody.
    Attempted {
        /// The log id.
        log: LogId,
        /// The last of them.
        last: Seq,
    },
    /// A request to the API server was answered, or met its fate: the daemon's (user `wharf`), a node's (`node`) or another's.
    /// The objects' changes that it made ([`Happening::Stored`]) were told just before. `code` is what the server came to; what
    /// the caller got can be nothing at all. Requests that a crash left under way come after it.
    Requested(Box<Entry>),
    /// An object changed at the API server, by a request or by the trial's own hand.
    Stored(Stored),
    /// The processes of a pod began to run on a node: the truth, which no status needs to show yet. `host` is the pod's name.
    Running {
        /// The pod's name.
        host: String,
        /// The pod's uid.
        uid: String,
    },
    /// They run no more.
    Exited {
        /// The pod's name.
        host: String,
        /// The pod's uid.
        uid: String,
    },
    /// What the gateway wants and knows changed, by a deploy, a withdrawal, a retry or by a report it took in: everything, as it
    /// is now.
    Wanted(BTreeMap<String, AppTruth>),
    /// A request reached the gateway.
    Asked {
        /// What for.
        what: GatewayAsk,
        /// Whether it was taken in: reports count only then.
        taken: bool,
        /// The status that is on its way back; 0 when nothing will ever come.
        status: u16,
    },
    /// The daemon got an answer to a heartbeat, good or odd: what it can know of the wants from here on. Not told when no answer
    /// came to it.
    Answered {
        /// The status.
        status: u16,
        /// The world it names; empty when it is no answer of that form.
        world: String,
        /// The apps it names, by `org/name`; `None` when it is no answer of that form.
        apps: Option<BTreeMap<String, WantTold>>,
    },
    /// The trial did something to the world or to the daemon.
    Fault {
        /// Its number in the trial's schedule, from 0.
        number: u32,
        /// Its kind, by its stable name, for example `api_error`.
        kind: &'static str,
        /// What exactly, in words: for the report.
        what: String,
        /// False: it ends here.
        begins: bool,
    },
    /// Faults have stopped for longer than the bound: everything wanted must be so.
    AtRest(Box<Rest>),
}

/// A part of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Faults: nothing may go wrong that cannot be made good.
    Safety,
    /// Faults have stopped and everything is mended: what is wanted must come to be.
    Liveness,
}

/// How a life of the daemon ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was killed, or its machine lost its power: from here on nothing of it reaches anybody, and what it had under way may
    /// still be carried out. What was not synced is lost if `lost`.
    Crashed {
        /// At what, in words.
        at: String,
        /// Whether what was written and not synced is lost with it.
        lost: bool,
    },
    /// It was asked to end, and did in order.
    Stopped,
    /// Its log failed, which the trial made it do, and it ended by itself.
    LogFailed(String),
    /// A part of it failed and it ended by itself: never the world's fault.
    PartFailed(String),
}

/// What the gateway knows of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppTruth {
    /// The wanted release.
    pub release: u64,
    /// The wanted host.
    pub host: String,
    /// The wanted host was reported failed.
    pub failed: bool,
    /// The host that last went live.
    pub live_host: Option<String>,
}

/// What an answer to a heartbeat says of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantTold {
    /// The wanted host.
    pub host: String,
    /// The wanted release.
    pub release: u64,
    /// A process of the host is connected to the gateway.
    pub registered: bool,
    /// The host is reported failed.
    pub failed: bool,
    /// The host that is named live.
    pub live_host: Option<String>,
}

/// What is asked of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayAsk {
    /// A heartbeat with its reports.
    Beat(Vec<Report>),
    /// A package of an app's release.
    Source(String),
    /// An app's environment.
    Environment(String),
}

/// A report in a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `org/name`.
    pub app: String,
    /// The host.
    pub host: String,
    /// `live` or `failed`.
    pub state: String,
    /// Why it failed.
    pub why: String,
}

/// How everything is at rest.
#[derive(Debug, Clone)]
pub struct Rest {
    /// All pods of the namespace.
    pub pods: Vec<Arc<Object>>,
    /// All its Secrets.
    pub secrets: Vec<Arc<Object>>,
    /// All its Services.
    pub services: Vec<Arc<Object>>,
    /// All its NetworkPolicies.
    pub policies: Vec<Arc<Object>>,
    /// What the gateway wants and knows.
    pub apps: BTreeMap<String, AppTruth>,
    /// What becomes of the apps' pods, by `org/name`: what can be expected of the wanted host.
    pub fates: BTreeMap<String, Fate>,
    /// Hosts whose processes run, with their pods' uids.
    pub running: Vec<(String, String)>,
}

/// What becomes of the pods of an app's wanted release from the liveness phase on, by its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs and registers: it must be live.
    Healthy,
    /// It cannot come up: it must be reported failed, and what served before must serve.
    Fails,
    /// It was left as the faults left it: live, or reported failed, and the cluster accordingly.
    Left,
}

/// An invariant of DESIGN.md that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Its number there; 0 for what every program must do (end, not panic).
    pub invariant: u8,
    /// The moment that shows it, by its number.
    pub moment: usize,
    /// What is wrong, in one sentence with names.
    pub why: String,
}

/// Who judges a trial: told each moment as it happens, inside whatever made it happen, so it must not call back.
pub trait Oracle: Send {
    /// Takes in a moment; what it breaks.
    fn see(&mut self, moment: &Moment) -> Vec<Broken>;
}

/// What there was so far, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records that became durable.
    pub records: u64,
    /// The last of them.
    pub last: Seq,
    /// Requests of the daemon that write.
    pub writes: u64,
    /// Heartbeats that reached the gateway.
    pub beats: u64,
}

impl Tally {
    fn count(&mut self, moment: &Moment) {
        match &moment.what {
            Happening::Durable { records, .. } => {
                self.records += records.len() as u64;
                self.last = records.iter().map(|record| record.header.seq).fold(self.last, Seq::max);
            }
            Happening::Requested(entry) => self.writes += u64::from(is_write(entry)),
            Happening::Asked { what: GatewayAsk::Beat(_), .. } => self.beats += 1,
            Happening::Phase(_)
            | Happening::Attempted { .. }
            | Happening::Began { .. }
            | Happening::Ended { .. }
            | Happening::Stored(_)
            | Happening::Running { .. }
            | Happening::Exited { .. }
            | Happening::Wanted(_)
            | Happening::Asked { .. }
            | Happening::Answered { .. }
            | Happening::Fault { .. }
            | Happening::AtRest(_) => {}
        }
    }
}

fn is_write(entry: &Entry) -> bool {
    entry.user == DAEMON && !matches!(entry.verb, "get" | "list" | "watch")
}

/// The history of one trial; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct History(Arc<Shared>);

struct Shared {
    inner: Mutex<Inner>,
    /// Wakes whoever waits for something to break.
    broken: Notify,
}

struct Inner {
    moments: Vec<Moment>,
    tally: Tally,
    oracle: Box<dyn Oracle>,
    broken: Vec<Broken>,
}

impl History {
    /// Of a trial that this oracle judges.
    #[must_use]
    pub fn new(oracle: Box<dyn Oracle>) -> Self {
        let inner = Inner { moments: Vec::new(), tally: Tally::default(), oracle, broken: Vec::new() };
        Self(Arc::new(Shared { inner: Mutex::new(inner), broken: Notify::new() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a moment and lets the oracle judge it.
    pub fn note(&self, time_us: i64, what: Happening) {
        let mut inner = self.inner();
        let moment = Moment { number: inner.moments.len(), time_us, what };
        let broken = inner.oracle.see(&moment);
        inner.tally.count(&moment);
        inner.moments.push(moment);
        if !broken.is_empty() {
            inner.broken.extend(broken);
            self.0.broken.notify_one();
        }
    }

    /// Goes through all moments, in order.
    pub fn each(&self, mut visit: impl FnMut(&Moment)) {
        self.inner().moments.iter().for_each(&mut visit);
    }

    /// What there was so far, in numbers.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.inner().tally
    }

    /// What does not hold so far.
    #[must_use]
    pub fn broken(&self) -> Vec<Broken> {
        self.inner().broken.clone()
    }

    /// Notes that something broke that no oracle looks for.
    pub fn break_now(&self, invariant: u8, why: String) {
        let mut inner = self.inner();
        let moment = inner.moments.len().saturating_sub(1);
        inner.broken.push(Broken { invariant, moment, why });
        self.0.broken.notify_one();
    }

    /// How many there are who hold it.
    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Returns when something is broken.
    pub async fn until_broken(&self) {
        while self.inner().broken.is_empty() {
            self.0.broken.notified().await;
        }
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("moments", &self.inner().moments.len()).finish_non_exhaustive()
    }
}

/// The apps of an answer to a heartbeat, as far as it is of that form: the world it names, and them.
#[must_use]
pub fn wants_of(body: &[u8]) -> (String, Option<BTreeMap<String, WantTold>>) {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let apps = answer["apps"].as_array().map(|apps| {
        let told = |app: &Value| {
            let name = format!("{}/{}", text(&app["org"]), text(&app["name"]));
            let want = WantTold {
                host: text(&app["host"]),
                release: app["release"].as_u64().unwrap_or(0),
                registered: app["registered"].as_bool().unwrap_or(false),
                failed: app["failed"].as_bool().unwrap_or(false),
                live_host: app["live_host"].as_str().map(str::to_owned),
            };
            (name, want)
        };
        apps.iter().map(told).collect()
    });
    (text(&answer["world"]), apps)
}
