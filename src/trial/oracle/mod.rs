//! The judge of a trial: what the world saw against the invariants of DESIGN.md, one file an invariant or a small group. Pure: it
//! reads the history alone, and of the log only what the history says became durable; never our fold, our plan or a state of ours.
//!
//! It judges in favour of the daemon wherever the world cannot know what the daemon knew: what it calls broken is broken.

#![expect(clippy::wildcard_enum_match_arm, reason = "a judge is about a few of the many things that happen")]

mod exits;
mod fences;
mod log;
mod once;
mod order;
mod outcomes;
mod owned;
mod pods;
pub mod replay;
mod reports;
mod rest;
mod serving;
mod view;
mod waits;
pub mod words;

#[cfg(test)]
mod tests;

use super::history::{Broken, Happening, Moment, Oracle};
use crate::config::Settings;
use view::View;

/// What the judge knows of the daemon's settings: the promises it is held to.
#[derive(Debug, Clone)]
pub struct Promises {
    /// The world whose answers are to be believed.
    pub(super) world: String,
    /// The instance whose objects are ours.
    pub(super) instance: String,
    /// The namespace of all pods.
    pub(super) namespace: String,
    /// Of our labels and annotations.
    pub(super) label_domain: String,
    /// Every pod's; empty for none.
    pub(super) runtime_class: String,
    /// Own exits within the window that are still revived.
    pub(super) crash_limit: usize,
    /// How long an own exit counts, microseconds.
    pub(super) crash_window_us: i64,
    /// From the app's start to registered, microseconds.
    pub(super) register_us: i64,
    /// From creation through pull and install to the app's start, each, microseconds.
    pub(super) stages_us: [(&'static str, i64); 3],
    /// How long a pod terminates on a node that is not ready before it is forced, microseconds.
    pub(super) force_us: i64,
    /// Counted answers in a row without the app that withdraw it; and when any of them missed most apps.
    pub(super) withdraw_after: (u32, u32),
}

impl Promises {
    /// Those of these settings.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let us = |seconds: u32| i64::from(seconds) * 1_000_000;
        let plan = &settings.plan;
        Self {
            world: settings.world.clone(),
            instance: settings.instance().to_owned(),
            namespace: settings.kubernetes.namespace.clone(),
            label_domain: settings.pod.label_domain.clone(),
            runtime_class: settings.pod.runtime_class.clone(),
            crash_limit: plan.crash_limit as usize,
            crash_window_us: us(plan.crash_window_s),
            register_us: us(plan.register_s),
            stages_us: [("scheduling", us(plan.scheduling_s)), ("pulling its image", us(plan.pull_s)), ("its install", us(plan.install_s))],
            force_us: us(plan.force_s),
            withdraw_after: (plan.withdraw_after, plan.withdraw_after_mass),
        }
    }
}

/// One finding, before it is told: the invariant's number and what is wrong.
type Found = (u8, String);

/// The judge of one trial.
#[derive(Debug)]
pub struct Judge {
    view: View,
    log: log::Log,
    exits: exits::Exits,
    fences: fences::Fences,
    waits: waits::Waits,
}

impl Judge {
    /// Who holds a daemon to these promises.
    #[must_use]
    pub fn new(promises: Promises) -> Self {
        Self {
            view: View::new(promises),
            log: log::Log::default(),
            exits: exits::Exits::default(),
            fences: fences::Fences::default(),
            waits: waits::Waits::default(),
        }
    }
}

impl Oracle for Judge {
    fn see(&mut self, moment: &Moment) -> Vec<Broken> {
        self.view.take(moment);
        let view = &self.view;
        let mut found = self.log.see(view, moment);
        found.extend(self.exits.see(view, moment));
        found.extend(self.fences.see(view, moment));
        found.extend(self.waits.see(view, moment));
        match &moment.what {
            Happening::Requested(entry) if view::is_write(entry) => {
                found.extend(order::judge(view, &self.log, entry));
                found.extend(owned::judge(view, entry));
                found.extend(once::judge(view, entry));
                found.extend(serving::judge(view, entry));
            }
            Happening::Durable { records, .. } => found.extend(outcomes::judge(view, &self.log, records)),
            Happening::Asked { .. } => found.extend(reports::judge(view, moment)),
            Happening::AtRest(at_rest) => found.extend(rest::judge(view, at_rest)),
            _ => {}
        }
        self.view.settle(moment);
        found.into_iter().map(|(invariant, why)| Broken { invariant, moment: moment.number, why }).collect()
    }
}
