//! What becomes of recorded pods, and of pods with odd fields.

use std::fmt::Write as _;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use super::{app, digest, dressed, host, recorded, recordings, settings, step};
use crate::events::kinds::pod::{Container, ContainerEnd, ContainerState, Disruption, Phase, Scheduling};
use crate::kube::convert::{Observation, Odd, observe};
use crate::kube::decode::{Decode as _, Nodes, Pods, WatchLine, line, page};
use crate::kube::labels::{Ownership, Scheme};
use crate::kube::view::{self, PodView};

fn scheme() -> Scheme {
    Scheme::new(&settings())
}

fn seen(pod: &Value) -> Result<Observation, Odd> {
    let (view, odd) = view::read::<PodView>(pod.to_string().as_bytes()).expect("JSON");
    observe(&scheme(), &view, odd)
}

fn ours(name: &str) -> Observation {
    seen(&dressed(serde_json::from_str(&recorded(name)).expect("JSON"))).expect("an observation")
}

fn brief(container: &Container) -> String {
    let end = |end: &ContainerEnd| {
        let times = if end.started_us == 0 || end.finished_us == 0 { " times?" } else { "" };
        format!("{}({}){times}", end.reason, end.exit_code)
    };
    let state = match &container.state {
        ContainerState::Absent => "-".to_owned(),
        ContainerState::Waiting { reason } => format!("waiting {reason}"),
        ContainerState::Running { started_us } => format!("running{}", if *started_us == 0 { " since?" } else { "" }),
        ContainerState::Ended(ended) => format!("ended {}", end(ended)),
    };
    let restarts = if container.restarts == 0 { String::new() } else { format!(" x{}", container.restarts) };
    let last = container.last_end.as_ref().map(|last| format!(" last {}", end(last))).unwrap_or_default();
    state + &restarts + &last
}

fn essentials(observed: &Observation) -> String {
    let pod = &observed.seen;
    let mut out = format!("{:?}", pod.phase);
    if !pod.reason.is_empty() {
        let _ = write!(out, "/{}", pod.reason);
    }
    for (flag, word) in [(pod.deleting, "deleting"), (pod.ready, "ready"), (pod.created_us == 0, "created?")] {
        if flag {
            let _ = write!(out, " {word}");
        }
    }
    if pod.scheduling != Scheduling::Done {
        let _ = write!(out, " {:?}", pod.scheduling);
    }
    if let Some(disruption) = pod.disruption {
        let _ = write!(out, " {disruption:?}");
    }
    let _ = write!(out, " | {} | {}", brief(&pod.install), brief(&pod.app));
    for message in &observed.messages {
        let _ = write!(out, "\n    {:?}{}: {:?}", message.of, if message.ended { " ended" } else { "" }, message.text);
    }
    for odd in &observed.odd {
        let _ = write!(out, "\n    odd: {odd}");
    }
    out
}

#[test]
fn every_recorded_pod_is_read_as_it_is() {
    let mut table = String::new();
    for name in recordings(".json") {
        let object: Value = serde_json::from_str(&recorded(&name)).expect("JSON");
        if object["kind"] != "Pod" {
            continue;
        }
        let observed = seen(&dressed(object)).expect("an observation");
        assert_eq!(observed.ownership, Ownership::Ours(app()), "{name}");
        assert_eq!((observed.seen.release, observed.seen.sha256, observed.seen.step), (2, Some(digest()), Some(step(17))), "{name}");
        let _ = writeln!(table, "{}: {}", name.trim_end_matches(".json"), essentials(&observed));
    }
    expect_file!["data/pods.txt"].assert_eq(&table);
}

#[test]
fn every_recorded_watch_is_read_as_it_is() {
    let mut table = String::new();
    for name in recordings(".ndjson") {
        let _ = writeln!(table, "== {name}");
        let mut last = std::collections::BTreeMap::new();
        let mut version = 0;
        for text in recorded(&name).lines() {
            let mut event: Value = serde_json::from_str(text).expect("JSON");
            if event["object"]["kind"] == "Pod" && event["type"] != "BOOKMARK" {
                event["object"] = dressed(event["object"].take());
            }
            let (said, at) = line(&Pods(scheme()), event.to_string().as_bytes());
            assert!(at.is_none_or(|at| at >= version) || !name.starts_with("watch."), "{name}: versions only grow");
            version = at.unwrap_or(version);
            let (kind, observed) = match said {
                WatchLine::Seen(observed) => ("", observed.expect("an observation")),
                WatchLine::Deleted(observed) => ("GONE ", observed.expect("an observation")),
                WatchLine::Bookmark => {
                    let _ = writeln!(table, "bookmark");
                    continue;
                }
                WatchLine::Error(status) => {
                    let _ = writeln!(table, "error {} {}", status.code, status.reason);
                    continue;
                }
                WatchLine::Unknown => panic!("{name}: {text}"),
            };
            let short = essentials(&observed).lines().next().unwrap_or("").to_owned();
            let previous = last.insert(observed.seen.uid.clone(), short.clone());
            if previous.as_ref() != Some(&short) || !kind.is_empty() {
                let _ = writeln!(table, "{kind}{}: {short}", observed.seen.host);
            }
        }
    }
    expect_file!["data/watches.txt"].assert_eq(&table);
}

