//! `wharf bench react`: the real daemon with its log on the disk to measure, against the embedded cluster, nodes and gateway.
//!
//! A change is a pod of a live host that is gone from one moment to the next; the write that it asks for is the first of its
//! revival. The time is from just before the pod is taken away to the write's arrival at the embedded API server, so that the
//! watch, the decoding and the request are in it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use super::figures::{Figures, p50_p99_ms};
use super::place::Place;
use super::process::{Spent, resident_bytes};
use super::rig::{By, Rig};
use super::timed_log::Commit;
use super::{Options, Size};
use crate::app::plan::plan;
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::cli::error::CliError;
use crate::cli::log::Format;
use crate::cli::output;
use crate::clock;
use crate::config::Settings;
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::step::{Step, StepIssued};
use crate::events::record::Event;
use crate::events::stored::Body;
use crate::ids::{HostName, Seq};
use crate::sim::api::DAEMON;
use crate::sim::node::Requests;
use crate::telemetry;

/// Between two changes: 200 a second.
const EVERY: Duration = Duration::from_millis(5);
/// Before what is measured: longer than the window in which a host that vanishes again has to wait.
const PAUSE: Duration = Duration::from_millis(1_100);
/// The seed's beat.
const SEED_BEAT_MS: f64 = 5_000.0;
/// Copies of all states, to see what one takes.
const STATE_COPIES: usize = 50;
/// Passes of the seed's way that are timed.
const SEED_PASSES: u32 = 5;

/// What it is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    options: Options,
    /// How the daemon asks the embedded gateway
    #[arg(long, value_enum, default_value = "process")]
    gateway: By,
}

/// How much is measured.
struct Amount {
    apps: usize,
    /// Every app's pod is taken away once a round.
    rounds: usize,
    idle: Duration,
}

impl Amount {
    fn of(size: Size) -> Self {
        match size {
            Size::Small => Self { apps: 100, rounds: 5, idle: Duration::from_secs(6) },
            Size::Full => Self { apps: 1_000, rounds: 3, idle: Duration::from_secs(60) },
        }
    }
}

