//! One subject's slot: its committed state, what waits for it, what its reaction under way has in hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ractor::ActorRef;

use super::facts::{Fact, LastList, SeenPod, Shown, ShownSecrets};
use super::inbox::{Batch, Inbox, Quiet};
use super::subject::Wake;
use crate::app::state::{App, Host};
use crate::events::kinds::pod::{NodeReady, NodeSeen};
use crate::events::record::Event;
use crate::ids::{AppId, HostName, Seq, Word};

/// All subjects, under the registry's one lock.
pub(super) struct Slots {
    pub(super) by_app: BTreeMap<AppId, Slot>,
    pub(super) nodes: BTreeMap<Word, NodeReady>,
    /// What a subject that becomes known now has to learn first.
    pub(super) started: Event,
    /// The first list of this incarnation, once subjects may plan on it.
    pub(super) listed: Option<Event>,
    /// The newest list.
    pub(super) last_list: Option<LastList>,
    /// No deadline wakes a subject any more.
    pub(super) settling: bool,
    /// No fact is taken in any more: the incarnation ends.
    pub(super) closed: bool,
}

/// One subject.
pub(super) struct Slot {
    pub(super) state: Arc<App>,
    pub(super) inbox: Inbox,
    /// What the reaction under way has taken in: taken in again if its actor fails before it is durable.
    pub(super) in_hand: Option<Arc<Batch>>,
    pub(super) actor: Activity,
    /// Failures of its actor in a row.
    pub(super) failures: u32,
    /// Its next reaction carries its state, and the last record that does.
    pub(super) carry: bool,
    pub(super) carried: Seq,
    /// Its actor fails whatever is done: it gets none any more in this incarnation, and takes nothing in.
    pub(super) quarantined: bool,
}

/// Whether a subject has an actor.
pub(super) enum Activity {
    Resting,
    /// The supervisor was asked for an actor.
    Asked,
    Active(ActorRef<Wake>),
}

impl Slots {
    pub(super) fn slot(&mut self, app: &AppId) -> &mut Slot {
        self.by_app.entry(app.clone()).or_insert_with(|| Slot::new(App::default(), false))
    }

    /// What this state has not learned yet of the incarnation.
    pub(super) fn owed(&self, state: &App) -> Quiet {
        let started = matches!(&self.started, Event::IncarnationStarted(started) if started.number != state.incarnation);
        Quiet {
            started: started.then(|| self.started.clone()),
            listed: self.listed.as_ref().filter(|_| started || state.listed.is_none()).cloned(),
        }
    }

    /// Apps that are wanted or leave something behind: those that are neither cost a name and a want.
    pub(super) fn living(&self) -> usize {
        let is_over = |state: &App| state.missing.any() && state.hosts.values().all(Host::is_forgettable);
        self.by_app.values().filter(|slot| slot.has_work() || !is_over(&slot.state)).count()
    }
}

impl Slot {
    pub(super) fn new(state: App, broken: bool) -> Self {
        Self {
            state: Arc::new(state),
            inbox: Inbox::default(),
            in_hand: None,
            actor: Activity::Resting,
            failures: 0,
            carry: false,
            carried: Seq::NONE,
            quarantined: broken,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        self.in_hand.is_some() || self.inbox.has_work()
    }

    /// Whether its state can be carried now: a tail that somebody reads at this moment is known by the record that asks for it.
    pub(super) fn carries_now(&self) -> bool {
        self.carry && self.state.hosts.values().all(|host| host.tails.values().all(|tail| tail.settled))
    }

    /// The nodes of its pods.
    pub(super) fn bound_to(&self) -> impl Iterator<Item = Word> + use<> {
        let nodes: BTreeSet<Word> = self.state.hosts.values().filter_map(Host::node).cloned().collect();
        nodes.into_iter()
    }

    /// Posts how a node is, if that is news; says whether it was. A node that is fine is not worth a record, unless it was not before.
    pub(super) fn node_became(&mut self, seen: &NodeSeen) -> bool {
        let known = self.state.nodes.get(&seen.node);
        let is_news =
            if seen.ready == NodeReady::Ready { known.is_some_and(|known| *known != NodeReady::Ready) } else { known != Some(&seen.ready) };
        let concerns = !self.quarantined && self.state.hosts.values().any(|host| host.node() == Some(&seen.node));
        if is_news && concerns {
            self.inbox.take_in(Fact::Node(seen.clone()));
        }
        is_news && concerns
    }

    /// Whether nothing is known or about to be known of it that a list could differ from.
    fn is_blank(&self) -> bool {
        self.state.hosts.is_empty() && self.inbox.is_empty() && self.in_hand.is_none()
    }

    /// Posts what a list of the Secrets showed of it.
    pub(super) fn take_secrets(&mut self, list: ShownSecrets) {
        if !self.is_blank() || !list.secrets.is_empty() {
            self.inbox.take_in(Fact::Secrets(list));
        }
    }

    /// Posts what a list of the pods showed of it.
    pub(super) fn take_list(&mut self, shown: Vec<SeenPod>, list: Shown) {
        if self.is_blank() && shown.is_empty() {
            return;
        }
        for pod in shown {
            self.inbox.saw(pod);
        }
        self.inbox.take_in(Fact::List(list));
    }
}

impl Host {
    /// The node of its pod.
    pub(super) fn node(&self) -> Option<&Word> {
        self.pod.as_ref().and_then(|pod| pod.view.as_ref()).map(|view| &view.node).filter(|node| !node.is_empty())
    }
}

/// A host of an app, for what is kept beside the log.
pub(super) type HostKey = (AppId, HostName);
