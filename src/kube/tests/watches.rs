//! The loop against an API server that misbehaves in every way that was reported (cases B01 to B06).

use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::script::{Piece, Say, Script, status};
use super::{dressed, recorded, settings};
use crate::clock::Clock;
use crate::kube::decode::{Nodes, Pods};
use crate::kube::labels::Scheme;
use crate::kube::watch::{Watch, WatchLimits, Watched};

const LIST: &str = "GET /api/v1/namespaces/apps/pods?limit=500&labelSelector=";
const START_US: i64 = 1_000_000_000;

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn pod(name: &str, version: u64) -> Value {
    let mut pod = dressed(serde_json::from_str(&recorded("running-ready.json")).expect("JSON"));
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(format!("uid-{name}"));
    pod["metadata"]["resourceVersion"] = json!(version.to_string());
    pod
}

fn list(version: u64, names: &[&str]) -> Say {
    let items: Vec<Value> = names.iter().map(|name| pod(name, version - 1)).collect();
    Say::Json(200, json!({"kind": "PodList", "metadata": {"resourceVersion": version.to_string()}, "items": items}))
}

fn event(kind: &str, object: &Value) -> Piece {
    Piece::Text(json!({"type": kind, "object": object}).to_string() + "\n")
}

fn bookmark(version: u64) -> Piece {
    event(
        "BOOKMARK",
        &json!({"kind": "Pod", "metadata": {"resourceVersion": version.to_string()}, "spec": {"containers": null}, "status": {}}),
    )
}

fn expired() -> Value {
    json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 100 (511)"})
}

/// Runs the loop for so long; gives what it told and what it asked, each with its second.
async fn watched(script: &Script, length: Duration) -> String {
    let clock = Clock::simulated(START_US);
    let watch = Watch {
        client: script.client(),
        path: "/api/v1/namespaces/apps/pods".to_owned(),
        selector: Scheme::new(&settings()).selector(),
        decode: Pods(Scheme::new(&settings())),
        limits: WatchLimits::new(&settings().kubernetes, 7),
        clock: clock.clone(),
    };
    let (sink, mut told) = mpsc::channel(16);
    let running = tokio::spawn(watch.run(sink));
    let mut lines = Vec::new();
    let end = crate::clock::now() + length;
    while let Ok(Some(watched)) = tokio::time::timeout_at(end, told.recv()).await {
        let at = (clock.now_us() - START_US) / 1_000_000;
        lines.push((
            at,
            match watched {
                Watched::Listed { resource_version, seen, odd } => {
                    let names: Vec<&str> = seen.iter().map(|pod| pod.seen.host.as_str()).collect();
                    let odd: Vec<&str> = odd.iter().map(|odd| odd.name.as_str()).collect();
                    format!("listed @{resource_version} {names:?}{}", if odd.is_empty() { String::new() } else { format!(" odd {odd:?}") })
                }
                Watched::Seen(pod) => format!("seen {} @{}", pod.seen.host, pod.seen.resource_version),
                Watched::Deleted(pod) => format!("deleted {} @{}", pod.seen.host, pod.seen.resource_version),
                Watched::Alive { resource_version } => format!("alive @{resource_version}"),
                Watched::Lost { reason, since_us, resource_version } => {
                    format!("lost {reason:?} since {} @{resource_version}", (since_us - START_US) / 1_000_000)
                }
                Watched::Odd(odd) => format!("odd {:?} @{:?}", odd.name, odd.resource_version),
            },
        ));
    }
    assert!(!running.is_finished(), "the loop never ends by itself");
    drop(told);
    running.abort();
    let asked = script.got().into_iter().map(|got| {
        let version = got.line.split("resourceVersion=").nth(1).and_then(|rest| rest.split('&').next());
        let token = got.line.split("continue=").nth(1);
        let what = match (version, token) {
            (Some(version), _) => format!("    WATCH @{version}"),
            (None, Some(token)) => format!("    LIST from {token}"),
            (None, None) => "    LIST".to_owned(),
        };
        (i64::try_from(got.after.as_secs()).expect("seconds"), what)
    });
    let mut all: Vec<(i64, usize, String)> = asked.enumerate().map(|(index, (at, line))| (at, index * 2, line)).collect();
    all.extend(lines.into_iter().enumerate().map(|(index, (at, line))| (at, index * 2 + 1, line)));
    all.sort_by_key(|(at, index, _)| (*at, *index));
    all.into_iter().map(|(at, _, line)| format!("{at:>4} {line}\n")).collect()
}

fn hang() -> Say {
    Say::Stream(vec![Piece::Hang])
}

