//! One call about a session: what is asked, and the way back to whoever asked. Whoever asked may be gone: then nothing changes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::events::kinds::session::{CallRefusal, SessionAsked, SessionCall, SessionDeleteAsked, SessionTouched};
use crate::events::record::Event;
use crate::ids::{Seq, SessionId, Tenant, Word};
use crate::session::calls::{self, Taken};
use crate::session::state::Session;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    Create(SessionAsked),
    /// With whose the session was when it was judged whether the caller may: it is nobody else's since. `None`: whoever's it is.
    Delete(SessionDeleteAsked, Option<Tenant>),
    /// With the time, log time.
    Touch(SessionTouched, i64),
}

impl Ask {
    /// What it means to the session as it is.
    pub(super) fn meets(&self, session: &Session) -> Taken {
        match self {
            Self::Create(ask) => calls::create(session, ask.clone()),
            Self::Delete(_, Some(of)) if session.tenant() != Some(of) => Taken::Refused(CallRefusal::Hidden),
            Self::Delete(ask, _) => calls::delete(session, ask.clone()),
            Self::Touch(touched, now_us) => calls::touch(session, touched.clone(), *now_us),
        }
    }

    pub(super) fn call(&self) -> SessionCall {
        match self {
            Self::Create(_) => SessionCall::Create,
            Self::Delete(ask, _) if ask.keep_workspace => SessionCall::Suspend,
            Self::Delete(..) => SessionCall::Delete,
            Self::Touch(..) => SessionCall::Touch,
        }
    }

    pub(super) fn by(&self) -> &Word {
        match self {
            Self::Create(ask) => &ask.by,
            Self::Delete(ask, _) => &ask.by,
            Self::Touch(touched, _) => &touched.by,
        }
    }
}

/// What became of a call that was made.
#[derive(Debug, Clone)]
pub struct Called {
    /// The demand or the removal that it is or has joined, to ask `session::view::answer` with; `None`: it is so already.
    pub demand: Option<Seq>,
    /// The session as the call met it.
    pub before: Arc<Session>,
}

/// What a call comes back with.
pub(super) type Answered = Result<Called, CallRefusal>;

/// The sessions that are asked for at this moment and whose record is not durable yet, by whose they will be: they take up places.
#[derive(Debug, Clone, Default)]
pub(super) struct Asking(Arc<Mutex<BTreeMap<SessionId, (Tenant, u32)>>>);

/// One of them, as long as the call lasts.
#[derive(Debug)]
pub(super) struct Asked {
    asking: Asking,
    id: SessionId,
}

impl Asking {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<SessionId, (Tenant, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ask(&self, id: &SessionId, tenant: &Tenant) -> Asked {
        self.locked().entry(id.clone()).or_insert_with(|| (tenant.clone(), 0)).1 += 1;
        Asked { asking: self.clone(), id: id.clone() }
    }

    /// Whether somebody asks for it at this moment.
    pub(super) fn asks(&self, id: &SessionId) -> bool {
        self.locked().contains_key(id)
    }

    /// How many are asked for that are not counted otherwise: all, and of this tenant.
    pub(super) fn count(&self, tenant: &Tenant, is_counted: impl Fn(&SessionId) -> bool) -> (usize, usize) {
        let asking = self.locked();
        let new = asking.iter().filter(|(id, _)| !is_counted(id));
        new.fold((0, 0), |(all, own), (_, (of, _))| (all + 1, own + usize::from(of == tenant)))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut asking = self.asking.locked();
        if let Some((_, calls)) = asking.get_mut(&self.id) {
            *calls -= 1;
            if *calls == 0 {
                asking.remove(&self.id);
            }
        }
    }
}

/// A call on its way.
pub struct Call {
    ask: Ask,
    /// What it meant when it was last taken in, and the place of its record.
    taken: Mutex<Option<(Taken, Seq)>>,
    reply: Mutex<Option<oneshot::Sender<Answered>>>,
    _asked: Option<Asked>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("ask", &self.ask).finish_non_exhaustive()
    }
}

impl Call {
    pub(super) fn new(ask: Ask, asked: Option<Asked>) -> (Arc<Self>, oneshot::Receiver<Answered>) {
        let (reply, answered) = oneshot::channel();
        let call = Self { ask, taken: Mutex::default(), reply: Mutex::new(Some(reply)), _asked: asked };
        (Arc::new(call), answered)
    }

    /// It is taken in: the event that it makes of this state, if any.
    pub(super) fn meets(&self, session: &Session, place: Seq) -> Option<Event> {
        let taken = self.ask.meets(session);
        let event = if let Taken::News(event) = &taken { Some(Event::clone(event)) } else { None };
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some((taken, place));
        event
    }

    /// The reaction that took it in is over.
    pub(super) fn answer(&self, before: &Arc<Session>, real: &dyn Fn(Seq) -> Seq) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some((taken, place)), Some(reply)) = (taken, reply) {
            // Whoever asked may have gone.
            let _ = reply.send(answered(taken, before, &|| real(place), real));
        }
    }
}

/// What a call that meant this comes back with.
pub(super) fn answered(taken: Taken, before: &Arc<Session>, own: &dyn Fn() -> Seq, real: &dyn Fn(Seq) -> Seq) -> Answered {
    let demand = match taken {
        Taken::News(_) => Some(own()),
        Taken::Joins(demand) => Some(real(demand)),
        Taken::AlreadySo => None,
        Taken::Refused(why) => return Err(why),
    };
    Ok(Called { demand, before: Arc::clone(before) })
}
