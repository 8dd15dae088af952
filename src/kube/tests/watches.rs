//! The list and watch loop: what it tells, from which version it goes on, and what odd objects do (cases B01, B02, B05).

use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::script::{Piece, Say, Script};
use super::{dressed, recorded, settings};
use crate::clock::Clock;
use crate::kube::convert::Observation;
use crate::kube::decode::{Nodes, Pods};
use crate::kube::labels::Scheme;
use crate::kube::watch::{Watch, WatchLimits, Watched};

pub(super) const LIST: &str = "GET /api/v1/namespaces/apps/pods?limit=500&labelSelector=";
const START_US: i64 = 1_000_000_000;

pub(super) fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn pod(name: &str, version: u64) -> Value {
    let mut pod = dressed(serde_json::from_str(&recorded("running-ready.json")).expect("JSON"));
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(format!("uid-{name}"));
    pod["metadata"]["resourceVersion"] = json!(version.to_string());
    pod
}

pub(super) fn list(version: u64, names: &[&str]) -> Say {
    let items: Vec<Value> = names.iter().map(|name| pod(name, version - 1)).collect();
    Say::Json(200, json!({"kind": "PodList", "metadata": {"resourceVersion": version.to_string()}, "items": items}))
}

pub(super) fn event(kind: &str, object: &Value) -> Piece {
    Piece::Text(json!({"type": kind, "object": object}).to_string() + "\n")
}

pub(super) fn bookmark(version: u64) -> Piece {
    event(
        "BOOKMARK",
        &json!({"kind": "Pod", "metadata": {"resourceVersion": version.to_string()}, "spec": {"containers": null}, "status": {}}),
    )
}

pub(super) fn expired() -> Value {
    json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 100 (511)"})
}

/// Runs the loop for so long; gives what it asked and what it told, in order, each with its second.
pub(super) async fn watched(script: &Script, length: Duration) -> String {
    let begun = crate::clock::now();
    let watch = watch(script);
    let (sink, mut told) = mpsc::channel(16);
    let running = tokio::spawn(watch.run(sink));
    while let Ok(Some(watched)) = tokio::time::timeout_at(begun + length, told.recv()).await {
        script.note(begun.elapsed(), shown(watched));
    }
    assert!(!running.is_finished(), "the loop never ends by itself");
    running.abort();
    script.journal().into_iter().map(|(at, line)| format!("{} {}\n", at.as_secs(), asked(&line))).collect()
}

fn watch(script: &Script) -> Watch<Pods> {
    Watch {
        client: script.client(),
        path: "/api/v1/namespaces/apps/pods".to_owned(),
        selector: Scheme::new(&settings()).selector(),
        decode: Pods(Scheme::new(&settings())),
        limits: WatchLimits::new(&settings().kubernetes, 7),
        clock: Clock::simulated(START_US),
    }
}

/// A request in short; another line as it is.
fn asked(line: &str) -> String {
    let of = |key: &str| line.split_once(key).map(|(_, rest)| rest.split('&').next().unwrap_or(""));
    match (line.contains(" GET "), of("resourceVersion="), of("continue=")) {
        (false, _, _) => line.to_owned(),
        (true, Some(version), _) => format!("    WATCH @{version}"),
        (true, None, Some(token)) => format!("    LIST from {token}"),
        (true, None, None) => "    LIST".to_owned(),
    }
}

fn shown(watched: Watched<Observation>) -> String {
    match watched {
        Watched::Listed { resource_version, seen, odd } => {
            let names: Vec<&str> = seen.iter().map(|pod| pod.seen.host.as_str()).collect();
            let odd: Vec<&str> = odd.iter().map(|odd| odd.name.as_str()).collect();
            let odd = if odd.is_empty() { String::new() } else { format!(" odd {odd:?}") };
            format!("listed @{resource_version} {names:?}{odd}")
        }
        Watched::Seen(pod) => format!("seen {} @{}", pod.seen.host, pod.seen.resource_version),
        Watched::Deleted(pod) => format!("deleted {} @{}", pod.seen.host, pod.seen.resource_version),
        Watched::Alive { resource_version } => format!("alive @{resource_version}"),
        Watched::Lost { reason, since_us, resource_version } => {
            format!("lost {reason:?} since {} @{resource_version}", (since_us - START_US) / 1_000_000)
        }
        Watched::Odd(odd) => format!("odd {:?} @{:?}", odd.name, odd.resource_version),
    }
}

