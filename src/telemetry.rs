//! Logs and metrics: typed, bounded, without a label that grows with tenants.
//!
//! Counters count what this process did: a replay adds nothing to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::config::{Format, Telemetry};
use crate::events::kinds::step::Outcome;
use crate::events::kinds::verdict::{EndCause, Stage};

/// The content type of [`Metrics::text`].
pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the filter can be read.
///
/// # Errors
/// When it cannot.
pub fn check(settings: &Telemetry) -> Result<(), ParseError> {
    filter(settings).map(|_| ())
}

fn filter(settings: &Telemetry) -> Result<EnvFilter, ParseError> {
    // ractor opens a span an actor for its whole life: a prefix on every line, and memory.
    EnvFilter::try_new(format!("info,ractor=warn,{}", settings.filter))
}

/// Starts writing log lines to stderr, without colours. `terminal` is whether stderr is one: then `auto` means text.
/// A second call changes nothing.
///
/// # Errors
/// When the filter cannot be read.
pub fn start(settings: &Telemetry, terminal: bool) -> Result<(), ParseError> {
    let filter = filter(settings)?;
    let json = match settings.format {
        Format::Json => true,
        Format::Text => false,
        Format::Auto => !terminal,
    };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    let started = if json { subscriber.json().flatten_event(true).try_init() } else { subscriber.try_init() };
    // Whoever came first keeps writing: the tests of one process.
    let _ = started;
    Ok(())
}

/// Seconds from 100 µs to about 200 s, each bound three times the last.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 3.0, 14))
}

/// Counts from 1 to 4,096.
fn counts() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 7))
}

type Label = [(&'static str, &'static str); 1];
type StepLabels = [(&'static str, &'static str); 2];
type Seconds = Gauge<f64, AtomicU64>;

/// What is counted; cheap to clone, all clones count together. Every label has a fixed set of values.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    reactions: Counter,
    steps: Family<StepLabels, Counter>,
    api_seconds: Family<Label, Histogram, fn() -> Histogram>,
    queue_depth: Family<Label, Gauge<i64, AtomicI64>>,
    watch_age_seconds: Seconds,
    secrets_late: Gauge<i64, AtomicI64>,
    commit_seconds: Histogram,
    commit_records: Histogram,
    replay_seconds: Seconds,
    log_oldest_seconds: Seconds,
    log_kept_bytes: Gauge<i64, AtomicI64>,
    log_retention_held: Gauge<i64, AtomicI64>,
    feed_lag_records: Family<Label, Gauge<i64, AtomicI64>>,
    start_seconds: Family<Label, Histogram, fn() -> Histogram>,
    ends: Family<Label, Counter>,
    alarms: Family<Label, Gauge<i64, AtomicI64>>,
    sessions: Gauge<i64, AtomicI64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Arc::default(),
            reactions: Counter::default(),
            steps: Family::default(),
            api_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            queue_depth: Family::default(),
            watch_age_seconds: Gauge::default(),
            secrets_late: Gauge::default(),
            commit_seconds: seconds(),
            commit_records: counts(),
            replay_seconds: Gauge::default(),
            log_oldest_seconds: Gauge::default(),
            log_kept_bytes: Gauge::default(),
            log_retention_held: Gauge::default(),
            feed_lag_records: Family::default(),
            start_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            ends: Family::default(),
            alarms: Family::default(),
            sessions: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("wharf");
        registry.register("reactions", "Reactions appended", metrics.reactions.clone());
        registry.register("steps", "Steps settled, by verb and outcome", metrics.steps.clone());
        registry.register(
            "api_call_seconds",
            "Calls of the Kubernetes API, from written to answered, by verb",
            metrics.api_seconds.clone(),
        );
        registry.register("queue_depth", "Steps that wait, by lane", metrics.queue_depth.clone());
        registry.register("watch_age_seconds", "Since the watch's last sign of life", metrics.watch_age_seconds.clone());
        registry.register("secrets_late", "1 while the Secrets cannot be listed and nothing waits for them", metrics.secrets_late.clone());
        registry.register("log_commit_seconds", "Group commits of the log, until durable", metrics.commit_seconds.clone());
        registry.register("log_commit_records", "Records of a group commit", metrics.commit_records.clone());
        registry.register("replay_seconds", "How long the last replay took", metrics.replay_seconds.clone());
        registry.register("log_oldest_seconds", "The age of the oldest record that is kept", metrics.log_oldest_seconds.clone());
        registry.register("log_kept_bytes", "Records that are kept, without what the store needs beside", metrics.log_kept_bytes.clone());
        registry.register(
            "log_retention_held",
            "1 while something should age out and cannot: the log lines say why",
            metrics.log_retention_held.clone(),
        );
        registry.register("feed_lag_records", "Durable records that a sink has not taken yet, by sink", metrics.feed_lag_records.clone());
        registry.register("start_stage_seconds", "How long a host's stage took, once a start, by stage", metrics.start_seconds.clone());
        registry.register("ends", "Ends of pods, by cause", metrics.ends.clone());
        registry.register("alarms", "Alarms that are raised, by name", metrics.alarms.clone());
        registry.register("sessions", "Sessions that are wanted, being removed, or have anything left", metrics.sessions.clone());
        metrics.registry = Arc::new(registry);
        metrics
    }
}

