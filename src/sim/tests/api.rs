//! The embedded API server against the contract, and its faults.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::support::{api, ask};
use crate::sim::contract::Contract;

#[tokio::test(start_paused = true)]
async fn the_embedded_api_server_keeps_the_contract() {
    let api = api();
    let compacting = api.clone();
    let contract = Contract {
        client: api.client("apps"),
        namespace: "apps".to_owned(),
        compact: Some(Arc::new(move || compacting.compact())),
        slow: true,
    };
    let passed = contract.check().await.expect("the contract is kept");
    assert_eq!(passed.len(), 34);
}

#[tokio::test(start_paused = true)]
async fn a_watch_gets_bookmarks_only_once_something_newer_is_known_of_its_kind() {
    let api = api();
    let client = api.client("apps");
    let (_, list) = ask(&client, "GET", "/api/v1/namespaces/apps/secrets", &Value::Null).await;
    let from = list["metadata"]["resourceVersion"].as_str().expect("a version");
    let path = format!("/api/v1/namespaces/apps/secrets?watch=true&allowWatchBookmarks=true&resourceVersion={from}&timeoutSeconds=1000");
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    let mut events = std::pin::pin!(client.request_events::<Value>(request).await.expect("a watch"));
    let mut within = async |seconds| tokio::time::timeout(Duration::from_secs(seconds), events.next()).await;
    let other = json!({"metadata": {"name": "p", "namespace": "apps"}, "spec": {"podSelector": {}}});
    assert_eq!(ask(&client, "POST", "/apis/networking.k8s.io/v1/namespaces/apps/networkpolicies", &other).await.0, 201);
    assert!(within(200).await.is_err(), "nothing of its kind moved");
    ask(&client, "GET", "/api/v1/namespaces/default/secrets?limit=1", &Value::Null).await;
    let event = within(61).await.expect("in time").expect("open").expect("an event");
    assert!(matches!(event, ::kube::core::WatchEvent::Bookmark(_)), "another's list brought it up to date");
}