#[test]
fn what_is_not_ours_is_seen_as_foreign() {
    let pod: Value = serde_json::from_str(&recorded("running-ready.json")).expect("JSON");
    let observed = seen(&pod).expect("an observation");
    assert_eq!(observed.ownership, Ownership::Foreign);
    assert_eq!((observed.seen.app.state, observed.seen.install.state), (ContainerState::Absent, ContainerState::Absent));
}

#[test]
fn b11_ours_means_that_every_label_matches() {
    let key = |name: &str| scheme().key(name);
    let mut pod = dressed(serde_json::from_str(&recorded("running-ready.json")).expect("JSON"));
    let mut with = |group: &str, name: &str, value: Value| {
        let before = pod["metadata"][group][key(name)].take();
        pod["metadata"][group][key(name)] = value;
        let ownership = seen(&pod).expect("an observation").ownership;
        pod["metadata"][group][key(name)] = before;
        ownership
    };
    assert_eq!(with("labels", "managed-by", json!("helm")), Ownership::Foreign);
    assert_eq!(with("labels", "managed-by", Value::Null), Ownership::Foreign);
    assert_eq!(with("labels", "instance", json!("other")), Ownership::OursOtherInstance);
    assert_eq!(with("labels", "world", json!("other")), Ownership::OursOtherInstance);
    for (group, name, value) in [
        ("labels", "app", json!("0000000000000000")),
        ("labels", "app", Value::Null),
        ("annotations", "app", json!("acme/other")),
        ("annotations", "app", json!("../../x")),
        ("annotations", "app", Value::Null),
        ("annotations", "app", json!(7)),
    ] {
        assert!(matches!(with(group, name, value.clone()), Ownership::Unreadable { .. }), "{group} {name} {value}");
    }
}

#[test]
fn the_seeds_pods_are_ours_under_its_profile_alone() {
    let mut settings = settings();
    let labels = json!({"pinecall.io/app": app().stamp(), "pinecall.io/world": "test", "pinecall.io/release": "3"});
    let pod = json!({
        "metadata": {
            "name": "bot-r3-0a0b0c0d", "uid": "u", "resourceVersion": "9", "labels": labels,
            "annotations": {"pinecall.io/app": "acme/bot"},
        },
        "spec": {"initContainers": [{
            "name": "install",
            "command": ["timeout", "300", "sh", "-c", "node"],
            "env": [{"name": "HOME", "value": "/home/app"}, {"name": "PINECALL_SOURCE", "value": format!("http://r:1/sources/{}", digest())}],
        }]},
    });
    let (view, odd) = view::read::<PodView>(pod.to_string().as_bytes()).expect("JSON");
    let foreign = observe(&Scheme::new(&settings), &view, odd.clone()).expect("an observation");
    assert_eq!(foreign.ownership, Ownership::Foreign);
    settings.profile = crate::config::Profile::Pinecall;
    let ours = observe(&Scheme::new(&settings), &view, odd).expect("an observation");
    assert_eq!((ours.ownership, ours.seen.release, ours.seen.sha256), (Ownership::Ours(app()), 3, Some(digest())));
    settings.world = "other".to_owned();
    let others = observe(&Scheme::new(&settings), &view, Vec::new()).expect("an observation");
    assert_eq!(others.ownership, Ownership::Foreign);
}

#[test]
fn b18_a_refused_pod_without_any_container_status() {
    for reason in ["OutOfpods", "UnexpectedAdmissionError", "NodeAffinity", "NodeShutdown", "Evicted"] {
        let mut pod = dressed(serde_json::from_str(&recorded("pending-scheduled.json")).expect("JSON"));
        pod["status"] = json!({"phase": "Failed", "reason": reason, "message": "Pod was rejected"});
        let observed = seen(&pod).expect("an observation");
        assert_eq!((observed.seen.phase, observed.seen.reason.as_str()), (Phase::Failed, reason));
        assert_eq!(observed.seen.app.state, ContainerState::Absent);
    }
}