impl Metrics {
    /// A reaction was appended.
    pub fn reaction(&self) {
        self.reactions.inc();
    }

    /// A step was settled; `verb` is [`Step::name`](crate::events::kinds::step::Step::name).
    pub fn step(&self, verb: &'static str, outcome: Outcome) {
        self.steps.get_or_create(&[("verb", verb), ("outcome", outcome_class(outcome))]).inc();
    }

    /// So many sessions take up a place.
    pub fn sessions(&self, count: usize) {
        self.sessions.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A call of the Kubernetes API was answered or given up; `verb` as Kubernetes has it, for example `create`.
    pub fn api_call(&self, verb: &'static str, took_us: u64) {
        self.api_seconds.get_or_create(&[("verb", verb)]).observe(in_seconds(took_us));
    }

    /// How many steps wait in a lane.
    pub fn queue_depth(&self, lane: &'static str, steps: usize) {
        self.queue_depth.get_or_create(&[("lane", lane)]).set(i64::try_from(steps).unwrap_or(i64::MAX));
    }

    /// How long ago the watch gave a sign of life.
    pub fn watch_age(&self, age_us: u64) {
        self.watch_age_seconds.set(in_seconds(age_us));
    }

    /// Whether the Secrets could not be listed for so long that nothing waits for them any more.
    pub fn secrets_late(&self, late: bool) {
        self.secrets_late.set(i64::from(late));
    }

    /// A group commit is durable.
    pub fn commit(&self, took_us: u64, records: u64) {
        self.commit_seconds.observe(in_seconds(took_us));
        self.commit_records.observe(records as f64);
    }

    /// How old the oldest kept record is, and how many bytes the kept ones are.
    pub fn log_kept(&self, oldest_us: u64, bytes: u64) {
        self.log_oldest_seconds.set(in_seconds(oldest_us));
        self.log_kept_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Whether something should age out of the log and cannot.
    pub fn log_retention(&self, held: bool) {
        self.log_retention_held.set(i64::from(held));
    }

    /// How many durable records a sink has not taken yet.
    pub fn feed_lag(&self, sink: &'static str, records: u64) {
        self.feed_lag_records.get_or_create(&[("sink", sink)]).set(i64::try_from(records).unwrap_or(i64::MAX));
    }

    /// A replay ended.
    pub fn replay(&self, took_us: u64) {
        self.replay_seconds.set(in_seconds(took_us));
    }

    /// A host got through a stage of its start: once a start, not again when it flaps.
    pub fn started(&self, stage: Stage, took_us: u64) {
        self.start_seconds.get_or_create(&[("stage", stage_name(stage))]).observe(in_seconds(took_us));
    }

    /// A pod ended.
    pub fn ended(&self, cause: EndCause) {
        self.ends.get_or_create(&[("cause", cause_name(cause))]).inc();
    }

    /// How many alarms of that name are raised. `name` is one of ours, so that there are only so many.
    pub fn alarms(&self, name: &'static str, raised: usize) {
        self.alarms.get_or_create(&[("name", name)]).set(i64::try_from(raised).unwrap_or(i64::MAX));
    }

    /// All of it, as [`METRICS_TYPE`].
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}

fn in_seconds(us: u64) -> f64 {
    us as f64 / 1_000_000.0
}

fn outcome_class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Done => "done",
        Outcome::AlreadySo => "already_so",
        Outcome::Gone => "gone",
        Outcome::Conflict => "conflict",
        Outcome::NameHeld => "name_held",
        Outcome::Refused(_) => "refused",
        Outcome::Revoked => "revoked",
        Outcome::Unknown => "unknown",
        Outcome::Unsent => "unsent",
    }
}

