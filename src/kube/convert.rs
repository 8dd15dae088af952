//! From a pod as the API server shows it to our own projection of it. Knows no HTTP, no time, no rule of the plan.
//!
//! Containers go by their names, `install` and `app`, never by their place: webhooks put their own first (case B26).

use super::labels::{Ownership, Scheme};
use super::view::{Condition, ContainerStatus, InitContainer, Meta, PodStatus, PodView, State, Terminated};
use crate::events::kinds::pod::{Container, ContainerEnd, ContainerState, Disruption, Phase, PodSeen, Scheduling};
use crate::ids::{AppId, HostName, PackageDigest, RecordId, Uid, Word, shown};

/// The init container that installs a release.
pub const INSTALL: &str = "install";

/// The container that runs it.
pub const APP: &str = "app";

/// The longest text of the kubelet's or the app's that an observation carries, bytes.
pub const MESSAGE_BYTES: usize = 4096;

/// A pod as a list, a watch or a read showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation<T = AppId> {
    /// Whose it is.
    pub ownership: Ownership<T>,
    /// What is recorded of it.
    pub seen: PodSeen,
    /// The digest of the manifest that made it, by its annotation.
    pub manifest_digest: Option<String>,
    /// What is said about it in words: never in what decides.
    pub messages: Vec<Message>,
    /// Fields that could not be read and have their default instead.
    pub odd: Vec<String>,
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageOf {
    /// The pod, by the kubelet.
    Pod,
    /// Its place, by the scheduler.
    Scheduling,
    /// The install, which waits or ended.
    Install,
    /// The app, which waits or ended.
    App,
}

/// Free text about a pod: it may hold what the tenant wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// About what.
    pub of: MessageOf,
    /// Whether it is a container's termination message.
    pub ended: bool,
    /// At most [`MESSAGE_BYTES`].
    pub text: String,
}

/// An object that cannot be observed at all: it is there, and nothing may be concluded about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Odd {
    /// Its name as far as it can be shown, escaped.
    pub name: String,
    /// Its identity, when readable.
    pub uid: Option<Uid>,
    /// Its version, when readable.
    pub resource_version: Option<u64>,
    /// What is wrong with it.
    pub why: String,
}

impl Odd {
    /// What can be said of an object by its metadata.
    #[must_use]
    pub fn new(meta: &Meta, why: &str) -> Self {
        Self {
            name: shown(meta.name.as_deref().unwrap_or(""), 253),
            uid: meta.uid.as_deref().and_then(|uid| Uid::new(uid).ok()),
            resource_version: meta.version(),
            why: shown(why, 200),
        }
    }
}

/// What is recorded of a pod.
///
/// # Errors
/// When it has no name that a host can have, no uid, or no version that is a number.
pub fn observe(scheme: &Scheme, view: &PodView, odd: Vec<String>) -> Result<Observation, Odd> {
    observe_as(scheme, scheme.ownership(&view.metadata), APP, view, odd)
}

/// The same of a pod whose container has that name, and whose owner is known.
///
/// # Errors
/// As [`observe`].
pub fn observe_as<T>(
    scheme: &Scheme,
    ownership: Ownership<T>,
    container_name: &str,
    view: &PodView,
    mut odd: Vec<String>,
) -> Result<Observation<T>, Odd> {
    let meta = &view.metadata;
    let host = HostName::new(meta.name.as_deref().unwrap_or("")).map_err(|bad| Odd::new(meta, &bad.to_string()))?;
    let uid = Uid::new(meta.uid.as_deref().unwrap_or("")).map_err(|bad| Odd::new(meta, &bad.to_string()))?;
    let resource_version = meta.version().ok_or_else(|| Odd::new(meta, "metadata.resourceVersion is no number"))?;
    let nothing = PodStatus::default();
    let status = view.status.as_ref().unwrap_or(&nothing);
    let spec = view.spec.as_ref();
    let node = word(spec.and_then(|spec| spec.node_name.as_deref()));
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let install = find(status.init_container_statuses.as_deref(), INSTALL);
    let app = find(status.container_statuses.as_deref(), container_name);
    let inits = spec.and_then(|spec| spec.init_containers.as_deref());
    let seen = PodSeen {
        host,
        uid,
        resource_version,
        release: release(scheme, meta, &mut odd),
        sha256: package(scheme, meta, inits),
        step: meta.annotation(&scheme.key("step")).and_then(RecordId::parse),
        phase: phase(status.phase.as_deref(), &mut odd),
        reason: word(status.reason.as_deref()),
        deleting: meta.deleting(),
        scheduling: scheduling(conditions, &node),
        node,
        disruption: disruption(conditions),
        ready: condition(conditions, "Ready").is_some_and(|ready| ready.status.as_deref() == Some("True")),
        created_us: time_us(meta.creation_timestamp.as_deref(), "metadata.creationTimestamp", &mut odd),
        install: container(install, &mut odd),
        app: container(app, &mut odd),
    };
    Ok(Observation {
        ownership,
        seen,
        manifest_digest: meta.annotation(&scheme.key("digest")).map(|digest| cut(digest, 128)),
        messages: messages(status, conditions, install, app),
        odd,
    })
}

fn word(text: Option<&str>) -> Word {
    Word::new(text.unwrap_or(""))
}

fn find<'a>(statuses: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerStatus> {
    statuses?.iter().find(|status| status.name.as_deref() == Some(name))
}

fn condition<'a>(conditions: &'a [Condition], name: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type.as_deref() == Some(name))
}

fn release(scheme: &Scheme, meta: &Meta, odd: &mut Vec<String>) -> u64 {
    let Some(label) = meta.label(&scheme.key("release")) else { return 0 };
    label.parse().unwrap_or_else(|_| {
        odd.push("label release".to_owned());
        0
    })
}

