//! The answer that a call gets, from the state alone: many callers of one state are given one answer. Pure.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use super::document::{Leaving, Names, SeedMade, Shown, last_end, made, reason, shown, stage};
use super::words::{StateName, cause, refusal};
use crate::events::kinds::session::CallRefusal;
use crate::events::kinds::step::Refusal;
use crate::events::kinds::verdict::EndCause;
use crate::http::problem::Problem;
use crate::ids::{Seq, SessionId};
use crate::session::state::Session;
use crate::session::view::{Answer, Code, Failure, Removed, State, WaitsFor, answer, removed, view};

/// When what the cluster refuses for now is worth another call, seconds.
const REFUSED_AGAIN_S: u32 = 30;
/// When a session that was not ready in time is worth another call, seconds.
const LATE_AGAIN_S: u32 = 5;
/// When a caller that met a limit is to come again, seconds.
const LIMIT_AGAIN_S: u32 = 2;

/// An answer that is no refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body; none with 204.
    pub body: Option<Value>,
}

impl Reply {
    /// An answer with a document.
    #[must_use]
    pub fn of(status: StatusCode, document: &impl Serialize) -> Self {
        Self { status, body: Some(serde_json::to_value(document).unwrap_or(Value::Null)) }
    }

    /// An answer without one.
    #[must_use]
    pub fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, body: None }
    }
}

/// An answer.
pub type Answered = Result<Reply, Problem>;

/// How long a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It wants the answer at once: what is under way is an answer.
    None,
    /// It waits, and there is time left.
    Waits,
    /// It has waited for as long as it may.
    Over,
}

/// What a call for the session to run gets that was recorded as `demand`, or joined it; `None`: nothing yet.
#[must_use]
pub fn created(names: &Names, id: &SessionId, session: &Session, demand: Seq, patience: Patience) -> Option<Answered> {
    match (answer(session, demand), patience) {
        (Answer::Ready { resumed: true }, _) => Some(Ok(ready(names, id, session))),
        (Answer::Ready { resumed: false }, _) => Some(Ok(Reply::of(StatusCode::CREATED, &made(names, id, session, false)))),
        (Answer::Failed(failure), _) => Some(Err(failed(id, session, failure))),
        (Answer::Wait, Patience::None) => {
            let resumed = session.made.is_none_or(|first| first < demand) && session.claim.there().is_some();
            Some(Ok(Reply::of(StatusCode::ACCEPTED, &made(names, id, session, resumed))))
        }
        (Answer::Wait, Patience::Over) => Some(Err(late(id, session))),
        (Answer::Wait, Patience::Waits) => None,
    }
}

/// What a call for the session to run gets that found it ready.
#[must_use]
pub fn ready(names: &Names, id: &SessionId, session: &Session) -> Reply {
    Reply::of(StatusCode::OK, &made(names, id, session, true))
}

/// What a call for the session to be deleted or suspended gets; `None`: nothing yet.
#[must_use]
pub fn gone(id: &SessionId, session: &Session, patience: Patience) -> Option<Answered> {
    let (objects, refused) = match removed(session) {
        Removed::Done => return Some(Ok(Reply::nothing())),
        Removed::Left { objects, refused } => (objects, refused),
    };
    let left: Vec<_> = objects.into_iter().map(Into::into).collect();
    if let Some(refused) = refused {
        let left = serde_json::to_value(&left).unwrap_or(Value::Null);
        return Some(Err(refused_by_the_cluster(id, refused, true).with("left", left)));
    }
    let keep_workspace = session.removing.is_some_and(|removing| removing.keep_workspace);
    let leaving = Leaving { session_id: id.to_string(), state: StateName::from(&view(session).state), keep_workspace, left };
    match patience {
        Patience::Waits => None,
        Patience::None | Patience::Over => Some(Ok(Reply::of(StatusCode::ACCEPTED, &leaving))),
    }
}

/// The seed's form of an answer to a call for the session to run: its fields, with its meaning of `resumed`.
#[must_use]
pub fn of_the_seed(reply: &Reply, was_running: bool) -> Reply {
    let text = |name: &str| reply.body.as_ref().and_then(|body| body[name].as_str()).unwrap_or_default().to_owned();
    let made = SeedMade {
        session_id: text("session_id"),
        pod_name: text("pod_name"),
        pvc_name: text("pvc_name"),
        svc_dns: text("svc_dns"),
        resumed: was_running,
    };
    Reply::of(StatusCode::OK, &made)
}

/// The session as it is, with the last lines of its last pod when they are asked for and kept.
#[must_use]
pub fn one(names: &Names, id: &SessionId, session: &Session, tail: Option<String>) -> Reply {
    Reply::of(StatusCode::OK, &Shown { tail, ..shown(names, id, session) })
}

/// There is no such session, or none that this caller may see.
#[must_use]
pub fn unknown(id: &SessionId) -> Problem {
    Problem::not_found(format!("session {id} is not known here"))
}

