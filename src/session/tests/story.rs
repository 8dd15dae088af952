//! The mini-language: one line a fact, the expectation is what was decided, which state the session is in when that changed (`=`), and
//! what the last caller is answered (`!`). Each story is also replayed from every cut, verified, and planned twice, without being asked.
//!
//! Lines: `start [idle]`, `listed`, `create [tenant=T] [force=SPAN]`, `delete [keep] [force=SPAN]`, `touch`,
//! `claim [deleting] [tenant=T]`, `service [deleting] [differs]`, `pod STATE [deleting] [by=WHO]`, `gone claim|service|pod [absent]`,
//! `other` (the next observation is of another object of that name), `settle STEP OUTCOME`, `tail`, `node ready|lost|gone`,
//! `freeze`, `withheld`, `thaw`, `tick SPAN`; and, told in one line, `placed`, a session from the
//! first call to a pod that nobody has seen, and `made`, the same to a pod that is ready.

use std::fmt::Write as _;

use expect_test::Expect;

use crate::config::Sessions;
use crate::events::codec::{decode_state, encode_state};
use crate::events::kinds::daemon::{IncarnationStarted, Listed};
use crate::events::kinds::operator::{Frozen, Thawed};
use crate::events::kinds::pod::*;
use crate::events::kinds::session::*;
use crate::events::kinds::step::{ObjectSeen, Outcome, Refusal, StepSettled, StepWithheld};
use crate::events::kinds::tail::TailKept;
use crate::events::record::{Draft, Event, Header, Reaction, Record};
use crate::ids::{HostName, LogId, RecordId, Seq, SessionId, Subject, Tenant, Uid, Word};
use crate::session::calls::{self, Taken};
use crate::session::carry::{carried, from_carried};
use crate::session::held::Shown as _;
use crate::session::state::Session;
use crate::session::view::{Answer, Removed, State, answer, removed, view};
use crate::subject::react::{Under, committed, react, verify};
use crate::subject::rules::Rules;

pub(super) const START_US: i64 = 1_800_000_000_000_000;

/// One session with its log.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) session: Session,
    pub(crate) records: Vec<Record>,
    pub(crate) now_us: i64,
    pub(super) settings: SessionPlanSettings,
    pub(super) wake_us: Option<i64>,
    /// The call that somebody waits for.
    pub(crate) demand: Option<Seq>,
    resource_version: u64,
    uids: u64,
    incarnation: u64,
    other: bool,
    /// What the last call was answered at once.
    said: Option<String>,
}

pub(super) fn settings() -> SessionPlanSettings {
    SessionPlanSettings::from(&Sessions::default())
}

pub(super) fn subject() -> Subject {
    Subject::Session(SessionId::new("s1").expect("an id"))
}

pub(super) fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("a tenant")
}

impl Story {
    pub(crate) fn new() -> Self {
        Self {
            session: Session::default(),
            records: Vec::new(),
            now_us: START_US,
            settings: settings(),
            wake_us: None,
            demand: None,
            resource_version: 100,
            uids: 0,
            incarnation: 0,
            other: false,
            said: None,
        }
    }

    /// Reacts to these inputs and returns what was decided.
    pub(crate) fn react(&mut self, inputs: Vec<Event>) -> Vec<Event> {
        let settings = self.settings.clone();
        let under = Under { rules: Rules::CURRENT, settings: &settings, settings_seq: Seq(1) };
        let asks = inputs.iter().position(|event| matches!(event, Event::SessionAsked(_)));
        let reacted = react(&self.session, &subject(), inputs.into_iter().map(Draft::input).collect(), under, self.now_us);
        self.wake_us = reacted.wake_us;
        if let Some(wake_us) = self.wake_us {
            assert!(wake_us > self.now_us, "it looks again in the past");
        }
        let decided = reacted.reaction.drafts.iter().rev().take(reacted.decisions).rev().map(|draft| draft.event.clone()).collect();
        let records = append(&self.records, reacted.reaction);
        if let Some(index) = asks {
            self.demand = Some(records[index].header.seq);
        }
        committed(&mut self.session, Rules::CURRENT, &records);
        let kept = encode_state(&carried(&self.session)).expect("it encodes");
        assert_eq!(from_carried(decode_state(&kept).expect("it decodes")), self.session, "what is kept is what is known");
        self.records.extend(records);
        decided
    }

