//! The mini-language: one line a fact, the expectation is what was decided. Each story is also replayed from every cut,
//! verified, and planned twice, without being asked.
//!
//! Lines: `start [idle]`, `listed`, `want R HOST [live=H] [registered] [failed]`, `confirm`, `refused`, `missing [mass]`,
//! `seen HOST STATE [node=N] [deleting] [by=DISRUPTION] [restarts=N] [started=-1h]
//! [foreign]`, `gone HOST deleted|absent`,
//! `other HOST` (the next outcome shows another pod than the known one), `settle STEP OUTCOME`, `tail HOST`, `node N ready|lost|gone`, `retry HOST`, `stop`, `freeze`, `withheld`, `thaw`, `tick SPAN`.

use std::fmt::Write as _;

use expect_test::Expect;

use crate::app::carry::{carried, from_carried};
use crate::app::react::{Under, committed, react, verify};
use crate::app::rules::Rules;
use crate::app::state::App;
use crate::config::Plan;
use crate::events::codec::{decode_state, encode_state};
use crate::events::kinds::daemon::{IncarnationStarted, Listed, PlanSettings};
use crate::events::kinds::operator::{Frozen, RetryAsked, StopAsked, Thawed};
use crate::events::kinds::pod::{
    Container, ContainerEnd, ContainerState, Disruption, GoneHow, NodeReady, NodeSeen, Phase, PodGone, PodSeen, Scheduling, SecretGone,
};
use crate::events::kinds::step::{ObjectSeen, Outcome, Refusal, Step, StepIssued, StepSettled, StepWithheld};
use crate::events::kinds::tail::TailKept;
use crate::events::kinds::want::{WantConfirmed, WantFault, WantMissing, WantRefused, WantSeen};
use crate::events::record::{Draft, Event, Header, Reaction, Record};
use crate::ids::{AppId, HostName, LogId, PackageDigest, RecordId, Seq, Subject, Uid, Word};

pub(super) const START_US: i64 = 1_800_000_000_000_000;

/// One app with its log.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) app: App,
    pub(super) records: Vec<Record>,
    pub(super) now_us: i64,
    pub(super) settings: PlanSettings,
    pub(super) wake_us: Option<i64>,
    resource_version: u64,
    uids: u64,
    incarnation: u64,
    /// Outcomes show a pod that nobody has seen yet.
    other: bool,
}

pub(super) fn settings() -> PlanSettings {
    PlanSettings::from(&Plan::default())
}

fn subject() -> Subject {
    Subject::App(AppId::new("acme", "bot").expect("a valid app"))
}

impl Story {
    pub(super) fn new() -> Self {
        Self {
            app: App::default(),
            records: Vec::new(),
            now_us: START_US,
            settings: settings(),
            wake_us: None,
            resource_version: 100,
            uids: 0,
            incarnation: 0,
            other: false,
        }
    }

    /// Reacts to these inputs and returns what was decided.
    pub(super) fn react(&mut self, inputs: Vec<Event>) -> Vec<Event> {
        let settings = self.settings.clone();
        let under = Under { rules: Rules::CURRENT, settings: &settings, settings_seq: Seq(1) };
        let reacted = react(&self.app, &subject(), inputs.into_iter().map(Draft::input).collect(), under, self.now_us);
        self.wake_us = reacted.wake_us;
        let decided = reacted.reaction.drafts.iter().rev().take(reacted.decisions).rev().map(|draft| draft.event.clone()).collect();
        let records = append(&self.records, reacted.reaction);
        committed(&mut self.app, Rules::CURRENT, &records);
        let kept = encode_state(&carried(&self.app)).expect("it encodes");
        assert_eq!(from_carried(decode_state(&kept).expect("it decodes")), self.app, "what is kept is what is known");
        self.records.extend(records);
        decided
    }