/// What a refused call gets; `sees` says whether the caller may know of a session of that id.
#[must_use]
pub fn refused(id: &SessionId, why: CallRefusal, sees: bool) -> Problem {
    match why {
        CallRefusal::Unknown | CallRefusal::Hidden => unknown(id),
        CallRefusal::OtherTenant if !sees => unknown(id),
        CallRefusal::OtherTenant => {
            Problem::new(StatusCode::CONFLICT, "other_tenant", format!("session {id} is another tenant's, for as long as it is there"))
        }
        CallRefusal::TooMany => {
            Problem::busy("too_many_sessions", "there are as many sessions as there may be (sessions.most)", LIMIT_AGAIN_S)
        }
        CallRefusal::TooManyOfTenant => {
            let detail = "the tenant has as many sessions as it may have (sessions.most_of_tenant)";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_of_tenant", detail).after(LIMIT_AGAIN_S)
        }
        CallRefusal::TooFast => {
            let detail = "more sessions are asked for in a second than may be (sessions.creates_per_s)";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_fast", detail).after(1)
        }
        CallRefusal::TooManyWaiting => too_many_waiting(),
    }
}

/// As many callers wait as may.
#[must_use]
pub fn too_many_waiting() -> Problem {
    Problem::busy("too_many_waiting", "as many callers wait as may (sessions.waiting)", LIMIT_AGAIN_S)
}

fn failed(id: &SessionId, session: &Session, failure: Failure) -> Problem {
    let problem = match failure.code {
        Code::Refused(refusal) => refused_by_the_cluster(id, refusal, failure.retrying),
        Code::TooLong => Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "too_long",
            format!("session {id} took longer than all stages together may; the next call begins anew"),
        ),
        Code::Ended(how) => {
            let (code, what) = match how {
                EndCause::NeverStarted(_) => ("pod_never_started", "its pod cannot start"),
                EndCause::Stuck(_) => ("pod_stuck", "its pod hung in a stage"),
                EndCause::AppExit
                | EndCause::Oom
                | EndCause::InstallFailed
                | EndCause::Evicted
                | EndCause::Preempted
                | EndCause::NodeLost
                | EndCause::NodeShutdown
                | EndCause::NodeRefused
                | EndCause::DeletedByUs
                | EndCause::DeletedByOther
                | EndCause::Vanished => ("pod_ended", "its pod ended before it was ready"),
            };
            let end = view(session).last_end.map(|end| serde_json::to_value(last_end(end)).unwrap_or(Value::Null));
            let detail = format!("session {id}: {what}: {}; the next call begins anew", cause(how));
            Problem::new(StatusCode::BAD_GATEWAY, code, detail).with("cause", cause(how)).with("last_end", end)
        }
        Code::Removed => Problem::new(StatusCode::CONFLICT, "removed", format!("session {id} was deleted or suspended meanwhile")),
        Code::Quarantined => {
            let detail = format!("session {id} broke an invariant and is not acted on until the daemon is restarted");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "quarantined", detail)
        }
    };
    let stage = super::words::StageName::from(failure.stage);
    problem.with("stage", stage.as_str()).with("retrying", failure.retrying)
}

/// What the cluster refused: 503 when it is tried on, 409 when a name is taken, else 502.
fn refused_by_the_cluster(id: &SessionId, refused: Refusal, retrying: bool) -> Problem {
    let (code, what) = refusal(refused);
    let detail = format!("session {id}: {what}");
    if matches!(refused, Refusal::Foreign | Refusal::Different) {
        Problem::new(StatusCode::CONFLICT, code, detail)
    } else if retrying {
        Problem::busy(code, format!("{detail}; it is tried on"), REFUSED_AGAIN_S)
    } else {
        Problem::new(StatusCode::BAD_GATEWAY, code, detail)
    }
}

/// It is not ready at the caller's deadline; provisioning goes on.
fn late(id: &SessionId, session: &Session) -> Problem {
    let state = view(session).state;
    let name = StateName::from(&state);
    let held =
        [(session.frozen, "frozen"), (!session.acts, "observing")].into_iter().find(|(holds, _)| *holds).map(|(_, why)| why.to_owned());
    let reason = held.or_else(|| reason(&state)).or_else(|| session.removing.map(|_| "deleting".to_owned()));
    let waits_for_old_pod = matches!(state, State::Provisioning { waits_for: Some(WaitsFor::OldPod), .. });
    let problem = if waits_for_old_pod {
        let detail = format!(
            "session {id}: its old pod is still terminating and may still write to the claim; ?force_after=SECONDS has it forced away"
        );
        Problem::busy("old_pod", detail, LATE_AGAIN_S)
    } else {
        let detail = format!("session {id} is not ready yet; provisioning goes on, and the next call joins it");
        Problem::new(StatusCode::GATEWAY_TIMEOUT, "not_ready", detail).after(LATE_AGAIN_S)
    };
    problem
        .with("state", serde_json::to_value(name).unwrap_or(Value::Null))
        .with("stage", stage(&state).map(super::words::StageName::as_str))
        .with("reason", reason)
}
