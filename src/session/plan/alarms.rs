//! Alarms are a state: raised while their reason holds, cleared when it does not.

use std::collections::BTreeMap;

use super::Planner;
use crate::events::kinds::pod::Scheduling;
use crate::events::kinds::session::{SessionDoing, SessionObject};
use crate::events::kinds::verdict::{AlarmCleared, AlarmRaised};
use crate::events::record::Event;
use crate::ids::{Seq, Word};
use crate::session::known::is_for_good;
use crate::session::table::Move;
use crate::subject::hindrance::Hindered;

/// Something outside keeps the session from running or from going: quota, a webhook, a right, no node, a step nobody answers.
const WAITING: &str = "waiting";
/// A pod or a claim does not end.
const STUCK_TERMINATING: &str = "stuck_terminating";
/// Objects of a session that nobody asked for in this log.
const UNCLAIMED: &str = "unclaimed";

impl Planner<'_> {
    /// Decides the difference between the alarms that hold and those that stand.
    pub(super) fn settle_alarms(&mut self, moves: &[Move]) {
        let session = self.session;
        let holding: BTreeMap<&'static str, Seq> = self.holding(moves).into_iter().collect();
        for (alarm, cause) in &holding {
            let name = Word::new(alarm);
            if !session.alarms.contains(&name) {
                self.decide(Event::AlarmRaised(AlarmRaised { name, host: session.pod_name.clone() }), *cause);
            }
        }
        for name in &session.alarms {
            if !holding.contains_key(name.as_str()) {
                self.decide(Event::AlarmCleared(AlarmCleared { name: name.clone() }), Seq::NONE);
            }
        }
    }

    fn holding(&mut self, moves: &[Move]) -> Vec<(&'static str, Seq)> {
        let session = self.session;
        let mut alarms = Vec::new();
        if session.asked_us.is_none() && session.has_anything() {
            let pod = session.pod.as_ref().map(|pod| pod.seq);
            let seq = pod.or_else(|| session.claim.there().map(|claim| claim.seq));
            alarms.push((UNCLAIMED, seq.unwrap_or(session.moved)));
        }
        // What is not to be done any more hinders nobody.
        let decided: Vec<_> = self.decisions.iter().filter_map(|draft| act_of(&draft.event)).collect();
        for (act, hindrance) in &session.hindrances {
            let due = moves.iter().any(|one| (one.object, one.what.doing()) == *act) || decided.contains(act);
            let needed = due || session.flights.values().any(|flight| flight.step.act() == *act);
            let (_, doing) = act;
            let waits = match hindrance.what {
                Hindered::Refused(refusal) => !is_for_good(refusal) || *doing != SessionDoing::Make,
                Hindered::Unanswered | Hindered::Unsent => self.wake.over(hindrance.first_us, self.settings.waiting_us),
                Hindered::NameHeld => false,
            };
            if needed && waits {
                alarms.push((WAITING, hindrance.seq));
            }
        }
        for (seq, flight) in session.flights.iter().filter(|(_, flight)| !flight.withheld && flight.step.act().1 != SessionDoing::Read) {
            if self.wake.over(flight.issued_us, self.settings.waiting_us) {
                alarms.push((WAITING, *seq));
            }
        }
        if let Some(pod) = &session.pod {
            let unschedulable = pod.view.as_ref().is_some_and(|view| view.scheduling == Scheduling::Unschedulable && !view.deleting);
            if unschedulable && self.wanted.is_some() {
                alarms.push((WAITING, pod.seq));
            }
            if pod.deleting_since_us.is_some_and(|since_us| self.wake.over(since_us, self.settings.stuck_us)) {
                alarms.push((STUCK_TERMINATING, pod.seq));
            }
        } else if let Some(claim) = session.claim.there()
            && claim.deleting_since_us.is_some_and(|since_us| self.wake.over(since_us, self.settings.stuck_us))
        {
            alarms.push((STUCK_TERMINATING, claim.seq));
        }
        alarms
    }
}

/// What a step that this pass decided is about.
fn act_of(event: &Event) -> Option<(SessionObject, SessionDoing)> {
    let Event::SessionStepIssued(issued) = event else { return None };
    Some(issued.step.act())
}
