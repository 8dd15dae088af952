//! Apps as the actors keep them: what the registry holds of one, and what lists of pods and Secrets tell all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::{Fact, LastList, Observed, SeenPod, Shown, ShownSecrets, seen_pods};
use super::inbox::{Batch, Inbox};
use super::kept::{Flying, Kept};
use super::registry::Registry;
use super::reports::Reports;
use super::slot::Slot;
use super::work::{What, lane_of};
use crate::app::state::{App, Host};
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::pod::{NodeReady, PodGone, SecretSeen};
use crate::events::kinds::step::StepIssued;
use crate::events::kinds::tail::TailOf;
use crate::events::kinds::verdict::Stage;
use crate::events::record::Event;
use crate::ids::{AppId, HostName, PackageDigest, Seq, Uid, Word};
use crate::kube::throttle::Lane;
use crate::telemetry::Metrics;

impl Kept for App {
    type Observed = Observed;
    type Fact = Fact;
    type Lists = Option<LastList>;
    type Beside = Reports;
    type Tally = ();

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn listed(&self) -> Option<Seq> {
        self.listed
    }

    fn holds_back(&self) -> bool {
        !self.acts || self.frozen
    }

    fn is_over(&self) -> bool {
        self.missing.any() && self.hosts.values().all(Host::is_forgettable)
    }

    fn is_blank(&self) -> bool {
        self.hosts.is_empty()
    }

    fn nodes(&self) -> &BTreeMap<Word, NodeReady> {
        &self.nodes
    }

    fn bound_to(&self) -> BTreeSet<Word> {
        self.hosts.values().filter_map(Host::node).cloned().collect()
    }

    fn shown(&self) -> BTreeSet<Uid> {
        seen_pods(self)
    }

    fn flies(&self, step: Seq) -> bool {
        self.hosts.values().any(|host| host.flights.contains_key(&step))
    }

    fn flights(&self) -> Vec<Flying> {
        let flights = self.hosts.values().flat_map(|host| &host.flights).filter(|(_, flight)| flight.incarnation == self.incarnation);
        let flying = flights.map(|(seq, flight)| Flying {
            seq: *seq,
            what: What::Step(flight.step.clone()),
            lane: lane_of(&flight.step, flight.purpose),
            revoking: flight.revoking,
            withheld: flight.withheld,
        });
        flying.collect()
    }

    fn has_flights(&self) -> bool {
        self.hosts.values().any(|host| !host.flights.is_empty())
    }

    fn awaits_tail(&self, of: &TailOf) -> bool {
        self.hosts.get(&of.host).and_then(|host| host.tails.get(of)).is_some_and(|tail| !tail.settled)
    }

    fn unread(&self) -> Vec<TailOf> {
        let tails = self.hosts.values().flat_map(|host| &host.tails);
        tails.filter(|(_, tail)| tail.incarnation == self.incarnation && !tail.settled).map(|(of, _)| of.clone()).collect()
    }

    fn reads(&self) -> bool {
        self.hosts.values().flat_map(|host| host.tails.values()).any(|tail| !tail.settled)
    }

    fn is_quarantined(&self) -> bool {
        self.quarantined
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "one kind decides a step of an app")]
    fn step_of(event: &Event) -> Option<(What, Lane)> {
        match event {
            Event::StepIssued(StepIssued { step, purpose, .. }) => Some((What::Step(step.clone()), lane_of(step, *purpose))),
            _ => None,
        }
    }

    fn heard(reports: &Reports, app: &AppId, state: &Self, listed: bool) {
        reports.state(app, state, listed);
    }

    /// Stages of a start that are over: each once, when the pod is first seen in a later one.
    fn measure(metrics: &Metrics, before: &Self, after: &Self) {
        for (name, host) in &after.hosts {
            let former = before.hosts.get(name).and_then(|host| host.pod.as_ref());
            if let (Some(former), Some(pod)) = (former, &host.pod)
                && former.uid == pod.uid
                && former.stage < pod.stage
                && former.stage < Stage::Register
            {
                let took_us = pod.stage_since_us.saturating_sub(former.stage_since_us);
                metrics.started(former.stage, u64::try_from(took_us).unwrap_or(0));
            }
        }
    }

    fn count(_tally: &mut (), _before: &Self, _after: &Self) {}
}

