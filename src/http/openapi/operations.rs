//! What each route takes and gives, beside the table of routes: as types where handlers have types for it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::http::sessions::ask::{CreateBody, CreateQuery, DeleteQuery, ListQuery, OneQuery, PostQuery, SeedQuery};
use crate::http::sessions::document::{Leaving, Made, Page, SeedMade, Shown, Touched};
use crate::http::{erase, events, log, proofs, why};

/// How the schema of a type is made.
pub type Of = fn(&mut SchemaGenerator) -> Schema;

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Its method and path, as the table of routes has them.
    pub route: (&'static str, &'static str),
    /// Its name, for generated clients.
    pub id: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// The parameters of its query.
    pub query: Option<Of>,
    /// Its body; never required.
    pub body: Option<Of>,
    /// Headers that it needs, with their one value.
    pub headers: &'static [(&'static str, &'static str)],
    /// Its answers that are no refusals.
    pub good: &'static [Good],
    /// The codes of its own refusals.
    pub codes: &'static [&'static str],
}

/// An answer that is no refusal.
#[derive(Debug, Clone, Copy)]
pub struct Good {
    /// The HTTP status.
    pub status: u16,
    /// When.
    pub when: &'static str,
    /// What it has in it.
    pub content: Content,
}

/// What is in an answer.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// Nothing.
    Nothing,
    /// JSON of a type.
    Json(Of),
    /// JSON that has at least these members.
    Members(&'static [&'static str]),
    /// Something else, by its media type.
    Other(&'static str),
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn good(status: u16, when: &'static str, content: Content) -> Good {
    Good { status, when, content }
}

const fn read(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    good: &'static [Good],
    codes: &'static [&'static str],
) -> Operation {
    Operation { route: ("GET", path), id, summary, query: None, body: None, headers: &[], good, codes }
}

const TEXT: Content = Content::Other("text/plain; charset=utf-8");

/// What every call of a session may be refused with.
const STATE: [&str; 3] = ["no_sessions", "unavailable", "busy"];

const CREATE_CODES: &[&str] = &[
    "bad_session_id",
    "bad_query",
    "bad_body",
    "bad_tenant",
    "foreign_tenant",
    "not_found",
    STATE[0],
    STATE[1],
    STATE[2],
    "other_tenant",
    "removed",
    "too_many_of_tenant",
    "too_fast",
    "too_many_sessions",
    "too_many_waiting",
    "not_ready",
    "old_pod",
    "too_long",
    "pod_ended",
    "pod_stuck",
    "pod_never_started",
    "quarantined",
    "refused_invalid",
    "refused_policy",
    "refused_runtime_class",
    "refused_foreign",
    "refused_different",
    "refused_forbidden",
    "refused_quota",
    "refused_webhook",
    "refused_namespace",
    "refused_network_policy",
];

const DELETE_CODES: &[&str] = &[
    "bad_session_id",
    "bad_query",
    "not_found",
    STATE[0],
    STATE[1],
    STATE[2],
    "too_many_waiting",
    "refused_invalid",
    "refused_policy",
    "refused_runtime_class",
    "refused_foreign",
    "refused_different",
    "refused_forbidden",
    "refused_quota",
    "refused_webhook",
    "refused_namespace",
    "refused_network_policy",
];

const CREATE_GOOD: &[Good] = &[
    good(200, "It is ready: it was, or was resumed on its claim.", Content::Json(of::<Made>)),
    good(201, "It is ready, on a new claim.", Content::Json(of::<Made>)),
    good(202, "With `wait=0`: it is being brought.", Content::Json(of::<Made>)),
];

const DELETE_GOOD: &[Good] = &[
    good(202, "With `wait=0`, or at the deadline: that is left.", Content::Json(of::<Leaving>)),
    good(204, "All that was to go is gone.", Content::Nothing),
];

const SEED_HEADERS: &[(&str, &str)] = &[("X-Service", "sessions"), ("X-Resource", "sandbox")];