/// The package by our annotation, else by the install's command or environment: the seed wrote it there alone.
fn package(scheme: &Scheme, meta: &Meta, inits: Option<&[InitContainer]>) -> Option<PackageDigest> {
    if let Some(text) = meta.annotation(&scheme.key("sha256")) {
        return PackageDigest::parse(text).ok();
    }
    let install = inits?.iter().find(|init| init.name.as_deref() == Some(INSTALL))?;
    let words = install.command.iter().chain(&install.args).flatten();
    let values = install.env.iter().flatten().filter_map(|variable| variable.value.as_ref());
    words.chain(values).find_map(|text| {
        let (_, after) = text.split_once("/sources/")?;
        PackageDigest::parse(after.get(..64)?).ok()
    })
}

fn phase(text: Option<&str>, odd: &mut Vec<String>) -> Phase {
    match text {
        // A pod that was just created and not yet defaulted has none.
        None | Some("Pending") => Phase::Pending,
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some("Unknown") => Phase::Unknown,
        Some(_) => {
            odd.push("status.phase".to_owned());
            Phase::Unknown
        }
    }
}

fn scheduling(conditions: &[Condition], node: &Word) -> Scheduling {
    let scheduled = condition(conditions, "PodScheduled");
    match scheduled.map(|condition| (condition.status.as_deref(), condition.reason.as_deref())) {
        _ if !node.is_empty() => Scheduling::Done,
        Some((Some("True"), _)) => Scheduling::Done,
        Some((Some("False"), Some("Unschedulable"))) => Scheduling::Unschedulable,
        _ => Scheduling::Waiting,
    }
}

fn disruption(conditions: &[Condition]) -> Option<Disruption> {
    let target = condition(conditions, "DisruptionTarget")?;
    if target.status.as_deref() != Some("True") {
        return None;
    }
    Some(match target.reason.as_deref() {
        Some("EvictionByEvictionAPI") => Disruption::Evicted,
        Some("PreemptionByScheduler" | "PreemptionByKubeScheduler") => Disruption::Preempted,
        Some("DeletionByTaintManager") => Disruption::Tainted,
        Some("DeletionByPodGC") => Disruption::Collected,
        Some("TerminationByKubelet") => Disruption::Kubelet,
        _ => Disruption::Other,
    })
}

fn container(status: Option<&ContainerStatus>, odd: &mut Vec<String>) -> Container {
    let Some(status) = status else {
        return Container { state: ContainerState::Absent, restarts: 0, last_end: None };
    };
    let state = match &status.state {
        Some(State { terminated: Some(ended), .. }) => ContainerState::Ended(end(ended, odd)),
        Some(State { running: Some(running), .. }) => {
            ContainerState::Running { started_us: time_us(running.started_at.as_deref(), "running.startedAt", odd) }
        }
        Some(State { waiting: Some(waiting), .. }) => ContainerState::Waiting { reason: word(waiting.reason.as_deref()) },
        _ => ContainerState::Absent,
    };
    let last = status.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    Container {
        state,
        restarts: u32::try_from(status.restart_count.unwrap_or(0).max(0)).unwrap_or(u32::MAX),
        last_end: last.map(|ended| end(ended, odd)),
    }
}

fn end(ended: &Terminated, odd: &mut Vec<String>) -> ContainerEnd {
    let code = ended.exit_code.and_then(|code| i32::try_from(code).ok());
    if code.is_none() {
        odd.push("terminated.exitCode".to_owned());
    }
    ContainerEnd {
        // An end whose code cannot be read is never shown as a good one.
        exit_code: code.unwrap_or(-1),
        signal: ended.signal.and_then(|signal| i32::try_from(signal).ok()).unwrap_or(0),
        reason: word(ended.reason.as_deref()),
        started_us: time_us(ended.started_at.as_deref(), "terminated.startedAt", odd),
        finished_us: time_us(ended.finished_at.as_deref(), "terminated.finishedAt", odd),
    }
}

/// A time of the API server's or a kubelet's, microseconds since 1970; 0 when it is none, or before 1970 (the zero time of the
/// servers' language is in the year 1).
fn time_us(text: Option<&str>, field: &str, odd: &mut Vec<String>) -> i64 {
    let Some(text) = text else { return 0 };
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        time.as_microsecond().max(0)
    } else {
        odd.push(field.to_owned());
        0
    }
}

fn messages(
    status: &PodStatus,
    conditions: &[Condition],
    install: Option<&ContainerStatus>,
    app: Option<&ContainerStatus>,
) -> Vec<Message> {
    let unplaced = condition(conditions, "PodScheduled").filter(|condition| condition.status.as_deref() == Some("False"));
    let mut said = vec![
        (MessageOf::Pod, false, status.message.as_ref()),
        (MessageOf::Scheduling, false, unplaced.and_then(|condition| condition.message.as_ref())),
    ];
    for (of, status) in [(MessageOf::Install, install), (MessageOf::App, app)] {
        let state = status.and_then(|status| status.state.as_ref());
        said.push((of, false, state.and_then(|state| state.waiting.as_ref()?.message.as_ref())));
        said.push((of, true, state.and_then(|state| state.terminated.as_ref()?.message.as_ref())));
    }
    said.into_iter()
        .filter_map(|(of, ended, text)| Some(Message { of, ended, text: cut(text?, MESSAGE_BYTES) }))
        .filter(|message| !message.text.is_empty())
        .collect()
}

/// The beginning of a text, at most `bytes` long, cut between characters.
#[must_use]
pub fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}
