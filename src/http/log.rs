//! The log as it is stored, over HTTP: what it is, and its blocks in bounded pages, for whoever keeps or reads it elsewhere.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::watch;

use super::access::refusals::{Refusal, Refusals};
use super::erase::{self, Erased, Refused, Wanted};
use super::problem::Problem;
use crate::clock::Clock;
use crate::config::access::Caller;
use crate::events::backup::about::About;
use crate::events::backup::select::{Select, page};
use crate::events::log::{LogReader, ReadError};
use crate::events::texts::without_texts;
use crate::ids::{Seq, Subject};

/// Where the next page begins; not there after the last.
const NEXT: HeaderName = HeaderName::from_static("wharf-next");

/// The first record that is there, with a refusal to give earlier ones.
const MINIMUM: HeaderName = HeaderName::from_static("wharf-minimum");

/// The path of the pages.
const RECORDS: &str = "/v1/log/records";

/// What `include` has to say for what tenants wrote.
const TAILS: &str = "tails";

/// The log of the incarnation that runs.
pub trait LogView: Send + Sync + 'static {
    /// Its reader; `None` while none runs. Not kept for longer than an answer: its folder stays locked meanwhile.
    fn reader(&self) -> Option<Arc<dyn LogReader>>;

    /// How far it is durable, as it grows; `None` while nobody writes to it.
    fn heads(&self) -> Option<watch::Receiver<Seq>> {
        None
    }

    /// Takes away what a record says that only informs; refused where none is written.
    fn erase(&self, _wanted: Wanted) -> BoxFuture<'_, Result<Erased, Refused>> {
        std::future::ready(Err(Refused::NoLog)).boxed()
    }
}

/// The routes.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(log: Arc<dyn LogView>, refusals: Refusals) -> Router<S> {
    Router::new()
        .route("/v1/log", get(about))
        .route(RECORDS, get(records))
        .route("/v1/log/erase", erase::route())
        .layer(Extension(refusals))
        .with_state(log)
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
    /// `tails`: with what tenants wrote, for who has the role.
    #[schemars(regex(pattern = "^tails$"))]
    include: Option<String>,
}

async fn about(State(log): State<Arc<dyn LogView>>) -> Result<Response, Problem> {
    let about = read(log.as_ref(), |reader| About::of(reader, Clock::wall_now_us())).await?;
    Ok(axum::Json(about).into_response())
}

/// Who asks for what tenants wrote must have the role; nobody else gets it, whatever else they may read.
pub(super) fn with_texts(include: Option<&str>, route: &str, caller: &Caller, refusals: &Refusals) -> Result<bool, Problem> {
    match include {
        None => Ok(false),
        Some(TAILS) if caller.reads_texts() => Ok(true),
        Some(TAILS) => {
            let problem = Problem::new(StatusCode::FORBIDDEN, "forbidden", format!("{} has not the role tails", caller.name));
            refusals.count(Refusal { who: caller.name.clone(), route: route.to_owned(), code: problem.code });
            Err(problem)
        }
        Some(_) => Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", "include may be tails")),
    }
}

async fn records(
    State(log): State<Arc<dyn LogView>>,
    Extension(caller): Extension<Caller>,
    Extension(refusals): Extension<Refusals>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, Problem> {
    let bad = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "bad_range", detail);
    let Query(asked) = asked.map_err(|_| bad("from and to are numbers of records, subject is a subject".to_owned()))?;
    let subject = asked.subject.as_deref().map(Subject::parse).transpose().map_err(|error| bad(error.to_string()))?;
    let texts = with_texts(asked.include.as_deref(), &format!("GET {RECORDS}"), &caller, &refusals)?;
    let (from, to) = (asked.from.map(Seq), Seq(asked.to.unwrap_or(u64::MAX)));
    let read = read(log.as_ref(), move |reader| {
        let kept = |reader: &dyn LogReader| reader.removed().map_or(Seq(1), |removed| removed.kept);
        let select = Select { from: from.unwrap_or_else(|| kept(reader)), to, subject };
        let mut page = page(reader, &select)?;
        if !texts {
            for (key, block) in &mut page.blocks {
                *block = without_texts(*key, std::mem::take(block)).map_err(std::io::Error::other)?;
            }
        }
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
pub(super) fn aged_out(kept: Seq) -> Response {
    let detail = format!("records before {kept} aged out");
    let mut response = Problem::new(StatusCode::GONE, "aged_out", detail).into_response();
    response.headers_mut().insert(MINIMUM, HeaderValue::from(kept.0));
    response
}

/// Reads on a thread that may wait for the disk.
pub(super) async fn read<T: Send + 'static>(
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