    /// One line of the language, as inputs.
    pub(crate) fn inputs(&mut self, line: &str) -> Vec<Event> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["start", rest @ ..] => {
                self.incarnation += 1;
                let (version, world) = ("test".to_owned(), "w".to_owned());
                let acts = !rest.contains(&"idle");
                vec![Event::IncarnationStarted(IncarnationStarted { number: self.incarnation, version, world, acts })]
            }
            ["listed"] => vec![Event::Listed(Listed { resource_version: self.next_version(), pods: 0 })],
            ["create", rest @ ..] => {
                let ask = SessionAsked {
                    by: Word::default(),
                    tenant: tenant(option(rest, "tenant=").unwrap_or("acme")),
                    force_after_us: force(rest),
                };
                let taken = calls::create(&self.session, ask);
                self.take(taken)
            }
            ["delete", rest @ ..] => {
                let ask = SessionDeleteAsked { by: Word::default(), keep_workspace: rest.contains(&"keep"), force_after_us: force(rest) };
                let taken = calls::delete(&self.session, ask);
                self.take(taken)
            }
            ["touch"] => {
                let taken = calls::touch(&self.session, SessionTouched { by: Word::default() }, self.now_us);
                self.take(taken)
            }
            ["claim", rest @ ..] => vec![Event::ClaimSeen(self.claim(rest))],
            ["service", rest @ ..] => vec![Event::ServiceSeen(self.service(rest))],
            ["pod", state, rest @ ..] => vec![Event::PodSeen(self.pod(state, rest))],
            ["gone", object, rest @ ..] => vec![self.gone(object, rest.contains(&"absent"))],
            ["other"] => {
                self.other = true;
                Vec::new()
            }
            ["settle", step, outcome] => vec![Event::StepSettled(self.settled(step, outcome))],
            ["tail"] => {
                let unsettled = self.session.tails.iter().filter(|(_, tail)| !tail.settled);
                let kept = |of: &_| Event::TailKept(TailKept { of: Clone::clone(of), lines: 1, bytes: 1, parts: 1, cut: false });
                unsettled.map(|(of, _)| kept(of)).collect()
            }
            ["node", ready] => vec![Event::NodeSeen(NodeSeen { node: Word::new("n1"), ready: node_ready(ready) })],
            ["freeze"] => vec![Event::Frozen(Frozen { everything: false })],
            ["withheld"] => self.session.flights.keys().map(|step| Event::StepWithheld(StepWithheld { step: *step })).collect(),
            ["thaw"] => vec![Event::Thawed(Thawed { everything: false })],
            ["tick", span] => {
                self.now_us += span_us(span);
                Vec::new()
            }
            other => panic!("no such line: {other:?}"),
        }
    }

    fn take(&mut self, taken: Taken) -> Vec<Event> {
        match taken {
            Taken::News(event) => return vec![*event],
            Taken::Joins(seq) => {
                self.said = Some(format!("joins {seq}"));
                self.demand = self.session.wanted.as_ref().map(|wanted| wanted.seq);
            }
            Taken::AlreadySo => self.said = Some("already so".to_owned()),
            Taken::Refused(why) => self.said = Some(format!("refused {why:?}")),
        }
        Vec::new()
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.resource_version += 1;
        self.resource_version
    }

    fn next_uid(&mut self, kind: &str) -> Uid {
        self.uids += 1;
        Uid::new(&format!("{kind}-{}", self.uids)).expect("a uid")
    }

    /// The uid of the object that is known, or of the next one.
    fn uid(&mut self, object: SessionObject) -> Uid {
        let known = match object {
            SessionObject::Claim => self.session.claim.there().map(|claim| claim.uid.clone()),
            SessionObject::Service => self.session.service.there().map(|service| service.uid.clone()),
            SessionObject::Pod => self.session.pod.as_ref().map(|pod| pod.uid.clone()),
        };
        let another = std::mem::take(&mut self.other);
        known.filter(|_| !another).unwrap_or_else(|| {
            self.next_uid(match object {
                SessionObject::Claim => "claim",
                SessionObject::Service => "service",
                SessionObject::Pod => "pod",
            })
        })
    }

    /// The annotation of an object that a step in flight made.
    fn step(&self, object: SessionObject) -> Option<RecordId> {
        let (seq, _) = self.session.flying(object, SessionDoing::Make)?;
        Some(RecordId { log: LogId([7; 16]), seq })
    }

    fn claim(&mut self, rest: &[&str]) -> ClaimSeen {
        let known = self.session.claim.there().and_then(|claim| claim.view.as_ref()).and_then(|view| view.step());
        ClaimSeen {
            name: Word::new("workspace-session-s1"),
            step: known.or(self.step(SessionObject::Claim)),
            uid: self.uid(SessionObject::Claim),
            resource_version: self.next_version(),
            tenant: Some(tenant(option(rest, "tenant=").unwrap_or("acme"))),
            deleting: rest.contains(&"deleting"),
            phase: ClaimPhase::Bound,
        }
    }

    fn service(&mut self, rest: &[&str]) -> ServiceSeen {
        ServiceSeen {
            name: Word::new("pi-session-s1"),
            step: self.step(SessionObject::Service),
            uid: self.uid(SessionObject::Service),
            resource_version: self.next_version(),
            tenant: Some(tenant("acme")),
            deleting: rest.contains(&"deleting"),
            address: Some("10.96.0.7".parse().expect("an address")),
            as_made: !rest.contains(&"differs"),
        }
    }

    fn pod(&mut self, state: &str, rest: &[&str]) -> PodSeen {
        let step = self.step(SessionObject::Pod);
        let uid = self.uid(SessionObject::Pod);
        let mut seen = pod_seen(uid, self.next_version(), step, self.now_us);
        seen.deleting = rest.contains(&"deleting");
        seen.disruption = option(rest, "by=").map(|by| match by {
            "evicted" => Disruption::Evicted,
            "preempted" => Disruption::Preempted,
            "tainted" => Disruption::Tainted,
            other => panic!("no such disruption: {other}"),
        });
        shape(&mut seen, state, self.now_us);
        seen
    }

    fn gone(&mut self, object: &str, absent: bool) -> Event {
        let how = if absent { GoneHow::Absent } else { GoneHow::Deleted };
        let resource_version = self.next_version();
        match object {
            "claim" => Event::ClaimGone(ClaimGone { uid: self.uid(SessionObject::Claim), resource_version, how }),
            "service" => Event::ServiceGone(ServiceGone { uid: self.uid(SessionObject::Service), resource_version, how }),
            "pod" => {
                let host = HostName::new("pi-session-s1").expect("a name");
                Event::PodGone(PodGone { host, uid: self.uid(SessionObject::Pod), resource_version, how })
            }
            other => panic!("no such object: {other}"),
        }
    }

    pub(super) fn settled(&mut self, step: &str, outcome: &str) -> StepSettled {
        let flight = self.session.flights.iter().find(|(_, flight)| flight.step.name() == step);
        let (seq, issued) = flight.map(|(seq, flight)| (*seq, flight.step.clone())).unwrap_or_else(|| panic!("no {step} is in flight"));
        let outcome = outcome_of(outcome);
        let (object, doing) = issued.act();
        let shows = matches!(outcome, Outcome::Done | Outcome::AlreadySo) && doing != SessionDoing::Remove;
        let object = shows.then(|| ObjectSeen { uid: self.uid(object), resource_version: self.next_version() });
        StepSettled { step: seq, outcome, object, attempts: 1, audit_id: [0; 16], status: 200, took_us: 1 }
    }
}

