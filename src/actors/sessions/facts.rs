//! What reaches a session, before it is known to be new: observations of its objects, complete lists, outcomes, and calls, which are
//! judged by the state that they meet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::call::Call;
use crate::actors::kept;
use crate::events::kinds::pod::{GoneHow, NodeSeen, PodGone};
use crate::events::kinds::session::{ClaimGone, ServiceGone, SessionObject};
use crate::events::record::{Draft, Event};
use crate::ids::{Seq, Uid};
use crate::session::news::is_news;
use crate::session::state::Session;
use crate::subject::pod::At;
use crate::subject::react::look_ahead;
use crate::subject::rules::Rules;

/// What the watch says of one uid: the newest view, and whether it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// A view, as an event.
    pub(super) seen: Option<Event>,
    /// That it is gone, as an event.
    pub(super) gone: Option<Event>,
}

/// One thing that came in.
#[derive(Debug, Clone)]
pub enum Fact {
    /// What a complete list showed of the session.
    List(Shown),
    /// The node that its pod is on.
    Node(NodeSeen),
    /// An outcome, or anything else that is an event as it stands, with the notes that go with it.
    Events(Vec<Event>),
    /// Somebody asks something of it.
    Call(Arc<Call>),
}

/// What a complete list of one sort of objects showed of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The sort.
    pub(super) object: SessionObject,
    /// The objects.
    pub(super) uids: BTreeSet<Uid>,
    /// The list.
    pub(super) list: List,
}

/// A complete list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Its version: what is newer was not to be in it.
    pub(super) version: u64,
    /// Names of objects that are there and cannot be read, of all sessions.
    pub(super) odd: Arc<BTreeSet<String>>,
}

/// The newest list of each sort.
pub(super) type Lists = BTreeMap<SessionObject, List>;

/// An object's identity and version, as an observation shows it.
#[expect(clippy::wildcard_enum_match_arm, reason = "three kinds are observations of an object")]
pub(super) fn identity(event: &Event) -> Option<(&Uid, u64)> {
    match event {
        Event::PodSeen(seen) => Some((&seen.uid, seen.resource_version)),
        Event::ClaimSeen(seen) => Some((&seen.uid, seen.resource_version)),
        Event::ServiceSeen(seen) => Some((&seen.uid, seen.resource_version)),
        _ => None,
    }
}

/// What is known of the session's object of a sort: its name, identity and version, and whether a list or the watch showed it.
fn known(session: &Session, object: SessionObject) -> Option<(String, &Uid, u64, bool)> {
    match object {
        SessionObject::Claim => {
            let name = session.claim.name.as_ref().map(ToString::to_string).unwrap_or_default();
            session.claim.there().map(|claim| (name, &claim.uid, claim.resource_version, claim.view.is_some()))
        }
        SessionObject::Service => {
            let name = session.service.name.as_ref().map(ToString::to_string).unwrap_or_default();
            session.service.there().map(|service| (name, &service.uid, service.resource_version, service.view.is_some()))
        }
        SessionObject::Pod => {
            let name = session.pod_name.as_ref().map(ToString::to_string).unwrap_or_default();
            session.pod.as_ref().map(|pod| (name, &pod.uid, pod.resource_version, pod.view.is_some()))
        }
    }
}

/// An object of that sort is gone.
pub(super) fn gone(session: &Session, object: SessionObject, uid: &Uid, resource_version: u64, how: GoneHow) -> Option<Event> {
    let uid = uid.clone();
    Some(match object {
        SessionObject::Claim => Event::ClaimGone(ClaimGone { uid, resource_version, how }),
        SessionObject::Service => Event::ServiceGone(ServiceGone { uid, resource_version, how }),
        SessionObject::Pod => Event::PodGone(PodGone { host: session.pod_name.clone()?, uid, resource_version, how }),
    })
}

/// The objects that a list or the watch showed.
pub(super) fn shown(session: &Session) -> BTreeSet<Uid> {
    let sorts = [SessionObject::Claim, SessionObject::Pod, SessionObject::Service].into_iter();
    sorts.filter_map(|object| known(session, object)).filter(|(.., shown)| *shown).map(|(_, uid, ..)| uid.clone()).collect()
}

impl List {
    /// The session's object of that sort is not in this list, of which `uids` are those of the session, and would have been.
    fn lacks(&self, session: &Session, object: SessionObject, uids: &BTreeSet<Uid>) -> Option<Event> {
        let (name, uid, version, _) = known(session, object)?;
        let lacks = version <= self.version && !uids.contains(uid) && !self.odd.contains(&name);
        if lacks { gone(session, object, uid, self.version, GoneHow::Absent) } else { None }
    }
}

impl kept::Lists<Session> for Lists {
    fn absent(&self, session: &Session, seen: &BTreeSet<Uid>) -> Vec<Draft> {
        self.iter().filter_map(|(object, list)| list.lacks(session, *object, seen)).map(Draft::input).collect()
    }
}

impl kept::Observed<Session> for Observed {
    fn then(&mut self, later: Self) {
        let version = |event: &Option<Event>| event.as_ref().and_then(identity).map(|(_, version)| version);
        if later.seen.is_some() && version(&self.seen) < version(&later.seen) && self.gone.is_none() {
            self.seen = later.seen;
        }
        self.gone = later.gone.or_else(|| self.gone.take());
    }

    fn news(&self, session: &Session) -> Vec<Draft> {
        let mut ahead = None;
        let mut drafts = Vec::new();
        for event in self.seen.iter().chain(&self.gone) {
            if is_news(ahead.as_ref().unwrap_or(session), event) {
                let ahead = ahead.get_or_insert_with(|| session.clone());
                look_ahead(ahead, Rules::CURRENT, event, At { seq: Seq::provisional(0), time_us: 0 });
                drafts.push(Draft::input(event.clone()));
            }
        }
        drafts
    }
}

impl kept::Fact<Session> for Fact {
    fn of_events(events: Vec<Event>) -> Self {
        Self::Events(events)
    }

    fn of_node(seen: NodeSeen) -> Self {
        Self::Node(seen)
    }

    fn events(&self) -> Option<&[Event]> {
        match self {
            Self::Events(events) => Some(events),
            Self::List(_) | Self::Node(_) | Self::Call(_) => None,
        }
    }

    fn news(&self, session: &Session, place: Seq) -> Vec<Draft> {
        match self {
            Self::List(Shown { object, uids, list }) => list.lacks(session, *object, uids).into_iter().map(Draft::input).collect(),
            Self::Node(seen) => {
                let event = Event::NodeSeen(seen.clone());
                if is_news(session, &event) { vec![Draft::input(event)] } else { Vec::new() }
            }
            // An outcome's object may have been seen before it.
            Self::Events(events) => {
                let news = events.iter().filter(|event| identity(event).is_none() || is_news(session, event));
                news.cloned().map(Draft::input).collect()
            }
            Self::Call(call) => call.meets(session, place).map(Draft::input).into_iter().collect(),
        }
    }

    fn taken(&self, before: &Arc<Session>, real: &dyn Fn(Seq) -> Seq) {
        if let Self::Call(call) = self {
            call.answer(before, real);
        }
    }
}
