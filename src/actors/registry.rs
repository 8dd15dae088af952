//! Every subject of the incarnation: its committed state, what waits for it, and when it is to look again.
//!
//! A subject at rest is only its state here; an actor exists while there is something to do. One lock, held for moments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::ActorRef;
use tokio::sync::{Semaphore, mpsc};

use super::facts::{Fact, LastList, SeenPod, Shown, ShownSecrets};
use super::inbox::{Batch, Full, Inbox};
use super::slot::{Activity, Slot, Slots};
use super::subject::Wake;
use super::wheel::Wheel;
use crate::app::state::App;
use crate::config::Limits;
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::pod::{NodeReady, NodeSeen, PodGone, SecretSeen};
use crate::events::record::Event;
use crate::ids::{AppId, HostName, PackageDigest, Uid, Word};

/// All subjects; cheap to clone, all clones are one.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    slots: Mutex<Slots>,
    places: Arc<Semaphore>,
    inbox_cap: usize,
    apps_max: usize,
    wheel: Wheel,
    /// Subjects that need an actor; read by the supervisor. Unbounded, but a subject is in it once at most.
    to_activate: mpsc::UnboundedSender<AppId>,
}

impl Registry {
    /// The subjects that a replay found, and those of them whose log cannot be folded. `started` is what each learns with its
    /// next reaction.
    pub(super) fn new(
        states: BTreeMap<AppId, App>,
        broken: &BTreeSet<AppId>,
        started: Event,
        limits: &Limits,
        wheel: Wheel,
        to_activate: mpsc::UnboundedSender<AppId>,
    ) -> Self {
        let slots = states.into_iter().map(|(app, state)| {
            let is_broken = broken.contains(&app);
            (app, Slot::new(state, is_broken))
        });
        let slots = Slots {
            by_app: slots.collect(),
            nodes: BTreeMap::new(),
            started,
            listed: None,
            last_list: None,
            settling: false,
            closed: false,
        };
        Self(Arc::new(Inner {
            slots: Mutex::new(slots),
            places: Arc::new(Semaphore::new(limits.inbox as usize)),
            inbox_cap: limits.inbox_subject as usize,
            apps_max: limits.apps as usize,
            wheel,
            to_activate,
        }))
    }

