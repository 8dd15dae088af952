//! What an auditor asks: the key, the newest checkpoint, and proofs between checkpoints (docs/proof.md). Reads only.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::control::in_time;
use super::problem::Problem;
use crate::events::tree::{Hash, TreeHead};
use crate::ids::{LogId, Seq};

/// What can be proved of the log that is being written.
pub trait ProofsView: Send + Sync + 'static {
    /// The public key, as a `vkey` line.
    fn key(&self) -> String;

    /// The newest checkpoint, a signed note; `None` before the first.
    fn checkpoint(&self) -> Option<String>;

    /// Makes a proof.
    fn prove(&self, asked: Asked) -> BoxFuture<'_, Result<Proved, NotProved>>;
}

/// What is to be proved. A size that is not given is the newest checkpoint's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// That a tree begins with another.
    Consistency {
        /// Leaves of the one.
        first: u64,
        /// Leaves of the larger.
        second: Option<u64>,
    },
    /// That a record is in a tree.
    Inclusion {
        /// Which record.
        leaf: Leaf,
        /// Leaves of the tree.
        size: Option<u64>,
    },
}

/// How a record is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf {
    /// By its position in its log.
    Position(u64),
    /// By its number in the store.
    Seq(Seq),
}

/// A proof, with the roots and the leaf that it is about: to be compared with those that are signed, never believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proved {
    /// Of which log.
    pub log: LogId,
    /// What is proved.
    pub of: ProvedOf,
    /// The proof.
    pub hashes: Vec<Hash>,
}

/// What a proof is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProvedOf {
    /// The first tree is the beginning of the second.
    Consistency(TreeHead, TreeHead),
    /// The leaf at that position is in the tree.
    Inclusion(u64, Hash, TreeHead),
}

/// Why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotProved {
    /// No log is open at the moment.
    #[error("the log is not open at the moment")]
    NoLog,
    /// Another proof is being made.
    #[error("another proof is being made")]
    Busy,
    /// The log has fewer records.
    #[error("log {log} has {size} records")]
    Ahead {
        /// Which.
        log: LogId,
        /// How many.
        size: u64,
    },
    /// The larger size is below the smaller, or the leaf is outside the tree.
    #[error("a tree of {0} leaves has no such part")]
    Outside(u64),
    /// No record of this log has that number.
    #[error("log {log} has no record {seq}")]
    NoRecord {
        /// Which.
        log: LogId,
        /// What was asked for.
        seq: Seq,
    },
    /// Leaves that are needed are not there any more.
    #[error("the record at position {0} is not there any more")]
    Gone(u64),
    /// The log cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

impl From<NotProved> for Problem {
    fn from(why: NotProved) -> Self {
        let detail = why.to_string();
        match why {
            NotProved::NoLog => Self::busy("log_not_open", detail, 5),
            NotProved::Busy => Self::busy("busy", detail, 1),
            NotProved::Ahead { .. } => Self::new(StatusCode::CONFLICT, "ahead", detail),
            NotProved::Outside(_) => Self::new(StatusCode::BAD_REQUEST, "bad_proof", detail),
            NotProved::NoRecord { .. } => Self::not_found(detail),
            NotProved::Gone(_) => Self::new(StatusCode::GONE, "gone", detail),
            NotProved::Unreadable(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "log_unreadable", detail),
        }
    }
}

type Proofs = Arc<dyn ProofsView>;

/// The routes.
pub(super) fn routes<S: Clone + Send + Sync + 'static>(proofs: Proofs) -> Router<S> {
    Router::new()
        .route("/v1/log/key", get(key))
        .route("/v1/log/checkpoint", get(checkpoint))
        .route("/v1/log/proof", get(proof))
        .with_state(proofs)
}

fn plain(text: String) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8"), (CACHE_CONTROL, "no-store")], text).into_response()
}

async fn key(State(proofs): State<Proofs>) -> Response {
    plain(format!("{}\n", proofs.key()))
}

async fn checkpoint(State(proofs): State<Proofs>) -> Result<Response, Problem> {
    proofs.checkpoint().map(plain).ok_or_else(|| Problem::from(NotProved::NoLog))
}

/// What is to be proved.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Numbers {
    /// Leaves of the smaller tree.
    first: Option<u64>,
    /// Leaves of the larger one; without it the newest checkpoint's.
    second: Option<u64>,
    /// A record, by its position in its log.
    leaf: Option<u64>,
    /// A record, by its number.
    seq: Option<u64>,
    /// Leaves of the tree that it is in; without it the newest checkpoint's.
    size: Option<u64>,
}

fn asked(query: Numbers) -> Result<Asked, Problem> {
    match query {
        Numbers { first: Some(first), second, leaf: None, seq: None, size: None } => Ok(Asked::Consistency { first, second }),
        Numbers { first: None, second: None, leaf: Some(leaf), seq: None, size } => {
            Ok(Asked::Inclusion { leaf: Leaf::Position(leaf), size })
        }
        Numbers { first: None, second: None, leaf: None, seq: Some(seq), size } => Ok(Asked::Inclusion { leaf: Leaf::Seq(Seq(seq)), size }),
        Numbers { .. } => Err(bad_query()),
    }
}

fn bad_query() -> Problem {
    let detail = "ask with first and second, or with leaf and size, or with seq and size: numbers, each once";
    Problem::new(StatusCode::BAD_REQUEST, "bad_proof", detail)
}

async fn proof(State(proofs): State<Proofs>, query: Result<Query<Numbers>, QueryRejection>) -> Result<Json<Value>, Problem> {
    let Query(query) = query.map_err(|_| bad_query())?;
    let proved = in_time(proofs.prove(asked(query)?)).await??;
    Ok(Json(document(&proved)))
}

fn document(proved: &Proved) -> Value {
    let text = |hash: &Hash| STANDARD.encode(hash);
    let tree = |tree: &TreeHead| json!({"size": tree.size, "root": text(&tree.root)});
    let hashes: Vec<String> = proved.hashes.iter().map(text).collect();
    match &proved.of {
        ProvedOf::Consistency(first, second) => {
            json!({"log": proved.log.to_string(), "first": tree(first), "second": tree(second), "consistency": hashes})
        }
        ProvedOf::Inclusion(position, leaf, size) => json!({
            "log": proved.log.to_string(),
            "leaf": {"index": position, "hash": text(leaf)},
            "tree": tree(size),
            "audit_path": hashes,
        }),
    }
}
