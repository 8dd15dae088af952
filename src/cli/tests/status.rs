//! The screen of `wharf status`.

use expect_test::expect;
use serde_json::json;

use crate::app::show;
use crate::app::state::App;
use crate::cli::status::{FIELDS, screen};
use crate::config::Settings;
use crate::events::kinds::daemon::PlanSettings;
use crate::ids::AppId;
use crate::telemetry::Metrics;

#[test]
fn one_screen() {
    let ready = json!({
        "ready": true, "failing": [], "role": "active", "watch_age_ms": 1_250, "watch_limit_ms": 150_000,
        "gateway": {"state": "good", "age_ms": 420},
    });
    let metrics = Metrics::default();
    metrics.queue_depth("drain", 0);
    metrics.alarms("unclaimed", 2);
    metrics.alarms("mass", 0);
    metrics.commit(1_500, 300);
    metrics.commit(2_500, 300);
    let apps = json!({"apps": [
        {
            "app": "acme/bot", "release": 2, "wanted": "bot-r2-3c6ef362", "live": "bot-r1-9e3779b1", "registered": false, "hosts": 2,
            "stage": "install", "alarms": ["waiting"],
        },
        {"app": "acme/withdrawn\u{1b}[31m", "release": null, "wanted": null, "alarms": []},
        {"app": "acme/third"},
    ]});
    expect![[r#"
        http://127.0.0.1:7070: ready, active
        gateway  good, 0.4 s ago
        watch    1.2 s ago, limit 150.0 s
        queue    drain 0
        log      2 commits, 2.00 ms on average
        alarms   unclaimed 2
        apps     3

        APP                       RELEASE  HOST             STAGE    LIVE             ALARMS
        acme/bot                  2        bot-r2-3c6ef362  install  bot-r1-9e3779b1  waiting
        acme/withdrawn\u{1b}[31m  -        -                -        -                -
        and 1 more: --all shows them
    "#]]
    .assert_eq(&screen("http://127.0.0.1:7070", &ready, &metrics.text(), &apps, 2));
}

#[test]
fn what_is_not_said_is_not_made_up() {
    let ready = json!({"ready": false, "failing": ["listed", "watching"], "gateway": {"state": "bad", "reason": "status 503"}});
    expect![[r#"
        http://127.0.0.1:7070: not ready (listed, watching), -
        gateway  bad status 503
        watch    no sign of life yet
        queue    -
        log      -
        alarms   -
        apps     0
    "#]]
    .assert_eq(&screen("http://127.0.0.1:7070", &ready, "", &json!(null), 2));
}

#[test]
fn every_column_is_a_field_that_the_daemon_shows() {
    let shown = show::brief(&AppId::new("acme", "bot").expect("an app"), &App::default(), &PlanSettings::from(&Settings::default().plan));
    for field in FIELDS {
        assert!(shown.get(field).is_some(), "{field} is not in {shown}");
    }
}
