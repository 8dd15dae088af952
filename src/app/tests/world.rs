//! One app in its world: what it decides is carried out, lost, delayed or refused as the driver chooses, the process dies when it
//! says so, and every decision is held against what must never happen.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Cluster, Gateway, Life};
use super::story::{Story, name, shown};
use crate::app::react::committed;
use crate::app::report::owed;
use crate::app::rules::Rules;
use crate::app::state::{App, Secret};
use crate::events::kinds::daemon::{IncarnationStarted, Listed};
use crate::events::kinds::operator::{Frozen, RetryAsked, Thawed};
use crate::events::kinds::step::{Outcome, Refusal, Step, StepSettled, StepWithheld};
use crate::events::kinds::tail::{TailKept, TailOf};
use crate::events::kinds::verdict::Verdict;
use crate::events::kinds::want::{WantConfirmed, WantMissing};
use crate::events::record::Event;
use crate::ids::{HostName, Seq, Uid, Word};

const SECOND_US: i64 = 1_000_000;
/// How long a request may still be carried out after nobody waits for it any more.
const LATE_US: i64 = 60 * SECOND_US;

/// A step on its way.
#[derive(Debug, Clone)]
pub(super) struct OnItsWay {
    pub(super) seq: Seq,
    pub(super) step: Step,
}

/// The app's log and state, and the world that it acts on.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) story: Story,
    pub(super) cluster: Cluster,
    pub(super) gateway: Gateway,
    /// Issued, not sent.
    pub(super) queue: Vec<OnItsWay>,
    /// Outcomes that have not come back.
    pub(super) answers: Vec<StepSettled>,
    /// Requests that nobody waits for, and that may still be carried out until then.
    pub(super) late: Vec<(i64, OnItsWay)>,
    pub(super) tails: Vec<TailOf>,
    pub(super) withheld: Vec<Seq>,
    pub(super) incarnation: u64,
    /// The incarnation's first reaction is still to come.
    pub(super) starting: bool,
    pub(super) counted: BTreeSet<(Uid, Word, u32)>,
    pub(super) trace: Vec<String>,
}

impl World {
    pub(super) fn new(found: u16) -> Self {
        let mut world = Self {
            story: Story::new(),
            cluster: Cluster::default(),
            gateway: Gateway::default(),
            queue: Vec::new(),
            answers: Vec::new(),
            late: Vec::new(),
            tails: Vec::new(),
            withheld: Vec::new(),
            incarnation: 1,
            starting: true,
            counted: BTreeSet::new(),
            trace: Vec::new(),
        };
        world.cluster.at(world.story.now_us);
        match found % 8 {
            0 => world.cluster.found(&name("bot-r1"), Life::Running),
            1 => world.cluster.found(&name("bot-r2"), Life::Created),
            _ => {}
        }
        world
    }

    pub(super) fn app(&self) -> &App {
        &self.story.app
    }

    pub(super) fn pass(&mut self, us: i64) {
        self.story.now_us += us;
        self.cluster.at(self.story.now_us);
    }

    pub(super) fn react(&mut self, mut inputs: Vec<Event>) {
        if std::mem::take(&mut self.starting) {
            let started = IncarnationStarted { number: self.incarnation, version: "test".to_owned(), world: "w".to_owned(), acts: true };
            inputs.insert(0, Event::IncarnationStarted(started));
        }
        for input in &inputs {
            self.trace.push(format!("{} > {}", (self.story.now_us - super::story::START_US) / SECOND_US, brief(input)));
        }
        let before = self.story.records.len() + inputs.len();
        let decided = self.story.react(inputs);
        for event in &decided {
            self.trace.push(format!("    {}", shown(event)));
        }
        self.safe(&decided);
        let appended = self.story.records.split_off(before);
        self.story.records.extend(appended.iter().cloned());
        for record in appended {
            self.hand_on(record.header.seq, &record.event);
        }
        if let Some(wake_us) = self.story.wake_us {
            assert!(wake_us > self.story.now_us, "it looks again in the past");
        }
        let again = self.story.clone().react(Vec::new());
        assert!(again.is_empty(), "planned twice: {:?}", again.iter().map(shown).collect::<Vec<_>>());
    }

    fn hand_on(&mut self, seq: Seq, event: &Event) {
        match event {
            Event::StepIssued(_) if self.app().frozen => self.withheld.push(seq),
            Event::StepIssued(issued) => self.queue.push(OnItsWay { seq, step: issued.step.clone() }),
            Event::StepRevoked(revoked) => {
                if let Some(at) = self.queue.iter().position(|one| one.seq == revoked.step) {
                    self.queue.remove(at);
                    self.answer(revoked.step, Outcome::Revoked, None);
                }
            }
            Event::TailAsked(asked) => self.tails.push(asked.of.clone()),
            _ => {}
        }
    }

