//! The contract that the embedded API server is held to, against a real one, and the shipped rights. Where they differ, the real
//! one is right.

use serde_json::{Value, json};
use wharfinger::sim::contract::Contract;

use crate::support::control_plane::{ControlPlane, client};
use crate::support::{ask, expect, skipped};

/// Set it to run what takes minutes.
const SLOW: &str = "WHARF_SLOW_TESTS";

async fn keeps_the_contract(cluster: &ControlPlane, slow: bool) {
    let namespace = cluster.namespace("contract").await;
    let client = cluster.admin_client(&namespace).await;
    // The history of a real server cannot be forgotten by a request.
    let contract = Contract { client, namespace, compact: None, slow };
    let kept = contract.check().await.unwrap_or_else(|broken| panic!("{broken}"));
    assert!(kept.len() > 30, "{kept:?}");
}

#[tokio::test]
async fn a_real_api_server_keeps_the_contract() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    keeps_the_contract(cluster, false).await;
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "which tests run is no setting of the daemon")]
async fn a_real_api_server_sends_bookmarks() {
    if std::env::var_os(SLOW).is_none() {
        return skipped(&format!("{SLOW} is not set: it takes minutes"));
    }
    let Some(cluster) = ControlPlane::shared().await else { return };
    keeps_the_contract(cluster, true).await;
}

#[tokio::test]
async fn the_shipped_rights_are_enough_and_no_more() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let namespace = cluster.namespace("rights").await;
    cluster.install_rights(&namespace, false).await;
    let daemon = client(&cluster.daemon_kubeconfig(&namespace).await, &namespace).await.expect("a client");
    let path = |tail: &str| format!("/api/v1/namespaces/{namespace}/{tail}");
    for (method, path, status) in [
        ("GET", path("pods"), 200),
        ("GET", path("pods/absent/log"), 404),
        ("DELETE", path("pods/absent"), 404),
        ("GET", path("secrets"), 200),
        ("GET", format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/absent"), 404),
        ("GET", format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/absent"), 404),
        ("PATCH", path("pods/absent"), 403),
        ("DELETE", path("pods"), 403),
        ("GET", path("configmaps"), 403),
        ("GET", "/api/v1/namespaces/default/pods".to_owned(), 403),
        ("GET", "/api/v1/pods".to_owned(), 403),
        ("GET", "/api/v1/nodes".to_owned(), 403),
    ] {
        let body = if method == "PATCH" { json!({}) } else { Value::Null };
        let (code, answer) = ask(&daemon, method, &path, &body).await.expect("an answer");
        assert_eq!(code, status, "{method} {path}: {answer}");
    }

    let namespace = cluster.namespace("rights").await;
    cluster.install_rights(&namespace, true).await;
    let daemon = client(&cluster.daemon_kubeconfig(&namespace).await, &namespace).await.expect("a client");
    expect(&daemon, "GET", "/api/v1/nodes", &Value::Null, 200).await;
}

#[tokio::test]
async fn requests_are_in_the_audit_log() {
    let Some(cluster) = ControlPlane::shared().await else { return };
    let namespace = cluster.namespace("audit").await;
    cluster.install_rights(&namespace, false).await;
    let daemon = client(&cluster.daemon_kubeconfig(&namespace).await, &namespace).await.expect("a client");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "audited"}});
    let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/secrets"));
    let request = request.header("content-type", "application/json").header("audit-id", "it-audit-1");
    let request = request.body(::kube::client::Body::from(secret.to_string().into_bytes())).expect("a valid request");
    assert_eq!(daemon.send(request).await.expect("an answer").status(), 201);
    let entries = cluster.audited(1, |entry| entry["auditID"] == "it-audit-1").await;
    let entry = &entries[0];
    let said = (&entry["verb"], &entry["objectRef"]["name"], &entry["responseStatus"]["code"], &entry["user"]["username"]);
    let user = json!(format!("system:serviceaccount:{namespace}:wharf"));
    assert_eq!(said, (&json!("create"), &json!("audited"), &json!(201), &user));
}