    /// One line of the language, as inputs.
    pub(super) fn inputs(&mut self, line: &str) -> Vec<Event> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["start", rest @ ..] => {
                self.incarnation += 1;
                let acts = !rest.contains(&"idle");
                vec![Event::IncarnationStarted(IncarnationStarted {
                    number: self.incarnation,
                    version: "test".to_owned(),
                    world: "w".to_owned(),
                    acts,
                })]
            }
            ["listed"] => vec![Event::Listed(Listed { resource_version: self.next_version(), pods: 0 })],
            ["want", release, host, rest @ ..] => vec![Event::WantSeen(want(release, host, rest))],
            ["confirm"] => vec![Event::WantConfirmed(WantConfirmed { answer: 1 })],
            ["refused"] => vec![Event::WantRefused(WantRefused { answer: 1, fault: WantFault::BadDigest, host: None })],
            ["missing", rest @ ..] => vec![Event::WantMissing(WantMissing { answer: 1, mass: rest.contains(&"mass") })],
            ["seen", host, state, rest @ ..] => vec![Event::PodSeen(self.pod(host, state, rest))],
            ["other", _] => {
                self.other = true;
                Vec::new()
            }
            ["gone", host, how] => vec![Event::PodGone(self.gone(host, how))],
            ["nosecret", host] => vec![Event::SecretGone(SecretGone { host: name(host), uid: None })],
            ["settle", step, outcome] => vec![Event::StepSettled(self.settled(step, outcome))],
            ["tail", host] => self.tails(host),
            ["node", node, ready] => vec![Event::NodeSeen(NodeSeen { node: Word::new(node), ready: node_ready(ready) })],
            ["retry", host] => vec![Event::RetryAsked(RetryAsked { host: name(host) })],
            ["stop"] => vec![Event::StopAsked(StopAsked {})],
            ["freeze"] => vec![Event::Frozen(Frozen { everything: false })],
            ["withheld"] => {
                let steps = self.app.hosts.values().flat_map(|host| host.flights.keys());
                steps.map(|step| Event::StepWithheld(StepWithheld { step: *step })).collect()
            }
            ["thaw"] => vec![Event::Thawed(Thawed { everything: false })],
            ["tick", span] => {
                self.now_us += span_us(span);
                Vec::new()
            }
            other => panic!("no such line: {other:?}"),
        }
    }

    fn next_version(&mut self) -> u64 {
        self.resource_version += 1;
        self.resource_version
    }

    /// The uid of the host's present pod, or that of the next one.
    fn uid(&mut self, host: &str) -> Uid {
        match self.app.hosts.get(&name(host)).and_then(|host| host.pod.as_ref()) {
            Some(pod) if !self.other => pod.uid.clone(),
            Some(_) | None => {
                self.uids += 1;
                Uid::new(&format!("uid-{}", self.uids)).expect("a valid uid")
            }
        }
    }

    fn pod(&mut self, host: &str, state: &str, rest: &[&str]) -> PodSeen {
        let uid = self.uid(host);
        let option = |key: &str| rest.iter().find_map(|word| word.strip_prefix(key));
        let ours = self.app.hosts.get(&name(host)).filter(|_| !rest.contains(&"foreign"));
        let step = ours.and_then(|host| {
            host.flying(|step| matches!(step, Step::CreatePod { .. })).map(|(seq, _)| RecordId { log: LogId([7; 16]), seq })
        });
        let mut seen = PodSeen {
            host: name(host),
            uid,
            resource_version: self.next_version(),
            release: 1,
            sha256: Some(PackageDigest::from_bytes([1; 32])),
            step,
            phase: Phase::Pending,
            reason: Word::default(),
            deleting: rest.contains(&"deleting"),
            node: Word::new(option("node=").unwrap_or("n1")),
            scheduling: Scheduling::Done,
            disruption: option("by=").map(disruption),
            ready: false,
            created_us: self.now_us,
            install: container(ContainerState::Absent),
            app: container(ContainerState::Absent),
        };
        let started_us = if rest.contains(&"started=-1h") { self.now_us - 3_600_000_000 } else { self.now_us };
        shape(&mut seen, state, started_us);
        if let Some(restarts) = option("restarts=") {
            seen.app.restarts = restarts.parse().expect("a number");
            seen.app.last_end = Some(ended(1, "Error", self.now_us));
        }
        seen
    }

    fn gone(&mut self, host: &str, how: &str) -> PodGone {
        let how = if how == "absent" { GoneHow::Absent } else { GoneHow::Deleted };
        PodGone { host: name(host), uid: self.uid(host), resource_version: self.next_version(), how }
    }

    fn settled(&mut self, step: &str, outcome: &str) -> StepSettled {
        let flight = self.app.hosts.iter().find_map(|(name, host)| {
            host.flights
                .iter()
                .find(|(_, flight)| flight.step.name() == step)
                .map(|(seq, flight)| (name.to_string(), *seq, flight.step.clone()))
        });
        let (host, seq, issued) = flight.unwrap_or_else(|| panic!("no {step} is in flight"));
        let outcome = outcome_of(outcome);
        let shows = matches!(outcome, Outcome::Done | Outcome::AlreadySo | Outcome::Conflict);
        let object = (shows && !matches!(issued, Step::DeletePod { .. } | Step::DeleteSecret { .. })).then(|| {
            let creates = matches!(issued, Step::CreatePod { .. });
            let uid = if creates { self.uid(&host) } else { Uid::new(&format!("secret-{host}")).expect("a valid uid") };
            ObjectSeen { uid, resource_version: self.next_version() }
        });
        StepSettled { step: seq, outcome, object, attempts: 1, audit_id: [0; 16], status: 200, took_us: 1 }
    }

    fn tails(&self, host: &str) -> Vec<Event> {
        let host = self.app.hosts.get(&name(host)).expect("the host is known");
        let unsettled = host.tails.iter().filter(|(_, tail)| !tail.settled);
        unsettled.map(|(of, _)| Event::TailKept(TailKept { of: of.clone(), lines: 1, bytes: 1, parts: 1, cut: false })).collect()
    }
}

