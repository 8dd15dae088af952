//! Every subject of a sort in the incarnation: its committed state, what waits for it, and when it is to look again.
//!
//! A subject at rest is only its state here; an actor exists while there is something to do. One lock, held for moments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::ActorRef;
use tokio::sync::{Semaphore, mpsc};

use super::inbox::{Batch, Full, Inbox};
use super::kept::{Fact as _, Kept};
use super::slot::{Activity, Slot, Slots};
use super::subject::Wake;
use super::wheel::Wheel;
use crate::app::state::App;
use crate::events::kinds::pod::{NodeReady, NodeSeen};
use crate::events::record::Event;
use crate::ids::{Subject, Uid, Word};

/// All subjects of a sort; cheap to clone, all clones are one.
pub struct Registry<M: Kept = App>(Arc<Inner<M>>);

struct Inner<M: Kept> {
    slots: Mutex<Slots<M>>,
    places: Arc<Semaphore>,
    bounds: Bounds,
    wheel: Wheel<M::Key>,
    /// Subjects that need an actor; read by the supervisor. Unbounded, but a subject is in it once at most.
    to_activate: mpsc::UnboundedSender<Subject>,
}

/// What a registry admits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Facts that wait for one subject.
    pub(super) inbox: usize,
    /// Subjects that are not over.
    pub(super) subjects: usize,
}

// Derived, it would ask the same of the model.
impl<M: Kept> Clone for Registry<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Kept> Registry<M> {
    /// The subjects that a replay found, and those of them whose log cannot be folded. `started` is what each learns with its
    /// next reaction; `places` is what all facts of all sorts share.
    pub(super) fn new(
        states: BTreeMap<M::Key, M>,
        broken: &BTreeSet<M::Key>,
        started: Event,
        (bounds, places): (Bounds, Arc<Semaphore>),
        wheel: Wheel<M::Key>,
        to_activate: mpsc::UnboundedSender<Subject>,
    ) -> Self {
        let mut tally = M::Tally::default();
        let slots = states.into_iter().map(|(key, state)| {
            M::count(&mut tally, &M::default(), &state);
            let is_broken = broken.contains(&key);
            (key, Slot::new(state, is_broken))
        });
        let slots = Slots {
            by_key: slots.collect(),
            nodes: BTreeMap::new(),
            started,
            listed: None,
            lists: M::Lists::default(),
            tally,
            settling: false,
            closed: false,
        };
        Self(Arc::new(Inner { slots: Mutex::new(slots), places, bounds, wheel, to_activate }))
    }

