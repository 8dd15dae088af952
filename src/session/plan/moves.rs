//! From the state to the table's facts, and from the table's moves to steps.

use super::Planner;
use crate::events::kinds::session::{SessionDoing, SessionObject, SessionStep};
use crate::events::kinds::step::{ObjectSeen, StepRevoked};
use crate::events::record::Event;
use crate::ids::{HostName, Seq, Word};
use crate::session::held::{Held, Known, Shown};
use crate::session::known::{has_surely_ended, is_for_good, is_going};
use crate::session::table::{Facts, Is, Move, Removal, What};
use crate::subject::pod::Pod;

impl Planner<'_> {
    pub(super) fn facts(&mut self) -> Facts {
        let session = self.session;
        let pod = match &session.pod {
            None if session.pod_doubt_since_us.is_some() => Is::Doubtful,
            None => Is::Absent,
            Some(pod) if is_going(pod) => Is::Going,
            Some(pod) if pod.end.is_some() || self.given_up.is_some() => Is::Ended,
            Some(_) => Is::There,
        };
        let removal = match self.removing {
            None => Removal::None,
            Some(removing) if removing.keep_workspace => Removal::Suspend,
            Some(_) => Removal::Delete,
        };
        Facts {
            asked: session.asked_us.is_some(),
            wanted: self.wanted.is_some(),
            removal,
            expired: self.is_expired(pod),
            claim: is(&session.claim),
            pod,
            service: is(&session.service),
            service_differs: session.service.there().and_then(|service| service.view.as_ref()).is_some_and(|view| !view.as_made),
        }
    }

    /// Whether a suspended session has kept its claim for as long as it may; if not, looks again when it will have.
    fn is_expired(&mut self, pod: Is) -> bool {
        let session = self.session;
        let idle = pod == Is::Absent && self.wanted.is_none() && self.removing.is_none() && session.asked_us.is_some();
        let Some(retain_us) = self.settings.retain_us.filter(|_| idle && session.claim.staying().is_some()) else { return false };
        // Suspended by this very pass is suspended from now on.
        let since_us = session.suspended_since_us.unwrap_or(self.wake.now_us);
        let since_us = since_us.max(session.active_us.unwrap_or(since_us));
        self.wake.over(since_us, retain_us)
    }

    /// Turns the table's moves into decisions, minus what is in flight or done.
    pub(super) fn carry_out(&mut self, moves: &[Move]) {
        for one in moves {
            match one.what {
                What::Make | What::Repair => self.make(one),
                What::Remove => self.remove(one),
                What::Read => self.read(one),
            }
        }
    }

    fn make(&mut self, one: &Move) {
        let session = self.session;
        let (Some(wanted), Some(tenant)) = (self.wanted, session.tenant.clone()) else { return };
        let writes = |flight: &crate::session::state::Flight| {
            let (object, doing) = flight.step.act();
            object == one.object && doing != SessionDoing::Read
        };
        if session.flights.values().any(writes) || self.is_hindered(one.object, SessionDoing::Make) {
            return;
        }
        let cause = session.moved.max(wanted.seq);
        let step = match one.object {
            SessionObject::Claim => SessionStep::CreateClaim { name: self.claim_name(), tenant },
            SessionObject::Pod => {
                let Some(name) = self.pod_name() else { return };
                SessionStep::CreatePod { name, tenant, claim: self.claim_name() }
            }
            SessionObject::Service => {
                let seen = session
                    .service
                    .there()
                    .filter(|_| one.what == What::Repair)
                    .map(|service| ObjectSeen { uid: service.uid.clone(), resource_version: service.resource_version });
                SessionStep::PutService { name: self.service_name(), tenant, replaces: seen }
            }
        };
        self.issue(step, one.rule, cause);
    }

    fn remove(&mut self, one: &Move) {
        let session = self.session;
        let cause = |of: Seq| match (self.removing, session.closed) {
            (Some(removing), _) => removing.seq,
            (None, Some(closed)) => closed.seq.max(of),
            (None, None) => of,
        };
        let step = match one.object {
            SessionObject::Pod => {
                let (Some(pod), Some(name)) = (&session.pod, session.pod_name.clone()) else { return };
                let cause = pod.end.as_ref().map_or_else(|| cause(pod.seq), |end| end.seq);
                // What ended keeps until its last words are read, and its end is in the log.
                if !self.last_words_settled(pod) || self.is_hindered(one.object, SessionDoing::Remove) {
                    return;
                }
                let step = SessionStep::DeletePod { name, uid: pod.uid.clone(), grace_s: self.grace_s(pod), forced: false };
                return self.issue(step, one.rule, cause);
            }
            SessionObject::Service => session
                .service
                .there()
                .map(|service| (SessionStep::DeleteService { name: self.service_name(), uid: service.uid.clone() }, cause(service.seq))),
            SessionObject::Claim => session
                .claim
                .there()
                .map(|claim| (SessionStep::DeleteClaim { name: self.claim_name(), uid: claim.uid.clone() }, cause(claim.seq))),
        };
        let Some((step, cause)) = step else { return };
        if !self.is_hindered(one.object, SessionDoing::Remove) {
            self.issue(step, one.rule, cause);
        }
    }

    /// A write that was never answered may still be carried out: one reading after that shows what there is.
    fn read(&mut self, one: &Move) {
        let session = self.session;
        let doubt_since_us = match one.object {
            SessionObject::Claim => session.claim.doubt_since_us,
            SessionObject::Service => session.service.doubt_since_us,
            SessionObject::Pod => session.pod_doubt_since_us,
        };
        let limit_us = self.settings.doubt_us;
        let flies = session.flights.values().any(|flight| flight.step.act().0 == one.object);
        let too_early = doubt_since_us.is_some_and(|since_us| !self.wake.over(since_us, limit_us));
        if flies || too_early || self.is_hindered(one.object, SessionDoing::Read) {
            return;
        }
        let step = match one.object {
            SessionObject::Claim => SessionStep::ReadClaim { name: self.claim_name() },
            SessionObject::Service => SessionStep::ReadService { name: self.service_name() },
            SessionObject::Pod => {
                let Some(name) = self.pod_name() else { return };
                SessionStep::ReadPod { name }
            }
        };
        self.issue(step, one.rule, session.moved);
    }

    /// Asks back what is still to be made of something that is not to be any more.
    pub(super) fn take_back(&mut self) {
        let session = self.session;
        let no_more = |object: SessionObject| match self.removing {
            Some(removing) => object == SessionObject::Pod || !removing.keep_workspace,
            None => self.wanted.is_none() && session.asked_us.is_some(),
        };
        let made = session.flights.iter().filter(|(_, flight)| {
            let (object, doing) = flight.step.act();
            doing == SessionDoing::Make && !flight.revoking && !flight.withheld && no_more(object)
        });
        let cause = self.removing.map_or(session.moved, |removing| removing.seq);
        let back: Vec<Seq> = made.map(|(seq, _)| *seq).collect();
        for step in back {
            self.decide(Event::StepRevoked(StepRevoked { step, rule: Word::new("session.taken_back") }), cause);
        }
    }

    /// A pod that does not end is forced away, once, if whoever asked, or the operator, said after how long: its node may still
    /// write to the claim.
    pub(super) fn force(&mut self) {
        let session = self.session;
        let Some(pod) = &session.pod else { return };
        let asked = self.removing.and_then(|removing| removing.force_after_us).or(self.wanted.and_then(|wanted| wanted.force_after_us));
        let needed = self.removing.is_some() || self.wanted.is_some();
        let after_us = asked.or(self.settings.force_after_us).filter(|_| needed);
        let (Some(since_us), Some(after_us), Some(name)) = (pod.deleting_since_us, after_us, session.pod_name.clone()) else { return };
        let forced = pod.delete.is_some_and(|delete| delete.forced && !delete.unanswered);
        if !forced && self.wake.over(since_us, after_us) && !self.is_hindered(SessionObject::Pod, SessionDoing::Remove) {
            let step = SessionStep::DeletePod { name, uid: pod.uid.clone(), grace_s: 0, forced: true };
            self.issue(step, "session.force", pod.seq);
        }
    }

    /// Whether the next step of that sort has to wait.
    fn is_hindered(&mut self, object: SessionObject, doing: SessionDoing) -> bool {
        let Some(hindrance) = self.session.hindrances.get(&(object, doing)) else { return false };
        let for_good = doing == SessionDoing::Make && self.session.refused(object).is_some_and(|(refusal, _)| is_for_good(refusal));
        self.wake.paused(hindrance.since_us, hindrance.pause_us(for_good, self.settings.waiting_us))
    }

    /// Seconds between TERM and KILL: 0 would take away the object of what may still run, so that is for what has ended.
    fn grace_s(&self, pod: &Pod) -> u32 {
        if has_surely_ended(pod) { 0 } else { self.settings.grace_s }
    }

    /// The pod's name: the one that it has, or the one that the settings give it.
    fn pod_name(&self) -> Option<HostName> {
        let made = || HostName::new(&format!("{}{}", self.settings.pod_prefix, self.id)).ok();
        self.session.pod_name.clone().or_else(made)
    }

    fn claim_name(&self) -> Word {
        let made = || Word::new(&format!("{}{}", self.settings.claim_prefix, self.id));
        self.session.claim.name.clone().unwrap_or_else(made)
    }

    fn service_name(&self) -> Word {
        let made = || Word::new(&format!("{}{}", self.settings.pod_prefix, self.id));
        self.session.service.name.clone().unwrap_or_else(made)
    }
}

fn is<V: Shown>(held: &Held<V>) -> Is {
    match &held.known {
        Known::Present(thing) if thing.is_going() => Is::Going,
        Known::Present(_) => Is::There,
        Known::Absent if held.doubt_since_us.is_none() => Is::Absent,
        Known::Absent | Known::Unknown => Is::Doubtful,
    }
}
