//! Bringing a host: its environment, then its pod, each step when its turn comes, with the pauses that keep it from spinning.

use super::ends::refused_for_good;
use super::{Planner, after};
use crate::app::marks::mark;
use crate::app::state::{Host, Secret, Work};
use crate::app::table::{Move, What};
use crate::events::kinds::step::{Purpose, Step};
use crate::ids::{HostName, PackageDigest, Seq};

impl Planner<'_> {
    /// Goes on with every start and revive under way whose host is still to run.
    pub(super) fn bring(&mut self, moves: &[Move]) {
        let app = self.app;
        for (name, host) in &app.hosts {
            let Work::Bringing(purpose) = host.work else { continue };
            let named = self.want.is_some_and(|want| want.host == *name || want.live_host.as_ref() == Some(name));
            let stopped = moves.iter().any(|one| one.host == *name && one.what == What::Stop);
            let may = app.confirmed || self.is_live(name);
            if !named || stopped || !may || host.pod.is_some() || self.condemned.as_ref() == Some(name) {
                mark!(if !named {
                    "bring.not_named"
                } else if stopped {
                    "bring.stopped"
                } else if !may {
                    "bring.not_confirmed"
                } else {
                    "bring.has_pod"
                });
                continue;
            }
            if host.flying(|step| matches!(step, Step::PutSecret { .. } | Step::CreatePod { .. })).is_some() {
                mark!("bring.in_flight");
                continue;
            }
            if self.is_hindered(host) {
                mark!("bring.hindered");
                continue;
            }
            let rule = match purpose {
                Purpose::Start => "bring.start",
                Purpose::Revive { .. } | Purpose::Stop => "bring.revive",
            };
            if host.secret_put {
                let step = Step::CreatePod { host: name.clone(), release: host.release, sha256: host.sha256 };
                self.issue(step, purpose, rule, host.moved);
            } else {
                self.put_again(name, host, purpose, rule, host.moved);
            }
        }
    }

    /// Puts the environment for a pod that runs what the log, or else its former pod, says; a revive makes do with a present one.
    pub(super) fn put_again(&mut self, name: &HostName, host: &Host, purpose: Purpose, rule: &str, cause: Seq) {
        let (release, sha256) = self.runs(name, host);
        let revive = matches!(purpose, Purpose::Revive { .. });
        let present_will_do = revive && !matches!(host.secret, Secret::Absent);
        let step = Step::PutSecret { host: name.clone(), release, sha256, present_will_do };
        self.issue(step, purpose, rule, cause);
    }

    /// What the host runs: by the want for the wanted one, by the log for another.
    fn runs(&self, name: &HostName, host: &Host) -> (u64, Option<PackageDigest>) {
        match self.want {
            Some(want) if want.host == *name => (want.release, Some(want.sha256)),
            _ => (host.release, host.sha256),
        }
    }

    /// Whether the host's next step has to wait.
    pub(super) fn is_hindered(&mut self, host: &Host) -> bool {
        let Some(hindrance) = host.hindrance else { return false };
        let for_good = refused_for_good(host).is_some();
        let paused = self.wake.paused(hindrance.since_us, hindrance.pause_us(for_good, self.settings.waiting_us));
        if paused {
            mark!({
                use crate::app::state::Hindered;
                match hindrance.what {
                    Hindered::Refused(_) if for_good => "hindered.for_good",
                    Hindered::Refused(_) => "hindered.refused",
                    Hindered::Unanswered => "hindered.unanswered",
                    Hindered::NameHeld => "hindered.name_held",
                    Hindered::Unsent => "hindered.unsent",
                }
            });
        }
        paused
    }

    /// Revivals without fault in the window.
    pub(super) fn no_fault_tries(&self, host: &Host) -> u32 {
        let young = |at: &&i64| self.now_us < after(**at, self.settings.crash_window_us);
        u32::try_from(host.no_fault_us.iter().filter(young).count()).unwrap_or(u32::MAX)
    }

    /// Whether a revival without fault has to wait: 1 s growing to 60 s.
    pub(super) fn no_fault_pause(&mut self, host: &Host) -> bool {
        let tries = self.no_fault_tries(host);
        let Some(last_us) = host.no_fault_us.last().copied().filter(|_| tries > 0) else { return false };
        let doublings = (tries - 1).min(16);
        let pause_us = (self.settings.no_fault_first_us << doublings).min(self.settings.no_fault_max_us);
        self.wake.paused(last_us, pause_us)
    }
}
