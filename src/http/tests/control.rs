//! The control listener.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::{get, raw};
use crate::clock::Entropy;
use crate::events::log::LogReader;
use crate::http::access::gate::Gate;
use crate::http::control::{AppsView, Control, loopback_alone, serve_control};
use crate::http::events::Feed;
use crate::http::log::LogView;
use crate::http::readiness::{GatewayState, Readiness, Role};
use crate::ids::AppId;
use crate::telemetry::Metrics;

struct OneApp;

impl AppsView for OneApp {
    fn apps(&self) -> BoxFuture<'_, Value> {
        Box::pin(async { json!({"apps": [{"app": "acme/bot"}]}) })
    }

    fn app<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move { (app.name() == "bot").then(|| json!({"app": app.to_string()})) })
    }
}

pub(super) struct NoLog;

impl LogView for NoLog {
    fn reader(&self) -> Option<Arc<dyn LogReader>> {
        None
    }
}

fn ready() -> Readiness {
    Readiness {
        replayed: true,
        listed: true,
        secrets_listed: true,
        watch_age_ms: Some(1_000),
        watch_limit_ms: 150_000,
        log_writable: true,
        log_failed: None,
        nodes_unknown: false,
        standing_by: None,
        role: Role::Active,
        gateway: GatewayState::Good { age_ms: 10 },
    }
}

pub(super) struct Served {
    pub(super) address: SocketAddr,
    readiness: Arc<Mutex<Readiness>>,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// Shows one app, a daemon that is ready, and that log.
pub(in crate::http) fn control(log: Arc<dyn LogView>) -> Control {
    Control {
        readiness: Arc::new(ready),
        metrics: Metrics::default(),
        apps: Arc::new(OneApp),
        proofs: Arc::new(super::proofs::Eight),
        feed: Feed::new(Arc::clone(&log), "world"),
        log,
        sessions: super::sessions::desk(super::sessions::One::new()),
        gate: Gate::local(),
        entropy: Entropy::seeded(1),
    }
}

pub(super) async fn served() -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let readiness = Arc::new(Mutex::new(ready()));
    let (stop, stopped) = oneshot::channel::<()>();
    let shown = Arc::clone(&readiness);
    let readiness_now = Arc::new(move || shown.lock().expect("not poisoned").clone());
    let control = Control { readiness: readiness_now, ..control(Arc::new(NoLog)) };
    let ended = tokio::spawn(serve_control(listener, control, async { drop(stopped.await) }));
    Served { address, readiness, stop, ended }
}

#[tokio::test]
async fn every_route_answers() {
    let served = served().await;
    let answer = get(served.address, "/v1/apps", "").await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, br#"{"apps":[{"app":"acme/bot"}]}"#.as_slice()));
    assert_eq!(get(served.address, "/v1/apps/acme/bot", "").await.body, br#"{"app":"acme/bot"}"#);
    assert_eq!(get(served.address, "/livez", "").await.status, 200);
    let metrics = get(served.address, "/metrics", "").await;
    assert!(metrics.head.contains("content-type: application/openmetrics-text"), "{}", metrics.head);
    assert!(metrics.body.ends_with(b"# EOF\n"));
}

#[tokio::test]
async fn refusals_have_codes() {
    let served = served().await;
    for (path, status, code) in [
        ("/v1/apps/acme/other", 404, "not_found"),
        ("/v1/apps/acme/Bad", 400, "bad_app"),
        ("/v1/apps/acme/%2e%2e", 400, "bad_app"),
        ("/v1/apps/acme/a%00b", 400, "bad_app"),
        ("/v1/apps/acme/%ff", 400, "bad_app"),
        ("/v1/apps/acme/bot/more", 404, "not_found"),
        ("/v1/log", 503, "no_log"),
        ("/v1/log/records?from=x", 400, "bad_range"),
        ("/v1/log/records?form=1", 400, "bad_range"),
        ("/v1/log/records?subject=nobody", 400, "bad_range"),
        ("/nowhere", 404, "not_found"),
        ("/", 405, "method_not_allowed"),
    ] {
        let answer = get(served.address, path, "").await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}");
    }
    let answer = raw(served.address, "DELETE /v1/apps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert_eq!((answer.status, answer.code().as_str()), (405, "method_not_allowed"));
    let large = "POST /v1/apps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 9999999\r\n\r\n";
    let answer = raw(served.address, large).await;
    assert_eq!((answer.status, answer.code().as_str()), (413, "body_too_large"));
}

#[tokio::test]
async fn a_foreign_page_is_refused_on_every_route() {
    let served = served().await;
    let own = format!("Origin: http://localhost:{}\r\n", served.address.port());
    for path in ["/livez", "/readyz", "/metrics", "/v1/apps", "/nowhere"] {
        for headers in [
            "Origin: https://evil.example\r\n",
            "Origin: null\r\n",
            "Sec-Fetch-Site: cross-site\r\n",
            "Sec-Fetch-Site: same-site\r\n",
            own.as_str(),
        ] {
            let answer = get(served.address, path, headers).await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "foreign_origin"), "{path} {headers}");
        }
    }
    for headers in ["Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost\r\n"] {
        assert_eq!(get(served.address, "/v1/apps", headers).await.status, 200, "{headers}");
    }
}