impl Host {
    /// The node of its pod.
    pub(super) fn node(&self) -> Option<&Word> {
        self.pod.as_ref().and_then(|pod| pod.view.as_ref()).map(|view| &view.node).filter(|node| !node.is_empty())
    }
}

impl Slot<App> {
    /// Posts what a list of the Secrets showed of it.
    fn take_secrets(&mut self, list: ShownSecrets) {
        if !self.is_blank() || !list.secrets.is_empty() {
            self.inbox.take_in(Fact::Secrets(list));
        }
    }

    /// Posts what a list of the pods showed of it.
    fn take_list(&mut self, shown: Vec<SeenPod>, list: Shown) {
        if self.is_blank() && shown.is_empty() {
            return;
        }
        for pod in shown {
            self.inbox.observe(pod.seen.uid.clone(), Observed::seen(pod));
        }
        self.inbox.take_in(Fact::List(list));
    }
}

fn packages<'a>(observed: impl Iterator<Item = &'a Observed>) -> impl Iterator<Item = PackageDigest> {
    observed.filter_map(|observed| observed.seen.as_ref()?.seen.sha256)
}

impl Registry<App> {
    /// A pod was seen.
    pub(super) fn saw(&self, app: &AppId, pod: SeenPod) {
        self.observe(app, &pod.seen.uid.clone(), Observed::seen(pod));
    }

    /// A pod is gone; it was last seen so. Both at once, so that they are one reaction.
    pub(super) fn went(&self, app: &AppId, pod: SeenPod, gone: PodGone) {
        self.observe(app, &gone.uid.clone(), Observed { seen: Some(pod), gone: Some(gone) });
    }

    /// A complete list of the pods, by app: each subject compares it with what it knows.
    pub(super) fn listed(&self, version: u64, mut pods: BTreeMap<AppId, Vec<SeenPod>>, odd: &Arc<BTreeSet<String>>) {
        let named: Vec<AppId> = pods.keys().cloned().collect();
        let last = LastList { version, odd: Arc::clone(odd) };
        self.tell_all(
            &named,
            |lists| *lists = Some(last),
            |app, slot| {
                let shown = pods.remove(app).unwrap_or_default();
                let uids: BTreeSet<Uid> = shown.iter().map(|pod| pod.seen.uid.clone()).collect();
                slot.take_list(shown, Shown { version, pods: uids, odd: Arc::clone(odd) });
            },
        );
    }

    /// A complete list of the Secrets, by app; `complete` as [`ShownSecrets::complete`].
    pub(super) fn secrets_listed(&self, version: u64, mut secrets: BTreeMap<AppId, Vec<SecretSeen>>, complete: bool) {
        let named: Vec<AppId> = secrets.keys().cloned().collect();
        self.tell_all(
            &named,
            |_| {},
            |app, slot| {
                slot.take_secrets(ShownSecrets { version, secrets: secrets.remove(app).unwrap_or_default(), complete });
            },
        );
    }

    /// Whether a good answer was recorded for this state in this incarnation: what replay gave still says so of the one before.
    pub(super) fn is_confirmed(&self, state: &App) -> bool {
        state.confirmed && self.slots().owed(state).started.is_none()
    }

    /// The packages that a want in force or a pod names, those that are about to be known included.
    #[must_use]
    pub fn packages(&self, settings: &PlanSettings) -> BTreeSet<PackageDigest> {
        let slots = self.slots();
        let mut named = BTreeSet::new();
        for slot in slots.by_key.values() {
            let want = slot.state.wanted(settings.withdraw_after, settings.withdraw_after_mass);
            named.extend(want.iter().map(|want| want.sha256));
            let is_named = |name: &HostName| want.is_some_and(|want| want.host == *name || want.live_host.as_ref() == Some(name));
            let hosts = slot.state.hosts.iter().filter(|(name, host)| is_named(name) || !host.is_forgettable());
            named.extend(hosts.filter_map(|(_, host)| host.sha256));
            named.extend(packages(Inbox::observed(&slot.inbox)));
            named.extend(packages(slot.in_hand.iter().flat_map(|batch| Batch::observed(batch))));
        }
        named
    }
}
