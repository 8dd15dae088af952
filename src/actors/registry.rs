//! Every subject of the incarnation: its committed state, what waits for it, and when it is to look again.
//!
//! A subject at rest is only its state here; an actor exists while there is something to do. One lock, held for moments.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ractor::ActorRef;
use tokio::sync::{Semaphore, mpsc};

use super::facts::{Fact, SeenPod};
use super::inbox::{Full, Inbox, Taken};
use super::subject::Wake;
use super::wheel::Wheel;
use crate::app::state::App;
use crate::config::Limits;
use crate::events::kinds::pod::{GoneHow, NodeReady, NodeSeen, PodGone, SecretSeen};
use crate::events::record::Event;
use crate::ids::{AppId, HostName, PackageDigest, Seq, Word};

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

struct Slots {
    by_app: BTreeMap<AppId, Slot>,
    nodes: BTreeMap<Word, NodeReady>,
    /// What a subject that becomes known now has to learn first.
    started: Event,
    /// The first list of this incarnation.
    listed: Option<Event>,
    /// No fact is taken in any more: the incarnation ends.
    closed: bool,
}

struct Slot {
    state: Arc<App>,
    inbox: Inbox,
    /// The events of a reaction that is not durable yet: taken in again if its actor fails.
    in_hand: Vec<Event>,
    actor: Activity,
    /// Failures of its actor in a row.
    failures: u32,
}

enum Activity {
    Resting,
    /// The supervisor was asked for an actor.
    Asked,
    Active(ActorRef<Wake>),
}

impl Registry {
    /// The subjects that a replay found. `started` is what each learns with its next reaction.
    pub(super) fn new(
        states: BTreeMap<AppId, App>,
        started: Event,
        limits: &Limits,
        wheel: Wheel,
        to_activate: mpsc::UnboundedSender<AppId>,
    ) -> Self {
        let slots = states.into_iter().map(|(app, state)| (app, Slot::new(Arc::new(state), &started, None)));
        let slots = Slots { by_app: slots.collect(), nodes: BTreeMap::new(), started, listed: None, closed: false };
        Self(Arc::new(Inner {
            slots: Mutex::new(slots),
            places: Arc::new(Semaphore::new(limits.inbox as usize)),
            inbox_cap: limits.inbox_subject as usize,
            apps_max: limits.apps as usize,
            wheel,
            to_activate,
        }))
    }

