//! Ends and last words: each end is recorded once, what hangs or can never be made is given up, and the last lines of what ended are
//! asked for before it goes.

use super::Planner;
use crate::events::kinds::pod::{ContainerState, Scheduling};
use crate::events::kinds::session::{SessionFailed, SessionFault, SessionObject, SessionStage};
use crate::events::kinds::step::Refusal;
use crate::events::kinds::tail::{TailAsked, TailOf};
use crate::events::kinds::verdict::{EndCause, NeverStarted, PodEnded, Stage};
use crate::events::record::Event;
use crate::ids::{Seq, Word};
use crate::session::known::{is_for_good, is_going};
use crate::subject::ends::never_starts;
use crate::subject::pod::Pod;

impl Planner<'_> {
    /// Records what ended. An end of the pod that was wanted is the end of the demand: the next call begins anew.
    pub(super) fn record_ends(&mut self) {
        let session = self.session;
        let Some(name) = &session.pod_name else { return };
        for end in &session.unrecorded {
            self.decide(Event::PodEnded(end.record(name, self.container(&end.container), false)), end.seq);
            if session.closes(&end.uid) {
                self.wanted = None;
            }
        }
    }

    /// Gives up what hangs in a stage, what can never be made, and what takes too long.
    pub(super) fn give_up(&mut self) {
        let session = self.session;
        let Some(wanted) = self.wanted.filter(|_| self.removing.is_none()) else { return };
        if session.is_ready() {
            return;
        }
        let pod = session.pod.as_ref().filter(|pod| pod.end.is_none() && !is_going(pod) && session.ready_since_us.is_none());
        if let Some(pod) = pod
            && let Some(cause) = self.hangs(pod)
        {
            self.end_hung(pod, cause);
            // What is wanted after that pod is still wanted, and may itself be over.
            if self.wanted.is_none() {
                return;
            }
        }
        let objects = [SessionObject::Claim, SessionObject::Pod, SessionObject::Service].into_iter();
        let refused = objects.filter_map(|object| Some((object, session.refused(object)?))).find(|(_, (refusal, _))| is_for_good(*refusal));
        if let Some((object, (refusal, cause))) = refused {
            let stage = if object == SessionObject::Claim { SessionStage::Claim } else { SessionStage::Pod };
            self.fail(SessionFault::Refused(refusal), stage, "session.refused", cause);
        } else if session.claim_is_anothers() {
            let cause = session.claim.there().map_or(wanted.seq, |claim| claim.seq);
            self.fail(SessionFault::Refused(Refusal::Foreign), SessionStage::Claim, "session.other_tenant", cause);
        } else if self.wake.over(wanted.since_us, self.settings.provision_us) {
            let stage = match session.stage() {
                SessionStage::Scheduling | SessionStage::Pull | SessionStage::Starting if self.given_up.is_some() => SessionStage::Pod,
                stage @ (SessionStage::Policy
                | SessionStage::Claim
                | SessionStage::Pod
                | SessionStage::Scheduling
                | SessionStage::Pull
                | SessionStage::Starting) => stage,
            };
            self.fail(SessionFault::TooLong, stage, "session.too_long", session.moved.max(wanted.seq));
        }
    }

    fn fail(&mut self, fault: SessionFault, stage: SessionStage, rule: &str, cause: Seq) {
        self.decide(Event::SessionFailed(SessionFailed { fault, stage, rule: Word::new(rule) }), cause);
        self.wanted = None;
    }

    /// Why a pod that has not been ready never will be; if that is not known yet, looks again when its stage is over.
    fn hangs(&mut self, pod: &Pod) -> Option<EndCause> {
        let view = pod.view.as_ref();
        if let Some(never) = view.and_then(never_starts) {
            return Some(EndCause::NeverStarted(never));
        }
        let limit_us = match pod.stage {
            Stage::Scheduling => self.settings.scheduling_us,
            Stage::Pull | Stage::Install => self.settings.pull_us,
            Stage::Register | Stage::Serving => self.settings.starting_us,
            Stage::Terminating => return None,
        };
        let unschedulable = pod.stage == Stage::Scheduling && view.is_some_and(|view| view.scheduling == Scheduling::Unschedulable);
        let cause = if unschedulable { EndCause::NeverStarted(NeverStarted::Unschedulable) } else { EndCause::Stuck(pod.stage) };
        self.wake.over(pod.stage_since_us, limit_us).then_some(cause)
    }

    fn end_hung(&mut self, pod: &Pod, cause: EndCause) {
        let Some(name) = &self.session.pod_name else { return };
        let started = matches!(pod.stage, Stage::Register | Stage::Serving);
        let end = PodEnded {
            host: name.clone(),
            uid: pod.uid.clone(),
            container: if started { self.settings.container.clone() } else { Word::default() },
            restart: 0,
            cause,
            exit_code: None,
            signal: None,
            reason: pod.waiting_reason(),
            stage: pod.stage,
            node: pod.view.as_ref().map(|view| view.node.clone()).unwrap_or_default(),
            at_us: self.wake.now_us,
            counted: false,
        };
        self.decide(Event::PodEnded(end), pod.seq);
        self.given_up = Some(cause);
        if self.session.closes(&pod.uid) {
            self.wanted = None;
        }
    }

    /// The container by its name in the pod; empty when none ended.
    fn container(&self, ended: &Word) -> Word {
        if ended.is_empty() { Word::default() } else { self.settings.container.clone() }
    }

    /// Whether the last lines of a pod that ended are kept, or known not to be had, or are nobody's; asks for them once. What we
    /// stopped ourselves has nothing to say.
    pub(super) fn last_words_settled(&mut self, pod: &Pod) -> bool {
        let cause = self.given_up.or(pod.end.as_ref().map(|end| end.cause));
        let Some(of) = self.speaker(pod).filter(|_| cause.is_some_and(|cause| cause != EndCause::DeletedByUs)) else { return true };
        match self.session.tails.get(&of) {
            Some(tail) => tail.settled,
            None => {
                self.decide(Event::TailAsked(TailAsked { of }), pod.seq);
                false
            }
        }
    }

    fn speaker(&self, pod: &Pod) -> Option<TailOf> {
        let ended = match pod.view.as_ref()?.app.state {
            ContainerState::Ended(_) => true,
            ContainerState::Running { .. } => false,
            ContainerState::Absent | ContainerState::Waiting { .. } => return None,
        };
        let host = self.session.pod_name.clone()?;
        Some(TailOf { host, uid: pod.uid.clone(), container: self.settings.container.clone(), ended })
    }
}
