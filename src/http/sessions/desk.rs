//! Where callers wait: asks the daemon, and looks at each state that follows until there is an answer, or their time is over.
//!
//! A caller that hangs up is dropped here, with its place; what it asked for was recorded, and goes on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use super::answer::{Answered, Patience, Reply, created, gone, one, ready, refused, too_many_waiting, unknown};
use super::ask::{self, DeleteQuery, Include, Listing};
use super::document::{Names, Page, Touched, shown};
use super::view::SessionsView;
use crate::actors::NotCalled;
use crate::clock;
use crate::config::Sessions;
use crate::config::access::Caller;
use crate::events::kinds::session::{CallRefusal, SessionAsked, SessionCall, SessionTouched};
use crate::events::log::LogReader;
use crate::events::record::Event;
use crate::events::stored::Body;
use crate::events::words::moment;
use crate::http::control::in_time;
use crate::http::log::LogView;
use crate::http::problem::Problem;
use crate::ids::{Seq, SessionId, Subject};
use crate::session::state::Session;
use crate::session::view::{State, view};

/// Where callers of sessions are answered; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Desk(Arc<Inner>);

struct Inner {
    serves: bool,
    names: Names,
    ready_s: u32,
    waiting: Semaphore,
    sessions: Arc<dyn SessionsView>,
    log: Arc<dyn LogView>,
}

/// A session that a caller asked for, and whether its pod was running when it asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// The answer.
    pub reply: Reply,
    /// The pod was already running.
    pub was_running: bool,
}

