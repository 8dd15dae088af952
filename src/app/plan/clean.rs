//! What is left when a host is no longer to run: its Secret, doubtful creates, pods that do not end, pods that are not as made.

use super::Planner;
use crate::app::marks::mark;
use crate::app::state::{Host, Pod, Secret};
use crate::app::table::{Move, What};
use crate::events::kinds::pod::NodeReady;
use crate::events::kinds::step::{Purpose, Step};
use crate::ids::{HostName, Word};

impl Planner<'_> {
    /// Removes what a host that is not kept leaves behind; only after a good answer, like every stop.
    pub(super) fn clean_up(&mut self, moves: &[Move]) {
        let app = self.app;
        if !app.may_stop() {
            mark!("clean.may_not_stop");
            return;
        }
        for (name, host) in &app.hosts {
            let moving = moves.iter().any(|one| one.host == *name && matches!(one.what, What::Start | What::Revive { .. }));
            if host.pod.is_none() && !host.flights.is_empty() {
                mark!("clean.in_flight");
            }
            if host.pod.is_some() || !host.flights.is_empty() || moving || self.is_kept(name, host) {
                continue;
            }
            self.read_if_in_doubt(name, host);
            self.remove_secret(name, host);
        }
    }

    /// A pod may still appear by a create that was never answered: the host is clean when one reading after that shows none.
    fn read_if_in_doubt(&mut self, name: &HostName, host: &Host) {
        let Some(since_us) = host.doubt_since_us else { return };
        let limit_us = self.settings.doubt_us;
        if !self.over(since_us, limit_us) {
            mark!("clean.doubt_waits");
        } else if !self.is_hindered(host) {
            self.issue(Step::ReadPod { host: name.clone() }, Purpose::Stop, "clean.doubt", host.moved);
        }
    }

    fn remove_secret(&mut self, name: &HostName, host: &Host) {
        let limit_us = self.settings.doubt_us;
        let step = match (&host.secret, host.secret_doubt_since_us) {
            (Secret::Present { uid, .. }, _) => Step::DeleteSecret { host: name.clone(), uid: uid.clone() },
            (Secret::Absent, None) => return,
            // A put that was never answered may still be carried out.
            (Secret::Absent | Secret::Unknown, Some(since_us)) if !self.over(since_us, limit_us) => {
                mark!("clean.secret_doubt_waits");
                return;
            }
            (Secret::Absent | Secret::Unknown, _) => Step::ReadSecret { host: name.clone() },
        };
        let retry_later = host.hindrance.is_some() && !self.is_hindered_for_bringing(host) && self.is_hindered(host);
        if retry_later {
            mark!("clean.hindered");
        } else {
            self.issue(step, Purpose::Stop, "clean.secret", host.moved);
        }
    }

    /// A refusal to bring the host says nothing about removing what is left of it.
    fn is_hindered_for_bringing(&self, host: &Host) -> bool {
        super::ends::refused_for_good(host).is_some()
    }

    /// Whether a host without a pod is to have one: the wanted one, or the former live one that is still to come back.
    fn is_kept(&self, name: &HostName, host: &Host) -> bool {
        let Some(want) = self.want else { return false };
        let to_come = want.host == *name || host.gone.is_some() || host.is_being_brought();
        to_come && self.kept.contains(name) && !self.has_just_failed(name)
    }

    /// Pods that stay terminating on a node that is not ready are forced away, once; any other long end is an alarm alone.
    pub(super) fn force(&mut self) {
        let app = self.app;
        for (name, host) in &app.hosts {
            let Some(pod) = &host.pod else { continue };
            self.replace_different(name, host, pod);
            let forced = pod.delete.is_some_and(|delete| delete.forced && !delete.unanswered);
            let is_stuck = self.is_stuck_terminating(pod);
            if !is_stuck && pod.deleting_since_us.is_some() {
                mark!("force.waits");
            }
            if !is_stuck || !app.may_stop() || forced {
                continue;
            }
            let node = pod.view.as_ref().map(|view| &view.node).filter(|node| !node.is_empty());
            let lost = |node: &Word| matches!(app.nodes.get(node), Some(NodeReady::NotReady | NodeReady::Gone));
            if node.is_some_and(lost) && !self.is_hindered(host) {
                let revive = pod.delete.map_or_else(|| self.is_live(name), |delete| delete.revive);
                let purpose = if revive { Purpose::Revive { counted: false } } else { Purpose::Stop };
                let step = Step::DeletePod { host: name.clone(), uid: pod.uid.clone(), grace_s: 0, forced: true };
                self.issue(step, purpose, "force.node_not_ready", pod.seq);
            } else {
                mark!("force.node_is_there");
            }
        }
    }

    /// Whether it has been terminating for longer than any drain; if not, looks again when it will have.
    pub(super) fn is_stuck_terminating(&mut self, pod: &Pod) -> bool {
        let limit_us = self.settings.force_us;
        pod.deleting_since_us.is_some_and(|since_us| self.over(since_us, limit_us))
    }

    /// A pod of ours under the name that is not the one to be made: replaced if it never served, else an alarm.
    fn replace_different(&mut self, name: &HostName, host: &Host, pod: &Pod) {
        let is_ended = pod.end.is_some() || self.given_up.contains_key(name);
        let replaceable = pod.different && !pod.delete_stands() && !pod.is_deleting() && !is_ended;
        if replaceable && !self.is_live(name) && self.app.confirmed && !self.is_hindered(host) {
            let step = Step::DeletePod { host: name.clone(), uid: pod.uid.clone(), grace_s: self.grace_s(pod), forced: false };
            self.issue(step, Purpose::Revive { counted: false }, "replace.different", pod.seq);
        }
    }
}
