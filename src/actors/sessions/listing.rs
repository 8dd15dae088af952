//! What the watches of sessions' objects tell the sessions: each only what it does not know already, so that what rests is not woken.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{Fact, List, Observed, Shown, identity};
use crate::actors::kept::{Fact as _, Kept as _, Observed as _};
use crate::actors::registry::Registry;
use crate::actors::slot::Slot;
use crate::events::kinds::session::SessionObject;
use crate::events::record::Event;
use crate::ids::{Seq, SessionId, Uid};
use crate::session::state::Session;

impl Registry<Session> {
    /// An object of a session was seen; it is gone besides when `gone`.
    pub(super) fn saw_object(&self, id: &SessionId, seen: Event, gone: Option<Event>) {
        let Some(uid) = identity(&seen).map(|(uid, _)| uid.clone()) else { return };
        let observed = Observed { seen: Some(seen), gone };
        let is_known = |slot: &Slot<Session>| !slot.has_work() && observed.news(&slot.state).is_empty();
        if !self.slots().by_key.get(id).is_some_and(is_known) {
            self.observe(id, &uid, observed);
        }
    }

    /// A complete list of one sort of their objects.
    pub(super) fn objects_listed(&self, object: SessionObject, list: &List, mut objects: BTreeMap<SessionId, Vec<Event>>) {
        let named: Vec<SessionId> = objects.keys().cloned().collect();
        let last = list.clone();
        let put = |lists: &mut super::facts::Lists| drop(lists.insert(object, last));
        self.tell_all(&named, put, |id, slot| {
            let shown = objects.remove(id).unwrap_or_default();
            if slot.is_blank() && shown.is_empty() {
                return;
            }
            let uids: BTreeSet<Uid> = shown.iter().filter_map(|event| Some(identity(event)?.0.clone())).collect();
            let observed = shown.into_iter().map(|event| Observed { seen: Some(event), gone: None });
            let (observed, list): (Vec<Observed>, _) = (observed.collect(), Fact::List(Shown { object, uids, list: list.clone() }));
            let is_news = |session: &Session| {
                observed.iter().any(|one| !one.news(session).is_empty()) || !list.news(session, Seq::provisional(0)).is_empty()
            };
            if !slot.has_work() && !is_news(&slot.state) {
                return;
            }
            for one in observed {
                if let Some(uid) = one.seen.as_ref().and_then(identity).map(|(uid, _)| uid.clone()) {
                    slot.inbox.observe(uid, one);
                }
            }
            slot.inbox.take_in(list);
        });
    }

    /// Has every session look again that is not at rest: what the watch or a timer may have missed.
    pub(super) fn sweep(&self) -> usize {
        let moves = |session: &Session| {
            let goes = session.pod.as_ref().is_some_and(|pod| pod.end.is_some() || pod.deleting_since_us.is_some());
            goes || session.removing.is_some() || session.has_flights() || (session.wanted.is_some() && !session.is_ready())
        };
        let mut swept = 0;
        self.tell_all(
            &[],
            |_| {},
            |_, slot| {
                if moves(&slot.state) {
                    swept += 1;
                    slot.inbox.nudge();
                }
            },
        );
        swept
    }

    /// Whether any of them has a pod, or is about to.
    pub(super) fn any_pod(&self) -> bool {
        self.slots().by_key.values().any(|slot| slot.state.pod.is_some() || slot.state.wanted.is_some())
    }
}
