//! Ends and last words: each end is recorded once, what hangs is given up, and tails are asked for before a pod goes.

use super::Planner;
use crate::app::ends::{APP, INSTALL, never_starts};
use crate::app::marks::mark;
use crate::app::state::{Hindered, Host, Pod};
use crate::events::kinds::pod::{ContainerState, Scheduling};
use crate::events::kinds::step::Refusal;
use crate::events::kinds::tail::{TailAsked, TailOf};
use crate::events::kinds::verdict::{EndCause, FailedWhy, NeverStarted, PodEnded, Stage, Verdict, VerdictReached};
use crate::events::record::Event;
use crate::ids::{HostName, Seq, Word};

/// How far the last words of a pod are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastWords {
    /// They are kept, or known not to be had, or there are none.
    Settled,
    /// They were asked for; at most 5 s (the reader's limit).
    Awaited,
}

impl Planner<'_> {
    /// Records what ended, gives up what hangs, and condemns what can never be made.
    pub(super) fn record_ends(&mut self) {
        let app = self.app;
        for (name, host) in &app.hosts {
            for end in &host.unrecorded {
                self.decide_event(Event::PodEnded(end.record(name, end.container.clone(), end.counts())), end.seq);
            }
            match &host.pod {
                Some(pod) if pod.end.is_some() => {
                    self.last_words(name, host, pod, pod.seq);
                }
                Some(pod) if !pod.delete_stands() => self.give_up_if_stuck(name, host, pod),
                Some(_) | None => {}
            }
        }
        self.condemn();
    }

    fn give_up_if_stuck(&mut self, name: &HostName, host: &Host, pod: &Pod) {
        let named = self.want.is_some_and(|want| want.host == *name || want.live_host.as_ref() == Some(name));
        if !named || pod.is_deleting() {
            return;
        }
        // A pod that our own write showed and no watch did has its deadline too: it may have gone before anybody looked.
        let view = pod.view.as_ref();
        let cause = match (view.and_then(never_starts), pod.stage) {
            (Some(never), _) => EndCause::NeverStarted(never),
            // Reported as waiting (see alarms), never the app's failure.
            (None, Stage::Scheduling) if view.is_some_and(|view| view.scheduling == Scheduling::Unschedulable) => {
                mark!("stuck.unschedulable");
                return;
            }
            (None, stage) => match self.stage_limit_us(stage) {
                Some(limit_us) if self.over(pod.stage_since_us, limit_us) => EndCause::Stuck(stage),
                _ => return,
            },
        };
        let container = match pod.stage {
            Stage::Install => INSTALL,
            Stage::Register | Stage::Serving => APP,
            Stage::Scheduling | Stage::Pull | Stage::Terminating => "",
        };
        let end = PodEnded {
            host: name.clone(),
            uid: pod.uid.clone(),
            container: Word::new(container),
            restart: 0,
            cause,
            exit_code: None,
            signal: None,
            reason: pod.waiting_reason(),
            stage: pod.stage,
            node: view.map(|view| view.node.clone()).unwrap_or_default(),
            at_us: self.now_us,
            counted: false,
        };
        mark!("stuck.given_up");
        self.given_up.insert(name.clone(), cause);
        self.decide_event(Event::PodEnded(end), pod.seq);
        self.last_words(name, host, pod, pod.seq);
    }

    /// The deadline of a stage, besides registering, which is the table's.
    fn stage_limit_us(&self, stage: Stage) -> Option<u64> {
        match stage {
            Stage::Scheduling => Some(self.settings.scheduling_us),
            Stage::Pull => Some(self.settings.pull_us),
            Stage::Install => Some(self.settings.install_us),
            Stage::Register | Stage::Serving | Stage::Terminating => None,
        }
    }

    /// A host that has not gone live and whose step is refused for good fails with the refusal.
    fn condemn(&mut self) {
        let app = self.app;
        let Some(want) = self.want.filter(|_| app.confirmed) else { return };
        let Some(host) = app.hosts.get(&want.host) else { return };
        let Some((why, cause)) = refused_for_good(host) else { return };
        if host.pod.is_some() || host.has_failed() || (want.failed && !host.retried) || self.is_live(&want.host) {
            return;
        }
        let reached =
            VerdictReached { host: want.host.clone(), uid: None, verdict: Verdict::Failed(why), rule: Word::new("wanted.refused") };
        self.decide_event(Event::VerdictReached(reached), cause);
        self.condemned = Some(want.host.clone());
    }

    /// Asks for the last words of a pod that is about to go, once; says whether they are settled.
    pub(super) fn last_words(&mut self, name: &HostName, host: &Host, pod: &Pod, cause: Seq) -> LastWords {
        let Some(of) = speaker(name, pod) else { return LastWords::Settled };
        match host.tails.get(&of) {
            Some(tail) if tail.settled => LastWords::Settled,
            Some(_) => LastWords::Awaited,
            None => {
                self.ask_tail(of, cause);
                LastWords::Awaited
            }
        }
    }

    fn ask_tail(&mut self, of: TailOf, cause: Seq) {
        let asked = |draft: &crate::events::record::Draft| matches!(&draft.event, Event::TailAsked(asked) if asked.of == of);
        if !self.decisions.iter().any(asked) {
            self.decide_event(Event::TailAsked(TailAsked { of }), cause);
        }
    }
}

/// Whose last words a pod has: the container that ended or runs; nobody's before one started.
fn speaker(name: &HostName, pod: &Pod) -> Option<TailOf> {
    let view = pod.view.as_ref()?;
    let started = |state: &ContainerState| matches!(state, ContainerState::Running { .. } | ContainerState::Ended(_));
    let (container, state) = if started(&view.app.state) {
        (APP, &view.app.state)
    } else if started(&view.install.state) {
        (INSTALL, &view.install.state)
    } else {
        return None;
    };
    let ended = matches!(state, ContainerState::Ended(_));
    Some(TailOf { host: name.clone(), uid: pod.uid.clone(), container: Word::new(container), ended })
}

/// Why no repetition of the host's last step can succeed, when that is so.
pub(super) fn refused_for_good(host: &Host) -> Option<(FailedWhy, Seq)> {
    let hindrance = host.hindrance?;
    let Hindered::Refused(refusal) = hindrance.what else { return None };
    let why = match refusal {
        Refusal::RuntimeClass => FailedWhy::NeverStarted(NeverStarted::Runtime),
        Refusal::Invalid | Refusal::Policy | Refusal::Foreign | Refusal::Different | Refusal::Source | Refusal::Environment => {
            FailedWhy::Refused(refusal)
        }
        Refusal::Forbidden | Refusal::Quota | Refusal::Webhook | Refusal::Namespace | Refusal::NetworkPolicy => return None,
    };
    Some((why, hindrance.seq))
}
