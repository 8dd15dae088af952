//! Sessions as the actors keep them.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{Fact, Lists, Observed, shown};
use crate::actors::kept::{Flying, Kept};
use crate::actors::work::{What, lane_of_session};
use crate::events::kinds::pod::NodeReady;
use crate::events::kinds::tail::TailOf;
use crate::events::record::Event;
use crate::ids::{Seq, SessionId, Tenant, Uid, Word};
use crate::kube::throttle::Lane;
use crate::session::state::Session;
use crate::telemetry::Metrics;

/// How many sessions there are that take up a place: wanted, being removed, or with anything left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// All of them.
    pub(super) all: usize,
    /// By tenant.
    pub(super) of_tenant: BTreeMap<Tenant, usize>,
}

/// Whether it takes up a place.
pub(super) fn occupies(session: &Session) -> bool {
    session.is_known() && !session.is_vacant()
}

impl Tally {
    fn add(&mut self, session: &Session) {
        if occupies(session) {
            self.all += 1;
            if let Some(tenant) = session.tenant() {
                *self.of_tenant.entry(tenant.clone()).or_default() += 1;
            }
        }
    }

    fn take(&mut self, session: &Session) {
        if occupies(session) {
            self.all -= 1;
            if let Some(tenant) = session.tenant()
                && let Some(count) = self.of_tenant.get_mut(tenant)
            {
                *count -= 1;
                if *count == 0 {
                    self.of_tenant.remove(tenant);
                }
            }
        }
    }
}

impl Kept for Session {
    type Observed = Observed;
    type Fact = Fact;
    type Lists = Lists;
    type Beside = ();
    type Tally = Tally;

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
        !occupies(self)
    }

    fn is_blank(&self) -> bool {
        !self.has_anything()
    }

    fn nodes(&self) -> &BTreeMap<Word, NodeReady> {
        &self.nodes
    }

    fn bound_to(&self) -> BTreeSet<Word> {
        let view = self.pod.as_ref().and_then(|pod| pod.view.as_ref());
        view.map(|view| &view.node).filter(|node| !node.is_empty()).cloned().into_iter().collect()
    }

    fn shown(&self) -> BTreeSet<Uid> {
        shown(self)
    }

    fn flies(&self, step: Seq) -> bool {
        self.flights.contains_key(&step)
    }

    fn flights(&self) -> Vec<Flying> {
        let flights = self.flights.iter().filter(|(_, flight)| flight.incarnation == self.incarnation);
        let flying = flights.map(|(seq, flight)| Flying {
            seq: *seq,
            what: What::Session(flight.step.clone()),
            lane: lane_of_session(&flight.step),
            revoking: flight.revoking,
            withheld: flight.withheld,
        });
        flying.collect()
    }

    fn has_flights(&self) -> bool {
        !self.flights.is_empty()
    }

    fn awaits_tail(&self, of: &TailOf) -> bool {
        self.tails.get(of).is_some_and(|tail| !tail.settled)
    }

    fn unread(&self) -> Vec<TailOf> {
        let tails = self.tails.iter().filter(|(_, tail)| tail.incarnation == self.incarnation && !tail.settled);
        tails.map(|(of, _)| of.clone()).collect()
    }

    fn reads(&self) -> bool {
        self.tails.values().any(|tail| !tail.settled)
    }

    fn is_quarantined(&self) -> bool {
        self.quarantined
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "one kind decides a step of a session")]
    fn step_of(event: &Event) -> Option<(What, Lane)> {
        match event {
            Event::SessionStepIssued(issued) => Some((What::Session(issued.step.clone()), lane_of_session(&issued.step))),
            _ => None,
        }
    }

    fn heard(_beside: &(), _id: &SessionId, _state: &Self, _listed: bool) {}

    fn measure(_metrics: &Metrics, _before: &Self, _after: &Self) {}

    fn count(tally: &mut Tally, before: &Self, after: &Self) {
        tally.take(before);
        tally.add(after);
    }
}