    /// Nothing under it panics half-way through a change, so that a poisoned lock still guards a whole state.
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, app: &AppId, put: impl FnOnce(&mut Inbox) -> Result<(), Full>) -> Result<(), Full> {
        let mut slots = self.slots();
        if slots.closed || (!slots.by_app.contains_key(app) && slots.by_app.len() >= self.0.apps_max) {
            return Err(Full);
        }
        let slot = slots.slot(app);
        put(&mut slot.inbox)?;
        self.wake(app, slot);
        Ok(())
    }

    fn wake(&self, app: &AppId, slot: &mut Slot) {
        match &slot.actor {
            Activity::Active(actor) => {
                // An actor that is ending is seen by its supervisor, which finds the inbox full.
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

    /// A pod is gone.
    pub(super) fn went(&self, app: &AppId, gone: PodGone) {
        let _ = self.post(app, |inbox| {
            inbox.went(gone);
            Ok(())
        });
    }

    /// A complete list: what it shows is posted, what it does not show and is not newer is gone. The first of an incarnation
    /// lets every subject plan.
    pub(super) fn listed(
        &self,
        listed: &Event,
        version: u64,
        mut pods: BTreeMap<AppId, Vec<SeenPod>>,
        spared: &BTreeSet<String>,
        secrets: &[(AppId, SecretSeen)],
    ) {
        let mut slots = self.slots();
        let first = slots.listed.is_none();
        slots.listed = Some(listed.clone());
        for app in pods.keys().chain(secrets.iter().map(|(app, _)| app)) {
            let slot = slots.slot(app);
            slot.inbox.quiet.listed.get_or_insert_with(|| listed.clone());
        }
        for (app, slot) in &mut slots.by_app {
            let shown = pods.remove(app).unwrap_or_default();
            let held: Vec<&SecretSeen> = secrets.iter().filter(|(of, _)| of == app).map(|(_, seen)| seen).collect();
            slot.take_list(version, shown, spared, &held);
            if first {
                slot.inbox.quiet.listed = Some(listed.clone());
            }
            if first || slot.inbox.is_loud() {
                self.wake(app, slot);
            }
        }
    }

    /// A node's condition: told to the apps that have a pod there.
    pub(super) fn node(&self, seen: &NodeSeen) {
        let mut slots = self.slots();
        if slots.nodes.insert(seen.node.clone(), seen.ready) == Some(seen.ready) {
            return;
        }
        for (app, slot) in &mut slots.by_app {
            // A node that is fine is not worth a record, unless it was not before.
            let news = seen.ready != NodeReady::Ready || slot.state.nodes.contains_key(&seen.node);
            if news && slot.state.hosts.values().any(|host| host.is_on(&seen.node)) {
                slot.inbox.take_in(Fact::Node(seen.clone()));
                self.wake(app, slot);
            }
        }
    }

    /// Nodes cannot be watched any more: what is known of them is worth nothing.
    pub(super) fn forget_nodes(&self) {
        self.slots().nodes.clear();
    }

    /// Takes what waits for a subject, and its state. What is taken is kept in hand until [`Registry::commit`].
    pub(super) fn take(&self, app: &AppId) -> Option<(Arc<App>, Taken)> {
        let mut slots = self.slots();
        let slot = slots.by_app.get_mut(app)?;
        let state = Arc::clone(&slot.state);
        let taken = slot.inbox.take(&state);
        slot.in_hand = taken.drafts.iter().map(|draft| draft.event.clone()).collect();
        Some((state, taken))
    }

    /// A reaction is durable: its state is the subject's now, and what it took in is done with.
    pub(super) fn commit(&self, app: &AppId, state: App, learned: bool) {
        let mut slots = self.slots();
        let Slots { by_app, nodes, .. } = &mut *slots;
        let Some(slot) = by_app.get_mut(app) else { return };
        slot.in_hand.clear();
        slot.failures = 0;
        if learned {
            slot.inbox.quiet.started = None;
            slot.inbox.quiet.listed = None;
        }
        for node in state.hosts.values().filter_map(|host| host.node()) {
            // A node that is fine is not worth a record, unless it was not before.
            if let Some(ready) = nodes.get(node)
                && state.nodes.get(node) != Some(ready)
                && (*ready != NodeReady::Ready || state.nodes.contains_key(node))
            {
                slot.inbox.take_in(Fact::Node(NodeSeen { node: node.clone(), ready: *ready }));
            }
        }
        slot.state = Arc::new(state);
    }

    /// The reaction came to nothing: what it took in was no news.
    pub(super) fn nothing_new(&self, app: &AppId) {
        if let Some(slot) = self.slots().by_app.get_mut(app) {
            slot.in_hand.clear();
            slot.failures = 0;
        }
    }

    /// Lets a subject rest until `wake_us`, if nothing came meanwhile; says whether it rests.
    pub(super) fn rest(&self, app: &AppId, wake_us: Option<i64>) -> bool {
        self.0.wheel.set(app, wake_us);
        let mut slots = self.slots();
        let Some(slot) = slots.by_app.get_mut(app) else { return true };
        if slot.inbox.is_loud() {
            return false;
        }
        slot.actor = Activity::Resting;
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
    pub(super) fn failed(&self, app: &AppId, of_log: &App) -> u32 {
        let mut slots = self.slots();
        let Some(slot) = slots.by_app.get_mut(app) else { return 0 };
        slot.failures += 1;
        slot.actor = Activity::Resting;
        let in_hand = std::mem::take(&mut slot.in_hand);
        if *slot.state == *of_log {
            slot.inbox.take_back(in_hand);
        } else {
            slot.inbox.quiet = super::inbox::Quiet::default();
            slot.state = Arc::new(of_log.clone());
        }
        slot.failures
    }

    /// Whether a step's outcome waits for its subject.
    pub(super) fn awaits_outcome(&self, app: &AppId, step: Seq) -> bool {
        self.slots().by_app.get(app).is_some_and(|slot| slot.inbox.has_outcome_of(step))
    }

    /// No deadline wakes a subject any more: the incarnation ends.
    pub(super) fn settle_down(&self) {
        let mut slots = self.slots();
        for (app, slot) in &mut slots.by_app {
            self.0.wheel.set(app, None);
            // One that only waits for steps that are not sent any more has nothing left to do.
            if !slot.inbox.is_loud() && matches!(slot.actor, Activity::Active(_)) {
                slot.actor = Activity::Resting;
            }
        }
    }

    /// Replaces a subject's state by the log's, and forgets what waits: its actor failed too often.
    pub(super) fn replace(&self, app: &AppId, state: App) {
        if let Some(slot) = self.slots().by_app.get_mut(app) {
            slot.state = Arc::new(state);
            slot.inbox = Inbox::default();
            slot.failures = 0;
        }
    }

    /// Asks for a reaction though nothing came: a deadline.
    pub(super) fn nudge(&self, app: &AppId) {
        let mut slots = self.slots();
        if let Some(slot) = slots.by_app.get_mut(app) {
            self.wake(app, slot);
        }
    }

    /// Takes in nothing more.
    pub(super) fn close(&self) {
        self.slots().closed = true;
    }

    /// The first list of this incarnation was taken.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.slots().listed.is_some()
    }

    /// A subject's state as of its last reaction.
    #[must_use]
    pub fn state(&self, app: &AppId) -> Option<Arc<App>> {
        self.slots().by_app.get(app).map(|slot| Arc::clone(&slot.state))
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

    /// The packages that a want or a pod names.
    #[must_use]
    pub fn packages(&self) -> BTreeSet<PackageDigest> {
        let slots = self.slots();
        let states = slots.by_app.values().map(|slot| &slot.state);
        states
            .flat_map(|state| {
                let wanted = state.want.iter().map(|want| want.sha256);
                wanted.chain(state.hosts.values().filter_map(|host| host.sha256))
            })
            .collect()
    }

    /// When a subject looks again, log time.
    #[must_use]
    pub fn looks_again_us(&self, app: &AppId) -> Option<i64> {
        self.0.wheel.get(app)
    }
}

impl Slots {
    fn slot(&mut self, app: &AppId) -> &mut Slot {
        let Self { by_app, started, listed, .. } = self;
        by_app.entry(app.clone()).or_insert_with(|| Slot::new(Arc::default(), started, listed.as_ref()))
    }
}

impl Slot {
    fn new(state: Arc<App>, started: &Event, listed: Option<&Event>) -> Self {
        let mut inbox = Inbox::default();
        inbox.quiet.started = Some(started.clone());
        inbox.quiet.listed = listed.cloned();
        Self { state, inbox, in_hand: Vec::new(), actor: Activity::Resting, failures: 0 }
    }

    /// The differences between what is known and what a list shows.
    fn take_list(&mut self, version: u64, shown: Vec<SeenPod>, spared: &BTreeSet<String>, secrets: &[&SecretSeen]) {
        for (host, known) in &self.state.hosts {
            if let Some(pod) = &known.pod
                && pod.resource_version <= version
                && !spared.contains(host.as_str())
                && !shown.iter().any(|shown| shown.seen.uid == pod.uid)
            {
                let gone = PodGone { host: host.clone(), uid: pod.uid.clone(), resource_version: version, how: GoneHow::Absent };
                self.inbox.went(gone);
            }
            if !matches!(known.secret, crate::app::state::Secret::Absent) && !secrets.iter().any(|seen| seen.host == *host) {
                self.inbox.take_in(Fact::NoSecret(host.clone()));
            }
        }
        for pod in shown {
            self.inbox.saw(pod);
        }
        for seen in secrets {
            self.inbox.take_in(Fact::Secret((*seen).clone()));
        }
    }
}

impl crate::app::state::Host {
    /// The node of its pod.
    fn node(&self) -> Option<&Word> {
        self.pod.as_ref().and_then(|pod| pod.view.as_ref()).map(|view| &view.node).filter(|node| !node.is_empty())
    }

    fn is_on(&self, node: &Word) -> bool {
        self.node() == Some(node)
    }
}

/// A host of an app, for what is kept beside the log.
pub(super) type HostKey = (AppId, HostName);
