//! The decision table (hosted-apps.md, "The decision"): which steps an app needs, from its want, its hosts and the time.
//!
//! Knows no step in flight and no record: `plan` is this table minus what is in flight or done, and `wharf plan` is this
//! table alone.

use super::marks::mark;
use crate::ids::HostName;
pub use crate::subject::wake::is_over;

/// What is wanted of the app, verdicts overlaid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The host to run.
    pub host: HostName,
    /// A process of it is connected to the gateway.
    pub registered: bool,
    /// When the gateway said so.
    pub answered_us: i64,
    /// It is reported failed, or a verdict says so.
    pub failed: bool,
    /// A live verdict stands that the gateway does not show yet.
    pub live_verdict: bool,
    /// The host that the gateway last named live.
    pub live_host: Option<HostName>,
}

/// Where a host's process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It has not started yet.
    Pending,
    /// It was seen running and has not ended.
    Running,
    /// Nobody can say.
    Unknown,
    /// It ended.
    Ended,
    /// Its pod went without our stop.
    Gone,
}

/// One host of the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Its name.
    pub name: HostName,
    /// Where its process is.
    pub life: Life,
    /// Since when its registering is timed; `None` while it is not.
    pub registering_since_us: Option<i64>,
    /// Its counted own exits besides the present end, log time.
    pub exits_us: Vec<i64>,
    /// Its pod is being deleted.
    pub deleting: bool,
    /// It ended by no fault of its own.
    pub no_fault: bool,
}

impl HostRow {
    fn ended(&self) -> bool {
        matches!(self.life, Life::Ended | Life::Gone)
    }

    fn ended_without_fault(&self) -> bool {
        self.life == Life::Gone || (self.life == Life::Ended && self.no_fault)
    }
}

/// What the table reads of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Own exits within the window that are still revived.
    pub crash_limit: u32,
    /// How long an own exit counts, microseconds.
    pub crash_window_us: u64,
    /// From the app's start to registered, microseconds.
    pub register_us: u64,
}

/// Why the table calls a host failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It ended before it went live.
    Exited,
    /// It did not register in time.
    NeverRegistered,
    /// It went live and ended too often.
    KeepsExiting,
}

/// What to do about a host: the planner's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Run it for the first time.
    Start,
    /// Run it again; `counted` when it ended by its own fault.
    Revive {
        /// Whether this end counts.
        counted: bool,
    },
    /// Remove its pod.
    Stop,
    /// Report it live.
    WentLive,
    /// Report it failed.
    Failed(Why),
}

/// One thing to do about one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub host: HostName,
    /// What.
    pub what: What,
    /// The row that says so, by its stable name.
    pub rule: &'static str,
}

/// What the rows look at: the wanted host's row, or the former live one's.
struct Facts<'a> {
    wanted: &'a Wanted,
    /// The host that the row is about; `None` when it has no pod and is not in the fold as ended.
    row: Option<&'a HostRow>,
    /// The wanted host serves.
    wanted_serves: bool,
    limits: &'a Limits,
    now_us: i64,
}

impl Facts<'_> {
    fn is(&self, fits: impl Fn(&HostRow) -> bool) -> bool {
        self.row.is_some_and(fits)
    }

    /// The wanted host went live once.
    fn live(&self) -> bool {
        self.wanted.live_verdict || self.wanted.live_host.as_ref() == Some(&self.wanted.host)
    }

    /// Fewer own exits still count than the limit, this one not among them.
    fn few_exits(&self) -> bool {
        self.is(|row| exits_in_window(&row.exits_us, self.limits, self.now_us) < self.limits.crash_limit as usize)
    }

    /// Its deadline was over when the gateway last answered: of a registration in a silence nobody was told.
    fn late(&self) -> bool {
        let answered_us = self.wanted.answered_us.min(self.now_us);
        self.is(|row| row.registering_since_us.is_some_and(|since| is_over(since, self.limits.register_us, answered_us)))
    }
}

/// A row of the table: the first that fits decides.
struct Row {
    rule: &'static str,
    fits: fn(&Facts<'_>) -> bool,
    what: Option<What>,
    /// Whether the host's pod stays.
    keep: bool,
}

const fn row(rule: &'static str, fits: fn(&Facts<'_>) -> bool, what: Option<What>, keep: bool) -> Row {
    Row { rule, fits, what, keep }
}

/// The wanted host; when no row fits there is nothing to do, and it is kept.
const WANTED_ROWS: &[Row] = &[
    row("wanted.failed", |f| f.wanted.failed, None, false),
    row("wanted.absent", |f| f.row.is_none(), Some(What::Start), true),
    row("wanted.deleting", |f| f.is(|row| row.deleting), None, true),
    row("wanted.no_fault", |f| f.is(HostRow::ended_without_fault), Some(What::Revive { counted: false }), true),
    row("wanted.exited", |f| f.is(HostRow::ended) && !f.live(), Some(What::Failed(Why::Exited)), false),
    row("wanted.own_exit", |f| f.is(HostRow::ended) && f.few_exits(), Some(What::Revive { counted: true }), true),
    row("wanted.keeps_exiting", |f| f.is(HostRow::ended), Some(What::Failed(Why::KeepsExiting)), false),
    row("wanted.serves", |f| !f.live() && f.wanted_serves, Some(What::WentLive), true),
    row("wanted.never_registered", |f| !f.live() && !f.wanted.registered && f.late(), Some(What::Failed(Why::NeverRegistered)), false),
];

