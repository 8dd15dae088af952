//! `POST /v1/log/erase`: takes away what a record says, on behalf of an operator. Who it was is in the record of it.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, post};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::log::{LogView, aged_out, read};
use super::problem::Problem;
use crate::config::access::Caller;
use crate::events::erase::NotErased;
use crate::ids::{Seq, Word, shown};

/// The largest body, bytes: a number and a reason, however it is escaped.
const BODY_BYTES: usize = 16 << 10;

/// What is to be erased, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The record.
    pub seq: Seq,
    /// The caller's name.
    pub who: Word,
    /// Why, in their words.
    pub why: String,
}

/// What was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Erased {
    /// The record that says nothing any more.
    pub seq: u64,
    /// The record that says so.
    pub recorded: u64,
    /// Files of the archive that hold what it said, and stay as they are.
    pub archived: Vec<String>,
}

/// Why nothing was erased.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// No log is open for writing.
    #[error("no log is being written here")]
    NoLog,
    /// The log says why.
    #[error(transparent)]
    Log(#[from] NotErased),
}

/// What of the log is to say nothing any more.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// The record's number.
    seq: u64,
    /// Why; recorded.
    reason: String,
}

/// The route.
pub(super) fn route() -> MethodRouter<Arc<dyn LogView>> {
    post(erase).layer(DefaultBodyLimit::max(BODY_BYTES))
}

async fn erase(
    State(log): State<Arc<dyn LogView>>,
    Extension(caller): Extension<Caller>,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(Asked { seq, reason }) = asked.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", format!("a body here is at most {BODY_BYTES} bytes"));
        }
        Problem::new(StatusCode::BAD_REQUEST, "bad_erasure", "what is asked for is JSON: {\"seq\": NUMBER, \"reason\": TEXT}")
    })?;
    let removed = read(log.as_ref(), |reader| Ok(reader.removed())).await?;
    if let Some(removed) = removed.filter(|removed| Seq(seq) <= removed.to) {
        return Ok(aged_out(removed.kept));
    }
    let erased = log.erase(Wanted { seq: Seq(seq), who: caller.name.clone(), why: reason }).await.map_err(|refused| problem(&refused))?;
    tracing::info!(seq, recorded = erased.recorded, by = %caller.name, "what a record said was erased");
    Ok(Json(erased).into_response())
}

fn problem(refused: &Refused) -> Problem {
    let detail = shown(&refused.to_string(), 300);
    match refused {
        Refused::NoLog => Problem::busy("no_log", detail, 5),
        Refused::Log(NotErased::NoSuchRecord(_)) => Problem::not_found(detail),
        Refused::Log(NotErased::Why(_)) => Problem::new(StatusCode::BAD_REQUEST, "bad_reason", detail),
        Refused::Log(NotErased::Decides { .. }) => Problem::new(StatusCode::CONFLICT, "decides", detail),
        Refused::Log(NotErased::Already(_)) => Problem::new(StatusCode::CONFLICT, "erased_already", detail),
        Refused::Log(NotErased::NoRoom(_)) => Problem::new(StatusCode::CONFLICT, "no_room", detail),
        Refused::Log(NotErased::Block(_) | NotErased::Frame(_)) => Problem::new(StatusCode::CONFLICT, "damaged", detail),
        Refused::Log(NotErased::Read(_) | NotErased::Append(_)) => Problem::busy("log_failed", detail, 5),
    }
}
