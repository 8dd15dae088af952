//! A crash at every write: what a daemon does is done once to see its writes and its appends, and then again for each of them, the
//! daemon killed at it and started again. The judge of every trial judges these.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::fates::Character;
use super::fault::{Fault, Fuse, Kind, Scheduled, Which};
use super::history::{Happening, History, Moment, Phase};
use super::plan::{Deed, Ending, Plan, Story};
use super::report::Played;
use crate::events::mem_log::Unsynced;
use crate::events::record::Event;
use crate::sim::api::DAEMON;
use crate::sim::node::Script;

/// The app of every scenario.
const APP: &str = "acme/app0";
/// The daemon is away for so long after it was killed.
const DOWN: Duration = Duration::from_secs(3);
/// What happens within so long of a scenario's begin is its points; what is lit later than a minute burns by itself.
const WINDOW: Duration = Duration::from_secs(40);

/// Where the daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// A write is on its way: it is carried out, and nobody waits for its answer.
    Sent,
    /// A write's answer has arrived, and nobody has read it.
    Answered,
    /// A commit is written and not synced; the power takes it.
    Lost,
    /// A commit is written and not synced; the disk has it all the same.
    Kept,
    /// A commit is durable, and nothing of it was sent.
    Durable,
}

impl At {
    /// All of a write.
    pub const OF_WRITE: &'static [Self] = &[Self::Sent, Self::Answered];
    /// All of an append.
    pub const OF_APPEND: &'static [Self] = &[Self::Lost, Self::Kept, Self::Durable];

    /// Its stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Answered => "answered",
            Self::Lost => "lost",
            Self::Kept => "kept",
            Self::Durable => "durable",
        }
    }

    fn fuse(self, number: u32) -> Fuse {
        match self {
            Self::Sent => Fuse::Sent(number),
            Self::Answered => Fuse::Answered(number),
            Self::Lost | Self::Kept => Fuse::Unsynced(number),
            Self::Durable => Fuse::Durable(number),
        }
    }
}

/// A write or an append, and what came of a crash at it.
#[derive(Debug, Clone)]
pub struct Point {
    /// What is being done, for example `rollout`.
    pub scenario: &'static str,
    /// The write or the append, in words.
    pub what: String,
    /// Its number among its kind, from 0.
    pub number: u32,
    /// Whether it is a write of the cluster; else an append to the log.
    pub is_write: bool,
    /// What came of each crash at it.
    pub results: Vec<(At, Played)>,
}

/// What is done to an app, and when the interesting part of it begins.
struct Scenario {
    name: &'static str,
    stories: Vec<(u64, Deed)>,
    faults: Vec<(u64, Fault)>,
    from_s: u64,
}

fn scenarios() -> Vec<Scenario> {
    use Character::{ExitsAtOnce, Healthy, Slow};
    let first = || (2, Deed::Deploy(Healthy));
    let exit = || Fault::Exit { app: 0, which: Which::Live, code: 1 };
    let of = |name, then: Vec<(u64, Deed)>, faults, from_s| Scenario {
        name,
        stories: std::iter::once(first()).chain(then).collect(),
        faults,
        from_s,
    };
    vec![
        of("first start", vec![], vec![], 1),
        of("rollout", vec![(20, Deed::Deploy(Healthy))], vec![], 20),
        of("revive of the wanted host", vec![], vec![(20, exit())], 20),
        of("revive of the former host", vec![(20, Deed::Deploy(Slow))], vec![(30, exit())], 30),
        of("roll-back", vec![(20, Deed::Deploy(Healthy)), (40, Deed::RollBack)], vec![], 40),
        of("withdrawal", vec![(20, Deed::Withdraw)], vec![], 20),
        of("changed secret", vec![(20, Deed::ChangeSecret)], vec![], 20),
        of("release that fails", vec![(20, Deed::Deploy(ExitsAtOnce))], vec![], 20),
    ]
}

impl Scenario {
    /// With a crash, or without one.
    fn plan(&self, crash: Option<Fault>) -> Plan {
        let seconds = Duration::from_secs;
        let crash = crash.map(|crash| (self.from_s, crash));
        let faults = crash.into_iter().chain(self.faults.iter().cloned()).zip(0..).map(|((at_s, fault), number)| Scheduled {
            number,
            at: seconds(at_s),
            lasts: Duration::ZERO,
            kind: if matches!(fault, Fault::Crash { .. }) { Kind::Crash } else { Kind::AppExit },
            fault,
        });
        Plan {
            apps: vec![APP.to_owned()],
            stories: self.stories.iter().map(|(at_s, deed)| Story { at: seconds(*at_s), app: 0, deed: deed.clone() }).collect(),
            endings: vec![Ending::Left],
            faults: faults.collect(),
            safety: seconds(self.from_s) + WINDOW + seconds(5),
            nodes: vec!["node1".to_owned(), "node2".to_owned()],
            latency: Duration::from_millis(5),
            beat_ms: 1_000,
            otherwise: Script::default(),
            kinds: BTreeSet::new(),
            options: None,
        }
    }