#[test]
fn b19_the_disruption_is_readable() {
    let mut pod = dressed(serde_json::from_str(&recorded("exited-1.json")).expect("JSON"));
    for (reason, status, wanted) in [
        ("PreemptionByScheduler", "True", Some(Disruption::Preempted)),
        ("EvictionByEvictionAPI", "True", Some(Disruption::Evicted)),
        ("DeletionByTaintManager", "True", Some(Disruption::Tainted)),
        ("DeletionByPodGC", "True", Some(Disruption::Collected)),
        ("TerminationByKubelet", "True", Some(Disruption::Kubelet)),
        ("SomethingNew", "True", Some(Disruption::Other)),
        ("PreemptionByScheduler", "False", None),
    ] {
        pod["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": status, "reason": reason}]);
        assert_eq!(seen(&pod).expect("an observation").seen.disruption, wanted, "{reason} {status}");
    }
}

#[test]
fn b23_what_a_container_waits_for_is_said() {
    let mut pod = dressed(serde_json::from_str(&recorded("init-running.json")).expect("JSON"));
    let waits = json!({"waiting": {"reason": "ImagePullBackOff", "message": "why"}});
    pod["status"]["initContainerStatuses"] = json!([{"name": "install", "state": waits}]);
    let observed = seen(&pod).expect("an observation");
    expect![[r#"Pending | waiting ImagePullBackOff | waiting PodInitializing
    Install: "why""#]]
    .assert_eq(&essentials(&observed));
}

#[test]
fn b26_containers_go_by_name() {
    let mut pod = dressed(serde_json::from_str(&recorded("running-ready.json")).expect("JSON"));
    let at = "2026-11-30T12:00:00Z";
    pod["status"]["containerStatuses"] = json!([
        {"name": "mesh", "restartCount": 0, "state": {"running": {"startedAt": at}}},
        {"name": "app", "restartCount": 0, "state": {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": at, "finishedAt": at}}},
    ]);
    pod["status"]["initContainerStatuses"] = json!([
        {"name": "mesh-init", "restartCount": 3, "state": {"running": {"startedAt": at}}},
        {"name": "install", "restartCount": 0, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
    ]);
    expect!["Running ready | ended Completed(0) times? | ended Error(1)"].assert_eq(&essentials(&seen(&pod).expect("an observation")));
}

#[test]
fn b05_no_odd_field_fails_a_pod_and_each_is_named() {
    let pod = dressed(serde_json::from_str(&recorded("node-rebooted-container-restarted.json")).expect("JSON"));
    let mut paths = Vec::new();
    collect(&pod, String::new(), &mut paths);
    assert!(paths.len() > 100);
    let vital = ["/metadata", "/metadata/name", "/metadata/uid", "/metadata/resourceVersion"];
    for path in paths {
        for odd in [Value::Null, json!(7), json!(-1.5), json!("odd"), json!([1, "x"]), json!({"a": {}}), json!(true)] {
            let mut pod = pod.clone();
            *pod.pointer_mut(&path).expect("a path") = odd.clone();
            let observed = seen(&pod);
            assert!(observed.is_ok() || vital.contains(&path.as_str()), "{path} = {odd}: {observed:?}");
        }
    }
    let mut odd = pod;
    odd["status"]["startTime"] = json!("yesterday");
    assert_eq!(seen(&odd).expect("an observation").odd, Vec::<String>::new(), "what is not read cannot be odd");
    odd["status"]["containerStatuses"][0]["restartCount"] = json!("many");
    odd["metadata"]["creationTimestamp"] = json!("yesterday");
    odd["metadata"]["labels"]["x"] = json!(5);
    expect![[r#"
        [
            "metadata.labels",
            "status.containerStatuses[].restartCount",
            "metadata.creationTimestamp",
        ]
    "#]]
    .assert_debug_eq(&seen(&odd).expect("an observation").odd);
}

fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (key, value) in below {
        collect(value, format!("{path}/{key}"), paths);
    }
    if !path.is_empty() && !path.contains("managedFields") {
        paths.push(path);
    }
}

#[test]
fn b05_an_odd_pod_does_not_stop_a_list_or_a_watch() {
    let pod = |name: &str, odd: Value| {
        let mut pod = dressed(serde_json::from_str(&recorded("running-ready.json")).expect("JSON"));
        pod["metadata"]["name"] = json!(name);
        pod["status"]["startTime"] = json!("yesterday");
        pod["status"]["phase"] = odd;
        pod
    };
    let mut nameless = pod("x", json!("Running"));
    nameless["metadata"]["name"] = json!({"a": 1});
    let items = [pod("h1", json!("Running")), pod("h2", json!(["x"])), nameless, pod("h3", json!("Running")), json!("not even a pod")];
    let list = json!({"kind": "PodList", "metadata": {"resourceVersion": "50", "continue": ""}, "items": items});
    let page = page(&Pods(scheme()), list.to_string().as_bytes()).expect("a page");
    let shown: Vec<String> = page
        .items
        .iter()
        .map(|item| match item {
            Ok(observed) => format!("{} {:?} {:?}", observed.seen.host, observed.seen.phase, observed.odd),
            Err(odd) => format!("odd {:?} {:?}: {}", odd.name, odd.resource_version, odd.why),
        })
        .collect();
    expect![[r#"
        [
            "h1 Running []",
            "h2 Pending [\"status.phase\"]",
            "odd \"\" Some(325): host \"\": 1 to 249 of a-z, 0-9 and -, with a letter or digit at both ends",
            "h3 Running []",
            "odd \"\" None: host \"\": 1 to 249 of a-z, 0-9 and -, with a letter or digit at both ends",
        ]
    "#]]
    .assert_debug_eq(&shown);
    assert_eq!((page.resource_version, page.next), (50, None));
    for (list, items) in [
        (r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, Some(0)),
        (r#"{"metadata":{"resourceVersion":"7"}}"#, Some(0)),
        (r#"{"metadata":{"resourceVersion":""},"items":[]}"#, None),
        (r#"{"metadata":{},"items":[]}"#, None),
        (r#"{"kind":"Status","items":[]}"#, None),
        (r#"{"metadata":{"resourceVersion":"7"},"items":{}}"#, None),
        ("{}", None),
        ("<html>", None),
    ] {
        let page = super::super::decode::page(&Pods(scheme()), list.as_bytes());
        assert_eq!(page.ok().map(|page| page.items.len()), items, "{list}");
    }
    let bookmark = r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"},"spec":{"containers":null},"status":{}}}"#;
    assert!(matches!(line(&Pods(scheme()), bookmark.as_bytes()), (WatchLine::Bookmark, Some(9))));
    let strange = json!({"type": "MODIFIED", "object": {"metadata": {"name": 5, "resourceVersion": "11"}}});
    assert!(matches!(line(&Pods(scheme()), strange.to_string().as_bytes()), (WatchLine::Seen(Err(_)), Some(11))));
    for other in ["{}", "[]", "7", r#"{"type":"NEWKIND","object":{}}"#, r#"{"type":"ADDED"}"#, "nonsense"] {
        assert!(matches!(line(&Pods(scheme()), other.as_bytes()).0, WatchLine::Unknown), "{other}");
    }
}

#[test]
fn times_before_1970_are_not_known() {
    for time in ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
        let mut pod = dressed(serde_json::from_str(&recorded("running-ready.json")).expect("JSON"));
        pod["metadata"]["creationTimestamp"] = json!(time);
        assert_eq!(seen(&pod).expect("an observation").seen.created_us, 0, "{time}");
    }
    assert_eq!(ours("running-ready.json").seen.created_us, 1_796_039_826_000_000);
}

#[test]
fn an_end_without_a_code_is_never_a_good_one() {
    let mut pod = dressed(serde_json::from_str(&recorded("exited-0.json")).expect("JSON"));
    for code in [json!(null), json!("0"), json!(0.0), json!(1_u64 << 40)] {
        pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] = code.clone();
        let state = seen(&pod).expect("an observation").seen.app.state;
        assert!(matches!(&state, ContainerState::Ended(end) if end.exit_code == -1), "{code} {state:?}");
    }
}

#[test]
fn messages_are_bounded_and_cut_between_characters() {
    let mut pod = dressed(serde_json::from_str(&recorded("exited-1.json")).expect("JSON"));
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = json!("é".repeat(5_000) + "\u{1f600}");
    let observed = seen(&pod).expect("an observation");
    assert_eq!(observed.messages.iter().map(|message| message.text.len()).collect::<Vec<_>>(), [4096]);
    assert_eq!(observed.seen.host, host("exit1"));
}

#[test]
fn nodes_are_read_for_their_condition() {
    let mut table = String::new();
    for name in recordings(".json").into_iter().filter(|name| name.starts_with("node-")) {
        let object: Value = serde_json::from_str(&recorded(&name)).expect("JSON");
        if object["kind"] == "Node" {
            let (view, odd) = view::read(object.to_string().as_bytes()).expect("JSON");
            let seen = Nodes.seen(&view, odd).expect("a node");
            let _ = writeln!(table, "{name}: {} {:?}", seen.node, seen.ready);
        }
    }
    expect![[r#"
        node-lost-tainted.json: node1 NotReady
        node-lost.json: node1 NotReady
        node-memory-pressure.json: node1 Ready
        node-ready.json: node1 Ready
    "#]]
    .assert_eq(&table);
    let nameless = view::read(b"{}").expect("JSON").0;
    assert!(Nodes.seen(&nameless, Vec::new()).is_err());
}