/// What the log does to a reaction: numbers, and causes made real.
pub(super) fn append(before: &[Record], reaction: Reaction) -> Vec<Record> {
    let first = Seq(before.last().map_or(1, |last| last.header.seq.0 + 1));
    let records = (0..).zip(reaction.drafts).map(|(index, draft)| Record {
        header: Header {
            kind: draft.event.kind().number(),
            kind_version: draft.event.kind().version(),
            rules: reaction.rules,
            seq: Seq(first.0 + index),
            subject: reaction.subject.clone(),
            subject_seq: first.0 + index,
            time_us: reaction.time_us,
            reaction: first,
            cause: draft.cause.resolved(first),
            settings: reaction.settings,
        },
        event: draft.event,
    });
    records.collect()
}

fn want(release: &str, host: &str, rest: &[&str]) -> WantSeen {
    let release: u64 = release.trim_start_matches('r').parse().expect("a release");
    WantSeen {
        answer: 1,
        release,
        sha256: PackageDigest::from_bytes([u8::try_from(release).expect("small"); 32]),
        host: name(host),
        registered: rest.contains(&"registered"),
        failed: rest.contains(&"failed"),
        live_host: rest.iter().find_map(|word| word.strip_prefix("live=")).map(name),
    }
}

pub(super) fn name(text: &str) -> HostName {
    HostName::new(text).expect("a valid host")
}

fn container(state: ContainerState) -> Container {
    Container { state, restarts: 0, last_end: None }
}

fn ended(exit_code: i32, reason: &str, now_us: i64) -> ContainerEnd {
    ContainerEnd { exit_code, signal: 0, reason: Word::new(reason), started_us: now_us, finished_us: now_us }
}

/// Puts a pod into a named state.
pub(super) fn shape(seen: &mut PodSeen, state: &str, now_us: i64) {
    let waiting = |reason: &str| container(ContainerState::Waiting { reason: Word::new(reason) });
    let done = container(ContainerState::Ended(ended(0, "Completed", now_us)));
    let (what, argument) = state.split_once(':').unwrap_or((state, ""));
    match what {
        "created" => {
            seen.node = Word::default();
            seen.scheduling = Scheduling::Waiting;
        }
        "unschedulable" => {
            seen.node = Word::default();
            seen.scheduling = Scheduling::Unschedulable;
        }
        "waiting" => seen.install = waiting(argument),
        "installing" => seen.install = container(ContainerState::Running { started_us: now_us }),
        "install-failed" => {
            seen.phase = Phase::Failed;
            seen.install = container(ContainerState::Ended(ended(1, "Error", now_us)));
        }
        "initialized" => {
            seen.install = done;
            seen.app = waiting("PodInitializing");
        }
        "running" => {
            seen.phase = Phase::Running;
            seen.install = done;
            seen.app = container(ContainerState::Running { started_us: now_us });
        }
        "exited" | "oom" => {
            let code = argument.parse().unwrap_or(1);
            seen.phase = if code == 0 { Phase::Succeeded } else { Phase::Failed };
            seen.install = done;
            let reason = if what == "oom" { "OOMKilled" } else { "Error" };
            seen.app = container(ContainerState::Ended(ended(code, reason, now_us)));
        }
        "failed" => {
            seen.phase = Phase::Failed;
            seen.reason = Word::new(argument);
        }
        other => panic!("no such state: {other}"),
    }
}