/// A stage as labels and answers name it.
#[must_use]
pub fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Scheduling => "scheduling",
        Stage::Pull => "pull",
        Stage::Install => "install",
        Stage::Register => "register",
        Stage::Serving => "serving",
        Stage::Terminating => "terminating",
    }
}

/// A cause as labels and answers name it.
#[must_use]
pub fn cause_name(cause: EndCause) -> &'static str {
    match cause {
        EndCause::AppExit => "app_exit",
        EndCause::Oom => "oom",
        EndCause::InstallFailed => "install_failed",
        EndCause::Evicted => "evicted",
        EndCause::Preempted => "preempted",
        EndCause::NodeLost => "node_lost",
        EndCause::NodeShutdown => "node_shutdown",
        EndCause::NodeRefused => "node_refused",
        EndCause::DeletedByUs => "deleted_by_us",
        EndCause::DeletedByOther => "deleted_by_other",
        EndCause::Vanished => "vanished",
        EndCause::Stuck(_) => "stuck",
        EndCause::NeverStarted(_) => "never_started",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::kinds::step::Refusal;

    #[test]
    fn b67_series_are_as_many_as_causes_and_no_more() {
        let metrics = Metrics::default();
        let count = || metrics.text().lines().count();
        for round in 0..2 {
            let before = count();
            for _ in 0..10_000 {
                metrics.reaction();
                metrics.step("CreatePod", Outcome::Refused(Refusal::Quota));
                metrics.step("CreatePod", Outcome::Refused(Refusal::Webhook));
                metrics.ended(EndCause::Stuck(Stage::Pull));
                metrics.ended(EndCause::Stuck(Stage::Install));
                metrics.started(Stage::Register, 2_000_000);
                metrics.api_call("create", 3_000);
            }
            assert_eq!(count() == before, round == 1, "the second round adds no series");
        }
        let text = metrics.text();
        assert!(text.contains("wharf_ends_total{cause=\"stuck\"} 40000\n"), "{text}");
        assert!(text.contains("wharf_steps_total{verb=\"CreatePod\",outcome=\"refused\"} 40000\n"), "{text}");
    }

    #[test]
    fn an_alarm_and_a_queue_are_gauges() {
        let metrics = Metrics::default();
        metrics.alarms("unclaimed", 3);
        metrics.alarms("unclaimed", 0);
        metrics.queue_depth("drain", 2);
        metrics.watch_age(1_500_000);
        let text = metrics.text();
        for line in ["wharf_alarms{name=\"unclaimed\"} 0\n", "wharf_queue_depth{lane=\"drain\"} 2\n", "wharf_watch_age_seconds 1.5\n"] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error() {
        let settings = Telemetry { filter: "wharfinger=[".to_owned(), format: Format::Json };
        assert!(start(&settings, false).is_err());
    }
}
