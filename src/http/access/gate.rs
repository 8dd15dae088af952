//! The gate before every route: finds out who asks, holds it against the table, and hands the caller on.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::asked::{Callers, NotKnown};
use super::refusals::{Refusal, Refusals};
use super::routes::{Found, METRICS, find};
use crate::config::access::{Caller, Need};
use crate::http::problem::{Problem, no_such_method};
use crate::ids::Word;

/// What the gate goes by.
#[derive(Clone)]
pub struct Gate {
    /// Who has which token; `None`: whoever reaches the listener is [`Caller::local`].
    pub callers: Option<Arc<Callers>>,
    /// Whether `/metrics` needs nothing.
    pub open_metrics: bool,
    /// Where refusals are counted.
    pub refusals: Refusals,
}

/// What is asked for.
struct Route {
    /// Method and path, with its parameters in braces.
    name: String,
    /// What it needs; `None`: it is in no table.
    need: Option<Need>,
    is_metrics: bool,
}

/// Lets the request through with its [`Caller`] as an extension, or refuses it.
pub async fn gate(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let need = match find(request.method(), path) {
        Found::Route(need) => Some(need),
        Found::OtherMethods(methods) => return no_such_method(&methods),
        Found::Nothing => None,
    };
    let route = Route { name: format!("{} {path}", request.method()), need, is_metrics: path == METRICS };
    match gate.admit(&route, request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) if problem.status == StatusCode::UNAUTHORIZED => {
            ([(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))], problem).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

impl Gate {
    /// Lets in whoever reaches the listener, as [`Caller::local`].
    #[must_use]
    pub fn local() -> Self {
        Self { callers: None, open_metrics: true, refusals: Refusals::default() }
    }

    async fn admit(&self, route: &Route, headers: &HeaderMap) -> Result<Caller, Problem> {
        let refuse = |who: &Word, problem: Problem| {
            self.refusals.count(Refusal { who: who.clone(), route: route.name.clone(), code: problem.code });
            problem
        };
        // A route that somebody forgot in the table is closed, not open.
        let Some(need) = route.need else {
            return Err(refuse(&Word::default(), Problem::new(StatusCode::FORBIDDEN, "forbidden", "this route is in no table of routes")));
        };
        let open = need == Need::Nothing || (route.is_metrics && self.open_metrics);
        let Some(callers) = self.callers.as_ref().filter(|_| !open) else { return Ok(Caller::local()) };
        let caller = match token(headers) {
            Some(token) => callers.of(token).await,
            None => Err(NotKnown::Nobody),
        };
        let caller = caller.map_err(|unknown| match unknown {
            NotKnown::Nobody => {
                let detail = "a bearer token that the access file knows is needed";
                refuse(&Word::default(), Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail))
            }
            NotKnown::File(_) => Problem::busy("access_unreadable", "the access file cannot be used; the daemon's log says why", 5),
            NotKnown::Review(why) => {
                tracing::warn!(why, "a token could not be reviewed");
                Problem::busy("review_failed", "the API server could not be asked about the token", 5)
            }
        })?;
        if caller.may(need) {
            return Ok(caller);
        }
        let detail = format!("{} has not the role for it: {}", caller.name, need.words());
        Err(refuse(&caller.name, Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)))
    }
}

/// The bearer token, when there is exactly one (RFC 6750, section 2.1).
fn token(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (one, None) = (all.next()?, all.next()) else { return None };
    let (scheme, token) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}