#[tokio::test]
async fn a_foreign_name_for_this_machine_is_refused_but_where_it_is_watched() {
    let served = served().await;
    let ask = async |path: &str, hosts: &str| {
        raw(served.address, &format!("GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n")).await.status
    };
    for host in ["localhost", "LOCALHOST:7070", "127.0.0.1:7070", "[::1]:7070", "[::1]"] {
        assert_eq!(ask("/v1/apps", &format!("Host: {host}\r\n")).await, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:x", "10.0.0.1", "[::2]", ""] {
        assert_eq!(ask("/v1/apps", &format!("Host: {host}\r\n")).await, 403, "{host}");
        assert_eq!(ask("/readyz", &format!("Host: {host}\r\n")).await, 200, "{host}");
    }
    assert_eq!(ask("http://evil.example/v1/apps", "Host: localhost\r\n").await, 403);
    assert_eq!(ask("/v1/apps", "Host: localhost\r\nHost: evil.example\r\n").await, 403);
}

#[tokio::test]
async fn readiness_names_the_part_that_fails() {
    let served = served().await;
    let ask = async |change: fn(&mut Readiness)| {
        let mut now = ready();
        change(&mut now);
        *served.readiness.lock().expect("not poisoned") = now;
        let answer = get(served.address, "/readyz", "").await;
        let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
        (answer.status, body["failing"].to_string())
    };
    assert_eq!(ask(|_| {}).await, (200, "[]".to_owned()));
    assert_eq!(ask(|r| r.replayed = false).await, (503, r#"["replayed"]"#.to_owned()));
    assert_eq!(ask(|r| r.watch_age_ms = Some(150_000)).await, (503, r#"["watching"]"#.to_owned()));
    assert_eq!(ask(|r| (r.watch_age_ms, r.listed) = (None, false)).await, (503, r#"["listed","watching"]"#.to_owned()));
    assert_eq!(ask(|r| r.log_writable = false).await, (503, r#"["log_writable"]"#.to_owned()));
    assert_eq!(ask(|r| r.gateway = GatewayState::Bad { reason: "status 503".to_owned() }).await, (200, "[]".to_owned()));
    assert_eq!(ask(|r| (r.role, r.listed, r.log_writable) = (Role::StandingBy, false, false)).await, (200, "[]".to_owned()));
    assert_eq!(ask(|r| (r.role, r.log_writable) = (Role::Frozen, false)).await, (503, r#"["log_writable"]"#.to_owned()));
}

#[tokio::test]
async fn it_stops_when_told() {
    let served = served().await;
    assert_eq!(get(served.address, "/livez", "").await.status, 200);
    served.stop.send(()).expect("it still serves");
    served.ended.await.expect("no panic").expect("an orderly end");
}

#[test]
fn it_serves_on_loopback_alone() {
    for near in ["127.0.0.1:7070", "[::1]:7070"] {
        assert!(loopback_alone(near.parse().expect("an address")).is_ok(), "{near}");
    }
    for routable in ["0.0.0.0:7070", "[::]:7070", "10.0.0.7:7070"] {
        let refused = loopback_alone(routable.parse().expect("an address")).expect_err("it is routable");
        assert!(refused.to_string().contains("loopback alone"), "{refused}");
    }
}