    pub(super) fn answer(&mut self, step: Seq, outcome: Outcome, object: Option<crate::events::kinds::step::ObjectSeen>) {
        self.answers.push(StepSettled { step, outcome, object, attempts: 1, audit_id: [0; 16], status: 0, took_us: 1 });
    }

    /// Sends the step and brings its answer on its way, or loses one of both.
    fn send(&mut self, at: usize, how: u16) {
        let one = self.queue.remove(at);
        match how % 12 {
            0 => {
                self.cluster.carry_out(one.seq, &one.step);
                self.answer(one.seq, Outcome::Unknown, None);
            }
            1 => {
                self.answer(one.seq, Outcome::Unknown, None);
                self.late.push((self.story.now_us + LATE_US, one));
            }
            2 => self.answer(one.seq, Outcome::Unknown, None),
            3 => self.answer(one.seq, Outcome::Unsent, None),
            4 => self.answer(one.seq, Outcome::Refused(Refusal::Webhook), None),
            5 if matches!(one.step, Step::PutSecret { .. }) => self.answer(one.seq, Outcome::Refused(Refusal::Environment), None),
            5 if matches!(one.step, Step::CreatePod { .. }) => self.answer(one.seq, Outcome::Refused(Refusal::Invalid), None),
            _ => {
                let (outcome, object) = self.cluster.carry_out(one.seq, &one.step);
                self.answer(one.seq, outcome, object);
            }
        }
    }

    /// One exchange with the gateway: what is owed is believed, and its answer is told when it is news.
    pub(super) fn beat(&mut self) -> bool {
        if let Some((host, held)) = owed(&self.story.app, self.is_listed()).map(|(host, held)| (host.clone(), held.verdict)) {
            match held {
                Verdict::Live => self.gateway.live = Some(host),
                Verdict::Failed(_) => {
                    self.gateway.failed.insert(host);
                }
            }
        }
        let app = self.app();
        let Some(mut want) = self.gateway.answer(&self.cluster) else {
            let knows = app.want.is_some() && (app.missing.in_row < 9 || !app.confirmed);
            if knows {
                self.react(vec![Event::WantMissing(WantMissing { answer: 1, mass: false })]);
            }
            return knows;
        };
        let known = app.want.as_ref();
        want.live_host = want.live_host.or_else(|| known.and_then(|known| known.live_host.clone()));
        let same = app.missing.in_row == 0
            && known.is_some_and(|known| {
                known.host == want.host
                    && known.registered == want.registered
                    && known.failed == want.failed
                    && known.live_host == want.live_host
            });
        let waits = app.awaits_answer_after_us(self.story.settings.register_us, self.story.now_us).is_some();
        if same && app.confirmed && !self.starting && !waits {
            return false;
        }
        let confirms = same && (self.starting || !app.confirmed || waits);
        self.react(vec![if confirms { Event::WantConfirmed(WantConfirmed { answer: 1 }) } else { Event::WantSeen(want) }]);
        true
    }

    /// A complete list; what the incarnation has not learned yet comes with it.
    pub(super) fn list(&mut self) {
        let app = self.app();
        let pods: Vec<(HostName, Uid)> =
            app.hosts.iter().filter_map(|(host, known)| Some((host.clone(), known.pod.as_ref()?.uid.clone()))).collect();
        let secrets: Vec<HostName> =
            app.hosts.iter().filter(|(_, known)| known.secret != Secret::Absent).map(|(host, _)| host.clone()).collect();
        let mut facts = self.cluster.list(&pods, &secrets);
        facts.push(Event::Listed(Listed { resource_version: 1, pods: 0 }));
        self.react(facts);
    }

    /// The process dies. What was sent may have been carried out, or may be, or not.
    pub(super) fn crash(&mut self, fate: u16) {
        for (index, one) in (0_u32..).zip(std::mem::take(&mut self.queue)) {
            match fate.rotate_right(index) % 4 {
                0 => drop(self.cluster.carry_out(one.seq, &one.step)),
                1 => self.late.push((self.story.now_us + LATE_US, one)),
                _ => {}
            }
        }
        self.answers.clear();
        self.tails.clear();
        self.withheld.clear();
        self.cluster.watch.clear();
        let mut replayed = App::default();
        committed(&mut replayed, Rules::CURRENT, &self.story.records);
        assert_eq!(replayed, self.story.app, "a replay gives the state");
        self.incarnation += 1;
        self.starting = true;
        self.story.wake_us = None;
        self.trace.push("-- crash".to_owned());
    }

    pub(super) fn is_listed(&self) -> bool {
        !self.starting && self.app().listed.is_some()
    }

    fn deliver(&mut self, events: usize) {
        if self.is_listed() {
            let take = events.min(self.cluster.watch.len());
            let mut facts = coalesced(self.cluster.watch.drain(..take).collect());
            facts.extend(self.news_of_nodes());
            if !facts.is_empty() {
                self.react(facts);
            }
        }
    }

