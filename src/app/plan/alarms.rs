//! Alarms are a state: raised while their reason holds, cleared when it does not.

use std::collections::BTreeMap;

use super::ends::refused_for_good;
use super::{Planner, after};
use crate::app::state::{End, Hindered, Host};
use crate::events::kinds::pod::{PodSeen, Scheduling};
use crate::events::kinds::step::Step;
use crate::events::kinds::verdict::{AlarmCleared, AlarmRaised, Verdict};
use crate::events::record::Event;
use crate::ids::{HostName, Seq, Word};

/// Something outside keeps the app from running: quota, a webhook, no node, too many revivals, a step that nobody answers.
const WAITING: &str = "waiting";
/// A host that went live cannot come back.
const LIVE_NOT_BACK: &str = "live_not_back";
/// A pod does not end.
const STUCK_TERMINATING: &str = "stuck_terminating";
/// A live host's name is held by a pod of ours that is not as made.
const DIFFERENT_POD: &str = "different_pod";
/// Pods of an app that this log has never seen wanted.
const UNCLAIMED: &str = "unclaimed";

/// Each alarm that holds: the host it is about, and the record it rests on.
type Holding = BTreeMap<&'static str, (HostName, Seq)>;

impl Planner<'_> {
    /// Decides the difference between the alarms that hold and those that stand.
    pub(super) fn settle_alarms(&mut self) {
        let app = self.app;
        let mut holding = Holding::new();
        for (name, host) in &app.hosts {
            for (alarm, cause) in self.alarms_of(name, host) {
                holding.entry(alarm).or_insert_with(|| (name.clone(), cause));
            }
        }
        for (alarm, (host, cause)) in &holding {
            let name = Word::new(alarm);
            if !app.alarms.contains_key(&name) {
                self.decide_event(Event::AlarmRaised(AlarmRaised { name, host: Some(host.clone()) }), *cause);
            }
        }
        for name in app.alarms.keys() {
            if !holding.contains_key(name.as_str()) {
                self.decide_event(Event::AlarmCleared(AlarmCleared { name: name.clone() }), Seq::NONE);
            }
        }
    }

    fn alarms_of(&mut self, name: &HostName, host: &Host) -> Vec<(&'static str, Seq)> {
        let mut alarms = Vec::new();
        let live = self.is_live(name) || self.just_reached(name) == Some(Verdict::Live);
        if self.app.want.is_none() && self.app.stop_asked.is_none() && host.pod.is_some() {
            alarms.push((UNCLAIMED, host.pod.as_ref().map_or(Seq::NONE, |pod| pod.seq)));
        }
        if let Some(hindrance) = host.hindrance
            && matches!(hindrance.what, Hindered::Refused(_))
        {
            let name = if refused_for_good(host).is_none() { Some(WAITING) } else { live.then_some(LIVE_NOT_BACK) };
            alarms.extend(name.map(|name| (name, hindrance.seq)));
        }
        if let Some((since_us, cause)) = unanswered_since(host)
            && self.over(since_us, self.settings.waiting_us)
        {
            alarms.push((WAITING, cause));
        }
        if let Some(pod) = &host.pod {
            let unschedulable = |view: &PodSeen| view.scheduling == Scheduling::Unschedulable && !view.deleting;
            if pod.view.as_ref().is_some_and(unschedulable) {
                alarms.push((WAITING, pod.seq));
            }
            if self.is_stuck_terminating(pod) {
                alarms.push((STUCK_TERMINATING, pod.seq));
            }
            if pod.different && live {
                alarms.push((DIFFERENT_POD, pod.seq));
            }
        }
        // What this very pass records or gives up is as good as recorded.
        let fails = |end: &&End| end.own_fault() && !end.counts();
        let given_up = host.pod.as_ref().filter(|_| self.given_up.contains_key(name)).map(|pod| pod.seq);
        let not_back = host.not_back.or_else(|| host.unrecorded.iter().find(fails).map(|end| end.seq)).or(given_up);
        if let Some(cause) = not_back.filter(|_| live) {
            alarms.push((LIVE_NOT_BACK, cause));
        }
        if self.no_fault_tries(host) >= self.settings.no_fault_alarm {
            alarms.push((WAITING, host.moved));
            let window_us = self.settings.crash_window_us;
            let leaves = host.no_fault_us.iter().map(|at| after(*at, window_us)).find(|leaves| *leaves > self.now_us);
            if let Some(leaves_us) = leaves {
                self.wake.at(leaves_us);
            }
        }
        alarms
    }
}

/// Since when a step of the host is unsent or unanswered, over all its tries, and the record that says so. What only reads keeps
/// nothing waiting, and is forgotten when there is something to do.
fn unanswered_since(host: &Host) -> Option<(i64, Seq)> {
    let hindered = host.hindrance.filter(|hindrance| matches!(hindrance.what, Hindered::Unsent | Hindered::Unanswered));
    let hindered = hindered.map(|hindrance| (hindrance.first_us, hindrance.seq));
    let is_read = |step: &Step| matches!(step, Step::ReadPod { .. } | Step::ReadSecret { .. });
    let flying =
        host.flights.iter().filter(|(_, flight)| !flight.withheld && !is_read(&flight.step)).map(|(seq, flight)| (flight.issued_us, *seq));
    hindered.into_iter().chain(flying).min()
}
