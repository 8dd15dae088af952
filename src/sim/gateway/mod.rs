//! A gateway that speaks the protocol of hosted apps: as a function, in process, or over HTTP on a loopback port.

mod app;
mod fault;
mod package;
mod seen;
mod state;
mod witness;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;

pub use app::App;
pub use fault::{Endpoint, Fault};
pub use package::package;
pub use seen::{Beat, LogsSeen, ReportSeen, Seen, WHY_MAX};
pub use state::{GatewayAnswer, GatewayRequest, State};
pub use witness::Witness;

use super::api::http::Served;
use super::node::{AppHooks, Register};
use crate::clock::Clock;

/// The gateway; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Gateway {
    state: Arc<Mutex<State>>,
    clock: Clock,
    witness: Arc<OnceLock<Arc<dyn Witness>>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway of a world, without apps.
    #[must_use]
    pub fn new(world: &str, token: &str, clock: Clock) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(world, token))), clock, witness: Arc::default() }
    }

    /// Tells this one of every request from now on; the first that is set stays.
    pub fn set_witness(&self, witness: Arc<dyn Witness>) {
        let _ = self.witness.set(witness);
    }

    /// The same gateway for its own witness to hold: requests through it are told to nobody, and it keeps no witness alive.
    #[must_use]
    pub fn unwitnessed(&self) -> Self {
        Self { state: Arc::clone(&self.state), clock: self.clock.clone(), witness: Arc::default() }
    }

    /// The state itself, for what has no method here. Must not be held over an await.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants the next release of an app, which may be new. Returns its host.
    pub fn deploy(&self, app: &str) -> String {
        self.with(app, |app| app.deploy(app.release + 1, None))
    }

    /// Wants this release of an app: again, or with this package.
    pub fn deploy_release(&self, app: &str, release: u64, source: Option<Bytes>) -> String {
        self.with(app, |app| app.deploy(release, source))
    }

    /// Changes an app's secret: a new host of the same release.
    pub fn change_secret(&self, app: &str, environment: Option<BTreeMap<String, String>>) -> String {
        self.with(app, |app| app.change_secret(environment))
    }

    /// Wants the app's log with the next beat.
    pub fn want_logs(&self, app: &str) {
        self.with(app, |app| app.logs_wanted = true);
    }

    /// Takes the wanted host's failure back: a retry.
    pub fn take_back_failure(&self, app: &str) {
        self.with(app, |app| app.failed = false);
    }

    /// Names the app no more.
    pub fn withdraw(&self, app: &str) {
        self.lock().apps.remove(app);
    }

    /// The app as it is now.
    #[must_use]
    pub fn app(&self, app: &str) -> Option<App> {
        self.lock().apps.get(app).cloned()
    }

    /// The next `times` requests of an endpoint meet this; `u32::MAX` is for ever.
    pub fn fail(&self, endpoint: Endpoint, times: u32, fault: Fault) {
        self.lock().fail(endpoint, times, fault);
    }

    /// Takes all faults back.
    pub fn heal(&self) {
        self.lock().heal();
    }

    /// All reports so far as `state host`, without repetitions in a row.
    #[must_use]
    pub fn reported(&self) -> Vec<String> {
        let mut told: Vec<String> = self.lock().seen.reports.iter().map(|report| format!("{} {}", report.state, report.host)).collect();
        told.dedup();
        told
    }

    fn with<T>(&self, app: &str, change: impl FnOnce(&mut App) -> T) -> T {
        let (org, name) = app.split_once('/').unwrap_or(("", app));
        let mut state = self.lock();
        change(state.apps.entry(app.to_owned()).or_insert_with(|| App::new(org, name)))
    }

    /// Answers a request in process, with its delays.
    ///
    /// # Errors
    /// When the answer cannot be put into HTTP.
    pub async fn call(&self, request: Request<Bytes>) -> io::Result<Response<Bytes>> {
        let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let asked = GatewayRequest {
            method: request.method().as_str().to_owned(),
            path: request.uri().path().to_owned(),
            authorization: authorization.unwrap_or_default().to_owned(),
            body: request.body().clone(),
        };
        let (answer, taken) = {
            let mut state = self.lock();
            let beats = state.seen.beats.len();
            let answer = state.handle(&asked, self.clock.now_us());
            (answer, state.seen.beats.len() > beats)
        };
        if let Some(witness) = self.witness.get() {
            witness.asked(&asked, &answer, taken);
        }
        if !answer.after.is_zero() {
            tokio::time::sleep(answer.after).await;
        }
        if answer.hangs {
            return std::future::pending().await;
        }
        let response = Response::builder().status(answer.status).header(header::CONTENT_TYPE, answer.media_type);
        response.body(answer.body).map_err(io::Error::other)
    }

    /// Serves it over HTTP on a free loopback port.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn serve(&self) -> io::Result<Served> {
        let gateway = self.clone();
        let answer = move |request: axum::extract::Request| {
            let gateway = gateway.clone();
            async move { gateway.over_http(request).await }
        };
        Served::start(axum::Router::new().fallback(answer)).await
    }

    async fn over_http(&self, request: axum::extract::Request) -> Result<Response<Body>, StatusCode> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| StatusCode::BAD_REQUEST)?.to_bytes();
        let response = self.call(Request::from_parts(parts, body)).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
        Ok(response.map(Body::from))
    }
}

impl AppHooks for Gateway {
    fn app_running(&self, host: &str, uid: &str, register: Register) {
        let at_us = match register {
            Register::After(after) => Some(self.clock.now_us() + i64::try_from(after.as_micros()).unwrap_or(i64::MAX / 4)),
            Register::Never => None,
        };
        self.lock().connect(host, uid, at_us);
    }

    fn app_ended(&self, host: &str, uid: &str) {
        self.lock().disconnect(host, uid);
    }
}
