//! What the actors ask of a subject's state, so that apps and sessions are kept, woken, restarted and carried by the same code.
//! Answers what is so; decides nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use super::work::What;
use crate::events::kinds::pod::{NodeReady, NodeSeen};
use crate::events::kinds::tail::TailOf;
use crate::events::record::{Draft, Event};
use crate::ids::{Seq, Uid, Word};
use crate::kube::throttle::Lane;
use crate::subject::react::Model;
use crate::subject::stored::Stored;
use crate::telemetry::Metrics;

/// The state of one sort of subjects.
pub trait Kept: Stored<Key: Send + Sync + 'static> + Model<Settings: Send + Sync> + Debug + Send + Sync + 'static {
    /// What waits of the observations of one object.
    type Observed: Observed<Self>;
    /// One thing that came in.
    type Fact: Fact<Self>;
    /// The newest complete lists, as they bear on what only a write of ours showed.
    type Lists: Lists<Self>;
    /// Who else hears of a subject's states.
    type Beside: Clone + Send + Sync + 'static;
    /// What is counted over all of them.
    type Tally: Default + Send;

    /// The life of the process that it holds for.
    fn incarnation(&self) -> u64;

    /// The list of that life that it knows of.
    fn listed(&self) -> Option<Seq>;

    /// Its steps are recorded and not sent.
    fn holds_back(&self) -> bool;

    /// It is neither wanted nor leaves anything behind: it takes up no place.
    fn is_over(&self) -> bool;

    /// Nothing is known of it that a list could differ from.
    fn is_blank(&self) -> bool;

    /// What it was told of nodes.
    fn nodes(&self) -> &BTreeMap<Word, NodeReady>;

    /// The nodes of its pods.
    fn bound_to(&self) -> BTreeSet<Word>;

    /// The objects of it that a list or the watch showed.
    fn shown(&self) -> BTreeSet<Uid>;

    /// Whether this step is without an outcome.
    fn flies(&self, step: Seq) -> bool;

    /// The steps of this life that are without an outcome.
    fn flights(&self) -> Vec<Flying>;

    /// Whether there is any, of whatever life.
    fn has_flights(&self) -> bool;

    /// Whether this tail was asked for and did not come.
    fn awaits_tail(&self, of: &TailOf) -> bool;

    /// The tails that were asked for in this life and did not come.
    fn unread(&self) -> Vec<TailOf>;

    /// Whether a tail is read at this moment, in whatever life it was asked for.
    fn reads(&self) -> bool;

    /// It is shown and not acted on.
    fn is_quarantined(&self) -> bool;

    /// The step that a record decides, and the lane that it waits in.
    fn step_of(event: &Event) -> Option<(What, Lane)>;

    /// Who else is to hear of its state, which is that of this incarnation's list when `listed`.
    fn heard(beside: &Self::Beside, key: &Self::Key, state: &Self, listed: bool);

    /// What a reaction is measured by.
    fn measure(metrics: &Metrics, before: &Self, after: &Self);

    /// One of them has a new state.
    fn count(tally: &mut Self::Tally, before: &Self, after: &Self);
}

/// A step without an outcome.
pub struct Flying {
    pub(super) seq: Seq,
    pub(super) what: What,
    pub(super) lane: Lane,
    /// It was asked back.
    pub(super) revoking: bool,
    /// It was not sent, because the daemon may not act.
    pub(super) withheld: bool,
}

/// The observations of one object that wait: they coalesce.
pub trait Observed<M>: Default + Clone + Debug + Send + Sync {
    /// What came later is added to what came before.
    fn then(&mut self, later: Self);

    /// The events that are new to this state.
    fn news(&self, state: &M) -> Vec<Draft>;
}

/// One thing that came in.
pub trait Fact<M>: Clone + Debug + Send + Sync {
    /// An outcome, or anything else that is an event as it stands.
    fn of_events(events: Vec<Event>) -> Self;

    /// A node that a pod of the subject is on.
    fn of_node(seen: NodeSeen) -> Self;

    /// The events, when it is such.
    fn events(&self) -> Option<&[Event]>;

    /// The events that are new to this state; the first of them is the reaction's input number `place`.
    fn news(&self, state: &M, place: Seq) -> Vec<Draft>;

    /// The reaction that took it in is over: `before` is the state that it began with, and `real` gives an input its number.
    fn taken(&self, _before: &Arc<M>, _real: &dyn Fn(Seq) -> Seq) {}
}

/// Complete lists.
pub trait Lists<M>: Default + Clone + Debug + Send + Sync {
    /// What an outcome makes known and these did not show, though it is not newer: it was gone by then. What they did show was taken
    /// in before, and is among `seen`.
    fn absent(&self, state: &M, seen: &BTreeSet<Uid>) -> Vec<Draft>;
}
