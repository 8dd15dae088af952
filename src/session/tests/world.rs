//! Random lives of one session: calls, a cluster that carries out steps truly, late or not at all, answers that are lost, crashes; every
//! decision is held against what must never happen (DESIGN.md, "Invariants" 3, 5, 7), and at rest nothing is left over (11).

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::story::{Story, pod_seen, shape, shown, tenant};
use crate::events::kinds::daemon::{IncarnationStarted, Listed};
use crate::events::kinds::pod::{GoneHow, PodGone, PodSeen};
use crate::events::kinds::session::*;
use crate::events::kinds::step::{ObjectSeen, Outcome, Refusal, StepSettled};
use crate::events::kinds::tail::{TailKept, TailOf};
use crate::events::record::Event;
use crate::ids::{HostName, LogId, RecordId, Seq, Tenant, Uid, Word};
use crate::session::calls::{self, Taken};
use crate::session::news::is_news;
use crate::session::state::Session;
use crate::session::view::{Removed, State, removed, view};
use crate::subject::pod::At;
use crate::subject::react::{committed, look_ahead};
use crate::subject::rules::Rules;

const SECOND_US: i64 = 1_000_000;
const LATE_US: i64 = 60 * SECOND_US;

/// An object on the API server.
#[derive(Debug, Clone)]
struct Thing {
    uid: Uid,
    version: u64,
    step: Option<Seq>,
    tenant: Tenant,
    deleting: bool,
    /// A pod's.
    life: &'static str,
}

#[derive(Debug, Clone)]
struct World {
    story: Story,
    things: BTreeMap<SessionObject, Thing>,
    watch: Vec<Event>,
    queue: Vec<(Seq, SessionStep)>,
    late: Vec<(i64, Seq, SessionStep)>,
    answers: Vec<StepSettled>,
    tails: Vec<TailOf>,
    version: u64,
    uids: u64,
    incarnation: u64,
    starting: bool,
    /// An explicit delete was called, and no create since.
    deleted: bool,
    trace: Vec<String>,
}

impl World {
    fn new() -> Self {
        Self {
            story: Story::new(),
            things: BTreeMap::new(),
            watch: Vec::new(),
            queue: Vec::new(),
            late: Vec::new(),
            answers: Vec::new(),
            tails: Vec::new(),
            version: 0,
            uids: 0,
            incarnation: 1,
            starting: true,
            deleted: false,
            trace: Vec::new(),
        }
    }