/// All of them.
pub const OPERATIONS: &[Operation] = &[
    read("/livez", "livez", "Whether the process answers.", &[good(200, "It does.", Content::Members(&["alive"]))], &[]),
    read(
        "/readyz",
        "readyz",
        "Whether the daemon is ready, and what fails.",
        &[
            good(200, "It is ready, or stands by.", Content::Members(READY)),
            good(503, "It is not; `failing` names the parts.", Content::Members(READY)),
        ],
        &[],
    ),
    read("/metrics", "metrics", "What was counted.", &[good(200, "OpenMetrics.", Content::Other(crate::telemetry::METRICS_TYPE))], &[]),
    read("/openapi.json", "openapi", "This document.", &[good(200, "OpenAPI 3.1.", Content::Members(&["openapi", "paths"]))], &[]),
    read("/v1/apps", "apps", "Every app.", &[good(200, "In order.", Content::Members(&["apps"]))], &["busy"]),
    read(
        "/v1/apps/{org}/{name}",
        "app",
        "One app.",
        &[good(200, "Want, hosts, stages, last end, next look.", Content::Members(&["app"]))],
        &["bad_app", "not_found", "busy"],
    ),
    Operation {
        query: Some(of::<events::EventsQuery>),
        ..read(
            "/v1/events",
            "events",
            "The audit feed: records as CloudEvents, in the form that Accept chooses.",
            &[good(200, "Lines, server-sent events, or a batch.", Content::Other("application/x-ndjson"))],
            &["bad_query", "bad_cursor", "not_acceptable", "other_log", "ahead", "aged_out", "too_many_readers", "no_log", "unreadable"],
        )
    },
    read(
        "/v1/log",
        "log",
        "Which log, how far, its root, the settings in force.",
        &[good(200, "As it stands.", Content::Members(&["log", "head", "size", "root", "settings"]))],
        &["no_log", "unreadable"],
    ),
    Operation {
        query: Some(of::<log::Asked>),
        ..read(
            "/v1/log/records",
            "records",
            "A page of the log's blocks, as stored.",
            &[good(200, "Blocks; `wharf-next` is where the next page begins.", Content::Other("application/octet-stream"))],
            &["bad_range", "bad_query", "aged_out", "no_log", "unreadable"],
        )
    },
    Operation {
        route: ("POST", "/v1/log/erase"),
        body: Some(of::<erase::Asked>),
        ..read(
            "/v1/log/erase",
            "erase",
            "Takes away what a record says that only informs; its leaf stays.",
            &[good(200, "It says nothing any more.", Content::Json(of::<erase::Erased>))],
            &[
                "bad_erasure",
                "bad_reason",
                "not_found",
                "aged_out",
                "decides",
                "erased_already",
                "no_room",
                "damaged",
                "no_log",
                "log_failed",
                "unreadable",
            ],
        )
    },
    read("/v1/log/key", "key", "The key that checkpoints are signed with.", &[good(200, "A `vkey` line.", TEXT)], &[]),
    read("/v1/log/checkpoint", "checkpoint", "The newest checkpoint.", &[good(200, "A signed note.", TEXT)], &["log_not_open"]),
    Operation {
        query: Some(of::<proofs::Numbers>),
        ..read(
            "/v1/log/proof",
            "proof",
            "A proof: with first and second, with leaf and size, or with seq and size.",
            &[good(200, "The proof, with the roots and the leaf that it is about.", Content::Members(&["log"]))],
            &["bad_proof", "not_found", "ahead", "gone", "log_unreadable", "log_not_open", "busy"],
        )
    },
    Operation {
        query: Some(of::<why::Asked>),
        ..read(
            "/v1/why",
            "why",
            "The chain of causes of a record, a host, a pod or a subject, newest first.",
            &[good(200, "Down to what came from outside.", Content::Members(&["subject", "chain"]))],
            &["bad_query", "not_found", "ambiguous", "no_log", "unreadable"],
        )
    },
    Operation {
        query: Some(of::<ListQuery>),
        ..read(
            "/v1/sessions",
            "list_sessions",
            "Sessions that the caller may see, by id.",
            &[good(200, "A page.", Content::Json(of::<Page>))],
            &["bad_session_id", "bad_query", "bad_tenant", STATE[0], STATE[1]],
        )
    },
    Operation {
        route: ("POST", "/v1/sessions"),
        id: "create_session_by_query",
        summary: "Create or resume a session, by the id in the query.",
        query: Some(of::<PostQuery>),
        body: Some(of::<CreateBody>),
        headers: &[],
        good: CREATE_GOOD,
        codes: CREATE_CODES,
    },
    Operation {
        query: Some(of::<OneQuery>),
        ..read(
            "/v1/sessions/{id}",
            "show_session",
            "One session.",
            &[good(200, "As it is.", Content::Json(of::<Shown>))],
            &["bad_session_id", "bad_query", "not_found", STATE[0], STATE[1], "no_log", "unreadable"],
        )
    },
    Operation {
        route: ("PUT", "/v1/sessions/{id}"),
        id: "create_session",
        summary: "Create or resume a session, and wait until it is ready.",
        query: Some(of::<CreateQuery>),
        body: Some(of::<CreateBody>),
        headers: &[],
        good: CREATE_GOOD,
        codes: CREATE_CODES,
    },
    Operation {
        route: ("DELETE", "/v1/sessions/{id}"),
        id: "delete_session",
        summary: "Delete a session with its claim, or suspend it, and wait until that is gone.",
        query: Some(of::<DeleteQuery>),
        body: None,
        headers: &[],
        good: DELETE_GOOD,
        codes: DELETE_CODES,
    },
    Operation {
        route: ("POST", "/v1/sessions/{id}/touch"),
        id: "touch_session",
        summary: "Say that a session is in use.",
        query: None,
        body: None,
        headers: &[],
        good: &[good(200, "It is noted, to the minute.", Content::Json(of::<Touched>))],
        codes: &["bad_session_id", "not_found", STATE[0], STATE[1], STATE[2]],
    },
    Operation {
        route: ("POST", "/"),
        id: "seed_create_session",
        summary: "The seed's form: create or resume a session, and wait until it is ready.",
        query: Some(of::<SeedQuery>),
        body: None,
        headers: SEED_HEADERS,
        good: &[good(200, "It is ready.", Content::Json(of::<SeedMade>))],
        codes: SEED_CREATE_CODES,
    },
    Operation {
        route: ("DELETE", "/"),
        id: "seed_delete_session",
        summary: "The seed's form: delete a session with its claim; one that is not there is deleted.",
        query: Some(of::<SeedQuery>),
        body: None,
        headers: SEED_HEADERS,
        good: DELETE_GOOD,
        codes: SEED_DELETE_CODES,
    },
];

const READY: &[&str] = &["ready", "failing", "role"];

/// A code that the seed's form has besides.
const fn with_service<const N: usize, const M: usize>(codes: &[&'static str]) -> [&'static str; M] {
    assert!(codes.len() == N && M == N + 1);
    let mut all = ["bad_service"; M];
    let mut at = 0;
    while at < N {
        all[at] = codes[at];
        at += 1;
    }
    all
}

const SEED_CREATE_CODES: &[&str] = &with_service::<{ CREATE_CODES.len() }, { CREATE_CODES.len() + 1 }>(CREATE_CODES);
const SEED_DELETE_CODES: &[&str] = &with_service::<{ DELETE_CODES.len() }, { DELETE_CODES.len() + 1 }>(DELETE_CODES);

/// The schema of JSON that has at least these members.
#[must_use]
pub fn members(names: &[&str]) -> Value {
    json!({"type": "object", "required": names})
}
