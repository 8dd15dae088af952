//! Whose fault each recorded end is: pods as real API servers showed them, in the order in which a watch would, and the cause
//! that the fold gives them.

use serde_json::{Value, json};

use super::story::{Story, name};
use crate::config::Settings;
use crate::events::kinds::pod::{GoneHow, PodGone, PodSeen};
use crate::events::kinds::verdict::{EndCause, NeverStarted, PodEnded};
use crate::events::record::Event;
use crate::kube::convert;
use crate::kube::labels::Scheme;
use crate::kube::view;

/// A recorded pod under one host's name, its containers named as ours are.
fn recorded(file: &str, version: u64) -> PodSeen {
    let path = format!("{}/tests/data/podjson/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut pod: Value = serde_json::from_str(&text).expect("a recording is JSON");
    for path in ["/spec/initContainers", "/spec/containers", "/status/initContainerStatuses", "/status/containerStatuses"] {
        for container in pod.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten() {
            let ours = if container["name"] == "prep" { "install" } else { "app" };
            container["name"] = json!(ours);
        }
    }
    pod["metadata"]["name"] = json!("bot-r1");
    pod["metadata"]["uid"] = json!("recorded");
    pod["metadata"]["resourceVersion"] = json!(version.to_string());
    let (view, odd) = view::read::<view::PodView>(pod.to_string().as_bytes()).expect("a recording is a pod");
    convert::observe(&Scheme::new(&Settings::default()), &view, odd).expect("a recording can be observed").seen
}

/// The recorded end of a pod that is shown so, then so, and then, when asked for, is gone.
fn end_of(shown: &str) -> Option<PodEnded> {
    let mut story = Story::new();
    let facts = story.inputs("start");
    story.react(facts);
    let facts = story.inputs("listed");
    story.react(facts);
    let facts = story.inputs("want r1 bot-r1 live=bot-r1");
    story.react(facts);
    for (version, file) in (1_000..).zip(shown.split(" > ")) {
        let event = if file == "gone" {
            let uid = recorded("running-ready", version).uid;
            Event::PodGone(PodGone { host: name("bot-r1"), uid, resource_version: version, how: GoneHow::Deleted })
        } else {
            Event::PodSeen(recorded(file, version))
        };
        story.react(vec![event]);
    }
    story.records.into_iter().find_map(|record| match record.event {
        Event::PodEnded(ended) => Some(ended),
        _ => None,
    })
}

#[test]
fn b19_each_recorded_end_has_its_cause() {
    use EndCause::{AppExit, DeletedByOther, Evicted, InstallFailed, NeverStarted as Never, NodeLost, Oom};
    let table = [
        ("running-ready", None),
        ("running-not-ready", None),
        ("init-done-main-waiting", None),
        ("pending-podinitializing", None),
        ("imagepullbackoff", None),
        ("unschedulable", None),
        ("node-lost-pod-not-ready", None),
        ("being-deleted", None),
        ("exited-0", Some(AppExit)),
        ("exited-1", Some(AppExit)),
        ("gvisor-exited-0", Some(AppExit)),
        ("gvisor-exited-1", Some(AppExit)),
        ("gvisor-exit-signal", Some(AppExit)),
        ("oomkilled", Some(Oom)),
        ("gvisor-oom", Some(Oom)),
        ("oom-raced-as-error137", Some(Oom)),
        ("init-failed", Some(InstallFailed)),
        ("gvisor-init-failed", Some(InstallFailed)),
        ("starterror", Some(Never(NeverStarted::Config))),
        ("gvisor-starterror", Some(Never(NeverStarted::Config))),
        ("invalidimagename", Some(Never(NeverStarted::Image))),
        ("errimageneverpull", Some(Never(NeverStarted::Image))),
        ("createcontainerconfigerror", Some(Never(NeverStarted::Config))),
        ("createcontainerconfigerror-root", Some(Never(NeverStarted::Config))),
        ("runcontainererror", Some(Never(NeverStarted::Runtime))),
        ("evicted-emptydir-limit", Some(Evicted)),
        ("evicted-ephemeral-storage", Some(Evicted)),
        ("evicted-node-pressure", Some(Evicted)),
        ("evicted-node-pressure-main-exited-0", Some(Evicted)),
        ("rejected-by-kubelet-admission-node-pressure", Some(Evicted)),
        ("deadline-exceeded", Some(Evicted)),
        ("gvisor-deadline-exceeded", Some(Evicted)),
        ("evicted-by-eviction-api > evicted-by-eviction-api-terminated", Some(Evicted)),
        ("evicted-by-eviction-api > gone", Some(Evicted)),
        ("running-ready > being-deleted > being-deleted-terminated", Some(DeletedByOther)),
        ("running-ready > being-deleted > gone", Some(DeletedByOther)),
        ("running-ready > exited-1 > being-deleted-terminated > gone", Some(AppExit)),
        ("node-lost-taint-eviction > node-lost-stuck-terminating > gone", Some(NodeLost)),
        ("node-lost-deleted-by-user > gone", Some(DeletedByOther)),
        ("node-lost-taint-eviction > deleted-by-podgc-out-of-service", Some(NodeLost)),
        ("deleted-by-podgc-out-of-service > gone", Some(NodeLost)),
    ];
    for (shown, cause) in table {
        assert_eq!(end_of(shown).map(|end| end.cause), cause, "{shown}");
    }
}

/// Only a process's own end counts, and no recording of another end is one.
#[test]
fn b21_what_ends_a_pod_from_outside_never_counts() {
    for shown in ["exited-0", "exited-1", "oomkilled", "gvisor-oom", "oom-raced-as-error137", "gvisor-exit-signal"] {
        assert!(end_of(shown).is_some_and(|end| end.counted), "{shown}");
    }
    for shown in ["evicted-node-pressure", "evicted-node-pressure-main-exited-0", "evicted-emptydir-limit", "init-failed", "starterror"] {
        assert!(end_of(shown).is_some_and(|end| !end.counted), "{shown}");
    }
}