    /// Nothing under it folds or plans, so that nothing under it panics half-way through a change.
    pub(super) fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, app: &AppId, put: impl FnOnce(&mut Inbox) -> Result<(), Full>) -> Result<(), Full> {
        let mut slots = self.slots();
        let max = self.0.apps_max;
        if slots.closed || (!slots.by_app.contains_key(app) && slots.by_app.len() >= max && slots.living() >= max) {
            return Err(Full);
        }
        let slot = slots.slot(app);
        if slot.quarantined {
            return Ok(());
        }
        put(&mut slot.inbox)?;
        self.wake(app, slot);
        Ok(())
    }

    pub(super) fn wake(&self, app: &AppId, slot: &mut Slot) {
        match &slot.actor {
            Activity::Active(actor) => {
                // One that is failing is seen by its supervisor, which wakes the next one.
                let _ = actor.cast(Wake);
            }
            Activity::Asked => {}
            Activity::Resting => {
                slot.actor = Activity::Asked;
                let _ = self.0.to_activate.send(app.clone());
            }
        }
    }

    /// Offers a fact from outside.
    ///
    /// # Errors
    /// When there is no place for it: the source offers it again.
    pub(super) fn offer(&self, app: &AppId, fact: Fact) -> Result<(), Full> {
        self.post(app, |inbox| inbox.admit(fact, self.0.inbox_cap, &self.0.places))
    }

    /// Brings what was asked for: never refused while the incarnation lasts.
    pub(super) fn bring(&self, app: &AppId, events: Vec<Event>) {
        let _ = self.post(app, |inbox| {
            inbox.take_in(Fact::Events(events));
            Ok(())
        });
    }

    /// A pod was seen.
    pub(super) fn saw(&self, app: &AppId, pod: SeenPod) {
        let _ = self.post(app, |inbox| {
            inbox.saw(pod);
            Ok(())
        });
    }

    /// A pod is gone; it was last seen so. Both at once, so that they are one reaction.
    pub(super) fn went(&self, app: &AppId, pod: SeenPod, gone: PodGone) {
        let _ = self.post(app, |inbox| {
            inbox.saw(pod);
            inbox.went(gone);
            Ok(())
        });
    }

    /// A complete list of the pods, by app: each subject compares it with what it knows.
    pub(super) fn listed(&self, version: u64, mut pods: BTreeMap<AppId, Vec<SeenPod>>, odd: &Arc<BTreeSet<String>>) {
        let named: Vec<AppId> = pods.keys().cloned().collect();
        self.tell_all(&named, Some(LastList { version, odd: Arc::clone(odd) }), |app, slot| {
            let shown = pods.remove(app).unwrap_or_default();
            let uids: BTreeSet<Uid> = shown.iter().map(|pod| pod.seen.uid.clone()).collect();
            slot.take_list(shown, Shown { version, pods: uids, odd: Arc::clone(odd) });
        });
    }

    /// A complete list of the Secrets, by app; `complete` as [`ShownSecrets::complete`].
    pub(super) fn secrets_listed(&self, version: u64, mut secrets: BTreeMap<AppId, Vec<SecretSeen>>, complete: bool) {
        let named: Vec<AppId> = secrets.keys().cloned().collect();
        self.tell_all(&named, None, |app, slot| {
            slot.take_secrets(ShownSecrets { version, secrets: secrets.remove(app).unwrap_or_default(), complete });
        });
    }

    /// Lets every subject plan, once in an incarnation: what it knows is of this list.
    pub(super) fn may_plan(&self, listed: Event) {
        self.slots().listed.get_or_insert(listed);
        self.tell_all(&[], None, |_, slot| slot.inbox.nudge());
    }

    /// Tells every subject, and those that become known by it; with the list of pods that is told, if it is one.
    fn tell_all(&self, named: &[AppId], list: Option<LastList>, mut tell: impl FnMut(&AppId, &mut Slot)) {
        let mut slots = self.slots();
        if slots.closed {
            return;
        }
        for app in named {
            slots.slot(app);
        }
        if let Some(list) = list {
            slots.last_list = Some(list);
        }
        for (app, slot) in slots.by_app.iter_mut().filter(|(_, slot)| !slot.quarantined) {
            tell(app, slot);
            if slot.inbox.has_work() {
                self.wake(app, slot);
            }
        }
    }

    /// A node's condition: told to the apps that have a pod there.
    pub(super) fn node(&self, seen: &NodeSeen) {
        let mut slots = self.slots();
        slots.nodes.insert(seen.node.clone(), seen.ready);
        for (app, slot) in &mut slots.by_app {
            if slot.node_became(seen) {
                self.wake(app, slot);
            }
        }
    }

    /// A complete list of the nodes: what a pod was bound to and is not in it is gone.
    pub(super) fn nodes_listed(&self, seen: &[NodeSeen]) {
        let mut slots = self.slots();
        let Slots { by_app, nodes, .. } = &mut *slots;
        *nodes = seen.iter().map(|seen| (seen.node.clone(), seen.ready)).collect();
        for (app, slot) in by_app {
            let seen = slot.bound_to().map(|node| NodeSeen { ready: *nodes.get(&node).unwrap_or(&NodeReady::Gone), node });
            if seen.collect::<Vec<_>>().iter().filter(|seen| slot.node_became(seen)).count() > 0 {
                self.wake(app, slot);
            }
        }
    }

    /// Nodes cannot be watched any more: what was known of them is worth nothing.
    pub(super) fn nodes_lost(&self) {
        let mut slots = self.slots();
        slots.nodes.clear();
        for (app, slot) in &mut slots.by_app {
            let known: Vec<Word> = slot.bound_to().filter(|node| slot.state.nodes.contains_key(node)).collect();
            let told = known.into_iter().map(|node| NodeSeen { node, ready: NodeReady::Unwatched });
            if told.filter(|seen| slot.node_became(seen)).count() > 0 {
                self.wake(app, slot);
            }
        }
    }

    /// Takes what waits for a subject, and its state; `None` when there is nothing to react to. What is taken is kept in hand
    /// until [`Registry::commit`].
    pub(super) fn take(&self, app: &AppId) -> Option<(Arc<App>, Arc<Batch>)> {
        let mut slots = self.slots();
        let owed = slots.owed(&slots.by_app.get(app)?.state);
        let last_list = slots.last_list.clone();
        let slot = slots.by_app.get_mut(app).filter(|slot| !slot.quarantined && slot.inbox.has_work())?;
        let mut batch = slot.inbox.take(owed, last_list);
        batch.carry = slot.carries_now();
        let batch = Arc::new(batch);
        slot.in_hand = Some(Arc::clone(&batch));
        Some((Arc::clone(&slot.state), batch))
    }

    /// A reaction is durable: its state is the subject's now, and what it took in is done with.
    pub(super) fn commit(&self, app: &AppId, state: Arc<App>) {
        let mut slots = self.slots();
        let Slots { by_app, nodes, .. } = &mut *slots;
        let Some(slot) = by_app.get_mut(app) else { return };
        slot.in_hand = None;
        slot.failures = 0;
        slot.state = state;
        let seen = slot.bound_to().filter_map(|node| nodes.get(&node).map(|ready| NodeSeen { node, ready: *ready }));
        for seen in seen.collect::<Vec<_>>() {
            slot.node_became(&seen);
        }
    }

    /// The reaction came to nothing: what it took in was no news.
    pub(super) fn nothing_new(&self, app: &AppId) {
        if let Some(slot) = self.slots().by_app.get_mut(app) {
            slot.in_hand = None;
            slot.failures = 0;
        }
    }

    /// Lets a subject wait until `wake_us`, with its actor or without, unless something came meanwhile; says whether it waits.
    pub(super) fn rest(&self, app: &AppId, wake_us: Option<i64>, keeps_actor: bool) -> bool {
        let mut slots = self.slots();
        let settling = slots.settling;
        let Some(slot) = slots.by_app.get_mut(app) else { return true };
        if slot.inbox.has_work() {
            return false;
        }
        // Under the lock: a deadline that passes now nudges a subject that is known to wait.
        self.0.wheel.set(app, wake_us.filter(|_| !settling));
        if !keeps_actor {
            slot.actor = Activity::Resting;
        }
        true
    }

    /// The subject has its actor.
    pub(super) fn activated(&self, app: &AppId, actor: ActorRef<Wake>) {
        if let Some(slot) = self.slots().by_app.get_mut(app) {
            slot.actor = Activity::Active(actor);
            self.wake(app, slot);
        }
    }

    /// The subject's actor failed: its state is the log's now, and what it had in hand waits again, unless that is in the log.
    /// Gives how often it failed in a row.
    pub(super) fn failed(&self, app: &AppId, of_log: App) -> u32 {
        let mut slots = self.slots();
        let Some(slot) = slots.by_app.get_mut(app) else { return 0 };
        slot.failures += 1;
        slot.actor = Activity::Resting;
        slot.state = Arc::new(of_log);
        if let Some(batch) = slot.in_hand.take().filter(|batch| !batch.is_durable()) {
            slot.inbox.put_back(Arc::try_unwrap(batch).unwrap_or_else(|shared| shared.copy()));
        }
        slot.inbox.nudge();
        slot.failures
    }

    /// Whether a step is in flight and its word of that kind has not come.
    pub(super) fn awaits(&self, app: &AppId, flies: impl Fn(&App) -> bool, is_word: impl Fn(&Event) -> bool) -> bool {
        let slots = self.slots();
        slots.by_app.get(app).is_some_and(|slot| {
            flies(&slot.state) && !slot.inbox.has(&is_word) && !slot.in_hand.as_ref().is_some_and(|batch| batch.has(&is_word))
        })
    }

    /// No deadline wakes a subject any more: the incarnation ends.
    pub(super) fn settle_down(&self) {
        let mut slots = self.slots();
        slots.settling = true;
        for app in slots.by_app.keys() {
            self.0.wheel.set(app, None);
        }
    }

    /// A subject is shown as it is and not acted on any more; what waits for it is forgotten, and found again by the next
    /// incarnation's list and first answer.
    pub(super) fn quarantine(&self, app: &AppId, state: App) {
        if let Some(slot) = self.slots().by_app.get_mut(app) {
            self.0.wheel.set(app, None);
            slot.state = Arc::new(App { quarantined: true, ..state });
            slot.inbox = Inbox::default();
            slot.in_hand = None;
            slot.quarantined = true;
        }
    }

    /// Asks for a reaction though nothing came: a deadline, or a start after a failure.
    pub(super) fn nudge(&self, app: &AppId) {
        if let Some(slot) = self.slots().by_app.get_mut(app).filter(|slot| !slot.quarantined) {
            slot.inbox.nudge();
            self.wake(app, slot);
        }
    }

    /// Takes in nothing more.
    pub(super) fn close(&self) {
        self.slots().closed = true;
    }

    /// The first list of this incarnation was taken, and subjects plan.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.slots().listed.is_some()
    }

    /// A subject's state as of its last reaction.
    #[must_use]
    pub fn state(&self, app: &AppId) -> Option<Arc<App>> {
        self.slots().by_app.get(app).map(|slot| Arc::clone(&slot.state))
    }

    /// Whether a good answer was recorded for this state in this incarnation: what replay gave still says so of the one before.
    pub(super) fn is_confirmed(&self, state: &App) -> bool {
        state.confirmed && self.slots().owed(state).started.is_none()
    }

    /// Every subject's state.
    #[must_use]
    pub fn states(&self) -> Vec<(AppId, Arc<App>)> {
        self.slots().by_app.iter().map(|(app, slot)| (app.clone(), Arc::clone(&slot.state))).collect()
    }

    /// Subjects that have an actor, or are about to.
    #[must_use]
    pub fn active(&self) -> usize {
        self.slots().by_app.values().filter(|slot| !matches!(slot.actor, Activity::Resting)).count()
    }

    /// Subjects with a reaction under way or due.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.slots().by_app.values().filter(|slot| slot.has_work()).count()
    }

    /// The packages that a want in force or a pod names, those that are about to be known included.
    #[must_use]
    pub fn packages(&self, settings: &PlanSettings) -> BTreeSet<PackageDigest> {
        let slots = self.slots();
        let mut named = BTreeSet::new();
        for slot in slots.by_app.values() {
            let want = slot.state.wanted(settings.withdraw_after, settings.withdraw_after_mass);
            named.extend(want.iter().map(|want| want.sha256));
            let is_named = |name: &HostName| want.is_some_and(|want| want.host == *name || want.live_host.as_ref() == Some(name));
            let hosts = slot.state.hosts.iter().filter(|(name, host)| is_named(name) || !host.is_forgettable());
            named.extend(hosts.filter_map(|(_, host)| host.sha256));
            named.extend(slot.inbox.packages());
            named.extend(slot.in_hand.iter().flat_map(|batch| batch.packages()));
        }
        named
    }

    /// When a subject looks again, log time.
    #[must_use]
    pub fn looks_again_us(&self, app: &AppId) -> Option<i64> {
        self.0.wheel.get(app)
    }
}
