//! The table of route and role. A route that is not in it is refused. Pure.

use axum::http::Method;

use crate::config::access::Need;

/// One route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The method; `GET` stands for `HEAD` too.
    pub method: &'static str,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// What it needs of its caller.
    pub need: Need,
}

const fn get(path: &'static str, need: Need) -> Route {
    Route { method: "GET", path, need }
}

const fn post(path: &'static str, need: Need) -> Route {
    Route { method: "POST", path, need }
}

const fn session(method: &'static str, path: &'static str) -> Route {
    Route { method, path, need: Need::Sessions }
}

/// Every route of the control listener. `/metrics` needs nothing, or what a reader needs, by `control.open_metrics`.
pub const ROUTES: &[Route] = &[
    get("/livez", Need::Nothing),
    get("/readyz", Need::Nothing),
    get(METRICS, Need::Read),
    get("/openapi.json", Need::ReadSessions),
    get("/v1/apps", Need::Read),
    get("/v1/apps/{org}/{name}", Need::Read),
    get("/v1/events", Need::Read),
    get("/v1/log", Need::Read),
    get("/v1/log/records", Need::Read),
    post("/v1/log/erase", Need::Act),
    get("/v1/log/key", Need::Read),
    get("/v1/log/checkpoint", Need::Read),
    get("/v1/log/proof", Need::Read),
    get("/v1/why", Need::Read),
    get("/v1/sessions", Need::ReadSessions),
    session("POST", "/v1/sessions"),
    get("/v1/sessions/{id}", Need::ReadSessions),
    session("PUT", "/v1/sessions/{id}"),
    session("DELETE", "/v1/sessions/{id}"),
    session("POST", "/v1/sessions/{id}/touch"),
    // The seed's form.
    session("POST", "/"),
    session("DELETE", "/"),
];

/// The path of the metrics.
pub const METRICS: &str = "/metrics";

/// What the table says of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The route, with what it needs.
    Route(Need),
    /// The path has other methods: these.
    OtherMethods(String),
    /// No such path.
    Nothing,
}

/// Looks a request up: by its method and the path of the route it matched.
#[must_use]
pub fn find(method: &Method, path: &str) -> Found {
    let asked = if method == Method::HEAD { Method::GET.as_str() } else { method.as_str() };
    let mut methods = Vec::new();
    for route in ROUTES.iter().filter(|route| route.path == path) {
        if route.method == asked {
            return Found::Route(route.need);
        }
        methods.push(if route.method == "GET" { "GET, HEAD" } else { route.method });
    }
    if methods.is_empty() { Found::Nothing } else { Found::OtherMethods(methods.join(", ")) }
}
