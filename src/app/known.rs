//! What the state says of an app, a host or a pod, asked as fold and plan need it. Changes nothing, and knows no time.

use super::state::{App, End, Flight, Host, Missing, Pod, Secret, Want, Work};
use super::table::is_over;
use crate::events::kinds::pod::{ContainerState, Phase};
use crate::events::kinds::step::Step;
use crate::events::kinds::verdict::{EndCause, Stage, Verdict};
use crate::ids::{Seq, Word};

impl End {
    /// Whether it is the process's own end, the only kind that counts (DESIGN.md, invariant 6).
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self.cause, EndCause::AppExit | EndCause::Oom)
    }

    /// Whether the host is to blame for it; if not it is revived without counting.
    #[must_use]
    pub fn own_fault(&self) -> bool {
        self.counts() || matches!(self.cause, EndCause::InstallFailed | EndCause::NeverStarted(_) | EndCause::Stuck(_))
    }
}

impl App {
    /// The want in force: `None` when there never was one, or it is withdrawn.
    #[must_use]
    pub fn wanted(&self, withdraw_after: u32, withdraw_after_mass: u32) -> Option<&Want> {
        self.want.as_ref().filter(|_| !self.missing.withdraws(withdraw_after, withdraw_after_mass))
    }

    /// Whether anything may be stopped: the gateway answered in this incarnation, or an operator asked for it and no want ever
    /// named the app.
    #[must_use]
    pub fn may_stop(&self) -> bool {
        self.confirmed || (self.want.is_none() && self.stop_asked.is_some())
    }

    /// The register deadline, log time, that passed at `now_us` and that no answer has been believed after: only an answer tells
    /// whether the wanted host registered meanwhile.
    #[must_use]
    pub fn awaits_answer_after_us(&self, register_us: u64, now_us: i64) -> Option<i64> {
        let want = self.want.as_ref().filter(|want| !want.registered && !want.failed && want.live_host.as_ref() != Some(&want.host))?;
        let host = self.hosts.get(&want.host).filter(|host| host.verdict.is_none())?;
        let since_us = host.registering_since_us()?;
        let waits = is_over(since_us, register_us, now_us) && !is_over(since_us, register_us, want.answered_us);
        waits.then(|| since_us.saturating_add_unsigned(register_us))
    }

    /// Whether there is nothing to do and nothing to remember.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.want.is_none() && self.hosts.is_empty()
    }
}

impl Missing {
    /// Whether these answers withdraw the app (hosted-apps.md, "Withdrawal").
    #[must_use]
    pub fn withdraws(&self, after: u32, after_mass: u32) -> bool {
        let (in_row, before_mass) = self.ended;
        // What is withdrawn stays so, whatever a later answer misses.
        self.before_mass.max(before_mass) >= after || self.in_row.max(in_row) >= after_mass
    }

    /// Whether the app was absent since a want of it was last believed.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl Host {
    /// The flight of a step of that kind that is not being asked back.
    pub fn flying(&self, is: impl Fn(&Step) -> bool) -> Option<(Seq, &Flight)> {
        self.flights.iter().find(|(_, flight)| !flight.revoking && is(&flight.step)).map(|(seq, flight)| (*seq, flight))
    }

    /// Whether a step of that name was decided and is held back, because the daemon may not act.
    #[must_use]
    pub fn withholds(&self, step: &Step) -> bool {
        self.flights.values().any(|flight| flight.withheld && flight.step.name() == step.name())
    }

    /// Whether its pod is on that node.
    pub(super) fn has_pod_on(&self, node: &Word) -> bool {
        self.pod.as_ref().and_then(|pod| pod.view.as_ref()).is_some_and(|view| view.node == *node)
    }

    /// Whether a verdict says that it failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.verdict.as_ref().is_some_and(|held| matches!(held.verdict, Verdict::Failed(_)))
    }

    /// Whether a live verdict stands.
    #[must_use]
    pub fn says_live(&self) -> bool {
        self.verdict.as_ref().is_some_and(|held| held.verdict == Verdict::Live)
    }

    /// Since when its registering is timed, log time; `None` while it is not.
    #[must_use]
    pub fn registering_since_us(&self) -> Option<i64> {
        self.pod.as_ref().filter(|pod| pod.stage == Stage::Register && pod.runs()).map(|pod| pod.stage_since_us)
    }

    /// Whether a start or revive is under way that has no pod yet.
    #[must_use]
    pub fn is_being_brought(&self) -> bool {
        matches!(self.work, Work::Bringing(_))
            || self.flights.values().any(|flight| matches!(flight.step, Step::PutSecret { .. } | Step::CreatePod { .. }))
    }

    /// Whether nothing is known of it that a later fact could need, when neither wanted nor live.
    #[must_use]
    pub fn is_forgettable(&self) -> bool {
        self.pod.is_none()
            && self.secret == Secret::Absent
            && self.flights.is_empty()
            && self.unrecorded.is_empty()
            && self.doubt_since_us.is_none()
            && self.secret_doubt_since_us.is_none()
            && self.tails.values().all(|tail| tail.settled)
    }
}

impl Pod {
    /// Whether its app container was seen running and has not ended.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.end.is_none() && self.view.as_ref().is_some_and(|view| matches!(view.app.state, ContainerState::Running { .. }))
    }

    /// Whether it was seen being deleted.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.deleting_since_us.is_some()
    }

    /// Whether our delete of it is in flight, or was done.
    #[must_use]
    pub fn delete_stands(&self) -> bool {
        self.delete.is_some_and(|delete| !delete.unanswered)
    }

    /// Whether no process of it runs any more: only then may its object go without a grace.
    #[must_use]
    pub fn process_ended(&self) -> bool {
        let ended = |state: &ContainerState| matches!(state, ContainerState::Ended(_));
        self.end.is_some()
            && self.view.as_ref().is_some_and(|view| matches!(view.phase, Phase::Failed | Phase::Succeeded) || ended(&view.app.state))
    }
}
