//! What the tests of this binary share: a real API server, and requests by hand.

pub(crate) mod control_plane;
pub(crate) mod faults;
mod pki;
mod process;
pub(crate) mod random;
mod rights;

use std::io::Write as _;
use std::time::Duration;

use ::kube::Client;
use ::kube::client::Body;
use futures_util::StreamExt as _;
use serde_json::Value;

/// How long anything that has to come is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Says that the test which runs in this thread is skipped, where the harness does not swallow it. `cargo xtask test` counts it.
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {why}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(line.as_bytes()).expect("stderr can be written");
}

/// One request by hand: the status and the body, text as a JSON string.
pub(crate) async fn ask(client: &Client, method: &str, path: &str, body: &Value) -> Result<(u16, Value), ::kube::Error> {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let media_type = match method {
        "PATCH" => "application/strategic-merge-patch+json",
        _ => "application/json",
    };
    let request = http::Request::builder().method(method).uri(path).header("content-type", media_type);
    let response = client.send(request.body(Body::from(bytes)).expect("a valid request")).await?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((code, serde_json::from_slice(&bytes).unwrap_or(Value::String(text))))
}

/// Asks, and the answer has to be this.
pub(crate) async fn expect(client: &Client, method: &str, path: &str, body: &Value, status: u16) -> Value {
    let (code, answer) = ask(client, method, path, body).await.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
    assert_eq!(code, status, "{method} {path}: {answer}");
    answer
}

/// Watches one object until it is so, beginning after a version of it, or with what it is (`0`); the judge hears the kind of event
/// (`ADDED`, `MODIFIED`, `DELETED`) too.
pub(crate) async fn until(client: &Client, list: &str, name: &str, from: &str, so: impl Fn(&str, &Value) -> bool) -> Value {
    let mut last = Value::Null;
    let watch = async {
        loop {
            let path = format!("{list}?watch=true&resourceVersion={from}&fieldSelector=metadata.name%3D{name}&timeoutSeconds=120");
            let request = http::Request::get(path).body(Vec::new()).expect("a valid request");
            let events = client.request_events::<Value>(request).await.expect("a watch");
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let event = serde_json::to_value(event).expect("it came from JSON");
                let kind = event["type"].as_str().unwrap_or_default().to_owned();
                last = event["object"].clone();
                if so(&kind, &last) {
                    return;
                }
            }
        }
    };
    let so = tokio::time::timeout(PATIENCE, watch).await;
    assert!(so.is_ok(), "{name} did not become so; it is {last:#}");
    last
}
