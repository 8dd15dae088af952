//! The control listener: health, metrics, what is known of the apps, sessions, what can be proved of the log, the feed, and erasing what a
//! record says. Only on loopback.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::access::gate::{Gate, gate};
use super::events::Feed;
use super::guard::{Guard, guard};
use super::listener::{CONTROL, ConnectionLimits, serve};
use super::log::LogView;
use super::openapi;
use super::problem::{Problem, no_such_path};
use super::proofs::{self, ProofsView};
use super::readiness::Readiness;
use super::sessions::desk::Desk;
use crate::clock::Entropy;
use crate::ids::AppId;
use crate::telemetry::Metrics;

/// How long an answer about apps may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What is known of the apps, as JSON.
pub trait AppsView: Send + Sync + 'static {
    /// All of them, in order: `{"apps": [...]}` without more than a screen needs of each.
    fn apps(&self) -> BoxFuture<'_, Value>;

    /// One: its want, hosts, stages, last end, next look. `None` when it is not known.
    fn app<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Option<Value>>;
}

/// What the control listener shows.
#[derive(Clone)]
pub struct Control {
    /// Whether the daemon is ready.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
    /// What was counted.
    pub metrics: Metrics,
    /// What is known of the apps.
    pub apps: Arc<dyn AppsView>,
    /// What can be proved of the log.
    pub proofs: Arc<dyn ProofsView>,
    /// The log as it is stored.
    pub log: Arc<dyn LogView>,
    /// The log as a feed.
    pub feed: Feed,
    /// Where callers of sessions are answered.
    pub sessions: Desk,
    /// Who may ask what.
    pub gate: Gate,
    /// Where request ids come from.
    pub entropy: Entropy,
}

/// Serves the control listener until `shutdown`.
///
/// # Errors
/// When the listener is not on loopback, or fails for good.
pub async fn serve_control(listener: TcpListener, control: Control, shutdown: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    loopback_alone(listener.local_addr()?)?;
    let limits = limits(&control.sessions);
    serve(listener, limits, router(control), shutdown).await
}

/// The usual limits, and room for all callers of sessions that may wait, for as long as they may.
fn limits(sessions: &Desk) -> ConnectionLimits {
    let (longest, callers) = sessions.bears();
    ConnectionLimits {
        all: CONTROL.all + callers,
        of_one_address: CONTROL.of_one_address + callers,
        lifetime: CONTROL.lifetime + longest,
        silence: CONTROL.silence + longest,
        ..CONTROL
    }
}

/// Refuses an address that others than this machine reach.
pub(super) fn loopback_alone(address: SocketAddr) -> io::Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let reason = format!("control.listen = \"{address}\": loopback alone");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// The routes.
pub(super) fn router(control: Control) -> Router {
    let log = super::log::routes(Arc::clone(&control.log), control.gate.refusals.clone());
    let guarded = Guard { entropy: control.entropy.clone(), loopback: true };
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(described))
        .route("/v1/apps", get(apps))
        .route("/v1/apps/{org}/{name}", get(app))
        .merge(proofs::routes(Arc::clone(&control.proofs)))
        .merge(log)
        .merge(super::why::routes(Arc::clone(&control.log)))
        .merge(super::events::routes(control.feed.clone(), control.gate.refusals.clone()))
        .merge(super::sessions::routes::routes(control.sessions.clone()))
        .route_layer(axum::middleware::from_fn_with_state(control.gate.clone(), gate))
        .fallback(no_such_path)
        .with_state(control)
        .layer(axum::middleware::from_fn_with_state(guarded, guard))
}

async fn livez() -> Json<Value> {
    Json(json!({"alive": true}))
}

async fn described() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document().to_string());
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

async fn readyz(State(control): State<Control>) -> Response {
    let readiness = (control.readiness)();
    let status = if readiness.failing().is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness.json())).into_response()
}

async fn metrics(State(control): State<Control>) -> Response {
    // Gauges of what is now are brought up to date by whoever looks.
    (control.readiness)();
    ([(CONTENT_TYPE, crate::telemetry::METRICS_TYPE)], control.metrics.text()).into_response()
}

async fn apps(State(control): State<Control>) -> Result<Json<Value>, Problem> {
    in_time(control.apps.apps()).await.map(Json)
}

async fn app(State(control): State<Control>, path: Result<Path<(String, String)>, PathRejection>) -> Result<Json<Value>, Problem> {
    let bad = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "bad_app", detail);
    let Path((org, name)) = path.map_err(|_| bad("the path is not UTF-8".to_owned()))?;
    let app = AppId::new(&org, &name).map_err(|e| bad(e.to_string()))?;
    match in_time(control.apps.app(&app)).await? {
        Some(known) => Ok(Json(known)),
        None => Err(Problem::not_found(format!("{app} is not known here"))),
    }
}

/// The answer, or that the daemon is busy.
pub(super) async fn in_time<T>(answer: impl Future<Output = T>) -> Result<T, Problem> {
    let late = |_| Problem::busy("busy", "the daemon did not get to it in time", 5);
    tokio::time::timeout(ANSWER_WITHIN, answer).await.map_err(late)
}
