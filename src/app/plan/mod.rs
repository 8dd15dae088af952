//! What to do about an app: the decision table minus what is in flight or done, and when to look again.
//!
//! Reads the state, the settings and the reaction's time, nothing else; says what it wants and sends nothing.

mod alarms;
mod bring;
mod clean;
mod ends;
mod moves;

use std::collections::BTreeMap;

use super::fold::fold;
use super::marks::mark;
use super::state::{App, Pod, Want};
use super::table::Limits;
use crate::events::kinds::daemon::PlanSettings;
use crate::events::kinds::step::{Purpose, Step, StepIssued, StepRevoked};
use crate::events::kinds::verdict::EndCause;
use crate::events::record::{Draft, Event, Record};
use crate::ids::{HostName, Seq, Word};
use crate::subject::react::{Model, Plan};
use crate::subject::rules::Rules;
use crate::subject::wake::{Wake, after};

impl Model for App {
    type Settings = PlanSettings;

    fn fold(&mut self, rules: Rules, record: &Record) {
        fold(self, rules, record);
    }

    fn plan(&self, settings: &PlanSettings, rules: Rules, now_us: i64) -> Plan {
        plan(self, settings, rules, now_us)
    }
}

/// Plans the app at `now_us`.
///
/// Planning twice without a new fact gives nothing the second time. Nothing is planned before a complete list of this
/// incarnation; until its first good answer of the gateway nothing is stopped, and nothing is brought but a live host.
#[must_use]
pub fn plan(app: &App, settings: &PlanSettings, _rules: Rules, now_us: i64) -> Plan {
    if app.listed.is_none() || app.quarantined {
        mark!("plan.not_listed");
        return Plan::default();
    }
    let mut planner = Planner::new(app, settings, now_us);
    planner.record_ends();
    let moves = planner.decide();
    planner.carry_out(&moves);
    planner.bring(&moves);
    planner.take_back_stops();
    planner.clean_up(&moves);
    planner.force();
    planner.settle_alarms();
    Plan { decisions: planner.decisions, wake_us: planner.wake.at_us }
}

/// One pass over one app.
struct Planner<'a> {
    app: &'a App,
    settings: &'a PlanSettings,
    now_us: i64,
    /// The want in force.
    want: Option<&'a Want>,
    decisions: Vec<Draft>,
    wake: Wake,
    /// Pods that this pass gives up: what hangs in a stage, or never starts.
    given_up: BTreeMap<HostName, EndCause>,
    /// Verdicts of failure that this pass reaches before the table is asked.
    condemned: Option<HostName>,
    /// The hosts that the table keeps.
    kept: Vec<HostName>,
}

impl<'a> Planner<'a> {
    fn new(app: &'a App, settings: &'a PlanSettings, now_us: i64) -> Self {
        Self {
            app,
            settings,
            now_us,
            want: app.wanted(settings.withdraw_after, settings.withdraw_after_mass),
            decisions: Vec::new(),
            wake: Wake::new(now_us),
            given_up: BTreeMap::new(),
            condemned: None,
            kept: Vec::new(),
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            crash_limit: self.settings.crash_limit,
            crash_window_us: self.settings.crash_window_us,
            register_us: self.settings.register_us,
        }
    }

    /// Whether the limit is over; if not, looks again just after it.
    fn over(&mut self, since_us: i64, limit_us: u64) -> bool {
        self.wake.over(since_us, limit_us)
    }

    fn decide_event(&mut self, event: Event, cause: Seq) {
        self.decisions.push(Draft { event, cause });
    }

    /// Decides a step, unless it was decided before and may not be carried out yet.
    fn issue(&mut self, step: Step, purpose: Purpose, rule: &str, cause: Seq) {
        if self.app.hosts.get(step.host()).is_some_and(|host| host.withholds(&step)) {
            return;
        }
        self.decide_event(Event::StepIssued(StepIssued { step, purpose, rule: Word::new(rule) }), cause);
    }

    fn revoke(&mut self, step: Seq, rule: &str, cause: Seq) {
        self.decide_event(Event::StepRevoked(StepRevoked { step, rule: Word::new(rule) }), cause);
    }

    /// Whether the gateway wants or names this host, and it went live once: it is never failed by a deadline.
    fn is_live(&self, name: &HostName) -> bool {
        self.app.want.as_ref().is_some_and(|want| want.live_host.as_ref() == Some(name))
            || self.app.hosts.get(name).is_some_and(|host| host.says_live())
    }

    /// The record that the present want, or its absence, rests on.
    fn want_cause(&self) -> Seq {
        match (&self.app.want, self.want) {
            (_, Some(want)) => want.seq,
            (Some(_), None) => self.app.missing.seq,
            (None, None) => self.app.stop_asked.unwrap_or_default(),
        }
    }

    /// Seconds between TERM and KILL: 0 would take away the object of what still runs, so that is for what has ended.
    fn grace_s(&self, pod: &Pod) -> u32 {
        if pod.process_ended() { 0 } else { self.settings.drain_s }
    }
}
