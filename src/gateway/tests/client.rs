//! The client against a scripted server on loopback.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;

use crate::config;
use crate::gateway::api::{Gateway as _, GatewayError, GatewayRefusal};
use crate::gateway::client::GatewayClient;
use crate::ids::AppId;

type Script = Arc<dyn Fn(&str) -> Response + Send + Sync>;

struct Server {
    client: GatewayClient,
    token_file: std::path::PathBuf,
    seen: Arc<std::sync::Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Server {
    /// A server that answers by path, and a client of it.
    async fn answering(script: impl Fn(&str) -> Response + Send + Sync + 'static) -> Self {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let state: (Script, Arc<std::sync::Mutex<Vec<String>>>) = (Arc::new(script), Arc::clone(&seen));
        let answer = |State((script, seen)): State<(Script, Arc<std::sync::Mutex<Vec<String>>>)>,
                      method: Method,
                      uri: Uri,
                      headers: HeaderMap,
                      body: Bytes| async move {
            let token = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("no token").to_owned();
            seen.lock().expect("not poisoned").push(format!("{method} {uri} {token} {}", String::from_utf8_lossy(&body)));
            script(uri.path())
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer).with_state(state)).await });
        let folder = tempfile::tempdir().expect("a folder");
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, "word-1\n").expect("a file");
        let settings = config::Gateway { url, token_file: token_file.display().to_string(), request_s: 1, ..config::Gateway::default() };
        let client = GatewayClient::new(&settings, 1_000).expect("a client");
        Self { client, token_file, seen, _folder: folder }
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().expect("not poisoned"))
    }
}

fn app() -> AppId {
    AppId::new("acme", "bot").expect("a name")
}

#[tokio::test]
async fn each_request_carries_the_token_as_its_file_has_it_now() {
    let server = Server::answering(|_| r#"{"environment": {"A": "1"}}"#.into_response()).await;
    server.client.heartbeat(b"{}".to_vec()).await.expect("an answer");
    std::fs::write(&server.token_file, "  word-2\r\n").expect("a file");
    let environment = server.client.environment(&app()).await.expect("an answer");
    assert_eq!(environment.into_iter().collect::<Vec<_>>(), [("A".to_owned(), "1".to_owned())]);
    assert_eq!(server.seen(), ["POST /v1/runner/heartbeat Bearer word-1 {}", "GET /v1/runner/apps/acme/bot/environment Bearer word-2 "]);
}

#[tokio::test]
async fn without_a_usable_token_nothing_is_sent() {
    let server = Server::answering(|_| "{}".into_response()).await;
    for bad in ["", " \n", "two\nlines", "ünicode", "a\u{0}b"] {
        std::fs::write(&server.token_file, bad).expect("a file");
        let error = server.client.heartbeat(Vec::new()).await.expect_err("no token");
        assert!(matches!(error, GatewayError::Unauthorised { .. }), "{error}");
        assert!(error.to_string().contains("token"), "{error}");
    }
    std::fs::remove_file(&server.token_file).expect("it was there");
    assert!(matches!(server.client.heartbeat(Vec::new()).await, Err(GatewayError::Unauthorised { .. })));
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn refusals_are_sorted_by_what_to_do_next() {
    let server = Server::answering(|path| {
        let status = path.split('/').nth(7).and_then(|release| release.parse().ok()).and_then(|code| StatusCode::from_u16(code).ok());
        status.unwrap_or(StatusCode::OK).into_response()
    })
    .await;
    let mut sorted = Vec::new();
    for status in [301, 400, 401, 403, 404, 408, 410, 429, 500, 503] {
        let how = match server.client.source(&app(), status).await {
            Ok(_) => "given",
            Err(GatewayError::Retry { .. }) => "retry",
            Err(GatewayError::Refused { .. }) => "refused",
            Err(GatewayError::Unauthorised { .. }) => "unauthorised",
        };
        sorted.push(format!("{status} {how}"));
    }
    assert_eq!(
        sorted.join(", "),
        "301 retry, 400 retry, 401 unauthorised, 403 unauthorised, 404 refused, 408 retry, 410 refused, 429 retry, 500 retry, 503 retry"
    );
}

#[tokio::test]
async fn a_redirect_takes_the_token_nowhere() {
    let server = Server::answering(|path| match path {
        "/elsewhere" => "reached".into_response(),
        _ => (StatusCode::TEMPORARY_REDIRECT, [("location", "/elsewhere")]).into_response(),
    })
    .await;
    assert!(server.client.heartbeat(Vec::new()).await.is_err());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_over_its_limit_is_not_read_to_its_end() {
    let server = Server::answering(|_| "x".repeat(1_001).into_response()).await;
    let error = server.client.heartbeat(Vec::new()).await.expect_err("too large");
    assert!(matches!(&error, GatewayError::Retry { reason, .. } if reason.contains("1000 bytes")), "{error}");
}

#[tokio::test]
async fn an_environment_is_never_quoted_in_an_error() {
    for body in
        [r#"{"environment": {"A": 1, "SECRET": "hunter2"}}"#, r#"{"environment": "hunter2"}"#, r#"{"environment": {"A": "hunter2"}"#]
    {
        let server = Server::answering(move |_| body.into_response()).await;
        let error = server.client.environment(&app()).await.expect_err("not an environment").to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn a_source_comes_in_chunks() {
    let server = Server::answering(|_| "package".repeat(10_000).into_response()).await;
    let chunks: Vec<_> = server.client.source(&app(), 3).await.expect("a source").collect().await;
    let length: usize = chunks.into_iter().map(|chunk| chunk.expect("a chunk").len()).sum();
    assert_eq!(length, 70_000);
    assert_eq!(server.seen(), ["GET /v1/runner/apps/acme/bot/releases/3/source Bearer word-1 "]);
}

#[tokio::test]
async fn nobody_listening_is_a_reason_to_retry() {
    let server = Server::answering(|_| "".into_response()).await;
    let settings = config::Gateway {
        url: "http://127.0.0.1:9".to_owned(),
        token_file: server.token_file.display().to_string(),
        ..config::Gateway::default()
    };
    let client = GatewayClient::new(&settings, 1_000).expect("a client");
    assert!(matches!(client.heartbeat(Vec::new()).await, Err(GatewayError::Retry { status: 0, .. })));
}

#[test]
fn settings_that_would_leak_the_token_make_no_client() {
    let settings = |url: &str, token_file: &str, ca_file: &str| config::Gateway {
        url: url.to_owned(),
        token_file: token_file.to_owned(),
        ca_file: ca_file.to_owned(),
        ..config::Gateway::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("ca.pem");
    std::fs::write(&empty, "no certificate").expect("a file");
    let empty = empty.display().to_string();
    for (bad, key) in [
        (settings("http://gw.example.org", "t", ""), "gateway.url"),
        (settings("", "t", ""), "gateway.url"),
        (settings("https://gw.example.org", "", ""), "gateway.token_file"),
        (settings("https://gw.example.org", "t", "/nowhere/ca.pem"), "gateway.ca_file"),
        (settings("https://gw.example.org", "t", &empty), "gateway.ca_file"),
    ] {
        assert_eq!(GatewayClient::new(&bad, 1).expect_err("unusable").key, key);
    }
    assert_eq!(GatewayRefusal::TooLarge { limit: 3 }.to_string(), "it is larger than 3 bytes");
}
