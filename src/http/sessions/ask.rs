//! What a caller may say, checked: ids, tenants, and the parameters of each route. Pure.

use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::StateName;
use crate::clock::SECOND_US;
use crate::config::access::{Caller, Tenants};
use crate::events::kinds::session::{SessionAsked, SessionDeleteAsked};
use crate::http::problem::Problem;
use crate::ids::{SessionId, Tenant, shown};

/// The tenant of a call that names none, by a token that is bound to none.
const DEFAULT_TENANT: &str = "default";

/// The longest that a caller may say it waits, seconds; `sessions.ready_s` bounds it further.
const WAIT_S: u32 = 3_600;
/// The longest time after which an old pod is forced away, seconds.
const FORCE_AFTER_S: u32 = 86_400;
/// The largest page of a list.
const PAGE: u32 = 1_000;
/// A page of a list whose size nobody named.
const USUAL_PAGE: usize = 100;

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Flag {
    /// No.
    #[serde(rename = "0")]
    No,
    /// Yes.
    #[serde(rename = "1")]
    Yes,
}

/// What else may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Include {
    /// The last lines of its last pod.
    Tail,
}

/// The parameters of `PUT /v1/sessions/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateQuery {
    /// How long to wait, seconds; 0: not at all. At most, and without it, `sessions.ready_s`.
    #[schemars(range(max = 3_600))]
    pub wait: Option<u32>,
    /// After how many seconds an old pod that does not end may be forced away, though it may still write to the claim.
    #[schemars(range(min = 1, max = 86_400))]
    pub force_after: Option<u32>,
}

/// The parameters of `POST /v1/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostQuery {
    /// The session's id.
    #[schemars(length(max = 40), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub session_id: String,
    /// How long to wait, seconds; 0: not at all. At most, and without it, `sessions.ready_s`.
    #[schemars(range(max = 3_600))]
    pub wait: Option<u32>,
    /// After how many seconds an old pod that does not end may be forced away, though it may still write to the claim.
    #[schemars(range(min = 1, max = 86_400))]
    pub force_after: Option<u32>,
}

/// The parameters of `DELETE /v1/sessions/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteQuery {
    /// Whether the claim stays: the session is suspended.
    pub keep_workspace: Option<Flag>,
    /// How long to wait, seconds; 0: not at all. At most, and without it, `sessions.ready_s`.
    #[schemars(range(max = 3_600))]
    pub wait: Option<u32>,
    /// After how many seconds a pod that does not end may be forced away, though it may still write to the claim.
    #[schemars(range(min = 1, max = 86_400))]
    pub force_after: Option<u32>,
}

/// The parameters of `GET /v1/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Only this tenant's.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub tenant: Option<String>,
    /// Only those in this state. Without it all but those that are absent.
    pub state: Option<StateName>,
    /// Only those behind this id.
    #[schemars(length(max = 40), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub after: Option<String>,
    /// How many at most; 100 without it.
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<u32>,
}

/// The parameters of `GET /v1/sessions/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneQuery {
    /// What else to show; needs the role `tails` besides.
    pub include: Option<Include>,
}

/// The parameters of the seed's form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedQuery {
    /// The session's id.
    #[schemars(length(max = 40), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub session_id: String,
}

/// The body of a call for a session to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBody {
    /// Whose it is, for as long as it is there. Without it the token's only tenant, else `default`.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub tenant: Option<String>,
}

/// A list that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Only this tenant's.
    pub tenant: Option<Tenant>,
    /// Only those in this state.
    pub state: Option<StateName>,
    /// Only those behind this id.
    pub after: Option<SessionId>,
    /// How many at most.
    pub limit: usize,
}

fn bad(code: &'static str, detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, code, detail)
}

/// What a query that cannot be read is answered with.
#[must_use]
pub fn bad_query(why: &str) -> Problem {
    bad("bad_query", format!("the parameters cannot be read: {}", shown(why, 200)))
}

/// A session's id.
///
/// # Errors
/// When it is none: nothing of it reaches anything.
pub fn id(text: &str) -> Result<SessionId, Problem> {
    SessionId::new(text).map_err(|error| bad("bad_session_id", error.to_string()))
}