/// A watch that is alive for the rest of the test.
fn healthy(version: u64) -> Say {
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
           0 listed @50 ["h1", "h2"]
           0     WATCH @50
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
           0 listed @100 ["h1"]
           0     WATCH @100
           0 lost Expired since 0 @100
           0     LIST
           0 listed @200 ["h1"]
           0     WATCH @200
           0 lost Expired since 0 @200
           0     LIST
           0     LIST from t
           1 listed @300 ["h1"]
           1 lost Expired since 1 @300
           1     LIST
           1     WATCH @300
           3 listed @400 ["h1"]
           3 lost Expired since 3 @400
           3     LIST
           3     WATCH @400
           5 listed @500 ["h1"]
           5     LIST
           5     WATCH @500
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
           0 listed @50 ["h1", "h2"]
           0     WATCH @50
           0 lost Expired since 0 @50
           0     LIST
           0 listed @60 ["h1"]
           0     WATCH @60
    "#]]
    .assert_eq(&watched(&script, seconds(30)).await);
}

#[tokio::test(start_paused = true)]
async fn b03_a_silent_watch_is_replaced_by_a_list() {
    let script = Script::new(vec![
        (LIST, list(50, &["h1"])),
        ("GET resourceVersion=50", hang()),
        (LIST, list(60, &[])),
        // The list itself hangs, then the watch's headers do.
        ("GET resourceVersion=60", Say::Never),
        ("GET resourceVersion=60", Say::Stream(vec![Piece::Text("{\"type\":\"ADD".to_owned()), Piece::Hang])),
        (LIST, Say::Never),
        (LIST, list(70, &[])),
        ("GET resourceVersion=70", healthy(71)),
    ]);
    expect![[r#"
           0     LIST
           0 listed @50 ["h1"]
           0     WATCH @50
         150 lost Silent since 0 @50
         150     LIST
         150 listed @60 []
         150     WATCH @60
         180     WATCH @60
         300 lost Silent since 150 @60
         301     LIST
         362 listed @70 []
         362     LIST
         362     WATCH @70
         422 alive @71
         482 alive @72
    "#]]
    .assert_eq(&watched(&script, seconds(500)).await);
}

#[tokio::test(start_paused = true)]
async fn b03_a_deaf_watch_that_closes_cleanly_is_silent_all_the_same() {
    // From a version in the future: 200, nothing, not even a bookmark, a clean end.
    let deaf = || Say::Stream(vec![Piece::Wait(seconds(60))]);
    let script = Script::new(vec![
        (LIST, list(50, &[])),
        ("GET resourceVersion=50", deaf()),
        ("GET resourceVersion=50", deaf()),
        ("GET resourceVersion=50", deaf()),
        (LIST, list(20, &[])),
        ("GET resourceVersion=20", healthy(21)),
    ]);
    expect![[r#"
           0     LIST
           0 listed @50 []
           0     WATCH @50
          60     WATCH @50
         120     WATCH @50
         150 lost Silent since 0 @50
         150 listed @20 []
         150     LIST
         150     WATCH @20
    "#]]
    .assert_eq(&watched(&script, seconds(200)).await);
}

#[tokio::test(start_paused = true)]
async fn b04_a_status_over_many_lines_is_one_error() {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "x", "code": 429, "details": {"retryAfterSeconds": 5}});
    let indented = serde_json::to_string_pretty(&body).expect("JSON");
    assert!(indented.lines().count() > 8);
    let script = Script::new(vec![
        (LIST, list(50, &[])),
        ("GET resourceVersion=50", Say::Stream(vec![Piece::Text(indented.clone())])),
        ("GET resourceVersion=50", Say::Raw(500, Vec::new(), indented.into_bytes())),
        ("GET resourceVersion=50", Say::Raw(429, vec![("retry-after", "7".to_owned())], b"Too many requests".to_vec())),
        ("GET resourceVersion=50", Say::Raw(200, Vec::new(), b"<html>\n<body>\nno\n</body>\n".to_vec())),
        ("GET resourceVersion=50", healthy(51)),
    ]);
    expect![[r#"
           0     LIST
           0 listed @50 []
           0     WATCH @50
           5     WATCH @50
          10     WATCH @50
          17     WATCH @50
          18     WATCH @50
    "#]]
    .assert_eq(&watched(&script, seconds(60)).await);
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
           0 listed @50 ["h1"] odd ["h9"]
           0     WATCH @50
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
           0 listed @50 []
           0     WATCH @50
    "#]]
    .assert_eq(&watched(&script, seconds(30)).await);
}

#[tokio::test(start_paused = true)]
async fn b06_trouble_makes_the_pauses_grow() {
    let script = Script::new(vec![]).then(Say::Refuse);
    let told = watched(&script, seconds(60)).await;
    assert!(script.lines().len() < 20, "{told}");
    assert_eq!(told.matches("lost Unreachable").count(), 1, "{told}");

    let script = Script::new(vec![(LIST, list(50, &[]))]).then(Say::Stream(vec![bookmark(50), Piece::Wait(seconds(2))]));
    let told = watched(&script, seconds(600)).await;
    let watches = script.lines().len();
    assert!(watches < 40 && !told.contains("lost"), "{watches} {told}");

    let script = Script::new(vec![(LIST, list(50, &[]))]).then(Say::Stream(Vec::new()));
    watched(&script, seconds(60)).await;
    assert!(script.lines().len() < 15, "200 with an empty body at once: {}", script.lines().len());

    let mut ten: Vec<(&str, Say)> = (0..10).map(|_| (LIST, Say::Json(500, json!({})))).collect();
    ten.push((LIST, list(50, &[])));
    ten.push(("GET resourceVersion=50", healthy(51)));
    let script = Script::new(ten);
    expect![[r#"
           0     LIST
           0 lost Unreachable since 0 @0
           0     LIST
           0     LIST
           1     LIST
           3     LIST
           5     LIST
          11     LIST
          19     LIST
          45     LIST
          75     LIST
         105 listed @50 []
         105     LIST
         105     WATCH @50
         165 alive @51
         225 alive @52
         285 alive @53
         345 alive @54
    "#]]
    .assert_eq(&watched(&script, seconds(400)).await);
}

#[tokio::test(start_paused = true)]
async fn b06_the_pauses_are_small_again_after_a_good_watch() {
    let lived = || Say::Stream(vec![Piece::Wait(seconds(60)), bookmark(50), Piece::Wait(seconds(60))]);
    let script = Script::new(vec![
        (LIST, list(50, &[])),
        ("GET watch", Say::Reset),
        ("GET watch", Say::Reset),
        ("GET watch", Say::Reset),
        ("GET watch", Say::Reset),
        ("GET watch", lived()),
        ("GET watch", Say::Reset),
        ("GET watch", lived()),
        ("GET watch", healthy(50)),
    ]);
    expect![[r#"
           0     LIST
           0 listed @50 []
           0     WATCH @50
           1     WATCH @50
           2     WATCH @50
           3     WATCH @50
           4     WATCH @50
          64 alive @50
         124     WATCH @50
         125     WATCH @50
         185 alive @50
         245     WATCH @50
    "#]]
    .assert_eq(&watched(&script, seconds(260)).await);
}

#[tokio::test(start_paused = true)]
async fn b41_being_refused_is_a_loss_and_is_retried_slowly() {
    let refused = || status(401, "Unauthorized", "Unauthorized", "", "");
    let script = Script::new(vec![
        (LIST, list(50, &["h1"])),
        ("GET resourceVersion=50", refused()),
        (LIST, refused()),
        (LIST, status(403, "Forbidden", "cannot list resource", "pods", "")),
        (LIST, list(60, &["h1"])),
        ("GET resourceVersion=60", healthy(61)),
    ]);
    expect![[r#"
           0     LIST
           0 listed @50 ["h1"]
           0     WATCH @50
           0 lost Unreachable since 0 @50
          10     LIST
          20     LIST
          30 listed @60 ["h1"]
          30     LIST
          30     WATCH @60
    "#]]
    .assert_eq(&watched(&script, seconds(60)).await);
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
           0 listed @50 ["h1", "h2", "h3"]
           0     LIST from a%2B%2F%3D
           0     LIST from b
           0     WATCH @50
    "#]]
    .assert_eq(&watched(&script, seconds(30)).await);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_loses_nothing_and_an_absent_one_ends_the_loop() {
    let pods: Vec<Piece> = (0..100).map(|number| event("MODIFIED", &pod("h1", 100 + number))).collect();
    let script = Script::new(vec![(LIST, list(50, &[])), ("GET watch", Say::Stream(pods))]).then(hang());
    let watch = Watch {
        client: script.client(),
        path: "/api/v1/namespaces/apps/pods".to_owned(),
        selector: String::new(),
        decode: Pods(Scheme::new(&settings())),
        limits: WatchLimits::new(&settings().kubernetes, 7),
        clock: Clock::simulated(START_US),
    };
    let (sink, mut told) = mpsc::channel(1);
    let running = tokio::spawn(watch.run(sink));
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
