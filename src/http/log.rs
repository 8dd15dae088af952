//! The log as it is stored, over HTTP: what it is, and its blocks in bounded pages, for whoever keeps or reads it elsewhere.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use schemars::JsonSchema;
use serde::Deserialize;

use super::problem::Problem;
use crate::clock::Clock;
use crate::events::backup::about::About;
use crate::events::backup::select::{Select, page};
use crate::events::log::{LogReader, ReadError};
use crate::ids::{Seq, Subject};

/// Where the next page begins; not there after the last.
const NEXT: HeaderName = HeaderName::from_static("wharf-next");

/// The first record that is there, with a refusal to give earlier ones.
const MINIMUM: HeaderName = HeaderName::from_static("wharf-minimum");

/// The log of the incarnation that runs.
pub trait LogView: Send + Sync + 'static {
    /// Its reader; `None` while none runs. Not kept for longer than an answer: its folder stays locked meanwhile.
    fn reader(&self) -> Option<Arc<dyn LogReader>>;
}

/// The routes.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(log: Arc<dyn LogView>) -> Router<S> {
    Router::new().route("/v1/log", get(about)).route("/v1/log/records", get(records)).with_state(log)
}

/// What of the log is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// The first record; without it the first that is there.
    from: Option<u64>,
    /// The last record; without it the last.
    to: Option<u64>,
    /// Only blocks with records of this subject.
    #[schemars(regex(pattern = r"^(app/[a-z0-9]{1,63}/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?|session/[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?)$"))]
    subject: Option<String>,
}

async fn about(State(log): State<Arc<dyn LogView>>) -> Result<Response, Problem> {
    let about = read(log.as_ref(), |reader| About::of(reader, Clock::wall_now_us())).await?;
    Ok(axum::Json(about).into_response())
}

async fn records(State(log): State<Arc<dyn LogView>>, asked: Result<Query<Asked>, QueryRejection>) -> Result<Response, Problem> {
    let bad = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "bad_range", detail);
    let Query(asked) = asked.map_err(|_| bad("from and to are numbers of records, subject is a subject".to_owned()))?;
    let subject = asked.subject.as_deref().map(Subject::parse).transpose().map_err(|error| bad(error.to_string()))?;
    let (from, to) = (asked.from.map(Seq), Seq(asked.to.unwrap_or(u64::MAX)));
    let read = read(log.as_ref(), move |reader| {
        let kept = |reader: &dyn LogReader| reader.removed().map_or(Seq(1), |removed| removed.kept);
        let select = Select { from: from.unwrap_or_else(|| kept(reader)), to, subject };
        let page = page(reader, &select)?;
        // Asked after reading: what ages out meanwhile is not passed over in silence.
        let kept = kept(reader);
        Ok(if select.from.max(Seq(1)) < kept { Err(kept) } else { Ok(page) })
    });
    let page = match read.await? {
        Ok(page) => page,
        Err(kept) => return Ok(aged_out(kept)),
    };
    let mut response = page.entries().into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Some(next) = page.next {
        response.headers_mut().insert(NEXT, HeaderValue::from(next.0));
    }
    Ok(response)
}

/// What was asked for is not there any more (410); the first record that is.
fn aged_out(kept: Seq) -> Response {
    let detail = format!("records before {kept} aged out");
    let mut response = Problem::new(StatusCode::GONE, "aged_out", detail).into_response();
    response.headers_mut().insert(MINIMUM, HeaderValue::from(kept.0));
    response
}

/// Reads on a thread that may wait for the disk.
async fn read<T: Send + 'static>(
    log: &dyn LogView,
    read: impl FnOnce(&dyn LogReader) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, Problem> {
    let reader = log.reader().ok_or_else(|| Problem::busy("no_log", "the log is not open", 5))?;
    let answer = tokio::task::spawn_blocking(move || read(reader.as_ref())).await;
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Problem::busy("unreadable", error.to_string(), 5)),
        Err(_) => Err(Problem::busy("unreadable", "reading the log failed", 5)),
    }
}
