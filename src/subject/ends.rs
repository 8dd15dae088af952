//! How a pod ended, and why: read from one observation, and from what is remembered of the pod.
//!
//! Everything goes by container name, and no branch needs the word `OOMKilled` to see a death (cases B18, B19, B21, B26).

use super::pod::{End, Pod};
use crate::events::kinds::pod::{ContainerEnd, ContainerState, Disruption, GoneHow, NodeReady, Phase, PodSeen};
use crate::events::kinds::verdict::{EndCause, NeverStarted, Stage};
use crate::ids::{Seq, Word};

/// The app's container.
pub const APP: &str = "app";
/// The init container that installs it.
pub const INSTALL: &str = "install";

/// The end that `view` shows, when it shows one. `pod` is what was known before, with `view`'s disruption remembered.
#[must_use]
pub fn end_shown(pod: &Pod, view: &PodSeen, seq: Seq, now_us: i64) -> Option<End> {
    let (container, ended) = ended_container(view);
    let over = matches!(view.phase, Phase::Failed | Phase::Succeeded);
    if ended.is_none() && !over {
        return None;
    }
    let cause = cause_of(pod, view, container, ended);
    let restart = match container {
        APP => view.app.restarts,
        INSTALL => view.install.restarts,
        _ => 0,
    };
    Some(End {
        seq,
        uid: view.uid.clone(),
        container: Word::new(container),
        restart,
        cause,
        exit_code: ended.map(|end| end.exit_code),
        signal: ended.map(|end| end.signal).filter(|signal| *signal != 0),
        reason: ended
            .map_or_else(|| view.reason.clone(), |end| if view.reason.is_empty() { end.reason.clone() } else { view.reason.clone() }),
        stage: pod.stage,
        node: view.node.clone(),
        at_us: believed(ended.map_or(0, |end| end.finished_us), pod.seen_us, now_us),
    })
}

/// The end of a pod that is gone without having shown one.
#[must_use]
pub fn end_unseen(pod: &Pod, how: GoneHow, node: Option<NodeReady>, seq: Seq, now_us: i64) -> End {
    let cause = match (pod.disruption, how) {
        // The object was forced away because nobody could ask its node.
        _ if pod.delete.is_some_and(|delete| delete.forced) => EndCause::NodeLost,
        _ if pod.delete.is_some() => EndCause::DeletedByUs,
        (Some(disruption), _) => disrupted(disruption, &Word::default()),
        (None, _) if node == Some(NodeReady::Gone) => EndCause::NodeLost,
        (None, GoneHow::Absent) if pod.deleting_since_us.is_none() => EndCause::Vanished,
        (None, GoneHow::Deleted | GoneHow::NotFound | GoneHow::Absent) => EndCause::DeletedByOther,
    };
    End {
        seq,
        uid: pod.uid.clone(),
        container: Word::default(),
        restart: 0,
        cause,
        exit_code: None,
        signal: None,
        reason: Word::default(),
        stage: pod.stage,
        node: pod.view.as_ref().map(|view| view.node.clone()).unwrap_or_default(),
        at_us: now_us,
    }
}

/// A kubelet's time, if it lies after our last observation and not after this one; else the time we saw it (DESIGN.md, "Time").
#[must_use]
pub fn believed(kubelet_us: i64, last_seen_us: i64, now_us: i64) -> i64 {
    if kubelet_us > 0 && kubelet_us >= last_seen_us && kubelet_us <= now_us { kubelet_us } else { now_us }
}

/// The container that ended the pod: the app, or an install that failed.
fn ended_container(view: &PodSeen) -> (&'static str, Option<&ContainerEnd>) {
    if let ContainerState::Ended(end) = &view.app.state {
        return (APP, Some(end));
    }
    match &view.install.state {
        ContainerState::Ended(end) if end.exit_code != 0 || end.signal != 0 => (INSTALL, Some(end)),
        ContainerState::Ended(_) | ContainerState::Absent | ContainerState::Waiting { .. } | ContainerState::Running { .. } => ("", None),
    }
}

fn cause_of(pod: &Pod, view: &PodSeen, container: &str, ended: Option<&ContainerEnd>) -> EndCause {
    // Only a deletion that this very observation shows can have ended it: before, the process ended by itself. One of ours that nobody
    // answered may never have arrived.
    if view.deleting && pod.delete_stands() {
        return EndCause::DeletedByUs;
    }
    if let Some(disruption) = pod.disruption {
        return disrupted(disruption, &view.reason);
    }
    if let Some(cause) = said_by_node(view.reason.as_str()) {
        return cause;
    }
    if view.deleting {
        return EndCause::DeletedByOther;
    }
    match ended {
        None => EndCause::NodeRefused,
        Some(end) if lost_by_kubelet(end) => EndCause::NodeLost,
        Some(_) if container == INSTALL => EndCause::InstallFailed,
        Some(end) => process_end(end),
    }
}