    /// Its writes and its appends, in words, as they are without a crash.
    fn steps(&self, history: &History) -> (Vec<String>, Vec<String>) {
        let (mut writes, mut appends) = (Vec::new(), Vec::new());
        let mut begun_us = None;
        let mut over = false;
        history.each(|moment| {
            let begun_us = *begun_us.get_or_insert(moment.time_us);
            let since_us = moment.time_us - begun_us;
            over |= matches!(moment.what, Happening::Phase(Phase::Liveness));
            let window_us = micros(Duration::from_secs(self.from_s))..micros(Duration::from_secs(self.from_s) + WINDOW);
            if !over && window_us.contains(&since_us) {
                writes.extend(write(moment));
                appends.extend(append(moment));
            }
        });
        (writes, appends)
    }
}

fn write(moment: &Moment) -> Option<String> {
    let Happening::Requested(entry) = &moment.what else { return None };
    let is_write = entry.user == DAEMON && !matches!(entry.verb, "get" | "list" | "watch");
    is_write.then(|| format!("{} {} {}", entry.verb, entry.resource, entry.name))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "of the closed list of kinds one says more than its name")]
fn append(moment: &Moment) -> Option<String> {
    let Happening::Durable { records, .. } = &moment.what else { return None };
    let words = records.iter().map(|record| match &record.event {
        Event::StepIssued(issued) => issued.step.name(),
        event => event.kind().name(),
    });
    let mut words: Vec<&str> = words.collect();
    words.dedup();
    Some(words.join(" "))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Kills the daemon at every point of every scenario, or of those whose names begin so, on every core. A scenario that does not hold
/// without a crash is one point.
///
/// # Errors
/// When a trial cannot be run.
pub fn crash_points(named: &str) -> std::io::Result<Vec<Point>> {
    let scenarios: Vec<Scenario> = scenarios().into_iter().filter(|scenario| scenario.name.starts_with(named)).collect();
    let mut points: Vec<(&Scenario, Mutex<Point>)> = Vec::new();
    for scenario in &scenarios {
        let (played, history) = super::play_plan(0, &scenario.plan(None))?;
        let (writes, appends) = scenario.steps(&history);
        let mut add = |is_write: bool, number: u32, what: String, results: Vec<(At, Played)>| {
            points.push((scenario, Mutex::new(Point { scenario: scenario.name, what, number, is_write, results })));
        };
        if !played.holds() {
            add(true, 0, "without a crash".to_owned(), vec![(At::Durable, played)]);
            continue;
        }
        (0..).zip(writes).for_each(|(number, what)| add(true, number, what, Vec::new()));
        (0..).zip(appends).for_each(|(number, what)| add(false, number, what, Vec::new()));
    }
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some((scenario, point)) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut point = point.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = kill_at(scenario, &mut point) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    let points = points.into_iter().map(|(_, point)| point.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(points), Err)
}

/// Plays the scenario once for each crash at this point.
fn kill_at(scenario: &Scenario, point: &mut Point) -> std::io::Result<()> {
    if !point.results.is_empty() {
        return Ok(());
    }
    for at in if point.is_write { At::OF_WRITE } else { At::OF_APPEND } {
        let unsynced = if *at == At::Kept { Unsynced::Kept } else { Unsynced::Lost };
        let crash = Fault::Crash { fuse: at.fuse(point.number), unsynced, down: DOWN };
        let (played, _) = super::play_plan(0, &scenario.plan(Some(crash)))?;
        point.results.push((*at, played));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b55_a_crash_at_every_write_and_every_append_leaves_nothing_wrong() {
        let points = crash_points("").expect("trials can be run");
        let crashes = points.iter().map(|point| point.results.len()).sum::<usize>();
        let broken = points.iter().flat_map(|point| {
            let broken = point.results.iter().filter(|(_, played)| !played.holds());
            broken.map(move |(at, played)| format!("{}, {} {}: {:#?}", point.scenario, point.what, at.name(), played.broken))
        });
        assert_eq!(broken.collect::<Vec<_>>(), Vec::<String>::new());
        assert!(crashes > 300, "{crashes} crashes: were there fewer writes than that?");
        let killed = points.iter().flat_map(|point| &point.results).all(|(_, played)| played.crashes == 1);
        assert!(killed, "each of them is a crash");
    }
}