fn option<'a>(rest: &[&'a str], key: &str) -> Option<&'a str> {
    rest.iter().find_map(|word| word.strip_prefix(key))
}

fn force(rest: &[&str]) -> Option<u64> {
    option(rest, "force=").map(|span| u64::try_from(span_us(span)).expect("positive"))
}

/// A pod of the session, before anything is known of it.
pub(super) fn pod_seen(uid: Uid, resource_version: u64, step: Option<RecordId>, now_us: i64) -> PodSeen {
    let absent = Container { state: ContainerState::Absent, restarts: 0, last_end: None };
    PodSeen {
        host: HostName::new("pi-session-s1").expect("a name"),
        uid,
        resource_version,
        release: 0,
        sha256: None,
        step,
        phase: Phase::Pending,
        reason: Word::default(),
        deleting: false,
        node: Word::new("n1"),
        scheduling: Scheduling::Done,
        disruption: None,
        ready: false,
        created_us: now_us,
        install: absent.clone(),
        app: absent,
    }
}

/// Puts a pod into a named state.
pub(super) fn shape(seen: &mut PodSeen, state: &str, now_us: i64) {
    let container = |state| Container { state, restarts: 0, last_end: None };
    let (what, argument) = state.split_once(':').unwrap_or((state, ""));
    match what {
        "created" | "unschedulable" => {
            seen.node = Word::default();
            seen.scheduling = if what == "created" { Scheduling::Waiting } else { Scheduling::Unschedulable };
        }
        "waiting" => seen.app = container(ContainerState::Waiting { reason: Word::new(argument) }),
        "running" | "ready" => {
            seen.phase = Phase::Running;
            seen.ready = what == "ready";
            seen.app = container(ContainerState::Running { started_us: now_us });
        }
        "exited" | "oom" | "sidecar" => {
            let exit_code = argument.parse().unwrap_or(1);
            let reason = Word::new(if what == "oom" { "OOMKilled" } else { "Error" });
            seen.phase = match (what, exit_code) {
                ("sidecar", _) => Phase::Running,
                (_, 0) => Phase::Succeeded,
                _ => Phase::Failed,
            };
            let end = ContainerEnd { exit_code, signal: 0, reason, started_us: now_us, finished_us: now_us };
            seen.app = container(ContainerState::Ended(end));
        }
        "failed" => {
            seen.phase = Phase::Failed;
            seen.reason = Word::new(argument);
        }
        "unknown" => seen.phase = Phase::Unknown,
        other => panic!("no such state: {other}"),
    }
}