impl Desk {
    /// By the settings; `namespace` is that of the apps' pods.
    #[must_use]
    pub fn new(settings: &Sessions, namespace: &str, sessions: Arc<dyn SessionsView>, log: Arc<dyn LogView>) -> Self {
        let waiting = usize::try_from(settings.waiting).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner {
            serves: settings.serve.is_on(),
            names: Names::new(settings, namespace),
            ready_s: settings.ready_s,
            waiting: Semaphore::new(waiting),
            sessions,
            log,
        }))
    }

    /// How long a caller waits at most, and how many do: what the listener has to bear.
    #[must_use]
    pub fn bears(&self) -> (Duration, usize) {
        let callers = if self.0.serves { self.0.waiting.available_permits() } else { 0 };
        (Duration::from_secs(u64::from(self.0.ready_s)), callers)
    }

    fn serves(&self) -> Result<(), Problem> {
        if self.0.serves {
            return Ok(());
        }
        Err(Problem { code: "no_sessions", ..Problem::not_found("there are no sessions here (sessions.serve is \"off\")") })
    }

    /// A place among those who wait; none is needed by who does not.
    fn place(&self, caller: &Caller, id: &SessionId, call: SessionCall, wait_s: u32) -> Result<Option<SemaphorePermit<'_>>, Problem> {
        if wait_s == 0 {
            return Ok(None);
        }
        self.0.waiting.try_acquire().map(Some).map_err(|_| {
            self.0.sessions.refused(id, &caller.name, call, CallRefusal::TooManyWaiting);
            too_many_waiting()
        })
    }

    /// The session, when the caller may see it.
    fn seen(&self, caller: &Caller, id: &SessionId) -> Result<Arc<Session>, Problem> {
        self.serves()?;
        if !self.0.sessions.is_known() {
            return Err(unavailable("the daemon starts, stops or stands by"));
        }
        let session = self.0.sessions.state(id).filter(|session| session.is_known());
        session.filter(|session| caller.sees(session.tenant())).ok_or_else(|| unknown(id))
    }

    /// The session that a call is about, when the caller may see it; that somebody called for another's is recorded.
    fn known(&self, caller: &Caller, id: &SessionId, call: SessionCall) -> Result<Arc<Session>, Problem> {
        let seen = self.seen(caller, id);
        if seen.as_ref().is_err_and(|problem| problem.code == "not_found") {
            let hidden = self.0.sessions.state(id).is_some_and(|session| session.is_known());
            let why = if hidden { CallRefusal::Hidden } else { CallRefusal::Unknown };
            self.0.sessions.refused(id, &caller.name, call, why);
        }
        seen
    }

    fn not_called(&self, caller: &Caller, id: &SessionId, why: NotCalled) -> Problem {
        match why {
            NotCalled::Refused(why) => {
                let sees = self.0.sessions.state(id).is_some_and(|session| caller.sees(session.tenant()));
                refused(id, why, sees)
            }
            NotCalled::Full => Problem::busy("busy", "the daemon has as much to do as it takes in", 1),
            NotCalled::NotReady(why) => unavailable(why),
        }
    }

    /// The session is to run.
    ///
    /// # Errors
    /// What the caller is refused with.
    pub async fn create(&self, caller: &Caller, id: &SessionId, ask: SessionAsked, wait: Option<u32>) -> Result<Created, Problem> {
        self.serves()?;
        let wait_s = ask::wait_s(wait, self.0.ready_s)?;
        let deadline = clock::now() + Duration::from_secs(u64::from(wait_s));
        let _place = self.place(caller, id, SessionCall::Create, wait_s)?;
        let called = in_time(self.0.sessions.create(id, ask)).await?.map_err(|why| self.not_called(caller, id, why))?;
        let was_running = called.before.pod.as_ref().is_some_and(|pod| pod.runs() && !pod.is_deleting() && !pod.delete_stands());
        let Some(demand) = called.demand else {
            return Ok(Created { reply: ready(&self.0.names, id, &called.before), was_running });
        };
        let answer = |session: &Session, patience: Patience| created(&self.0.names, id, session, demand, patience);
        let reply = self.wait(id, wait_s, deadline, answer).await?;
        Ok(Created { reply, was_running })
    }

    /// The session is to be deleted or suspended.
    ///
    /// # Errors
    /// What the caller is refused with.
    pub async fn delete(&self, caller: &Caller, id: &SessionId, query: &DeleteQuery) -> Answered {
        let ask = ask::delete(caller, query)?;
        let wait_s = ask::wait_s(query.wait, self.0.ready_s)?;
        let call = if ask.keep_workspace { SessionCall::Suspend } else { SessionCall::Delete };
        let session = self.known(caller, id, call)?;
        let deadline = clock::now() + Duration::from_secs(u64::from(wait_s));
        let _place = self.place(caller, id, call, wait_s)?;
        let called = in_time(self.0.sessions.delete(id, ask, session.tenant())).await?.map_err(|why| self.not_called(caller, id, why))?;
        if called.demand.is_none() {
            return Ok(Reply::nothing());
        }
        self.wait(id, wait_s, deadline, |session, patience| gone(id, session, patience)).await
    }

    /// Looks at each state until one is an answer.
    async fn wait(
        &self,
        id: &SessionId,
        wait_s: u32,
        deadline: Instant,
        answer: impl Fn(&Session, Patience) -> Option<Answered>,
    ) -> Answered {
        let mut changes = self.0.sessions.changes(id).ok_or_else(ended)?;
        loop {
            let session = Arc::clone(&changes.borrow_and_update());
            let patience = match wait_s {
                0 => Patience::None,
                _ if clock::now() >= deadline => Patience::Over,
                _ => Patience::Waits,
            };
            if let Some(answer) = answer(&session, patience) {
                return answer;
            }
            tokio::select! {
                biased;
                changed = changes.changed() => changed.map_err(|_: watch::error::RecvError| ended())?,
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// The session is in use.
    ///
    /// # Errors
    /// What the caller is refused with.
    pub async fn touch(&self, caller: &Caller, id: &SessionId) -> Answered {
        self.known(caller, id, SessionCall::Touch)?;
        let touched = SessionTouched { by: caller.name.clone() };
        in_time(self.0.sessions.touch(id, touched)).await?.map_err(|why| self.not_called(caller, id, why))?;
        let session = self.seen(caller, id)?;
        let touched = Touched { session_id: id.to_string(), last_active_at: session.active_us.map(moment) };
        Ok(Reply::of(axum::http::StatusCode::OK, &touched))
    }

    /// One session.
    ///
    /// # Errors
    /// When there is none that the caller may see, or it may not see its last lines.
    pub async fn one(&self, caller: &Caller, id: &SessionId, include: Option<Include>) -> Answered {
        let session = self.seen(caller, id)?;
        let tail = match include {
            None => None,
            Some(Include::Tail) if !caller.reads_texts() => {
                let detail = format!("{} has not the roles for last lines: tails, with auditor or operator", caller.name);
                return Err(Problem::new(axum::http::StatusCode::FORBIDDEN, "forbidden", detail));
            }
            Some(Include::Tail) => match view(&session).tail {
                Some(kept) => self.tail(id, kept).await?,
                None => None,
            },
        };
        Ok(one(&self.0.names, id, &session, tail))
    }

    /// The last lines as the log keeps them, or what is left of them.
    async fn tail(&self, id: &SessionId, kept: Seq) -> Result<Option<String>, Problem> {
        let reader = self.0.log.reader().ok_or_else(|| Problem::busy("no_log", "the log is not open", 5))?;
        let subject = Subject::Session(id.clone());
        let read = tokio::task::spawn_blocking(move || tail(reader.as_ref(), &subject, kept)).await;
        read.map_err(|_| Problem::busy("unreadable", "reading the log failed", 5))
    }

    /// A page of sessions.
    ///
    /// # Errors
    /// When nothing is known at the moment.
    pub fn list(&self, caller: &Caller, asked: &Listing) -> Answered {
        self.serves()?;
        if !self.0.sessions.is_known() {
            return Err(unavailable("the daemon starts, stops or stands by"));
        }
        let takes = |session: &Session| {
            let tenant = asked.tenant.as_ref().is_none_or(|tenant| session.tenant() == Some(tenant));
            tenant && caller.sees(session.tenant()) && session.is_known() && is_listed(session, asked)
        };
        let mut found = self.0.sessions.list(asked.after.as_ref(), asked.limit + 1, &takes);
        let more = found.len() > asked.limit;
        found.truncate(asked.limit);
        let next = found.last().filter(|_| more).map(|(id, _)| id.to_string());
        let sessions = found.iter().map(|(id, session)| shown(&self.0.names, id, session)).collect();
        Ok(Reply::of(axum::http::StatusCode::OK, &Page { sessions, next }))
    }
}

/// Without a state all are listed but those that are absent: deleted, and kept by the log alone.
fn is_listed(session: &Session, asked: &Listing) -> bool {
    let state = view(session).state;
    asked.state.map_or(state != State::Absent, |wanted| wanted == (&state).into())
}

fn unavailable(why: &str) -> Problem {
    Problem::busy("unavailable", format!("nobody acts on it at the moment: {why}"), 2)
}

fn ended() -> Problem {
    unavailable("this life of the daemon ends; what was asked for goes on in the next")
}

fn tail(log: &dyn LogReader, subject: &Subject, kept: Seq) -> Option<String> {
    let mut text = String::new();
    let mut parts_left = None;
    let read = log.subject(subject, kept, &mut |item| {
        match item.map(|record| record.body) {
            Ok(Body::Known(Event::TailKept(kept))) if parts_left.is_none() => parts_left = Some(kept.parts),
            Ok(Body::Known(Event::TailText(part))) => {
                text.push_str(&part.text);
                parts_left = parts_left.map(|left| left.saturating_sub(1));
            }
            Ok(_) | Err(_) => {}
        }
        if parts_left.is_some_and(|left| left > 0) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if let Err(error) = read {
        tracing::warn!(%subject, %error, "the last lines cannot be read");
    }
    Some(text).filter(|text| !text.is_empty())
}