    /// Nothing under it folds or plans, so that nothing under it panics half-way through a change.
    pub(super) fn slots(&self) -> MutexGuard<'_, Slots<M>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, key: &M::Key, put: impl FnOnce(&mut Inbox<M>) -> Result<(), Full>) -> Result<(), Full> {
        self.post_to(&mut self.slots(), key, put)
    }

    fn post_to(&self, slots: &mut Slots<M>, key: &M::Key, put: impl FnOnce(&mut Inbox<M>) -> Result<(), Full>) -> Result<(), Full> {
        let max = self.0.bounds.subjects;
        if slots.closed || (!slots.by_key.contains_key(key) && slots.by_key.len() >= max && slots.living() >= max) {
            return Err(Full);
        }
        let slot = slots.slot(key);
        if slot.quarantined {
            return Ok(());
        }
        put(&mut slot.inbox)?;
        self.wake(key, slot);
        Ok(())
    }

    pub(super) fn wake(&self, key: &M::Key, slot: &mut Slot<M>) {
        match &slot.actor {
            Activity::Active(actor) => {
                // One that is failing is seen by its supervisor, which wakes the next one.
                let _ = actor.cast(Wake);
            }
            Activity::Asked => {}
            Activity::Resting => {
                slot.actor = Activity::Asked;
                let _ = self.0.to_activate.send(M::subject(key));
            }
        }
    }

    /// Offers a fact from outside.
    ///
    /// # Errors
    /// When there is no place for it: the source offers it again.
    pub(super) fn offer(&self, key: &M::Key, fact: M::Fact) -> Result<(), Full> {
        self.offer_to(&mut self.slots(), key, fact)
    }

    /// The same, under the lock.
    pub(super) fn offer_to(&self, slots: &mut Slots<M>, key: &M::Key, fact: M::Fact) -> Result<(), Full> {
        self.post_to(slots, key, |inbox| inbox.admit(fact, self.0.bounds.inbox, &self.0.places))
    }

    /// Brings what was asked for: never refused while the incarnation lasts.
    pub(super) fn bring(&self, key: &M::Key, events: Vec<Event>) {
        let _ = self.post(key, |inbox| {
            inbox.take_in(M::Fact::of_events(events));
            Ok(())
        });
    }

    /// An object was seen, or is gone.
    pub(super) fn observe(&self, key: &M::Key, uid: &Uid, observed: M::Observed) {
        let _ = self.post(key, |inbox| {
            inbox.observe(uid.clone(), observed);
            Ok(())
        });
    }

    /// Lets every subject plan, once in an incarnation: what it knows is of this list.
    pub(super) fn may_plan(&self, listed: Event) {
        self.slots().listed.get_or_insert(listed);
        self.tell_all(&[], |_| {}, |_, slot| slot.inbox.nudge());
    }

    /// Tells every subject, and those that become known by it; with the list that is told, if it is one.
    pub(super) fn tell_all(&self, named: &[M::Key], list: impl FnOnce(&mut M::Lists), mut tell: impl FnMut(&M::Key, &mut Slot<M>)) {
        let mut slots = self.slots();
        if slots.closed {
            return;
        }
        for key in named {
            slots.slot(key);
        }
        list(&mut slots.lists);
        for (key, slot) in slots.by_key.iter_mut().filter(|(_, slot)| !slot.quarantined) {
            tell(key, slot);
            if slot.inbox.has_work() {
                self.wake(key, slot);
            }
        }
    }

    /// A node's condition: told to the subjects that have a pod there.
    pub(super) fn node(&self, seen: &NodeSeen) {
        let mut slots = self.slots();
        slots.nodes.insert(seen.node.clone(), seen.ready);
        for (key, slot) in &mut slots.by_key {
            if slot.node_became(seen) {
                self.wake(key, slot);
            }
        }
    }

    /// A complete list of the nodes: what a pod was bound to and is not in it is gone.
    pub(super) fn nodes_listed(&self, seen: &[NodeSeen]) {
        let mut slots = self.slots();
        let Slots { by_key, nodes, .. } = &mut *slots;
        *nodes = seen.iter().map(|seen| (seen.node.clone(), seen.ready)).collect();
        for (key, slot) in by_key {
            let seen =
                slot.state.bound_to().into_iter().map(|node| NodeSeen { ready: *nodes.get(&node).unwrap_or(&NodeReady::Gone), node });
            if seen.collect::<Vec<_>>().iter().filter(|seen| slot.node_became(seen)).count() > 0 {
                self.wake(key, slot);
            }
        }
    }

    /// Nodes cannot be watched any more: what was known of them is worth nothing.
    pub(super) fn nodes_lost(&self) {
        let mut slots = self.slots();
        slots.nodes.clear();
        for (key, slot) in &mut slots.by_key {
            let known: Vec<Word> = slot.state.bound_to().into_iter().filter(|node| slot.state.nodes().contains_key(node)).collect();
            let told = known.into_iter().map(|node| NodeSeen { node, ready: NodeReady::Unwatched });
            if told.filter(|seen| slot.node_became(seen)).count() > 0 {
                self.wake(key, slot);
            }
        }
    }

    /// Takes what waits for a subject, and its state; `None` when there is nothing to react to. What is taken is kept in hand
    /// until [`Registry::commit`].
    pub(super) fn take(&self, key: &M::Key) -> Option<(Arc<M>, Arc<Batch<M>>)> {
        let mut slots = self.slots();
        let owed = slots.owed(&slots.by_key.get(key)?.state);
        let lists = slots.lists.clone();
        let slot = slots.by_key.get_mut(key).filter(|slot| !slot.quarantined && slot.inbox.has_work())?;
        let mut batch = slot.inbox.take(owed, lists);
        batch.carry = slot.carries_now();
        let batch = Arc::new(batch);
        slot.in_hand = Some(Arc::clone(&batch));
        Some((Arc::clone(&slot.state), batch))
    }

    /// A reaction is durable: its state is the subject's now, and what it took in is done with.
    pub(super) fn commit(&self, key: &M::Key, state: Arc<M>) {
        let mut slots = self.slots();
        slots.set(key, state);
        let Slots { by_key, nodes, .. } = &mut *slots;
        let Some(slot) = by_key.get_mut(key) else { return };
        slot.in_hand = None;
        slot.failures = 0;
        let seen = slot.state.bound_to().into_iter().filter_map(|node| nodes.get(&node).map(|ready| NodeSeen { node, ready: *ready }));
        for seen in seen.collect::<Vec<_>>() {
            slot.node_became(&seen);
        }
    }

    /// The reaction came to nothing: what it took in was no news.
    pub(super) fn nothing_new(&self, key: &M::Key) {
        if let Some(slot) = self.slots().by_key.get_mut(key) {
            slot.in_hand = None;
            slot.failures = 0;
        }
    }

    /// Lets a subject wait until `wake_us`, with its actor or without, unless something came meanwhile; says whether it waits.
    pub(super) fn rest(&self, key: &M::Key, wake_us: Option<i64>, keeps_actor: bool) -> bool {
        let mut slots = self.slots();
        let settling = slots.settling;
        let Some(slot) = slots.by_key.get_mut(key) else { return true };
        if slot.inbox.has_work() {
            return false;
        }
        // Under the lock: a deadline that passes now nudges a subject that is known to wait.
        self.0.wheel.set(key, wake_us.filter(|_| !settling));
        if !keeps_actor {
            slot.actor = Activity::Resting;
        }
        true
    }

    /// The subject has its actor.
    pub(super) fn activated(&self, key: &M::Key, actor: ActorRef<Wake>) {
        if let Some(slot) = self.slots().by_key.get_mut(key) {
            slot.actor = Activity::Active(actor);
            self.wake(key, slot);
        }
    }

    /// The subject's actor failed: its state is the log's now, and what it had in hand waits again, unless that is in the log.
    /// Gives how often it failed in a row.
    pub(super) fn failed(&self, key: &M::Key, of_log: M) -> u32 {
        let mut slots = self.slots();
        slots.set(key, Arc::new(of_log));
        let Some(slot) = slots.by_key.get_mut(key) else { return 0 };
        slot.failures += 1;
        slot.actor = Activity::Resting;
        if let Some(batch) = slot.in_hand.take().filter(|batch| !batch.is_durable()) {
            slot.inbox.put_back(Arc::try_unwrap(batch).unwrap_or_else(|shared| shared.copy()));
        }
        slot.inbox.nudge();
        slot.failures
    }

    /// Whether a step is in flight and its word of that kind has not come.
    pub(super) fn awaits(&self, key: &M::Key, flies: impl Fn(&M) -> bool, is_word: impl Fn(&Event) -> bool) -> bool {
        let slots = self.slots();
        slots.by_key.get(key).is_some_and(|slot| {
            flies(&slot.state) && !slot.inbox.has(&is_word) && !slot.in_hand.as_ref().is_some_and(|batch| batch.has(&is_word))
        })
    }

    /// No deadline wakes a subject any more: the incarnation ends.
    pub(super) fn settle_down(&self) {
        let mut slots = self.slots();
        slots.settling = true;
        for key in slots.by_key.keys() {
            self.0.wheel.set(key, None);
        }
    }

    /// A subject is shown as it is and not acted on any more; what waits for it is forgotten, and found again by the next
    /// incarnation's list and first answer.
    pub(super) fn quarantine(&self, key: &M::Key, mut state: M) {
        state.quarantine();
        let mut slots = self.slots();
        slots.set(key, Arc::new(state));
        if let Some(slot) = slots.by_key.get_mut(key) {
            self.0.wheel.set(key, None);
            slot.inbox = Inbox::default();
            slot.in_hand = None;
            slot.quarantined = true;
        }
    }

    /// Asks for a reaction though nothing came: a deadline, or a start after a failure.
    pub(super) fn nudge(&self, key: &M::Key) {
        if let Some(slot) = self.slots().by_key.get_mut(key).filter(|slot| !slot.quarantined) {
            slot.inbox.nudge();
            self.wake(key, slot);
        }
    }

    /// Takes in nothing more.
    pub(super) fn close(&self) {
        let mut slots = self.slots();
        slots.closed = true;
        for slot in slots.by_key.values_mut() {
            // Whoever waits learns by this that nothing comes any more.
            slot.watched = None;
            slot.inbox = Inbox::default();
            slot.in_hand = None;
        }
    }

    /// The first list of this incarnation was taken, and subjects plan.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.slots().listed.is_some()
    }

    /// A subject's state as of its last reaction.
    #[must_use]
    pub fn state(&self, key: &M::Key) -> Option<Arc<M>> {
        self.slots().by_key.get(key).map(|slot| Arc::clone(&slot.state))
    }

    /// Every subject's state.
    #[must_use]
    pub fn states(&self) -> Vec<(M::Key, Arc<M>)> {
        self.slots().by_key.iter().map(|(key, slot)| (key.clone(), Arc::clone(&slot.state))).collect()
    }

    /// Subjects that have an actor, or are about to.
    #[must_use]
    pub fn active(&self) -> usize {
        self.slots().by_key.values().filter(|slot| !matches!(slot.actor, Activity::Resting)).count()
    }

    /// Subjects with a reaction under way or due.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.slots().by_key.values().filter(|slot| slot.has_work()).count()
    }

    /// When a subject looks again, log time.
    #[must_use]
    pub fn looks_again_us(&self, key: &M::Key) -> Option<i64> {
        self.0.wheel.get(key)
    }
}