/// What the log does to a reaction: numbers, and causes made real.
fn append(before: &[Record], reaction: Reaction) -> Vec<Record> {
    let first = Seq(before.last().map_or(1, |last| last.header.seq.0 + 1));
    let records = (0..).zip(reaction.drafts).map(|(index, draft)| {
        let kind = draft.event.kind();
        let header = Header {
            kind: kind.number(),
            kind_version: kind.version(),
            rules: reaction.rules,
            seq: Seq(first.0 + index),
            subject: reaction.subject.clone(),
            subject_seq: first.0 + index,
            time_us: reaction.time_us,
            reaction: first,
            cause: draft.cause.resolved(first),
            settings: reaction.settings,
        };
        assert!(header.cause < header.seq, "a cause comes before what it made so");
        Record { header, event: draft.event }
    });
    records.collect()
}

fn node_ready(word: &str) -> NodeReady {
    match word {
        "ready" => NodeReady::Ready,
        "lost" => NodeReady::NotReady,
        "gone" => NodeReady::Gone,
        other => panic!("no such node state: {other}"),
    }
}

pub(super) fn outcome_of(word: &str) -> Outcome {
    match word {
        "done" => Outcome::Done,
        "already" => Outcome::AlreadySo,
        "gone" => Outcome::Gone,
        "conflict" => Outcome::Conflict,
        "name-held" => Outcome::NameHeld,
        "revoked" => Outcome::Revoked,
        "unknown" => Outcome::Unknown,
        "unsent" => Outcome::Unsent,
        "quota" => Outcome::Refused(Refusal::Quota),
        "webhook" => Outcome::Refused(Refusal::Webhook),
        "forbidden" => Outcome::Refused(Refusal::Forbidden),
        "invalid" => Outcome::Refused(Refusal::Invalid),
        "foreign" => Outcome::Refused(Refusal::Foreign),
        "network-policy" => Outcome::Refused(Refusal::NetworkPolicy),
        "runtime-class" => Outcome::Refused(Refusal::RuntimeClass),
        other => panic!("no such outcome: {other}"),
    }
}

pub(super) fn span_us(span: &str) -> i64 {
    let (number, unit) = span.split_at(span.find(char::is_alphabetic).expect("a unit"));
    let number: i64 = number.parse().expect("a number");
    number
        * match unit {
            "us" => 1,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            other => panic!("no such unit: {other}"),
        }
}

/// Tells the story and compares every decision of it, in order, each under its line; then looks for what no story may break.
#[track_caller]
pub(super) fn check(lines: &str, expect: &Expect) {
    check_under(settings(), lines, expect);
}

/// The same under other settings.
#[track_caller]
pub(super) fn check_under(settings: SessionPlanSettings, lines: &str, expect: &Expect) {
    let mut story = Story { settings, ..Story::new() };
    let (mut told, mut state, mut answered) = (String::new(), "absent".to_owned(), String::new());
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = writeln!(told, "> {line}");
        let quiet = match line {
            "placed" => &MADE[..6],
            "made" => MADE,
            _ => &[],
        };
        quiet.iter().for_each(|line| drop(tell(&mut story, line)));
        if quiet.is_empty() {
            for told_line in tell(&mut story, line) {
                let _ = writeln!(told, "  {told_line}");
            }
        }
        for (mark, now, before) in [("=", state_of(&story), &mut state), ("!", answer_of(&story), &mut answered)] {
            if now != *before {
                if !now.is_empty() {
                    let _ = writeln!(told, "  {mark} {now}");
                }
                *before = now;
            }
        }
    }
    if let Some(wake_us) = story.wake_us {
        let _ = writeln!(told, "wake in {}s", (wake_us - story.now_us) / 1_000_000);
    }
    expect.assert_eq(&told);
    replays_from_every_cut(&story);
    verifies(&story);
}

