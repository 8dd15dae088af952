//! The list and watch loop against servers that are silent, refuse, or end at once (cases B03, B04, B06, B41).

use expect_test::expect;
use serde_json::json;

use super::script::{Piece, Say, Script, status};
use super::watches::{LIST, bookmark, expired, hang, healthy, list, seconds, watched};

#[tokio::test(start_paused = true)]
async fn b03_a_silent_watch_is_replaced_by_a_list() {
    let script = Script::new(vec![
        (LIST, list(50, &["h1"])),
        ("GET resourceVersion=50", hang()),
        (LIST, list(60, &[])),
        // The list itself hangs, then the watch's headers do.
        ("GET resourceVersion=59", Say::Never),
        ("GET resourceVersion=59", Say::Stream(vec![Piece::Text("{\"type\":\"ADD".to_owned()), Piece::Hang])),
        (LIST, Say::Never),
        (LIST, list(70, &[])),
        ("GET resourceVersion=69", healthy(71)),
    ]);
    expect![[r#"
        0     LIST
        0     WATCH @50
        0 listed @50 ["h1"]
        150 lost Silent since 0 @50
        150     LIST
        150     WATCH @59
        150 listed @60 []
        180     WATCH @59
        300 lost Silent since 150 @60
        301     LIST
        362     LIST
        362     WATCH @69
        362 listed @70 []
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
        ("GET resourceVersion=19", healthy(21)),
    ]);
    expect![[r#"
        0     LIST
        0     WATCH @50
        0 listed @50 []
        60     WATCH @50
        120     WATCH @50
        150 lost Silent since 0 @50
        150     LIST
        150     WATCH @19
        150 listed @20 []
    "#]]
    .assert_eq(&watched(&script, seconds(200)).await);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_silent_is_watched_from_one_version_before_for_as_long_as_it_has_it() {
    let script = Script::new(vec![
        (LIST, list(50, &["h1"])),
        ("GET resourceVersion=50", hang()),
        (LIST, list(50, &["h1"])),
        ("GET resourceVersion=49", Say::Stream(vec![Piece::Wait(seconds(60)), bookmark(50), Piece::Wait(seconds(30))])),
        ("GET resourceVersion=49", Say::Json(410, expired())),
        (LIST, list(50, &["h1"])),
        ("GET resourceVersion=50", hang()),
    ]);
    expect![[r#"
        0     LIST
        0     WATCH @50
        0 listed @50 ["h1"]
        150 lost Silent since 0 @50
        150     LIST
        150     WATCH @49
        150 listed @50 ["h1"]
        210 alive @50
        240     WATCH @49
        240 lost Expired since 210 @50
        240     LIST
        240     WATCH @50
        240 listed @50 ["h1"]
    "#]]
    .assert_eq(&watched(&script, seconds(300)).await);
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
        0     WATCH @50
        0 listed @50 []
        5     WATCH @50
        10     WATCH @50
        17     WATCH @50
        18     WATCH @50
    "#]]
    .assert_eq(&watched(&script, seconds(60)).await);
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
        105     LIST
        105     WATCH @50
        105 listed @50 []
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
        0     WATCH @50
        0 listed @50 []
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
        0     WATCH @50
        0 listed @50 ["h1"]
        0 lost Unreachable since 0 @50
        10     LIST
        20     LIST
        30     LIST
        30     WATCH @60
        30 listed @60 ["h1"]
    "#]]
    .assert_eq(&watched(&script, seconds(60)).await);
}
