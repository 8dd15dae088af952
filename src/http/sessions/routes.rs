//! The routes of sessions, and those of the seed's form: takes requests apart and gives answers their shape.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};

use super::answer::{Answered, Reply, of_the_seed};
use super::ask::{self, CreateQuery, DeleteQuery, ListQuery, OneQuery, PostQuery, SeedQuery};
use super::desk::Desk;
use crate::config::access::Caller;
use crate::http::guard::BODY_BYTES;
use crate::http::problem::Problem;
use crate::ids::SessionId;

/// The routes.
pub(in crate::http) fn routes<S: Clone + Send + Sync + 'static>(desk: Desk) -> Router<S> {
    Router::new()
        .route("/v1/sessions", get(list).post(create_by_query))
        .route("/v1/sessions/{id}", get(one).put(create).delete(delete))
        .route("/v1/sessions/{id}/touch", post(touch))
        .route("/", post(seed_create).delete(seed_delete))
        .layer(DefaultBodyLimit::max(usize::try_from(BODY_BYTES).unwrap_or(usize::MAX)))
        .with_state(desk)
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        match self.body {
            Some(body) => (self.status, Json(body)).into_response(),
            None => self.status.into_response(),
        }
    }
}

type Asked<T> = Result<Query<T>, QueryRejection>;
type Named = Result<Path<String>, PathRejection>;
type Sent = Result<Bytes, BytesRejection>;

fn query<T>(asked: Asked<T>) -> Result<T, Problem> {
    asked.map(|Query(query)| query).map_err(|rejection| ask::bad_query(&rejection.body_text()))
}

fn id(named: Named) -> Result<SessionId, Problem> {
    let Path(text) = named.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "bad_session_id", "the path is not UTF-8"))?;
    ask::id(&text)
}

fn bytes(sent: Sent) -> Result<Bytes, Problem> {
    sent.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let detail = format!("a body here is at most {BODY_BYTES} bytes");
            return Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail);
        }
        Problem::new(StatusCode::BAD_REQUEST, "bad_body", "the body ended too early")
    })
}

async fn create(
    State(desk): State<Desk>,
    Extension(caller): Extension<Caller>,
    named: Named,
    asked: Asked<CreateQuery>,
    sent: Sent,
) -> Answered {
    let (id, query, body) = (id(named)?, query(asked)?, ask::body(&bytes(sent)?)?);
    let ask = ask::create(&caller, ask::tenant(&caller, body.tenant.as_deref())?, query.force_after)?;
    desk.create(&caller, &id, ask, query.wait).await.map(|created| created.reply)
}

async fn create_by_query(State(desk): State<Desk>, Extension(caller): Extension<Caller>, asked: Asked<PostQuery>, sent: Sent) -> Answered {
    let (query, body) = (query(asked)?, ask::body(&bytes(sent)?)?);
    let id = ask::id(&query.session_id)?;
    let ask = ask::create(&caller, ask::tenant(&caller, body.tenant.as_deref())?, query.force_after)?;
    desk.create(&caller, &id, ask, query.wait).await.map(|created| created.reply)
}

async fn delete(State(desk): State<Desk>, Extension(caller): Extension<Caller>, named: Named, asked: Asked<DeleteQuery>) -> Answered {
    desk.delete(&caller, &id(named)?, &query(asked)?).await
}

async fn touch(State(desk): State<Desk>, Extension(caller): Extension<Caller>, named: Named) -> Answered {
    desk.touch(&caller, &id(named)?).await
}

async fn one(State(desk): State<Desk>, Extension(caller): Extension<Caller>, named: Named, asked: Asked<OneQuery>) -> Answered {
    let (id, query) = (id(named)?, query(asked)?);
    desk.one(&caller, &id, query.include).await
}

async fn list(State(desk): State<Desk>, Extension(caller): Extension<Caller>, asked: Asked<ListQuery>) -> Answered {
    desk.list(&caller, &ask::listing(query(asked)?)?)
}

/// The seed's call: its body says nothing, and it waits for as long as anybody may.
async fn seed_create(
    State(desk): State<Desk>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    asked: Asked<SeedQuery>,
) -> Answered {
    ask::seed_form(&headers)?;
    let id = ask::id(&query(asked)?.session_id)?;
    let ask = ask::create(&caller, ask::tenant(&caller, None)?, None)?;
    let created = desk.create(&caller, &id, ask, None).await?;
    Ok(of_the_seed(&created.reply, created.was_running))
}

/// The seed's delete: what is not there is no failure.
async fn seed_delete(
    State(desk): State<Desk>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    asked: Asked<SeedQuery>,
) -> Answered {
    ask::seed_form(&headers)?;
    let id = ask::id(&query(asked)?.session_id)?;
    let whole = DeleteQuery { keep_workspace: None, wait: None, force_after: None };
    match desk.delete(&caller, &id, &whole).await {
        Err(problem) if problem.code == "not_found" => Ok(Reply::nothing()),
        answered => answered,
    }
}