/// The former live host, another than the wanted one; when no row fits it is kept as it is.
const FORMER_ROWS: &[Row] = &[
    row("former.deleting", |f| f.is(|row| row.deleting), None, true),
    row("former.replaced", |f| f.is(HostRow::ended) && f.wanted_serves, None, false),
    row("former.no_fault", |f| f.is(HostRow::ended_without_fault), Some(What::Revive { counted: false }), true),
    row("former.own_exit", |f| f.is(HostRow::ended) && f.few_exits(), Some(What::Revive { counted: true }), true),
    row("former.keeps_exiting", |f| f.is(HostRow::ended), None, false),
];

/// The rule of a stop of what is neither wanted nor the former live host.
pub const NOT_KEPT: &str = "stop.not_kept";
/// The rule of a stop of an app that is withdrawn.
pub const WITHDRAWN: &str = "stop.withdrawn";

/// How many of these exits still count: exactly the window's age is out.
#[must_use]
pub fn exits_in_window(exits_us: &[i64], limits: &Limits, now_us: i64) -> usize {
    let young = |at: &&i64| now_us.checked_sub(**at).is_some_and(|age| age < 0 || age.unsigned_abs() < limits.crash_window_us);
    exits_us.iter().filter(young).count()
}

/// The moves of one app: the wanted host's, the former live one's, then the stops in the order of `hosts`.
#[must_use]
pub fn moves(wanted: Option<&Wanted>, hosts: &[HostRow], limits: &Limits, now_us: i64) -> Vec<Move> {
    moves_and_kept(wanted, hosts, limits, now_us).0
}

/// The moves of one app, and the hosts that it is to have: the wanted one and the former live one, as far as they are kept.
#[must_use]
pub fn moves_and_kept(wanted: Option<&Wanted>, hosts: &[HostRow], limits: &Limits, now_us: i64) -> (Vec<Move>, Vec<HostName>) {
    decide(&WANTED_ROWS.iter().collect::<Vec<_>>(), &FORMER_ROWS.iter().collect::<Vec<_>>(), wanted, hosts, limits, now_us)
}

/// The table with one row taken out: how the tests show that each row matters.
#[cfg(test)]
pub(crate) fn moves_without(rule: &str, wanted: Option<&Wanted>, hosts: &[HostRow], limits: &Limits, now_us: i64) -> Vec<Move> {
    let others = |rows: &'static [Row]| rows.iter().filter(|row| row.rule != rule).collect::<Vec<_>>();
    let (mut moves, _) = decide(&others(WANTED_ROWS), &others(FORMER_ROWS), wanted, hosts, limits, now_us);
    moves.retain(|one| one.rule != rule);
    moves
}

/// Every rule of the table.
#[cfg(test)]
pub(crate) fn rules() -> Vec<&'static str> {
    WANTED_ROWS.iter().chain(FORMER_ROWS).map(|row| row.rule).chain([NOT_KEPT, WITHDRAWN]).collect()
}

fn decide(
    wanted_rows: &[&Row],
    former_rows: &[&Row],
    wanted: Option<&Wanted>,
    hosts: &[HostRow],
    limits: &Limits,
    now_us: i64,
) -> (Vec<Move>, Vec<HostName>) {
    let Some(wanted) = wanted else { return (stops(hosts, &[], WITHDRAWN), Vec::new()) };
    let find = |name: &HostName| hosts.iter().find(|host| host.name == *name);
    let wanted_row = find(&wanted.host);
    let wanted_serves = wanted_row.is_some_and(|row| serves(wanted, row));
    let mut moves = Vec::new();
    let mut keep = Vec::new();
    let mut apply = |rows: &[&Row], name: &HostName, row: Option<&HostRow>| {
        let facts = Facts { wanted, row, wanted_serves, limits, now_us };
        let decided = rows.iter().find(|row| (row.fits)(&facts));
        if let Some(_row) = decided {
            mark!(_row.rule);
        }
        if decided.is_none_or(|row| row.keep) {
            keep.push(name.clone());
        }
        if let Some((what, rule)) = decided.and_then(|row| Some((row.what?, row.rule))) {
            moves.push(Move { host: name.clone(), what, rule });
        }
    };
    apply(wanted_rows, &wanted.host, wanted_row);
    if let Some(live) = wanted.live_host.as_ref().filter(|live| **live != wanted.host) {
        apply(former_rows, live, find(live));
    }
    moves.extend(stops(hosts, &keep, NOT_KEPT));
    (moves, keep)
}

/// Registered, its process running, not failed and not being deleted.
#[must_use]
pub fn serves(wanted: &Wanted, row: &HostRow) -> bool {
    wanted.registered && !wanted.failed && row.life == Life::Running && !row.deleting
}

fn stops(hosts: &[HostRow], keep: &[HostName], rule: &'static str) -> Vec<Move> {
    let goes = |host: &&HostRow| !host.deleting && host.life != Life::Gone && !keep.contains(&host.name);
    let stop = |host: &HostRow| {
        mark!(rule);
        Move { host: host.name.clone(), what: What::Stop, rule }
    };
    hosts.iter().filter(goes).map(stop).collect()
}