    /// The nodes of known pods are told until they are known.
    pub(super) fn news_of_nodes(&self) -> Vec<Event> {
        let app = self.app();
        let has_pod = |node: &Word| {
            let pods = app.hosts.values().filter_map(|host| host.pod.as_ref());
            pods.filter_map(|pod| pod.view.as_ref()).any(|view| view.node == *node)
        };
        let news = self.cluster.lost_nodes().into_iter().filter(|seen| has_pod(&seen.node) && !app.nodes.contains_key(&seen.node));
        news.map(Event::NodeSeen).collect()
    }

    /// One thing happens.
    pub(super) fn happen(&mut self, (what, pick): (u8, u16)) {
        let at = usize::from(pick);
        match what {
            0..=29 if !self.queue.is_empty() => self.send(at % self.queue.len(), pick >> 8),
            30..=59 if !self.answers.is_empty() && !self.starting => {
                let answer = self.answers.remove(at % self.answers.len());
                self.react(vec![Event::StepSettled(answer)]);
            }
            60..=79 => self.deliver(1 + at % 4),
            80..=89 if !self.tails.is_empty() && !self.starting => {
                let of = self.tails.remove(at % self.tails.len());
                self.react(vec![Event::TailKept(TailKept { of, lines: 1, bytes: 1, parts: 1, cut: false })]);
            }
            90..=129 => {
                let host = pick_host(pick);
                self.cluster.advance(&host);
            }
            130..=144 => self.cluster.harm(&pick_host(pick), pick >> 8),
            145..=149 if !self.late.is_empty() => {
                let (_, one) = self.late.remove(at % self.late.len());
                self.cluster.carry_out(one.seq, &one.step);
            }
            150..=179 => drop(self.beat()),
            180..=194 => match pick % 5 {
                0 => self.gateway.release = 0,
                _ => self.gateway.release = u64::from(pick % 5 % 3) + 1,
            },
            195..=199 => drop(self.gateway.failed.remove(&pick_host(pick))),
            200..=224 => self.elapse(pick),
            225..=231 => self.crash(pick),
            232..=245 if !self.is_listed() || pick % 4 == 0 => self.list(),
            246..=249 if self.is_listed() => self.operate(pick),
            _ => {}
        }
    }

    fn elapse(&mut self, pick: u16) {
        let us = match (pick % 6, self.story.wake_us) {
            (0 | 1, Some(wake_us)) => wake_us - self.story.now_us,
            (2, _) => 1,
            (3, _) => SECOND_US,
            (4, _) => 30 * SECOND_US,
            _ => 300 * SECOND_US + 1,
        };
        self.pass(us);
        let now_us = self.story.now_us;
        self.late.retain(|(until_us, _)| *until_us > now_us);
        if self.is_listed() {
            self.react(Vec::new());
        }
    }

    pub(super) fn operate(&mut self, pick: u16) {
        match pick % 4 {
            0 => self.react(vec![Event::Frozen(Frozen { everything: false })]),
            1 => self.react(vec![Event::Thawed(Thawed { everything: false })]),
            2 => {
                let steps = std::mem::take(&mut self.withheld);
                self.react(steps.into_iter().map(|step| Event::StepWithheld(StepWithheld { step })).collect());
            }
            _ => {
                let host = self.gateway.host();
                self.react(vec![Event::RetryAsked(RetryAsked { host })]);
            }
        }
    }

    pub(super) fn told(&self) -> String {
        self.trace.join("\n")
    }
}

fn pick_host(pick: u16) -> HostName {
    name(["bot-r1", "bot-r2", "bot-r3"][usize::from(pick % 3)])
}

/// As the inbox does it: of one uid the newest view, then that it is gone.
pub(super) fn coalesced(events: Vec<Event>) -> Vec<Event> {
    let mut newest: BTreeMap<Uid, usize> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        if let Event::PodSeen(seen) = event {
            newest.insert(seen.uid.clone(), index);
        }
    }
    let keeps = |index: usize, event: &Event| !matches!(event, Event::PodSeen(seen) if newest.get(&seen.uid) != Some(&index));
    events.into_iter().enumerate().filter(|(index, event)| keeps(*index, event)).map(|(_, event)| event).collect()
}

fn brief(event: &Event) -> String {
    match event {
        Event::PodSeen(seen) => {
            format!(
                "seen {} {} {:?} app={:?} install={:?} deleting={}",
                seen.host, seen.uid, seen.phase, seen.app.state, seen.install.state, seen.deleting
            )
        }
        Event::StepSettled(settled) => {
            format!("settled {} {:?} {:?}", settled.step, settled.outcome, settled.object.as_ref().map(|object| object.uid.as_str()))
        }
        Event::WantSeen(want) => format!(
            "want {} live={:?} registered={} failed={}",
            want.host,
            want.live_host.as_ref().map(|host| host.as_str()),
            want.registered,
            want.failed
        ),
        other => format!("{other:?}"),
    }
}