    fn session(&self) -> &Session {
        &self.story.session
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn shown(&self, object: SessionObject) -> Event {
        let thing = &self.things[&object];
        let step = thing.step.map(|seq| RecordId { log: LogId([7; 16]), seq });
        let (uid, resource_version, deleting) = (thing.uid.clone(), thing.version, thing.deleting);
        match object {
            SessionObject::Claim => Event::ClaimSeen(ClaimSeen {
                name: Word::new("workspace-session-s1"),
                uid,
                resource_version,
                step,
                tenant: Some(thing.tenant.clone()),
                deleting,
                phase: ClaimPhase::Pending,
            }),
            SessionObject::Service => Event::ServiceSeen(ServiceSeen {
                name: Word::new("pi-session-s1"),
                uid,
                resource_version,
                step,
                tenant: Some(thing.tenant.clone()),
                deleting,
                address: Some("10.96.0.7".parse().expect("an address")),
                as_made: true,
            }),
            SessionObject::Pod => {
                let mut seen = PodSeen { deleting, ..pod_seen(uid, resource_version, step, super::story::START_US) };
                shape(&mut seen, thing.life, super::story::START_US);
                Event::PodSeen(seen)
            }
        }
    }

    fn show(&mut self, object: SessionObject) {
        let version = self.next_version();
        if let Some(thing) = self.things.get_mut(&object) {
            thing.version = version;
            let seen = self.shown(object);
            self.watch.push(seen);
        }
    }

    fn gone_event(object: SessionObject, uid: Uid, resource_version: u64, how: GoneHow) -> Event {
        match object {
            SessionObject::Claim => Event::ClaimGone(ClaimGone { uid, resource_version, how }),
            SessionObject::Service => Event::ServiceGone(ServiceGone { uid, resource_version, how }),
            SessionObject::Pod => {
                let host = HostName::new("pi-session-s1").expect("a name");
                Event::PodGone(PodGone { host, uid, resource_version, how })
            }
        }
    }

    fn drop_thing(&mut self, object: SessionObject) {
        let version = self.next_version();
        if let Some(thing) = self.things.remove(&object) {
            self.watch.push(Self::gone_event(object, thing.uid, version, GoneHow::Deleted));
        }
        // The claim was held by the pod alone.
        if object == SessionObject::Pod && self.things.get(&SessionObject::Claim).is_some_and(|claim| claim.deleting) {
            self.drop_thing(SessionObject::Claim);
        }
    }

    /// Does what a step says, and answers truly.
    fn carry_out(&mut self, seq: Seq, step: &SessionStep) -> (Outcome, Option<ObjectSeen>) {
        let (object, doing) = step.act();
        let seen = |thing: &Thing| ObjectSeen { uid: thing.uid.clone(), resource_version: thing.version };
        match (doing, step) {
            (SessionDoing::Read, _) => match self.things.get(&object) {
                Some(thing) => (Outcome::Done, Some(seen(thing))),
                None => (Outcome::Gone, None),
            },
            (SessionDoing::Remove, SessionStep::DeletePod { uid, grace_s, forced, .. }) => {
                self.delete(object, uid, *grace_s == 0 || *forced)
            }
            (SessionDoing::Remove, SessionStep::DeleteService { uid, .. }) => self.delete(object, uid, true),
            (SessionDoing::Remove, SessionStep::DeleteClaim { uid, .. }) => {
                let mounted = self.things.contains_key(&SessionObject::Pod);
                self.delete(object, uid, !mounted)
            }
            (
                _,
                SessionStep::CreateClaim { tenant, .. } | SessionStep::CreatePod { tenant, .. } | SessionStep::PutService { tenant, .. },
            ) => match self.things.get(&object) {
                Some(thing) if thing.deleting => (Outcome::NameHeld, None),
                Some(thing) => (Outcome::AlreadySo, Some(seen(thing))),
                None => {
                    self.uids += 1;
                    let uid = Uid::new(&format!("uid-{}", self.uids)).expect("a uid");
                    let (step, tenant) = (Some(seq), tenant.clone());
                    self.things.insert(object, Thing { uid, version: 0, step, tenant, deleting: false, life: "created" });
                    self.show(object);
                    (Outcome::Done, Some(seen(&self.things[&object])))
                }
            },
            (_, other) => panic!("no such step: {other:?}"),
        }
    }

    fn delete(&mut self, object: SessionObject, uid: &Uid, at_once: bool) -> (Outcome, Option<ObjectSeen>) {
        let Some(thing) = self.things.get_mut(&object).filter(|thing| thing.uid == *uid) else { return (Outcome::Gone, None) };
        thing.deleting = true;
        if at_once {
            self.drop_thing(object);
        } else {
            self.show(object);
        }
        (Outcome::Done, None)
    }

    fn react(&mut self, mut inputs: Vec<Event>) {
        if std::mem::take(&mut self.starting) {
            let (version, world) = ("test".to_owned(), "w".to_owned());
            inputs.insert(0, Event::IncarnationStarted(IncarnationStarted { number: self.incarnation, version, world, acts: true }));
        }
        // What says nothing new is not recorded.
        let mut ahead = self.session().clone();
        inputs.retain(|event| {
            let news = is_news(&ahead, event);
            look_ahead(&mut ahead, Rules::CURRENT, event, At { seq: Seq::provisional(0), time_us: 0 });
            news
        });
        for input in &inputs {
            self.trace.push(format!("{} > {input:?}", (self.story.now_us - super::story::START_US) / SECOND_US));
        }
        let before = self.story.records.len() + inputs.len();
        let decided = self.story.react(inputs);
        for event in &decided {
            self.trace.push(format!("    {}", shown(event)));
            self.safe(event);
        }
        let appended: Vec<_> = self.story.records[before..].iter().map(|record| (record.header.seq, record.event.clone())).collect();
        for (seq, event) in appended {
            match event {
                Event::SessionStepIssued(issued) => self.queue.push((seq, issued.step)),
                Event::StepRevoked(revoked) => {
                    if let Some(at) = self.queue.iter().position(|(seq, _)| *seq == revoked.step) {
                        self.queue.remove(at);
                        self.answer(revoked.step, Outcome::Revoked, None);
                    }
                }
                Event::TailAsked(asked) => self.tails.push(asked.of),
                _ => {}
            }
        }
        let again = self.story.clone().react(Vec::new());
        assert!(again.is_empty(), "planned twice: {:?}", again.iter().map(shown).collect::<Vec<_>>());
    }

    fn safe(&self, event: &Event) {
        let Event::SessionStepIssued(SessionStepIssued { step, rule }) = event else { return };
        let session = self.session();
        match step {
            SessionStep::DeleteClaim { .. } => assert!(session.removing.is_some_and(|removing| !removing.keep_workspace), "{rule}"),
            SessionStep::CreatePod { .. } => assert!(session.pod.is_none(), "a second pod"),
            SessionStep::DeletePod { grace_s: 0, forced: false, uid, .. } => {
                let told = self.story.records.iter().any(|record| matches!(&record.event, Event::PodEnded(ended) if ended.uid == *uid));
                assert!(told, "{uid} goes before its end is in the log");
            }
            _ => {}
        }
    }

    fn answer(&mut self, step: Seq, outcome: Outcome, object: Option<ObjectSeen>) {
        self.answers.push(StepSettled { step, outcome, object, attempts: 1, audit_id: [0; 16], status: 0, took_us: 1 });
    }

    fn send(&mut self, at: usize, how: u16) {
        let (seq, step) = self.queue.remove(at);
        match how % 12 {
            0 => {
                self.carry_out(seq, &step);
                self.answer(seq, Outcome::Unknown, None);
            }
            1 => {
                self.answer(seq, Outcome::Unknown, None);
                self.late.push((self.story.now_us + LATE_US, seq, step));
            }
            2 => self.answer(seq, Outcome::Unknown, None),
            3 => self.answer(seq, Outcome::Unsent, None),
            4 => self.answer(seq, Outcome::Refused(Refusal::Webhook), None),
            5 if step.act().1 == SessionDoing::Make => self.answer(seq, Outcome::Refused(Refusal::Invalid), None),
            _ => {
                let (outcome, object) = self.carry_out(seq, &step);
                self.answer(seq, outcome, object);
            }
        }
    }

    fn list(&mut self) {
        self.watch.clear();
        let version = self.next_version();
        let mut facts: Vec<Event> = self.things.keys().map(|object| self.shown(*object)).collect();
        let session = self.session();
        let known = [
            (SessionObject::Claim, session.claim.there().map(|claim| claim.uid.clone())),
            (SessionObject::Service, session.service.there().map(|service| service.uid.clone())),
            (SessionObject::Pod, session.pod.as_ref().map(|pod| pod.uid.clone())),
        ];
        for (object, uid) in known {
            let absent = uid.filter(|uid| self.things.get(&object).is_none_or(|thing| thing.uid != *uid));
            facts.extend(absent.map(|uid| Self::gone_event(object, uid, version, GoneHow::Absent)));
        }
        facts.push(Event::Listed(Listed { resource_version: version, pods: 0 }));
        self.react(facts);
    }

    fn is_listed(&self) -> bool {
        !self.starting && self.session().listed.is_some()
    }

    fn call(&mut self, pick: u16) {
        let session = self.session();
        let taken = match pick % 5 {
            0..=2 => calls::create(session, SessionAsked { by: Word::default(), tenant: tenant("acme"), force_after_us: None }),
            3 => calls::delete(session, SessionDeleteAsked { by: Word::default(), keep_workspace: true, force_after_us: None }),
            _ => {
                calls::delete(session, SessionDeleteAsked { by: Word::default(), keep_workspace: false, force_after_us: Some(60_000_000) })
            }
        };
        if let Taken::News(event) = taken {
            self.deleted = matches!(&*event, Event::SessionDeleteAsked(asked) if !asked.keep_workspace);
            self.react(vec![*event]);
        }
    }

    fn live(&mut self, pick: u16) {
        let Some(pod) = self.things.get_mut(&SessionObject::Pod) else { return };
        match (pick % 8, pod.life) {
            (0..=4, _) if pod.deleting && pod.life != "exited:0" && pod.life != "created" => pod.life = "exited:0",
            (0..=4, _) if pod.deleting => return self.drop_thing(SessionObject::Pod),
            (0..=4, "created") => pod.life = "running",
            (0..=4, "running") => pod.life = "ready",
            (5, "running" | "ready") => pod.life = "exited:0",
            (6, "created" | "running" | "ready") => pod.life = "failed:Evicted",
            (7, _) => return self.drop_thing(SessionObject::Pod),
            _ => return,
        }
        self.show(SessionObject::Pod);
    }

    fn crash(&mut self, fate: u16) {
        for (index, (seq, step)) in (0_u32..).zip(std::mem::take(&mut self.queue)) {
            match fate.rotate_right(index) % 4 {
                0 => drop(self.carry_out(seq, &step)),
                1 => self.late.push((self.story.now_us + LATE_US, seq, step)),
                _ => {}
            }
        }
        self.answers.clear();
        self.tails.clear();
        self.watch.clear();
        let mut replayed = Session::default();
        committed(&mut replayed, Rules::CURRENT, &self.story.records);
        assert_eq!(replayed, self.story.session, "a replay gives the state");
        self.incarnation += 1;
        self.starting = true;
        self.story.wake_us = None;
        self.trace.push("-- crash".to_owned());
    }

    fn elapse(&mut self, us: i64) {
        self.story.now_us += us;
        let now_us = self.story.now_us;
        self.late.retain(|(until_us, _, _)| *until_us > now_us);
        if self.is_listed() {
            self.react(Vec::new());
        }
    }

    fn happen(&mut self, (what, pick): (u8, u16)) {
        let at = usize::from(pick);
        match what {
            0..=49 if !self.queue.is_empty() => self.send(at % self.queue.len(), pick >> 8),
            50..=89 if !self.answers.is_empty() && !self.starting => {
                let answer = self.answers.remove(at % self.answers.len());
                self.react(vec![Event::StepSettled(answer)]);
            }
            90..=119 if self.is_listed() && !self.watch.is_empty() => {
                let take = (1 + at % 4).min(self.watch.len());
                let facts = self.watch.drain(..take).collect();
                self.react(facts);
            }
            120..=129 if !self.tails.is_empty() && !self.starting => {
                let of = self.tails.remove(at % self.tails.len());
                self.react(vec![Event::TailKept(TailKept { of, lines: 1, bytes: 1, parts: 1, cut: false })]);
            }
            130..=169 => self.live(pick),
            170..=199 => self.call(pick),
            200..=204 if !self.late.is_empty() => {
                let (_, seq, step) = self.late.remove(at % self.late.len());
                self.carry_out(seq, &step);
            }
            205..=229 => {
                let us = match (pick % 5, self.story.wake_us) {
                    (0 | 1, Some(wake_us)) => wake_us - self.story.now_us,
                    (2, _) => 1,
                    (3, _) => SECOND_US,
                    _ => 61 * SECOND_US,
                };
                self.elapse(us);
            }
            230..=235 => self.crash(pick),
            236..=249 if !self.is_listed() || pick % 4 == 0 => self.list(),
            _ => {}
        }
    }

    /// Faults stop: everything is sent and answered, the watch tells all, and time passes until nothing moves.
    fn come_to_rest(&mut self) {
        self.late.clear();
        if !self.is_listed() {
            self.list();
        }
        for _ in 0..400 {
            let mut moved = false;
            while !self.queue.is_empty() {
                let (seq, step) = self.queue.remove(0);
                let (outcome, object) = self.carry_out(seq, &step);
                self.answer(seq, outcome, object);
                moved = true;
            }
            let mut facts: Vec<Event> = self.answers.drain(..).map(Event::StepSettled).collect();
            let kept = |of| Event::TailKept(TailKept { of, lines: 1, bytes: 1, parts: 1, cut: false });
            facts.extend(self.tails.drain(..).map(kept));
            facts.append(&mut self.watch);
            if !facts.is_empty() {
                self.react(facts);
                moved = true;
            }
            let life = self.things.get(&SessionObject::Pod).map(|pod| (pod.life, pod.deleting));
            if matches!(life, Some((_, true) | ("created" | "running", false))) {
                self.live(0);
                moved = true;
            }
            if !moved {
                match self.story.wake_us {
                    Some(wake_us) => self.elapse(wake_us - self.story.now_us),
                    None => return,
                }
            }
        }
        panic!("it never comes to rest: {:?}", self.session());
    }

    fn at_rest(&self) {
        let session = self.session();
        let there = |object| self.things.contains_key(&object);
        let state = view(session).state;
        assert_eq!(removed(session), Removed::Done, "a removal ends");
        assert!(session.flights.is_empty() && session.unrecorded.is_empty());
        if session.wanted.is_some() {
            assert_eq!(state, State::Ready, "what is wanted is ready");
            assert!([SessionObject::Claim, SessionObject::Service, SessionObject::Pod].into_iter().all(there));
        } else {
            assert!(!there(SessionObject::Pod), "no pod without a demand");
            assert!(there(SessionObject::Claim) || !there(SessionObject::Service), "no Service without a claim");
        }
        if self.deleted {
            assert!(self.things.is_empty(), "a delete leaves nothing: {:?}", self.things);
        }
        assert!(session.alarms.is_empty(), "no alarm without a reason: {:?}", session.alarms);
    }
}

fn run(happenings: &[(u8, u16)]) {
    let mut world = World::new();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for happening in happenings {
            world.happen(*happening);
        }
        world.come_to_rest();
        world.at_rest();
    }));
    if let Err(panic) = outcome {
        eprintln!("{}", world.trace.join("\n"));
        std::panic::resume_unwind(panic);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_life_of_a_session_breaks_an_invariant(happenings in prop::collection::vec(any::<(u8, u16)>(), 0..200)) {
        run(&happenings);
    }
}
