//! The plan's settings as the log holds them.

use crate::clock::SECOND_US;
use crate::config::Plan;
use crate::events::kinds::daemon::PlanSettings;

/// The server's own limit of a request: for so long an unanswered write may still be carried out (DESIGN.md).
const DOUBT_S: u32 = 60;

/// The settings of the file in the log's units.
#[must_use]
pub fn plan_settings(plan: &Plan) -> PlanSettings {
    let us = |seconds: u32| u64::from(seconds) * SECOND_US;
    PlanSettings {
        crash_limit: plan.crash_limit,
        crash_window_us: us(plan.crash_window_s),
        scheduling_us: us(plan.scheduling_s),
        pull_us: us(plan.pull_s),
        install_us: us(plan.install_s),
        register_us: us(plan.register_s),
        drain_s: plan.drain_s,
        no_fault_first_us: us(plan.no_fault_first_s),
        no_fault_max_us: us(plan.no_fault_max_s),
        no_fault_alarm: plan.no_fault_alarm,
        force_us: us(plan.force_s),
        withdraw_after: plan.withdraw_after,
        withdraw_after_mass: plan.withdraw_after_mass,
        waiting_us: us(plan.waiting_s),
        doubt_us: us(DOUBT_S),
    }
}
