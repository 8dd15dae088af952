//! The embedded gateway's protocol: in process and over HTTP.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::support::START_US;
use crate::clock::Clock;
use crate::ids::hex;
use crate::sim::gateway::{Endpoint, Fault, Gateway};
use crate::sim::node::{AppHooks as _, Register};

async fn call(gateway: &Gateway, method: &str, path: &str, body: &Value) -> (u16, Bytes) {
    let request = http::Request::builder().method(method).uri(path).header("authorization", "Bearer t");
    let request = request.body(Bytes::from(body.to_string())).expect("a valid request");
    let response = gateway.call(request).await.expect("an answer");
    (response.status().as_u16(), response.into_body())
}

async fn beat(gateway: &Gateway, reports: Value) -> Value {
    let body = json!({"runner": "r", "reports": reports, "logs": []});
    let (code, body) = call(gateway, "POST", "/v1/runner/heartbeat", &body).await;
    assert_eq!(code, 200);
    serde_json::from_slice(&body).expect("JSON")
}

fn report(host: &str, state: &str) -> Value {
    json!([{"org": "acme", "name": "bot", "host": host, "state": state, "why": ""}])
}

#[tokio::test(start_paused = true)]
async fn a_release_goes_live_when_it_is_registered_and_reported() {
    let gateway = Gateway::new("demo", "t", Clock::simulated(START_US));
    assert_eq!(beat(&gateway, json!([])).await, json!({"world": "demo", "apps": []}));
    let host = gateway.deploy("acme/bot");
    assert!(host.starts_with("bot-r1-") && host.len() == "bot-r1-".len() + 8, "{host}");
    let want = beat(&gateway, json!([])).await["apps"][0].clone();
    let expected = json!({"org": "acme", "name": "bot", "release": 1, "sha256": want["sha256"], "host": host, "registered": false,
        "failed": false, "logs_wanted": false, "live_host": null});
    assert_eq!(want, expected);
    gateway.app_running(&host, "u1", Register::After(Duration::from_secs(2)));
    let want = beat(&gateway, report(&host, "live")).await["apps"][0].clone();
    assert_eq!((&want["registered"], &want["live_host"]), (&json!(false), &Value::Null), "not connected yet");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let want = beat(&gateway, report(&host, "live")).await["apps"][0].clone();
    assert_eq!((&want["registered"], &want["live_host"]), (&json!(true), &json!(host)));
    gateway.app_ended(&host, "u1");
    let want = beat(&gateway, json!([])).await["apps"][0].clone();
    assert_eq!((&want["registered"], &want["live_host"]), (&json!(false), &json!(host)));
    assert_eq!(gateway.reported(), [format!("live {host}")]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_makes_a_new_host_of_the_same_release_and_a_failure_ends_with_it() {
    let gateway = Gateway::new("demo", "t", Clock::simulated(START_US));
    let first = gateway.deploy("acme/bot");
    let want = beat(&gateway, report(&first, "failed")).await["apps"][0].clone();
    assert_eq!(want["failed"], true);
    let second = gateway.change_secret("acme/bot", Some([("KEY".to_owned(), "it's".to_owned())].into()));
    assert!(second.starts_with("bot-r1-") && second != first);
    let want = beat(&gateway, report(&first, "failed")).await["apps"][0].clone();
    assert_eq!((&want["host"], &want["failed"]), (&json!(second), &json!(false)), "a report of a former host changes nothing");
    let (code, body) = call(&gateway, "GET", "/v1/runner/apps/acme/bot/environment", &Value::Null).await;
    assert_eq!((code, &body[..]), (200, &br#"{"environment":{"KEY":"it's"}}"#[..]));
    gateway.withdraw("acme/bot");
    assert_eq!(beat(&gateway, json!([])).await["apps"], json!([]));
    assert_eq!(call(&gateway, "GET", "/v1/runner/apps/acme/bot/environment", &Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_source_is_what_its_digest_says() {
    let gateway = Gateway::new("demo", "t", Clock::simulated(START_US));
    gateway.deploy("acme/bot");
    let want = beat(&gateway, json!([])).await["apps"][0].clone();
    let (code, source) = call(&gateway, "GET", "/v1/runner/apps/acme/bot/releases/1/source", &Value::Null).await;
    assert_eq!((code, json!(hex(&Sha256::digest(&source)))), (200, want["sha256"].clone()));
    assert_eq!(source.get(..2), Some(&[0x1f, 0x8b][..]), "gzip");
    assert_eq!(call(&gateway, "GET", "/v1/runner/apps/acme/bot/releases/2/source", &Value::Null).await.0, 404);
    let again = Gateway::new("demo", "t", Clock::simulated(START_US));
    again.deploy("acme/bot");
    assert_eq!(again.app("acme/bot").map(|app| app.sha256()), gateway.app("acme/bot").map(|app| app.sha256()));
}

#[tokio::test(start_paused = true)]
async fn faults_are_met_in_order() {
    let gateway = Gateway::new("demo", "t", Clock::simulated(START_US));
    let host = gateway.deploy("acme/bot");
    gateway.deploy("acme/cat");
    gateway.fail(Endpoint::Heartbeat, 1, Fault::Status(500));
    gateway.fail(Endpoint::Heartbeat, 1, Fault::StatusAfter(502));
    gateway.fail(Endpoint::Heartbeat, 1, Fault::Delay(Duration::from_secs(9)));
    gateway.fail(Endpoint::Heartbeat, 1, Fault::WrongWorld);
    gateway.fail(Endpoint::Heartbeat, 1, Fault::Omit("acme/bot".to_owned()));
    gateway.fail(Endpoint::Heartbeat, 1, Fault::Empty);
    gateway.fail(Endpoint::Heartbeat, 1, Fault::Garbage);
    gateway.fail(Endpoint::Source, u32::MAX, Fault::Status(503));
    let body = json!({"runner": "r", "reports": report(&host, "failed"), "logs": []});
    assert_eq!(call(&gateway, "POST", "/v1/runner/heartbeat", &body).await.0, 500);
    assert_eq!(gateway.app("acme/bot").map(|app| app.failed), Some(false), "nothing was taken in");
    assert_eq!(call(&gateway, "POST", "/v1/runner/heartbeat", &body).await.0, 502);
    assert_eq!(gateway.app("acme/bot").map(|app| app.failed), Some(true), "taken in, the answer was lost");
    let started = crate::clock::now();
    assert_eq!(beat(&gateway, json!([])).await["world"], "another-world");
    assert_eq!(started.elapsed(), Duration::from_secs(9));
    assert_eq!(beat(&gateway, json!([])).await["apps"][0]["name"], "cat");
    assert_eq!(beat(&gateway, json!([])).await["apps"], json!([]));
    assert_eq!(call(&gateway, "POST", "/v1/runner/heartbeat", &body).await.1.first(), Some(&b'<'));
    for _ in 0..3 {
        assert_eq!(call(&gateway, "GET", "/v1/runner/apps/acme/bot/releases/1/source", &Value::Null).await.0, 503);
    }
    gateway.heal();
    assert_eq!(call(&gateway, "GET", "/v1/runner/apps/acme/bot/releases/1/source", &Value::Null).await.0, 200);
    let answered: Vec<u16> = gateway.lock().seen.beats.iter().map(|beat| beat.answered).collect();
    assert_eq!(answered, [502, 200, 200, 200]);
}

#[tokio::test]
async fn it_is_served_over_http_and_checks_the_token() {
    crate::sim::tests::support::install_provider();
    let gateway = Gateway::new("demo", "t", Clock::real());
    gateway.deploy("acme/bot");
    let served = gateway.serve().await.expect("a port");
    let client = reqwest::Client::new();
    let url = format!("{}/v1/runner/heartbeat", served.url());
    let body = json!({"runner": "r", "reports": [], "logs": []});
    let post = |token: &str| client.post(&url).bearer_auth(token).json(&body).send();
    assert_eq!(post("wrong").await.expect("an answer").status(), 401);
    let answer: Value = post("t").await.expect("an answer").json().await.expect("JSON");
    assert_eq!(answer["apps"][0]["name"], "bot");
}