fn process_end(end: &ContainerEnd) -> EndCause {
    match (end.reason.as_str(), end.exit_code) {
        ("OOMKilled", _) => EndCause::Oom,
        ("StartError" | "ContainerCannotRun", _) => EndCause::NeverStarted(NeverStarted::Config),
        // gVisor reports a memory kill as 137 or 128 without a word (cases B21).
        ("Error", 137 | 128) => EndCause::Oom,
        _ => EndCause::AppExit,
    }
}

/// The kubelet no longer knows what became of the container: its node was rebooted or lost it.
fn lost_by_kubelet(end: &ContainerEnd) -> bool {
    matches!((end.reason.as_str(), end.exit_code), ("ContainerStatusUnknown", _) | ("Unknown", 255))
}

fn disrupted(disruption: Disruption, reason: &Word) -> EndCause {
    match disruption {
        Disruption::Preempted => EndCause::Preempted,
        Disruption::Tainted | Disruption::Collected => EndCause::NodeLost,
        Disruption::Kubelet => said_by_node(reason.as_str()).unwrap_or(EndCause::Evicted),
        Disruption::Evicted | Disruption::Other => EndCause::Evicted,
    }
}

/// What a pod's own reason says: it is the node's or the scheduler's word, never the app's.
fn said_by_node(reason: &str) -> Option<EndCause> {
    match reason {
        "Evicted" | "DeadlineExceeded" => Some(EndCause::Evicted),
        "Preempting" | "Preempted" => Some(EndCause::Preempted),
        "NodeLost" => Some(EndCause::NodeLost),
        "NodeShutdown" | "Shutdown" | "Terminated" => Some(EndCause::NodeShutdown),
        "NodeAffinity" | "UnexpectedAdmissionError" | "NodePorts" | "AdmissionFailed" => Some(EndCause::NodeRefused),
        other if other.to_ascii_lowercase().starts_with("outof") => Some(EndCause::NodeRefused),
        _ => None,
    }
}

/// What keeps the pod from ever starting, when nothing will change that by itself (cases B23).
#[must_use]
pub fn never_starts(view: &PodSeen) -> Option<NeverStarted> {
    [&view.install, &view.app].into_iter().find_map(|container| match &container.state {
        ContainerState::Waiting { reason } => match reason.as_str() {
            "InvalidImageName" | "ErrImageNeverPull" => Some(NeverStarted::Image),
            "CreateContainerConfigError" => Some(NeverStarted::Config),
            "CreateContainerError" | "RunContainerError" => Some(NeverStarted::Runtime),
            _ => None,
        },
        ContainerState::Absent | ContainerState::Running { .. } | ContainerState::Ended(_) => None,
    })
}

/// The stage that the view shows, without regard to whether the host went live.
#[must_use]
pub fn stage_shown(view: &PodSeen) -> Stage {
    use ContainerState::{Absent, Ended, Running, Waiting};
    if view.deleting {
        return Stage::Terminating;
    }
    match (&view.app.state, &view.install.state) {
        (Running { .. } | Ended(_), _) => Stage::Register,
        (_, Running { .. }) => Stage::Install,
        (_, Ended(end)) if end.exit_code != 0 => Stage::Install,
        (Absent | Waiting { .. }, Absent | Waiting { .. } | Ended(_)) => {
            if view.node.is_empty() && view.phase == Phase::Pending {
                Stage::Scheduling
            } else {
                Stage::Pull
            }
        }
    }
}

/// When the stage began by the kubelet's clock; 0 when it does not say.
#[must_use]
pub fn stage_began_us(view: &PodSeen, stage: Stage) -> i64 {
    let started = |state: &ContainerState| match state {
        ContainerState::Running { started_us } => *started_us,
        ContainerState::Ended(end) => end.started_us,
        ContainerState::Absent | ContainerState::Waiting { .. } => 0,
    };
    match stage {
        Stage::Register => started(&view.app.state),
        Stage::Install => started(&view.install.state),
        Stage::Scheduling | Stage::Pull | Stage::Serving | Stage::Terminating => 0,
    }
}
