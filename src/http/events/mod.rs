//! `GET /v1/events`: the audit feed, in the form that Accept chooses (feed.md, "Forms").

mod asked;
mod batch;
mod follow;
mod sse;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use tokio::sync::Semaphore;

pub(super) use self::asked::EventsQuery;
use self::asked::{Asked, Form};
use self::follow::Reading;
use super::access::refusals::Refusals;
use super::log::{LogView, with_texts};
use super::problem::Problem;
use crate::config::access::Caller;
use crate::feed::cursor::BadCursor;

/// The most readers at once; past them a reader is told to come again.
const READERS: usize = 512;

/// Nothing between us and the reader may keep events back.
const NO_BUFFER: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The feed of the log that is open.
#[derive(Clone)]
pub struct Feed {
    log: Arc<dyn LogView>,
    world: Arc<str>,
    readers: Arc<Semaphore>,
}

impl Feed {
    /// The feed of that world.
    #[must_use]
    pub fn new(log: Arc<dyn LogView>, world: &str) -> Self {
        Self { log, world: world.into(), readers: Arc::new(Semaphore::new(READERS)) }
    }
}

/// The route.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(feed: Feed, refusals: Refusals) -> Router<S> {
    Router::new().route("/v1/events", get(events)).layer(Extension(refusals)).with_state(feed)
}

async fn events(
    State(feed): State<Feed>,
    Extension(caller): Extension<Caller>,
    Extension(refusals): Extension<Refusals>,
    headers: HeaderMap,
    query: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let unread = "after, subject, kind and lastEventId are texts, limit, timeout and follow numbers, include may be tails; each once";
    let Query(query) = query.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "bad_query", unread))?;
    let form = Form::of(headers.get(ACCEPT)).ok_or_else(not_acceptable)?;
    let tails = with_texts(query.include.as_deref(), "GET /v1/events", &caller, &refusals)?;
    let asked = Asked::read(form, &query, tails, &headers)?;
    let place = Arc::clone(&feed.readers).try_acquire_owned();
    let place = place.map_err(|_| Problem::busy("too_many_readers", format!("{READERS} readers are connected"), 5))?;
    let (reading, pruned) = Reading::begin(feed, asked, place).await?;
    let mut response = match (form, pruned) {
        (Form::Sse, pruned) => sse::stream(reading, pruned),
        (Form::Ndjson | Form::Batch, Some(pruned)) => return Err(bad_cursor(pruned)),
        (Form::Ndjson, None) => reading.ndjson(),
        (Form::Batch, None) => batch::answer(reading).await?,
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(NO_BUFFER, HeaderValue::from_static("no"));
    Ok(response)
}

fn not_acceptable() -> Problem {
    let detail = "Accept is application/x-ndjson, text/event-stream or application/cloudevents-batch+json";
    Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", detail)
}

/// What a reader is told whose cursor does not lead on.
fn bad_cursor(cursor: BadCursor) -> Problem {
    let detail = cursor.to_string();
    let problem = |status, code| Problem::new(status, code, detail.clone());
    match cursor {
        BadCursor::Malformed => problem(StatusCode::BAD_REQUEST, "bad_cursor"),
        BadCursor::OtherLog { start } => problem(StatusCode::CONFLICT, "other_log").with("start", start.to_string()),
        BadCursor::Ahead { head } => problem(StatusCode::CONFLICT, "ahead").with("head", head.to_string()),
        BadCursor::Pruned { requested, minimum } => {
            problem(StatusCode::GONE, "aged_out").with("requested", requested.to_string()).with("minimum", minimum.to_string())
        }
    }
}
