//! Which answers and which wants are believed.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::gateway::judge::{Judged, NotBelieved, judge};
use crate::ids::AppId;

fn want(name: &str, host: &str) -> Value {
    json!({
        "org": "acme", "name": name, "release": 2, "sha256": "ab".repeat(32), "host": host, "registered": false, "failed": false
    })
}

fn with(mut want: Value, field: &str, value: Value) -> Value {
    want[field] = value;
    want
}

fn without(mut want: Value, field: &str) -> Value {
    want.as_object_mut().expect("an object").remove(field);
    want
}

fn answer(apps: &[Value]) -> Judged {
    let body = json!({"world": "prod", "apps": apps}).to_string();
    judge(7, body.as_bytes(), "prod", 100).expect("an answer")
}

fn check(apps: &[Value], expected: Expect) {
    let judged = answer(apps);
    let mut text = String::new();
    for (app, JudgedLine(line)) in judged.wants.iter().map(|(app, want)| (app, JudgedLine::of(want))) {
        text.push_str(&format!("{app} {line}\n"));
    }
    for refused in &judged.refused {
        let app = refused.app.as_ref().map_or_else(|| "?".to_owned(), AppId::to_string);
        let told = if refused.report().is_some() { "told" } else { "not told" };
        text.push_str(&format!("{app} {:?} {told}: {}\n", refused.fault, refused.text));
    }
    expected.assert_eq(&text);
}

struct JudgedLine(String);

impl JudgedLine {
    fn of(judged: &crate::gateway::judge::JudgedWant) -> Self {
        let want = &judged.want;
        let live = want.live_host.as_ref().map_or("none", |host| host.as_str());
        Self(format!(
            "r{} {} registered={} failed={} live={live} logs={}",
            want.release, want.host, want.registered, want.failed, judged.logs_wanted
        ))
    }
}

