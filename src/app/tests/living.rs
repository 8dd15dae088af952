//! Liveness and safety over random lives: whatever is wanted, harmed, lost, delayed or crashed, once faults stop exactly the
//! wanted host serves and nothing of the others is left.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::model::Life;
use super::world::{World, coalesced};
use crate::events::kinds::tail::{TailKept, TailOf};
use crate::events::record::Event;
use crate::ids::HostName;

impl World {
    /// Faults stop: everything that is asked for is done, and time passes, until nothing happens any more.
    fn come_to_rest(&mut self) {
        if !self.is_listed() {
            self.list();
        }
        self.operate(1);
        self.operate(2);
        for _ in 0..4_000 {
            if !self.go_on() && !self.wait() {
                return;
            }
        }
        panic!("it does not come to rest:\n{}", self.told());
    }

    fn go_on(&mut self) -> bool {
        let mut went_on = false;
        for one in std::mem::take(&mut self.queue) {
            let (outcome, object) = self.cluster.carry_out(one.seq, &one.step);
            self.answer(one.seq, outcome, object);
            went_on = true;
        }
        let mut facts: Vec<Event> = std::mem::take(&mut self.answers).into_iter().map(Event::StepSettled).collect();
        facts.extend(coalesced(std::mem::take(&mut self.cluster.watch)));
        facts.extend(self.news_of_nodes());
        let kept = |of: TailOf| Event::TailKept(TailKept { of, lines: 1, bytes: 1, parts: 1, cut: false });
        facts.extend(std::mem::take(&mut self.tails).into_iter().map(kept));
        if !facts.is_empty() {
            self.react(facts);
            went_on = true;
        }
        for host in self.cluster.pods.keys().cloned().collect::<Vec<_>>() {
            went_on |= self.cluster.advance(&host);
        }
        self.beat() || went_on
    }

    /// Nothing happens now: until the next look, or the last moment of a late request.
    fn wait(&mut self) -> bool {
        let late_us = self.late.iter().map(|(until_us, _)| *until_us - 1).min();
        let Some(next_us) = [late_us, self.story.wake_us].into_iter().flatten().min() else { return false };
        self.pass((next_us - self.story.now_us).max(0));
        let now_us = self.story.now_us;
        for (until_us, one) in std::mem::take(&mut self.late) {
            if until_us - 1 <= now_us {
                self.trace.push(format!("late {}", one.step.name()));
                self.cluster.carry_out(one.seq, &one.step);
            } else {
                self.late.push((until_us, one));
            }
        }
        self.react(Vec::new());
        true
    }

    /// At rest the cluster is what is wanted, and nothing is without an owner (DESIGN.md, invariant 11).
    fn at_rest(&self) {
        let app = self.app();
        let wanted = (self.gateway.release > 0).then(|| self.gateway.host());
        let failed = wanted.as_ref().is_some_and(|host| self.gateway.failed.contains(host));
        let mut pods: BTreeSet<HostName> = self.cluster.pods.keys().cloned().collect();
        for pod in self.cluster.pods.values() {
            assert!(app.want.is_none() || (pod.life == Life::Running && !pod.deleting), "{pod:?} at rest:\n{}", self.told());
        }
        for host in self.cluster.secrets.keys() {
            assert!(pods.contains(host), "the Secret of {host} is left:\n{}", self.told());
        }
        let unclaimed = app.want.is_none();
        if let Some(host) = &wanted {
            assert_eq!(pods.remove(host), !failed, "the wanted host:\n{}", self.told());
            assert!(failed || self.gateway.live.as_ref() == Some(host), "it went live:\n{}", self.told());
            if failed && self.gateway.live.as_ref() != Some(host) {
                pods.retain(|host| self.gateway.live.as_ref() != Some(host));
            }
        }
        assert!(pods.is_empty() || unclaimed, "{pods:?} are left:\n{}", self.told());
        let named = |host: &HostName| app.want.as_ref().is_some_and(|want| want.host == *host || want.live_host.as_ref() == Some(host));
        for (name, host) in &app.hosts {
            assert!(host.flights.is_empty(), "{name} has steps under way:\n{}", self.told());
            assert!(unclaimed || named(name), "{name} is not forgotten: {host:?}\n{}", self.told());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any life, once faults stop: the wanted host serves, or is reported failed, and nothing else is left.
    #[test]
    fn every_life_comes_to_rest(found in any::<u16>(), life in prop::collection::vec(any::<(u8, u16)>(), 1..150)) {
        let mut world = World::new(found);
        for one in life {
            world.happen(one);
        }
        world.come_to_rest();
        world.at_rest();
    }

    /// A crash at every point of a life that is otherwise without faults: the rest is the same.
    #[test]
    fn a_crash_at_any_point_comes_to_rest(life in prop::collection::vec(any::<(u8, u16)>(), 1..40), fate in any::<u16>()) {
        let mut world = World::new(7);
        for one in life {
            world.happen(one);
            let mut crashed = world.clone();
            crashed.crash(fate);
            crashed.come_to_rest();
            crashed.at_rest();
        }
    }
}
