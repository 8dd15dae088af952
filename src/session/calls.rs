//! What a call means to a session as it is: something new to be recorded, something that is under way already, or a refusal.

use super::known::is_going;
use super::state::Session;
use crate::clock::SECOND_US;
use crate::events::kinds::session::{CallRefusal, SessionAsked, SessionDeleteAsked, SessionTouched};
use crate::events::record::Event;
use crate::ids::Seq;

/// A session's use is recorded once in so long.
const TOUCH_US: u64 = 60 * SECOND_US;

/// What a call means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// It is news: the event to record; the record's number is what [`super::view::answer`] is then asked with.
    News(Box<Event>),
    /// It joins what is under way, by that call's record.
    Joins(Seq),
    /// It is so already: what was to run is ready, and this caller's is resumed.
    AlreadySo,
    /// It is refused.
    Refused(CallRefusal),
}

/// A call for the session to run. Many calls are one demand; a pod that is on its way out is nobody's answer.
#[must_use]
pub fn create(session: &Session, ask: SessionAsked) -> Taken {
    if session.tenant().is_some_and(|tenant| *tenant != ask.tenant) && !session.is_vacant() {
        return Taken::Refused(CallRefusal::OtherTenant);
    }
    let Some(wanted) = &session.wanted else { return news(Event::SessionAsked(ask)) };
    let leaving = session.pod.as_ref().filter(|pod| pod.end.is_some() || is_going(pod));
    let begins_anew = leaving.is_some_and(|pod| session.closes(&pod.uid));
    let says_more = ask.force_after_us.is_some() && ask.force_after_us != wanted.force_after_us;
    if begins_anew || says_more {
        news(Event::SessionAsked(ask))
    } else if session.is_ready() {
        Taken::AlreadySo
    } else {
        Taken::Joins(wanted.seq)
    }
}

/// A call for the session to be deleted, or suspended. A delete wins over what is wanted.
#[must_use]
pub fn delete(session: &Session, ask: SessionDeleteAsked) -> Taken {
    if !session.is_known() {
        return Taken::Refused(CallRefusal::Unknown);
    }
    if let Some(removing) = session.removing {
        let says_more = ask.force_after_us.is_some() && ask.force_after_us != removing.force_after_us;
        let takes_more = removing.keep_workspace && !ask.keep_workspace;
        let joins = session.wanted.is_none() && !says_more && !takes_more;
        return if joins { Taken::Joins(removing.seq) } else { news(Event::SessionDeleteAsked(ask)) };
    }
    let is_so = session.listed.is_some() && session.wanted.is_none() && session.is_removed(ask.keep_workspace);
    if is_so { Taken::AlreadySo } else { news(Event::SessionDeleteAsked(ask)) }
}

/// A caller says at `now_us`, log time, that the session is in use: recorded at most once a minute.
#[must_use]
pub fn touch(session: &Session, touched: SessionTouched, now_us: i64) -> Taken {
    if !session.is_known() {
        return Taken::Refused(CallRefusal::Unknown);
    }
    let young = session.active_us.is_some_and(|active_us| now_us < active_us.saturating_add_unsigned(TOUCH_US));
    if young { Taken::AlreadySo } else { news(Event::SessionTouched(touched)) }
}

fn news(event: Event) -> Taken {
    Taken::News(Box::new(event))
}
