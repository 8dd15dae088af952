//! The settings as the log has them: what the plan goes by, and everything for the reader. Pure; no setting is a secret.

use super::document::written;
use super::keys::KEYS;
use super::load::tree;
use super::{Plan, Sessions, Settings};
use crate::clock::SECOND_US;
use crate::events::kinds::daemon::{PlanSettings, Setting, SettingsInForce, SettingsTold};
use crate::events::kinds::session::{SessionPlanSettings, SessionSettingsInForce};
use crate::ids::Word;

/// How long an unanswered write may still be carried out: the API server's own request timeout (DESIGN.md, "Whose object is
/// it").
const DOUBT_US: u64 = 60 * SECOND_US;

impl From<&Plan> for PlanSettings {
    fn from(plan: &Plan) -> Self {
        let us = |seconds: u32| u64::from(seconds) * SECOND_US;
        Self {
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
            doubt_us: DOUBT_US,
        }
    }
}

impl From<&Sessions> for SessionPlanSettings {
    fn from(sessions: &Sessions) -> Self {
        let us = |seconds: u32| u64::from(seconds) * SECOND_US;
        let unless_zero = |seconds: u32| (seconds > 0).then(|| us(seconds));
        Self {
            pod_prefix: Word::new(&sessions.pod_prefix),
            claim_prefix: Word::new(&sessions.claim_prefix),
            container: Word::new(&sessions.container),
            scheduling_us: us(sessions.scheduling_s),
            pull_us: us(sessions.pull_s),
            starting_us: us(sessions.starting_s),
            provision_us: us(sessions.provision_s),
            grace_s: sessions.grace_s,
            stuck_us: us(sessions.stuck_s),
            force_after_us: unless_zero(sessions.force_after_s),
            retain_us: unless_zero(sessions.retain_suspended_s),
            waiting_us: us(sessions.waiting_s),
            doubt_us: DOUBT_US,
        }
    }
}

impl Settings {
    /// The record that the following reactions of sessions are decided under.
    #[must_use]
    pub fn sessions_in_force(&self) -> SessionSettingsInForce {
        SessionSettingsInForce { plan: SessionPlanSettings::from(self.sessions.as_ref()) }
    }

    /// The record that the following reactions are decided under.
    #[must_use]
    pub fn in_force(&self) -> SettingsInForce {
        SettingsInForce { plan: PlanSettings::from(&self.plan) }
    }

    /// The record that tells them all. Secrets are in files of their own and URLs may hold none, so that every setting can be told.
    #[must_use]
    pub fn told(&self) -> SettingsTold {
        let tree = tree(self);
        SettingsTold { all: KEYS.iter().map(|key| Setting { key: key.name.to_owned(), value: written(&tree, key) }).collect() }
    }

    /// The instance: whose objects are ours.
    #[must_use]
    pub fn instance(&self) -> &str {
        if self.instance.is_empty() { &self.world } else { &self.instance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_recorded_in_microseconds() {
        let record = Settings::default().in_force();
        expect_test::expect![[r#"
            PlanSettings {
                crash_limit: 5,
                crash_window_us: 600000000,
                scheduling_us: 300000000,
                pull_us: 300000000,
                install_us: 300000000,
                register_us: 120000000,
                drain_s: 45,
                no_fault_first_us: 1000000,
                no_fault_max_us: 60000000,
                no_fault_alarm: 10,
                force_us: 300000000,
                withdraw_after: 2,
                withdraw_after_mass: 5,
                waiting_us: 30000000,
                doubt_us: 60000000,
            }
        "#]]
        .assert_debug_eq(&record.plan);
        let told = Settings::default().told();
        assert_eq!(told.all.len(), KEYS.len());
        let size: usize = told.all.iter().map(|setting| setting.key.len() + setting.value.len()).sum();
        assert!(size < 8 << 10, "the record stays well below the largest payload: {size} bytes");
    }
}
