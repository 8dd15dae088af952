//! One subject's slot: its committed state, what waits for it, what its reaction under way has in hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::watch;

use super::inbox::{Batch, Inbox, Quiet};
use super::kept::{Fact as _, Kept};
use super::subject::Wake;
use crate::events::kinds::pod::{NodeReady, NodeSeen};
use crate::events::record::Event;
use crate::ids::{AppId, HostName, Seq, Word};

/// All subjects of a sort, under their registry's one lock.
pub(super) struct Slots<M: Kept> {
    pub(super) by_key: BTreeMap<M::Key, Slot<M>>,
    pub(super) nodes: BTreeMap<Word, NodeReady>,
    /// What a subject that becomes known now has to learn first.
    pub(super) started: Event,
    /// The first list of this incarnation, once subjects may plan on it.
    pub(super) listed: Option<Event>,
    /// The newest lists.
    pub(super) lists: M::Lists,
    /// What is counted over all of them.
    pub(super) tally: M::Tally,
    /// No deadline wakes a subject any more.
    pub(super) settling: bool,
    /// No fact is taken in any more: the incarnation ends.
    pub(super) closed: bool,
}

/// One subject.
pub(super) struct Slot<M: Kept> {
    pub(super) state: Arc<M>,
    pub(super) inbox: Inbox<M>,
    /// What the reaction under way has taken in: taken in again if its actor fails before it is durable.
    pub(super) in_hand: Option<Arc<Batch<M>>>,
    pub(super) actor: Activity,
    /// Failures of its actor in a row.
    pub(super) failures: u32,
    /// Its next reaction carries its state, and the last record that does.
    pub(super) carry: bool,
    pub(super) carried: Seq,
    /// Its actor fails whatever is done: it gets none any more in this incarnation, and takes nothing in.
    pub(super) quarantined: bool,
    /// Who waits for its next state; nothing while nobody does.
    pub(super) watched: Option<watch::Sender<Arc<M>>>,
}

/// Whether a subject has an actor.
pub(super) enum Activity {
    Resting,
    /// The supervisor was asked for an actor.
    Asked,
    Active(ActorRef<Wake>),
}

impl<M: Kept> Slots<M> {
    pub(super) fn slot(&mut self, key: &M::Key) -> &mut Slot<M> {
        self.by_key.entry(key.clone()).or_insert_with(|| Slot::new(M::default(), false))
    }

    /// What this state has not learned yet of the incarnation.
    pub(super) fn owed(&self, state: &M) -> Quiet {
        let started = matches!(&self.started, Event::IncarnationStarted(started) if started.number != state.incarnation());
        Quiet {
            started: started.then(|| self.started.clone()),
            listed: self.listed.as_ref().filter(|_| started || state.listed().is_none()).cloned(),
        }
    }

    /// Subjects that are wanted or leave something behind: those that are neither cost a name and a want.
    pub(super) fn living(&self) -> usize {
        self.by_key.values().filter(|slot| slot.has_work() || !slot.state.is_over()).count()
    }

    /// A subject has this state now.
    pub(super) fn set(&mut self, key: &M::Key, state: Arc<M>) {
        let Some(slot) = self.by_key.get_mut(key) else { return };
        M::count(&mut self.tally, &slot.state, &state);
        slot.state = state;
        slot.watched.take_if(|watched| watched.is_closed());
        if let Some(watched) = &slot.watched {
            watched.send_replace(Arc::clone(&slot.state));
        }
    }
}

impl<M: Kept> Slot<M> {
    pub(super) fn new(state: M, broken: bool) -> Self {
        Self {
            state: Arc::new(state),
            inbox: Inbox::default(),
            in_hand: None,
            actor: Activity::Resting,
            failures: 0,
            carry: false,
            carried: Seq::NONE,
            quarantined: broken,
            watched: None,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        self.in_hand.is_some() || self.inbox.has_work()
    }

    /// Whether its state can be carried now: a tail that somebody reads at this moment is known by the record that asks for it.
    pub(super) fn carries_now(&self) -> bool {
        self.carry && !self.state.reads()
    }

    /// Posts how a node is, if that is news; says whether it was. A node that is fine is not worth a record, unless it was not before.
    pub(super) fn node_became(&mut self, seen: &NodeSeen) -> bool {
        let known = self.state.nodes().get(&seen.node);
        let is_news =
            if seen.ready == NodeReady::Ready { known.is_some_and(|known| *known != NodeReady::Ready) } else { known != Some(&seen.ready) };
        let concerns = is_news && !self.quarantined && self.state.bound_to().contains(&seen.node);
        if concerns {
            self.inbox.take_in(M::Fact::of_node(seen.clone()));
        }
        concerns
    }

    /// Whether nothing is known or about to be known of it that a list could differ from.
    pub(super) fn is_blank(&self) -> bool {
        self.state.is_blank() && self.inbox.is_empty() && self.in_hand.is_none()
    }
}

/// A host of an app, for what is kept beside the log.
pub(super) type HostKey = (AppId, HostName);