fn disruption(word: &str) -> Disruption {
    match word {
        "evicted" => Disruption::Evicted,
        "preempted" => Disruption::Preempted,
        "tainted" => Disruption::Tainted,
        "kubelet" => Disruption::Kubelet,
        other => panic!("no such disruption: {other}"),
    }
}

fn node_ready(word: &str) -> NodeReady {
    match word {
        "ready" => NodeReady::Ready,
        "lost" => NodeReady::NotReady,
        "gone" => NodeReady::Gone,
        "unwatched" => NodeReady::Unwatched,
        other => panic!("no such node state: {other}"),
    }
}

fn outcome_of(word: &str) -> Outcome {
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
        "forbidden" => Outcome::Refused(Refusal::Forbidden),
        "invalid" => Outcome::Refused(Refusal::Invalid),
        "environment" => Outcome::Refused(Refusal::Environment),
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
            "ms" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            other => panic!("no such unit: {other}"),
        }
}

/// Tells the story and compares every decision of it, in order, each under its line; then looks for what no story may break.
#[track_caller]
pub(super) fn check(lines: &str, expect: &Expect) {
    let story = tell(lines, expect);
    replays_from_every_cut(&story);
    verifies(&story);
}

#[track_caller]
fn tell(lines: &str, expect: &Expect) -> Story {
    let mut story = Story::new();
    let mut told = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let inputs = line.split('+').flat_map(|part| story.inputs(part)).collect();
        let decided = story.react(inputs);
        let _ = writeln!(told, "> {line}");
        for event in &decided {
            let _ = writeln!(told, "  {}", shown(event));
        }
        let again = story.clone().react(Vec::new());
        assert!(again.is_empty(), "planned twice after `{line}`: {again:?}");
    }
    if let Some(wake_us) = story.wake_us {
        let _ = writeln!(told, "wake in {}s", (wake_us - story.now_us) / 1_000_000);
    }
    expect.assert_eq(&told);
    story
}

/// Folding a prefix, then the rest, gives what one pass gives.
#[track_caller]
fn replays_from_every_cut(story: &Story) {
    for cut in 0..=story.records.len() {
        let mut app = App::default();
        committed(&mut app, Rules::CURRENT, &story.records[..cut]);
        let mut rest = app.clone();
        committed(&mut rest, Rules::CURRENT, &story.records[cut..]);
        assert_eq!(rest, story.app, "cut at {cut}");
    }
}

/// Every reaction, planned again, decides the same.
#[track_caller]
pub(super) fn verifies(story: &Story) {
    let mut app = App::default();
    for reaction in story.records.chunk_by(|a, b| a.header.reaction == b.header.reaction) {
        verify(&mut app, Rules::CURRENT, &story.settings, reaction).expect("planning again decides the same");
    }
}

/// A decision in one line.
#[expect(clippy::wildcard_enum_match_arm, reason = "what has no words of its own is shown as it is")]
pub(super) fn shown(event: &Event) -> String {
    match event {
        Event::StepIssued(StepIssued { step, purpose, rule }) => {
            let detail = match step {
                Step::DeletePod { uid, grace_s, forced, .. } => {
                    format!(" {uid} grace={grace_s}{}", if *forced { " forced" } else { "" })
                }
                Step::CreatePod { release, .. } => format!(" r{release}"),
                Step::PutSecret { release, present_will_do, .. } => {
                    format!(" r{release}{}", if *present_will_do { " present-will-do" } else { "" })
                }
                Step::DeleteSecret { .. } | Step::ReadPod { .. } | Step::ReadSecret { .. } => String::new(),
            };
            format!("{} {}{detail} ({purpose:?}, {rule})", step.name(), step.host())
        }
        Event::StepRevoked(revoked) => format!("revoke {} ({})", revoked.step, revoked.rule),
        Event::VerdictReached(reached) => format!("verdict {} {:?} ({})", reached.host, reached.verdict, reached.rule),
        Event::PodEnded(ended) => {
            format!("ended {} {} {:?}{}", ended.host, ended.uid, ended.cause, if ended.counted { " counted" } else { "" })
        }
        Event::TailAsked(asked) => {
            format!("tail? {} {}{}", asked.of.host, asked.of.container, if asked.of.ended { " ended" } else { "" })
        }
        Event::AlarmRaised(alarm) => format!("alarm {}", alarm.name),
        Event::AlarmCleared(alarm) => format!("clear {}", alarm.name),
        other => format!("{other:?}"),
    }
}
