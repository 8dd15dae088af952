//! Sessions as the rest of the program asks of them: calls that are durable when they return, states, and what changes.

mod call;
mod facts;
mod kept;
mod listing;
pub(super) mod policy;
pub(super) mod refusals;
pub(super) mod watching;

use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

pub use call::Called;

use self::call::{Answered, Ask, Asking, Call, answered};
use self::facts::Fact;
use self::kept::occupies;
use self::refusals::{Refusals, RefusedCall};
use super::inbox::Full;
use super::registry::Registry;
use super::slot::Slots;
use crate::clock::Clock;
use crate::config::Settings;
use crate::events::kinds::session::{CallRefusal, SessionAsked, SessionCall, SessionDeleteAsked, SessionTouched};
use crate::ids::{SessionId, Tenant, Word};
use crate::session::calls::Taken;
use crate::session::state::Session;

/// How often a call is made again whose session's actor failed under it.
const TRIES: u32 = 3;

/// Sessions that a list looks at under one lock.
const LOOKED_AT: usize = 1_024;

/// Why a call was not made: nothing follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCalled {
    /// It is refused.
    Refused(CallRefusal),
    /// There is no place for it now: the same call may be made again.
    Full,
    /// Sessions cannot be asked for now, and why; the same call may be made again.
    NotReady(&'static str),
}

/// The sessions of an incarnation; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Sessions(Arc<Inner>);

struct Inner {
    registry: Registry<Session>,
    clock: Clock,
    serves: bool,
    most: usize,
    most_of_tenant: usize,
    asking: Asking,
    pace: Mutex<Pace>,
    refusals: Refusals,
}

/// How many may be asked for: a bucket that a second fills.
struct Pace {
    per_s: u32,
    left: f64,
    at_us: i64,
}

impl Pace {
    fn take(&mut self, now_us: i64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        let passed_s = (now_us - self.at_us).max(0) as f64 / 1e6;
        let per_s = f64::from(self.per_s);
        self.left = (self.left + passed_s * per_s).min(per_s);
        self.at_us = now_us;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

/// What a call met before it was on its way.
enum Met {
    Answered(Answered),
    OnItsWay(tokio::sync::oneshot::Receiver<Answered>),
}

impl Sessions {
    pub(super) fn new(registry: Registry<Session>, settings: &Settings, clock: &Clock) -> Self {
        let sessions = &settings.sessions;
        let pace = Pace { per_s: sessions.creates_per_s, left: f64::from(sessions.creates_per_s), at_us: clock.now_us() };
        Self(Arc::new(Inner {
            registry,
            clock: clock.clone(),
            serves: sessions.serve.is_on(),
            most: sessions.most as usize,
            most_of_tenant: sessions.most_of_tenant as usize,
            asking: Asking::default(),
            pace: Mutex::new(pace),
            refusals: Refusals::default(),
        }))
    }

    /// Asks for a session to run. Durable when it returns.
    ///
    /// # Errors
    /// See [`NotCalled`].
    pub async fn create(&self, id: &SessionId, ask: SessionAsked) -> Result<Called, NotCalled> {
        self.call(id, Ask::Create(ask)).await
    }

    /// Asks for a session to be deleted or suspended, as long as it is this tenant's; `None`: whoever's it is. Durable when it returns.
    ///
    /// # Errors
    /// See [`NotCalled`].
    pub async fn delete(&self, id: &SessionId, ask: SessionDeleteAsked, of: Option<&Tenant>) -> Result<Called, NotCalled> {
        self.call(id, Ask::Delete(ask, of.cloned())).await
    }

    /// Says that a session is in use.
    ///
    /// # Errors
    /// See [`NotCalled`].
    pub async fn touch(&self, id: &SessionId, touched: SessionTouched) -> Result<Called, NotCalled> {
        self.call(id, Ask::Touch(touched, self.0.clock.now_us())).await
    }

    /// Has it recorded that a call was refused for a reason that the caller's side alone knows; `by` as in the calls' records.
    pub fn refused(&self, id: &SessionId, by: &Word, call: SessionCall, why: CallRefusal) {
        self.0.refusals.note(RefusedCall { session: Some(id.clone()), by: by.clone(), call, why });
    }

    /// A session's state as of its last reaction; `None` when nobody ever heard of it.
    #[must_use]
    pub fn state(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.0.registry.state(id)
    }

    /// Its states from now on; `None` when nobody ever heard of it. The sender is gone when the incarnation ends.
    #[must_use]
    pub fn changes(&self, id: &SessionId) -> Option<watch::Receiver<Arc<Session>>> {
        self.0.registry.changes(id)
    }

    /// The first `limit` sessions after that id, in the order of their ids, that are so.
    #[must_use]
    pub fn list(
        &self,
        after: Option<&SessionId>,
        limit: usize,
        is: impl Fn(&SessionId, &Session) -> bool,
    ) -> Vec<(SessionId, Arc<Session>)> {
        let mut found = Vec::new();
        let mut after = after.cloned();
        loop {
            let some = self.0.registry.some_after(after.as_ref(), LOOKED_AT);
            let looked_at = some.len();
            after = some.last().map(|(id, _)| id.clone()).or(after);
            found.extend(some.into_iter().filter(|(id, session)| is(id, session)).take(limit - found.len()));
            if found.len() >= limit || looked_at < LOOKED_AT {
                return found;
            }
        }
    }

    /// All of them.
    pub(crate) fn registry(&self) -> &Registry<Session> {
        &self.0.registry
    }

    /// How many sessions take up a place: wanted, being removed, or with anything left.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.registry.slots().tally.all
    }

    /// Whether they can be asked for: they are served, and the cluster is listed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.serves && self.0.registry.is_listed()
    }