/// Runs the measurement.
pub(super) fn run(Args { options, gateway }: &Args) -> Result<ExitCode, CliError> {
    let quiet = crate::config::Telemetry { filter: "error".to_owned(), ..crate::config::Telemetry::default() };
    telemetry::start(&quiet, output::is_terminal()).map_err(|error| CliError::input(error.to_string(), ""))?;
    let place = Place::new(options.dir.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::refused("no runtime can be made", "free some threads or files").because(error))?;
    let figures = runtime.block_on(measure(&Amount::of(options.size), &place, *gateway))?;
    match options.format {
        Format::Text => output::print(&figures.text())?,
        Format::Json => {
            let json = serde_json::to_string(&figures).map_err(std::io::Error::from)?;
            output::print(&format!("{json}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(amount: &Amount, place: &Place, gateway: By) -> Result<Figures, CliError> {
    let mut rig = Rig::start(&place.dir, gateway).await?;
    let empty = resident_bytes();
    rig.bring_up(amount.apps).await?;
    tokio::time::sleep(PAUSE).await;
    let idle = Idle::measure(&rig, amount.idle).await;
    let full = resident_bytes();
    let world_cpu_percent = rig.without_daemon(amount.idle).await?;
    let state_bytes_per_app = state_bytes_per_app(&rig)?;
    let seed_pass_ms = seed_pass_ms(&rig).await?;
    let changed = Changed::measure(&rig, amount.rounds).await?;
    let read = Read::from(&rig, &changed)?;
    let (p50_ms, p99_ms) = p50_p99_ms(changed.to_write_us);
    let (planned_p50_ms, planned_p99_ms) = p50_p99_ms(read.to_plan_us);
    let (durable_p50_ms, durable_p99_ms) = p50_p99_ms(read.to_durable_us);
    let (sent_p50_ms, sent_p99_ms) = p50_p99_ms(read.to_sent_us);
    let (sync_p50_ms, sync_p99_ms) = p50_p99_ms(changed.commits.iter().map(|commit| commit.took_us).collect());
    let changes = changed.made.len();
    let each = |count: usize| count as f64 / changes.max(1) as f64;
    let figures = Figures {
        apps: amount.apps,
        changes,
        events_per_s: changed.events_per_s,
        p50_ms,
        p99_ms,
        planned_p50_ms,
        planned_p99_ms,
        durable_p50_ms,
        durable_p99_ms,
        sent_p50_ms,
        sent_p99_ms,
        sync_p50_ms,
        sync_p99_ms,
        reactions_per_change: each(read.taking_in),
        reactions_in_all_per_change: each(read.reactions),
        writes_per_change: each(changed.writes),
        busy_cpu_percent: changed.cpu_percent,
        seed_beat_ms: SEED_BEAT_MS,
        seed_pass_ms,
        seed_p50_ms: SEED_BEAT_MS * 0.5 + seed_pass_ms * 0.5,
        seed_p99_ms: SEED_BEAT_MS * 0.99 + seed_pass_ms,
        rss_bytes_per_app: empty.zip(full).map(|(empty, full)| full.saturating_sub(empty) / amount.apps.max(1) as u64),
        idle_s: amount.idle.as_secs_f64(),
        idle_api_calls_per_min: idle.calls as f64 * 60.0 / amount.idle.as_secs_f64(),
        state_bytes_per_app,
        idle_cpu_percent: idle.cpu_percent.zip(world_cpu_percent).map(|(with, without)| (with - without).max(0.0)),
        idle_cpu_percent_with_cluster: idle.cpu_percent,
        gateway: if gateway == By::Http { "http" } else { "process" },
        cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        file_system: place.file_system.clone(),
        synced: true,
    };
    rig.stop().await?;
    Ok(figures)
}

/// What the state of an idle app takes: many copies of all of them are made, and the process has grown by so much.
fn state_bytes_per_app(rig: &Rig) -> Result<Option<u64>, CliError> {
    let states = rig.registry()?.states();
    let before = resident_bytes();
    let copies: Vec<Vec<_>> = (0..STATE_COPIES).map(|_| states.iter().map(|(id, app)| (id.clone(), App::clone(app))).collect()).collect();
    let after = resident_bytes();
    let made: usize = copies.iter().map(Vec::len).sum();
    Ok(before.zip(after).map(|(before, after)| after.saturating_sub(before) / made.max(1) as u64))
}

/// What an idle daemon costs.
struct Idle {
    calls: usize,
    cpu_percent: Option<f64>,
}

impl Idle {
    async fn measure(rig: &Rig, span: Duration) -> Self {
        let from = rig.world.api.audit().len();
        let spent = Spent::begin();
        tokio::time::sleep(span).await;
        let cpu_percent = spent.and_then(|spent| spent.percent());
        let asked = rig.world.api.audit().since(from);
        let counts = asked.iter().filter(|entry| entry.user == DAEMON && entry.verb != "watch" && entry.resource != "leases");
        Self { calls: counts.count(), cpu_percent }
    }
}

/// The seed's way: all pods are listed, and everything is planned. The middle of some passes.
async fn seed_pass_ms(rig: &Rig) -> Result<f64, CliError> {
    let requests = Requests::new(rig.world.api.client_as("seed", &rig.world.namespace));
    let path = format!("/api/v1/namespaces/{}/pods", rig.world.namespace);
    let settings = PlanSettings::from(&Settings::default().plan);
    let mut passes = Vec::new();
    for _ in 0..SEED_PASSES {
        let begun = clock::now();
        requests.get(&path).await.map_err(|error| CliError::refused(format!("the embedded cluster does not list: {error}"), ""))?;
        let now_us = rig.world.clock.now_us();
        for (_, app) in rig.registry()?.states() {
            std::hint::black_box(plan(&app, &settings, Rules::CURRENT, now_us));
        }
        passes.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(p50_p99_ms(passes).0)
}

/// What came of the changes, by the embedded cluster.
struct Changed {
    made: Vec<Change>,
    events_per_s: f64,
    to_write_us: Vec<u64>,
    writes: usize,
    commits: Vec<Commit>,
    cpu_percent: Option<f64>,
    /// The last record before the first change.
    after: Seq,
}

/// One change; log times.
struct Change {
    host: HostName,
    /// When the pod was taken away.
    at_us: i64,
    /// When the first write that it asked for arrived.
    written_us: i64,
}

impl Changed {
    async fn measure(rig: &Rig, rounds: usize) -> Result<Self, CliError> {
        let after = rig.reader()?.head();
        let from = rig.world.api.audit().len();
        rig.commits.take();
        let mut made = Vec::new();
        let (mut making, mut cpu_percent) = (Duration::ZERO, None);
        for _ in 0..rounds {
            rig.wait_for_all().await?;
            tokio::time::sleep(PAUSE).await;
            let (begun, spent) = (clock::now(), Spent::begin());
            let mut ticks = tokio::time::interval(EVERY);
            for host in &rig.hosts {
                ticks.tick().await;
                made.push(Change { host: host.clone(), at_us: rig.world.clock.now_us(), written_us: 0 });
                rig.world.api.remove_raw("pods", &rig.world.namespace, host.as_str());
            }
            making += begun.elapsed();
            cpu_percent = spent.and_then(|spent| spent.percent());
        }
        rig.wait_for_all().await?;
        let commits = rig.commits.take();
        let mut asked: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        let mut writes = 0;
        for entry in rig.world.api.audit().since(from) {
            if entry.user == DAEMON && matches!(entry.verb, "create" | "update" | "delete") {
                writes += 1;
                let host = entry.name.strip_suffix("-env").unwrap_or(&entry.name);
                asked.entry(host.to_owned()).or_default().push(entry.asked_us);
            }
        }
        for change in &mut made {
            let times = asked.get(change.host.as_str()).into_iter().flatten();
            let first = times.copied().filter(|at_us| *at_us >= change.at_us).min();
            let missing = || CliError::refused(format!("{} is gone, and nothing was written", change.host), "report it");
            change.written_us = first.ok_or_else(missing)?;
        }
        let events_per_s = made.len() as f64 / making.as_secs_f64().max(0.001);
        let to_write_us = made.iter().map(|change| span(change.at_us, change.written_us)).collect();
        Ok(Self { made, events_per_s, to_write_us, writes, commits, cpu_percent, after })
    }
}

fn span(from_us: i64, to_us: i64) -> u64 {
    u64::try_from(to_us - from_us).unwrap_or(0)
}

/// What came of the changes, by the log.
#[derive(Default)]
struct Read {
    /// Reactions that took in that a pod is gone.
    taking_in: usize,
    reactions: usize,
    to_plan_us: Vec<u64>,
    to_durable_us: Vec<u64>,
    to_sent_us: Vec<u64>,
}

impl Read {
    fn from(rig: &Rig, changed: &Changed) -> Result<Self, CliError> {
        let mut read = Self::default();
        let mut planned: BTreeMap<HostName, Vec<(i64, Seq)>> = BTreeMap::new();
        let (mut reaction, mut taking_in) = (Seq::NONE, Seq::NONE);
        let scanned = rig.reader()?.scan(Seq(changed.after.0 + 1), &mut |item| {
            if let Ok(stored) = item {
                if stored.header.reaction != reaction {
                    reaction = stored.header.reaction;
                    read.reactions += 1;
                }
                match &stored.body {
                    Body::Known(Event::PodGone(_)) if taking_in != reaction => {
                        taking_in = reaction;
                        read.taking_in += 1;
                    }
                    Body::Known(Event::StepIssued(StepIssued { step: Step::PutSecret { host, .. }, .. })) => {
                        planned.entry(host.clone()).or_default().push((stored.header.time_us, stored.header.seq));
                    }
                    Body::Known(_) | Body::Opaque(_) | Body::NeedsVersion(_) | Body::Withheld => {}
                }
            }
            std::ops::ControlFlow::Continue(())
        });
        scanned.map_err(|error| CliError::refused(error.to_string(), "look at the disk"))?;
        for change in &changed.made {
            let of_host = planned.get(&change.host).into_iter().flatten();
            let Some((planned_us, seq)) = of_host.copied().find(|(planned_us, _)| *planned_us >= change.at_us) else { continue };
            let commit = changed.commits.partition_point(|commit| commit.last < seq);
            let Some(durable_us) = changed.commits.get(commit).map(|commit| commit.at_us) else { continue };
            read.to_plan_us.push(span(change.at_us, planned_us));
            read.to_durable_us.push(span(planned_us, durable_us));
            read.to_sent_us.push(span(durable_us, change.written_us));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn it_comes_to_its_end_and_one_change_is_one_reaction() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::unchecked(folder.path());
        let amount = Amount { apps: 5, rounds: 2, idle: Duration::from_millis(200) };
        let figures = measure(&amount, &place, By::Process).await.expect("figures");
        assert_eq!((figures.changes, figures.reactions_per_change), (10, 1.0), "{}", figures.text());
        assert!(figures.p50_ms > 0.0 && figures.p50_ms <= figures.p99_ms, "{}", figures.text());
    }
}
