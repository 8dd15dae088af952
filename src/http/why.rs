//! `GET /v1/why?ref=`: the chain of causes of a record, a host, a pod or a subject, as `wharf why --format json` prints it.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::log::{LogView, read};
use super::problem::Problem;
use crate::config::access::Caller;
use crate::events::log::{LogReader, ReadError};
use crate::postmortem::history::History;
use crate::postmortem::reference::{NotFound, find};
use crate::postmortem::why::{document, why};

/// The longest reference, bytes: a subject's name is the longest thing that can be meant.
const REFERENCE_BYTES: usize = 300;

/// What is asked about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// A record's number, a host, a pod's uid, or a subject or a part of its name that only one has.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 300))]
    reference: String,
}

/// The route.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(log: Arc<dyn LogView>) -> Router<S> {
    Router::new().route("/v1/why", get(answer)).with_state(log)
}

async fn answer(
    State(log): State<Arc<dyn LogView>>,
    Extension(caller): Extension<Caller>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let bad = || Problem::new(StatusCode::BAD_REQUEST, "bad_query", "ref is a record's number, a host, a pod's uid or a subject");
    let Query(Asked { reference }) = asked.map_err(|_| bad())?;
    if reference.is_empty() || reference.len() > REFERENCE_BYTES {
        return Err(bad());
    }
    let texts = caller.reads_texts();
    let found = read(log.as_ref(), move |reader| chain(reader, &reference, texts)).await?;
    found.map(Json)
}

fn chain(reader: &dyn LogReader, reference: &str, texts: bool) -> Result<Result<Value, Problem>, ReadError> {
    let found = match find(reader, reference) {
        Ok(found) => found,
        Err(NotFound::Read(error)) => return Err(error),
        Err(several @ NotFound::Several(_)) => {
            return Ok(Err(Problem::new(StatusCode::CONFLICT, "ambiguous", several.to_string())));
        }
        Err(none @ (NotFound::NoRecord(_) | NotFound::Unreadable(_) | NotFound::Nothing)) => {
            return Ok(Err(Problem::not_found(none.to_string())));
        }
    };
    let mut history = History::of(reader, &found.subject)?;
    if !texts {
        history.leave_texts_out();
    }
    Ok(Ok(document(&history, &why(&history, found.seq))))
}