    async fn call(&self, id: &SessionId, ask: Ask) -> Result<Called, NotCalled> {
        for _ in 0..TRIES {
            let came = match self.meet(id, &ask)? {
                Met::Answered(answered) => answered,
                Met::OnItsWay(answered) => match answered.await {
                    Ok(answered) => answered,
                    // Its actor failed, or the incarnation ends: what it recorded, if anything, is joined.
                    Err(_) => continue,
                },
            };
            return came.map_err(|why| self.refuse(id, &ask, why));
        }
        Err(NotCalled::NotReady("the session's actor fails"))
    }

    /// What a call means to the state as it is; one that is news goes to the session's actor, which judges it once more, behind
    /// everything that came before it.
    fn meet(&self, id: &SessionId, ask: &Ask) -> Result<Met, NotCalled> {
        let Inner { registry, serves, .. } = &*self.0;
        if !serves {
            return Err(NotCalled::NotReady("there are no sessions (sessions.serve)"));
        }
        let mut slots = registry.slots();
        if slots.closed {
            return Err(NotCalled::NotReady("this life of the daemon ends"));
        }
        if slots.listed.is_none() {
            return Err(NotCalled::NotReady("the cluster is not listed yet"));
        }
        let slot = slots.by_key.get(id);
        if slot.is_some_and(|slot| slot.quarantined) {
            return Err(NotCalled::NotReady("the session is quarantined"));
        }
        let before = slot.map(|slot| Arc::clone(&slot.state)).unwrap_or_default();
        let taken = ask.meets(&before);
        if !matches!(taken, Taken::News(_)) {
            return Ok(Met::Answered(answered(taken, &before, &|| crate::ids::Seq::NONE, &|seq| seq)));
        }
        let asked = match ask {
            Ask::Create(create) => {
                if let Some(why) = self.past_a_limit(&slots, id, &create.tenant, &before) {
                    return Ok(Met::Answered(Err(why)));
                }
                Some(self.0.asking.ask(id, &create.tenant))
            }
            Ask::Delete(..) | Ask::Touch(..) => None,
        };
        let (call, answered) = Call::new(ask.clone(), asked);
        registry.offer_to(&mut slots, id, Fact::Call(call)).map_err(|Full| NotCalled::Full)?;
        Ok(Met::OnItsWay(answered))
    }

    /// The limit that one more would be past. Many calls for one session are one.
    fn past_a_limit(&self, slots: &Slots<Session>, id: &SessionId, tenant: &Tenant, before: &Session) -> Option<CallRefusal> {
        let Inner { asking, most, most_of_tenant, pace, clock, .. } = &*self.0;
        if asking.asks(id) {
            return None;
        }
        if !occupies(before) {
            let is_counted = |id: &SessionId| slots.by_key.get(id).is_some_and(|slot| occupies(&slot.state));
            let (all, own) = asking.count(tenant, is_counted);
            if slots.tally.all + all >= *most {
                return Some(CallRefusal::TooMany);
            }
            if slots.tally.of_tenant.get(tenant).copied().unwrap_or(0) + own >= *most_of_tenant {
                return Some(CallRefusal::TooManyOfTenant);
            }
        }
        let in_pace = pace.lock().unwrap_or_else(PoisonError::into_inner).take(clock.now_us());
        (!in_pace).then_some(CallRefusal::TooFast)
    }

    fn refuse(&self, id: &SessionId, ask: &Ask, why: CallRefusal) -> NotCalled {
        self.refused(id, ask.by(), ask.call(), why);
        NotCalled::Refused(why)
    }
}

impl Registry<Session> {
    /// A session's states from now on.
    fn changes(&self, id: &SessionId) -> Option<watch::Receiver<Arc<Session>>> {
        let mut slots = self.slots();
        let closed = slots.closed;
        let slot = slots.by_key.get_mut(id)?;
        if closed {
            return None;
        }
        let watched = slot.watched.get_or_insert_with(|| watch::Sender::new(Arc::clone(&slot.state)));
        Some(watched.subscribe())
    }

    /// The first sessions after that id.
    fn some_after(&self, after: Option<&SessionId>, most: usize) -> Vec<(SessionId, Arc<Session>)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let slots = self.slots();
        let range = slots.by_key.range::<SessionId, _>((from, Bound::Unbounded)).take(most);
        range.map(|(id, slot)| (id.clone(), Arc::clone(&slot.state))).collect()
    }
}