pub(super) fn hang() -> Say {
    Say::Stream(vec![Piece::Hang])
}

/// A watch that is alive for the rest of the test.
pub(super) fn healthy(version: u64) -> Say {
    Say::Stream((0..20).flat_map(|number| [Piece::Wait(seconds(60)), bookmark(version + number)]).chain([Piece::Hang]).collect())
}

#[tokio::test(start_paused = true)]
async fn a_list_then_changes_then_on_from_the_last_version() {
    let script = Script::new(vec![
        (LIST, list(50, &["h1", "h2"])),
        (
            "GET watch=1&allowWatchBookmarks=true&timeoutSeconds=290&resourceVersion=50&labelSelector=wharfinger.dev%2Fmanaged-by",
            Say::Stream(vec![
                event("DELETED", &pod("h2", 51)),
                event("MODIFIED", &pod("h1", 52)),
                Piece::Wait(seconds(60)),
                bookmark(60),
                Piece::Wait(seconds(100)),
                event("ADDED", &pod("h3", 61)),
                Piece::Wait(seconds(130)),
            ]),
        ),
        ("GET resourceVersion=61", hang()),
    ]);
    expect![[r#"
        0     LIST
        0     WATCH @50
        0 listed @50 ["h1", "h2"]
        0 deleted h2 @51
        0 seen h1 @52
        60 alive @60
        160 seen h3 @61
        290     WATCH @61
    "#]]
    .assert_eq(&watched(&script, seconds(300)).await);
}

#[tokio::test(start_paused = true)]
async fn b01_a_dead_version_in_each_form_leads_to_one_fresh_list() {
    let page = json!({"metadata": {"resourceVersion": "100", "continue": "t"}, "items": [pod("h1", 9)]});
    let script = Script::new(vec![
        (LIST, list(100, &["h1"])),
        ("GET resourceVersion=100", Say::Json(410, expired())),
        (LIST, list(200, &["h1"])),
        ("GET resourceVersion=200", Say::Stream(vec![event("ERROR", &expired()), Piece::Hang])),
        (LIST, Say::Json(200, page)),
        ("GET continue=t", Say::Json(410, expired())),
        (LIST, list(300, &["h1"])),
        ("GET resourceVersion=300", Say::Json(410, json!({}))),
        (LIST, list(400, &["h1"])),
        ("GET resourceVersion=400", Say::Json(504, json!({"kind": "Status", "reason": "Expired"}))),
        (LIST, list(500, &["h1"])),
        ("GET resourceVersion=500", healthy(501)),
    ]);
    let got = watched(&script, seconds(100)).await;
    assert!(script.lines().windows(2).all(|pair| !pair[0].contains("resourceVersion=100") || !pair[1].contains("resourceVersion=100")));
    expect![[r#"
        0     LIST
        0     WATCH @100
        0 listed @100 ["h1"]
        0 lost Expired since 0 @100
        0     LIST
        0     WATCH @200
        0 listed @200 ["h1"]
        0 lost Expired since 0 @200
        0     LIST
        0     LIST from t
        1     LIST
        1     WATCH @300
        1 listed @300 ["h1"]
        1 lost Expired since 1 @300
        3     LIST
        3     WATCH @400
        3 listed @400 ["h1"]
        3 lost Expired since 3 @400
        5     LIST
        5     WATCH @500
        5 listed @500 ["h1"]
        65 alive @501
    "#]]
    .assert_eq(&got);
}

#[tokio::test(start_paused = true)]
async fn b02_what_went_while_nobody_watched_is_missing_in_the_next_list() {
    let script = Script::new(vec![
        (LIST, list(50, &["h1", "h2"])),
        ("GET resourceVersion=50", Say::Stream(vec![event("ERROR", &expired())])),
        (LIST, list(60, &["h1"])),
        ("GET resourceVersion=60", healthy(61)),
    ]);
    expect![[r#"
        0     LIST
        0     WATCH @50
        0 listed @50 ["h1", "h2"]
        0 lost Expired since 0 @50
        0     LIST
        0     WATCH @60
        0 listed @60 ["h1"]
    "#]]
    .assert_eq(&watched(&script, seconds(30)).await);
}

#[tokio::test(start_paused = true)]
async fn b05_an_odd_object_is_named_and_moves_the_version() {
    let mut odd = pod("h2", 55);
    odd["metadata"]["uid"] = json!(["x"]);
    let mut listed = pod("h9", 40);
    listed["metadata"]["uid"] = json!(7);
    let script = Script::new(vec![
        (LIST, Say::Json(200, json!({"metadata": {"resourceVersion": "50"}, "items": [pod("h1", 41), listed]}))),
        ("GET resourceVersion=50", Say::Stream(vec![event("MODIFIED", &odd), event("MODIFIED", &pod("h1", 54)), Piece::Break])),
        ("GET resourceVersion=55", healthy(56)),
    ]);
    expect![[r#"
        0     LIST
        0     WATCH @50
        0 listed @50 ["h1"] odd ["h9"]
        0 odd "h2" @Some(55)
        0 seen h1 @54
        1     WATCH @55
    "#]]
    .assert_eq(&watched(&script, seconds(30)).await);
    let script = Script::new(vec![
        (LIST, Say::Json(200, json!({"metadata": {"resourceVersion": "50"}, "items": null}))),
        ("GET resourceVersion=50", healthy(51)),
    ]);
    expect![[r#"
        0     LIST
        0     WATCH @50
        0 listed @50 []
    "#]]
    .assert_eq(&watched(&script, seconds(30)).await);
}

#[tokio::test(start_paused = true)]
async fn a_list_comes_in_pages_of_one_moment() {
    let page = |version: u64, names: &[&str], token: &str| {
        let items: Vec<Value> = names.iter().map(|name| pod(name, 9)).collect();
        Say::Json(200, json!({"metadata": {"resourceVersion": version.to_string(), "continue": token}, "items": items}))
    };
    let script = Script::new(vec![
        (LIST, page(50, &["h1", "h2"], "a+/=")),
        ("GET continue=a%2B%2F%3D", page(50, &["h3"], "b")),
        ("GET continue=b", page(52, &[], "")),
        ("GET resourceVersion=50", healthy(51)),
    ]);
    expect![[r#"
        0     LIST
        0     LIST from a%2B%2F%3D
        0     LIST from b
        0     WATCH @50
        0 listed @50 ["h1", "h2", "h3"]
    "#]]
    .assert_eq(&watched(&script, seconds(30)).await);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_loses_nothing_and_an_absent_one_ends_the_loop() {
    let pods: Vec<Piece> = (0..100).map(|number| event("MODIFIED", &pod("h1", 100 + number))).collect();
    let script = Script::new(vec![(LIST, list(50, &[])), ("GET watch", Say::Stream(pods))]).then(hang());
    let (sink, mut told) = mpsc::channel(1);
    let running = tokio::spawn(watch(&script).run(sink));
    for number in 0..101 {
        tokio::time::sleep(seconds(3)).await;
        let watched = told.recv().await.expect("something");
        assert!(number == 0 || matches!(&watched, Watched::Seen(pod) if pod.seen.resource_version == 99 + number), "{number} {watched:?}");
    }
    drop(told);
    tokio::time::timeout(seconds(600), running).await.expect("it ends").expect("without a panic");
}

#[tokio::test(start_paused = true)]
async fn nodes_are_watched_by_the_same_loop() {
    let node = |name: &str, ready: &str, version: &str| json!({"metadata": {"name": name, "resourceVersion": version}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
    let script = Script::new(vec![
        ("GET /api/v1/nodes?limit=500", Say::Json(200, json!({"metadata": {"resourceVersion": "5"}, "items": [node("n1", "True", "4")]}))),
        (
            "GET /api/v1/nodes?watch=1",
            Say::Stream(vec![event("MODIFIED", &node("n1", "Unknown", "6")), event("DELETED", &node("n1", "True", "7")), Piece::Hang]),
        ),
    ]);
    let watch = Watch {
        client: script.client(),
        path: "/api/v1/nodes".to_owned(),
        selector: String::new(),
        decode: Nodes,
        limits: WatchLimits::new(&settings().kubernetes, 7),
        clock: Clock::simulated(START_US),
    };
    let (sink, mut told) = mpsc::channel(16);
    let running = tokio::spawn(watch.run(sink));
    let mut all = String::new();
    for _ in 0..3 {
        all += &format!("{:?}\n", told.recv().await.expect("something"));
    }
    running.abort();
    expect![[r#"
        Listed { resource_version: 5, seen: [NodeSeen { node: Word("n1"), ready: Ready }], odd: [] }
        Seen(NodeSeen { node: Word("n1"), ready: NotReady })
        Deleted(NodeSeen { node: Word("n1"), ready: Ready })
    "#]]
    .assert_eq(&all);
}
