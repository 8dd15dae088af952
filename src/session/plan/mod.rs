//! What to do about a session: the decision table minus what is in flight or done, and when to look again.
//!
//! Reads the state, the settings and the reaction's time, nothing else; says what it wants and sends nothing.

mod alarms;
mod ends;
mod moves;

use super::fold::fold;
use super::state::{Removing, Session, Wanted};
use super::table;
use crate::events::kinds::session::{SessionPlanSettings, SessionRemoved, SessionStep, SessionStepIssued};
use crate::events::kinds::verdict::EndCause;
use crate::events::record::{Draft, Event, Record};
use crate::ids::{Seq, SessionId, Word};
use crate::subject::react::{Model, Plan};
use crate::subject::rules::Rules;
use crate::subject::wake::Wake;

impl Model for Session {
    type Settings = SessionPlanSettings;

    fn fold(&mut self, rules: Rules, record: &Record) {
        fold(self, rules, record);
    }

    fn plan(&self, settings: &SessionPlanSettings, rules: Rules, now_us: i64) -> Plan {
        plan(self, settings, rules, now_us)
    }
}

/// Plans the session at `now_us`. Planning twice without a new fact gives nothing the second time, and nothing is planned before
/// complete lists of this incarnation.
#[must_use]
pub fn plan(session: &Session, settings: &SessionPlanSettings, _rules: Rules, now_us: i64) -> Plan {
    let Some(id) = session.id.as_ref().filter(|_| session.listed.is_some() && !session.quarantined) else { return Plan::default() };
    let mut planner = Planner {
        session,
        id,
        settings,
        wake: Wake::new(now_us),
        wanted: session.wanted.as_ref(),
        removing: session.removing,
        given_up: None,
        decisions: Vec::new(),
    };
    planner.record_ends();
    planner.conclude_removal();
    planner.give_up();
    let moves = table::moves(&planner.facts());
    planner.carry_out(&moves);
    planner.take_back();
    planner.force();
    planner.settle_alarms(&moves);
    Plan { decisions: planner.decisions, wake_us: planner.wake.at_us }
}

/// One pass over one session.
struct Planner<'a> {
    session: &'a Session,
    id: &'a SessionId,
    settings: &'a SessionPlanSettings,
    wake: Wake,
    /// The demand in force: what this very pass closes is as good as closed.
    wanted: Option<&'a Wanted>,
    /// The removal in force, likewise.
    removing: Option<Removing>,
    /// The pod is given up by this pass.
    given_up: Option<EndCause>,
    decisions: Vec<Draft>,
}

impl Planner<'_> {
    fn decide(&mut self, event: Event, cause: Seq) {
        self.decisions.push(Draft { event, cause });
    }

    /// Decides a step, unless it was decided before and may not be carried out yet.
    fn issue(&mut self, step: SessionStep, rule: &str, cause: Seq) {
        if !self.session.withholds(&step) {
            self.decide(Event::SessionStepIssued(SessionStepIssued { step, rule: Word::new(rule) }), cause);
        }
    }

    /// Everything that was to go is certainly gone: what is wanted after that begins now.
    fn conclude_removal(&mut self) {
        let Some(removing) = self.removing else { return };
        if self.session.is_removed(removing.keep_workspace) {
            let removed = SessionRemoved { keep_workspace: removing.keep_workspace };
            self.decide(Event::SessionRemoved(removed), self.session.moved.max(removing.seq));
            self.removing = None;
        }
    }
}