/// One line: what was answered at once, and what was decided.
#[track_caller]
fn tell(story: &mut Story, line: &str) -> Vec<String> {
    let inputs = line.split('+').flat_map(|part| story.inputs(part)).collect();
    let decided = story.react(inputs);
    let again = story.clone().react(Vec::new());
    assert!(again.is_empty(), "planned twice after `{line}`: {again:?}");
    story.said.take().into_iter().chain(decided.iter().map(shown)).collect()
}

/// What `made` stands for: a session from the first call to ready; `placed` is that without the last line.
const MADE: &[&str] = &[
    "start + listed",
    "create",
    "settle CreateClaim done",
    "settle PutService done",
    "settle CreatePod done",
    "claim + service",
    "pod ready",
];

/// Folding a prefix, then the rest, gives what one pass gives.
#[track_caller]
pub(super) fn replays_from_every_cut(story: &Story) {
    for cut in 0..=story.records.len() {
        let mut session = Session::default();
        committed(&mut session, Rules::CURRENT, &story.records[..cut]);
        let mut rest = from_carried(carried(&session));
        committed(&mut rest, Rules::CURRENT, &story.records[cut..]);
        assert_eq!(rest, story.session, "cut at {cut}");
    }
}

/// Every reaction, planned again, decides the same.
#[track_caller]
pub(super) fn verifies(story: &Story) {
    let mut session = Session::default();
    for reaction in story.records.chunk_by(|a, b| a.header.reaction == b.header.reaction) {
        verify(&mut session, Rules::CURRENT, &story.settings, reaction).expect("planning again decides the same");
    }
}

pub(super) fn state_of(story: &Story) -> String {
    match view(&story.session).state {
        State::Provisioning { stage, waits_for: None } => format!("provisioning {stage:?}"),
        State::Provisioning { stage, waits_for: Some(what) } => format!("provisioning {stage:?}, waits for {what:?}"),
        State::Failed(failure) => {
            format!("failed {:?} at {:?}{}", failure.code, failure.stage, if failure.retrying { ", retrying" } else { "" })
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

/// What whoever waits is told: nothing while there is nothing to tell.
fn answer_of(story: &Story) -> String {
    if let Removed::Left { objects, refused } = removed(&story.session) {
        let refused = refused.map(|refusal| format!(", refused {refusal:?}")).unwrap_or_default();
        return format!("left {objects:?}{refused}");
    }
    match story.demand.map(|demand| answer(&story.session, demand)) {
        None | Some(Answer::Wait) => String::new(),
        Some(Answer::Ready { resumed }) => if resumed { "200 resumed" } else { "201 fresh" }.to_owned(),
        Some(Answer::Failed(failure)) => {
            format!("{:?} at {:?}{}", failure.code, failure.stage, if failure.retrying { ", retrying" } else { "" })
        }
    }
}

/// A decision in one line.
pub(super) fn shown(event: &Event) -> String {
    match event {
        Event::SessionStepIssued(SessionStepIssued { step, rule }) => {
            let detail = match step {
                SessionStep::DeletePod { uid, grace_s, forced, .. } => {
                    format!(" {uid} grace={grace_s}{}", if *forced { " forced" } else { "" })
                }
                SessionStep::DeleteClaim { uid, .. } | SessionStep::DeleteService { uid, .. } => format!(" {uid}"),
                SessionStep::PutService { replaces: Some(replaces), .. } => format!(" in place of {}", replaces.uid),
                _ => String::new(),
            };
            format!("{}{detail} ({rule})", step.name())
        }
        Event::StepRevoked(revoked) => format!("revoke {} ({})", revoked.step, revoked.rule),
        Event::PodEnded(ended) => {
            let code = ended.exit_code.map(|code| format!(" exit={code}")).unwrap_or_default();
            format!("ended {} {:?}{code}", ended.uid, ended.cause)
        }
        Event::SessionFailed(failed) => format!("given up {:?} at {:?} ({})", failed.fault, failed.stage, failed.rule),
        Event::SessionRemoved(gone) => format!("removed{}", if gone.keep_workspace { ", the claim stays" } else { "" }),
        Event::TailAsked(asked) => format!("tail? {}{}", asked.of.container, if asked.of.ended { " ended" } else { "" }),
        Event::AlarmRaised(alarm) => format!("alarm {}", alarm.name),
        Event::AlarmCleared(alarm) => format!("clear {}", alarm.name),
        other => format!("{other:?}"),
    }
}