#[test]
fn what_is_optional_has_its_default_and_what_is_unknown_is_ignored() {
    check(
        &[
            with(want("a", "a-r2-00000000"), "color", json!({"deep": [1]})),
            with(want("b", "b-r2-00000000"), "live_host", json!("")),
            with(with(want("c", "c-r2-00000000"), "live_host", json!("c-r1-00000000")), "logs_wanted", json!(true)),
            with(want("d", "d-r2-00000000"), "live_host", json!(null)),
        ],
        expect![[r#"
            acme/a r2 a-r2-00000000 registered=false failed=false live=none logs=false
            acme/b r2 b-r2-00000000 registered=false failed=false live=none logs=false
            acme/c r2 c-r2-00000000 registered=false failed=false live=c-r1-00000000 logs=true
            acme/d r2 d-r2-00000000 registered=false failed=false live=none logs=false
        "#]],
    );
}

#[test]
fn a_bad_want_is_refused_with_its_reason_and_touches_no_other() {
    let good = want("good", "good-r2-00000000");
    check(
        &[
            good.clone(),
            with(want("a", "h-a"), "release", json!(0)),
            with(want("b", "h-b"), "release", json!(-3)),
            with(want("c", "h-c"), "release", json!("2")),
            with(want("d", "h-d"), "sha256", json!("AB".repeat(32))),
            with(want("e", "h-e"), "live_host", json!("Not.A.Host")),
            with(want("f", "h-f"), "failed", json!("no")),
            without(want("g", "h-g"), "registered"),
            with(want("h", "h-h"), "logs_wanted", json!(1)),
            without(want("i", "h-i"), "host"),
            json!(17),
        ],
        expect![[r#"
            acme/good r2 good-r2-00000000 registered=false failed=false live=none logs=false
            acme/a BadRelease told: release 0: a whole number from 1
            acme/b BadRelease told: release -3: a whole number from 1
            acme/c Malformed told: release is missing or is not a whole number
            acme/d BadDigest told: sha256 "ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB": 64 lower-case hex digits
            acme/e BadHost told: host "Not.A.Host": 1 to 249 of a-z, 0-9 and -, with a letter or digit at both ends
            acme/f Malformed told: failed is missing or is not true or false
            acme/g Malformed told: registered is missing or is not true or false
            acme/h Malformed told: logs_wanted is missing or is not true or false
            acme/i Malformed not told: host is missing or is not a string
            ? Malformed not told: org is missing or is not a string
        "#]],
    );
}

#[test]
fn b34_hostile_names_from_the_gateway_go_nowhere() {
    for evil in ["x,app=other", "x in (a,b)", "..", ".", "../secrets/y", "%2e%2e%2fpods", "a\0b", "a/b", "a?x=", "a#b", "", "a\r\nX: y"] {
        for field in ["org", "name"] {
            let judged = answer(&[with(want("a", "a-r2-00000000"), field, json!(evil)), want("b", "b-r2-00000000")]);
            assert_eq!((judged.wants.len(), judged.refused.len()), (1, 1), "{field} {evil}");
            assert_eq!(judged.refused[0].report(), None, "there is no app to tell of");
            assert!(!judged.refused[0].text.chars().any(char::is_control), "{}", judged.refused[0].text);
        }
        for field in ["host", "sha256"] {
            let judged = answer(&[with(want("a", "a-r2-00000000"), field, json!(evil)), want("b", "b-r2-00000000")]);
            assert_eq!((judged.wants.len(), judged.refused.len()), (1, 1), "{field} {evil}");
            assert!(!judged.refused[0].text.chars().any(char::is_control), "{}", judged.refused[0].text);
        }
    }
    let long = "a".repeat(5_000);
    let judged = answer(&[want(&long, "h"), want("b", &long)]);
    assert_eq!(judged.refused.len(), 2);
    assert!(judged.refused.iter().all(|refused| refused.text.len() < 400));
}

#[test]
fn two_wants_for_one_app_or_one_host_for_two_apps_refuse_both() {
    check(
        &[
            want("twice", "twice-r1-00000000"),
            want("twice", "twice-r2-00000000"),
            want("one", "shared"),
            want("two", "shared"),
            with(want("three", "three-r2-00000000"), "live_host", json!("four-r2-00000000")),
            want("four", "four-r2-00000000"),
            with(want("five", "same"), "live_host", json!("same")),
            with(want("bad", "same"), "release", json!(0)),
        ],
        expect![[r#"
            acme/five r2 same registered=false failed=false live=same logs=false
            acme/twice TwiceNamed told: the answer names acme/twice more than once
            acme/twice TwiceNamed told: the answer names acme/twice more than once
            acme/one HostShared told: the answer names the host shared for more than one app
            acme/two HostShared told: the answer names the host shared for more than one app
            acme/three HostShared told: the answer names the host four-r2-00000000 for more than one app
            acme/four HostShared told: the answer names the host four-r2-00000000 for more than one app
            acme/bad BadRelease told: release 0: a whole number from 1
        "#]],
    );
}

#[test]
fn an_answer_that_cannot_be_believed_changes_nothing() {
    let check = |body: &str, expected: NotBelieved| assert_eq!(judge(1, body.as_bytes(), "prod", 1), Err(expected), "{body}");
    check(r#"{"world": "test", "apps": []}"#, NotBelieved::World("test".to_owned()));
    check(r#"{"world": "prod", "apps": [1, 2]}"#, NotBelieved::TooMany { named: 2, limit: 1 });
    for body in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"world": "prod"}"#,
        r#"{"world": "prod", "apps": {}}"#,
        r#"{"world": "prod", "apps": []"#,
        "\u{feff}{}",
    ] {
        assert!(matches!(judge(1, body.as_bytes(), "prod", 1), Err(NotBelieved::Json(_))), "{body}");
    }
    let deep = format!(r#"{{"world": "prod", "apps": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(judge(1, deep.as_bytes(), "prod", 1), Err(NotBelieved::Json(_))));
    assert!(matches!(judge(1, b"{\"world\": \"pr\xffod\", \"apps\": []}", "prod", 1), Err(NotBelieved::Json(_))));
}