/// A body: nothing at all is an empty one.
///
/// # Errors
/// When it is no such document.
pub fn body(bytes: &[u8]) -> Result<CreateBody, Problem> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(CreateBody::default());
    }
    serde_json::from_slice(bytes)
        .map_err(|error| bad("bad_body", format!("the body is {{\"tenant\"?: NAME}}: {}", shown(&error.to_string(), 200))))
}

/// The tenant of a call: the one it names, else the caller's only one, else `default`.
///
/// # Errors
/// When it is no name, or none of the caller's.
pub fn tenant(caller: &Caller, named: Option<&str>) -> Result<Tenant, Problem> {
    let name = match (named, &caller.tenants) {
        (Some(named), _) => named,
        (None, Tenants::Of(tenants)) if tenants.len() == 1 => tenants.first().map_or(DEFAULT_TENANT, String::as_str),
        (None, Tenants::Of(_) | Tenants::All) => DEFAULT_TENANT,
    };
    let tenant = Tenant::new(name).map_err(|error| bad("bad_tenant", error.to_string()))?;
    if caller.sees(Some(&tenant)) {
        return Ok(tenant);
    }
    let detail = format!("{} is not bound to tenant {tenant}", caller.name);
    Err(Problem::new(StatusCode::FORBIDDEN, "foreign_tenant", detail))
}

/// How long a caller waits, seconds: as long as it says, and no longer than `most_s`.
///
/// # Errors
/// When it says more than anybody may.
pub fn wait_s(asked: Option<u32>, most_s: u32) -> Result<u32, Problem> {
    match asked {
        Some(wait) if wait > WAIT_S => Err(bad("bad_query", format!("wait is 0 to {WAIT_S} seconds"))),
        Some(wait) => Ok(wait.min(most_s)),
        None => Ok(most_s),
    }
}

fn force_after_us(asked: Option<u32>) -> Result<Option<u64>, Problem> {
    match asked {
        Some(seconds) if !(1..=FORCE_AFTER_S).contains(&seconds) => {
            Err(bad("bad_query", format!("force_after is 1 to {FORCE_AFTER_S} seconds")))
        }
        asked => Ok(asked.map(|seconds| u64::from(seconds) * SECOND_US)),
    }
}

/// A call for the session to run.
///
/// # Errors
/// When what it says is out of range.
pub fn create(caller: &Caller, tenant: Tenant, force_after: Option<u32>) -> Result<SessionAsked, Problem> {
    Ok(SessionAsked { by: caller.name.clone(), tenant, force_after_us: force_after_us(force_after)? })
}

/// A call for it to be deleted or suspended.
///
/// # Errors
/// When what it says is out of range.
pub fn delete(caller: &Caller, query: &DeleteQuery) -> Result<SessionDeleteAsked, Problem> {
    let keep_workspace = query.keep_workspace == Some(Flag::Yes);
    Ok(SessionDeleteAsked { by: caller.name.clone(), keep_workspace, force_after_us: force_after_us(query.force_after)? })
}

/// A list.
///
/// # Errors
/// When a name in it is none, or the page is too large.
pub fn listing(query: ListQuery) -> Result<Listing, Problem> {
    let tenant = query.tenant.map(|name| Tenant::new(&name).map_err(|error| bad("bad_tenant", error.to_string()))).transpose()?;
    let limit = match query.limit {
        Some(limit) if !(1..=PAGE).contains(&limit) => return Err(bad("bad_query", format!("limit is 1 to {PAGE}"))),
        limit => limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(USUAL_PAGE),
    };
    Ok(Listing { tenant, state: query.state, after: query.after.as_deref().map(id).transpose()?, limit })
}

/// Whether the headers are those of the seed's form.
///
/// # Errors
/// When they are not.
pub fn seed_form(headers: &HeaderMap) -> Result<(), Problem> {
    let is = |name: &str, value: &str| {
        let mut all = headers.get_all(name).iter();
        all.next().is_some_and(|first| first.as_bytes() == value.as_bytes()) && all.next().is_none()
    };
    if is("x-service", "sessions") && is("x-resource", "sandbox") {
        return Ok(());
    }
    Err(bad("bad_service", "this path takes X-Service: sessions with X-Resource: sandbox; /v1/sessions takes no such headers"))
}
