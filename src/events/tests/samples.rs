//! Events of every kind, covering every variant of every stored enum: what the goldens and the property tests are made of.
//!
//! A sample is never changed: its golden is in tests/data/format. New ones are added beside it.

use super::session_samples;
use crate::events::codec::encode_state;
use crate::events::kinds::carried::*;
use crate::events::kinds::daemon::*;
use crate::events::kinds::operator::*;
use crate::events::kinds::pod::*;
use crate::events::kinds::step::*;
use crate::events::kinds::tail::*;
use crate::events::kinds::verdict::*;
use crate::events::kinds::want::*;
use crate::events::record::{Event, Kind};
use crate::ids::{HostName, LogId, PackageDigest, RecordId, Seq, Uid, Word};

type Samples = Vec<Event>;

fn host() -> HostName {
    HostName::new("bot-r2-3c6ef362").expect("a host")
}

fn uid() -> Uid {
    Uid::new("0b6f2f0e-1111-4222-8333-444455556666").expect("a uid")
}

fn digest() -> PackageDigest {
    PackageDigest::from_bytes(std::array::from_fn(|at| at as u8))
}

fn word(text: &str) -> Word {
    let word = Word::new(text);
    assert_eq!(word.as_str(), text);
    word
}

fn plan() -> PlanSettings {
    PlanSettings {
        crash_limit: 5,
        crash_window_us: 600_000_000,
        scheduling_us: 300_000_000,
        pull_us: 300_000_001,
        install_us: 300_000_002,
        register_us: 120_000_000,
        drain_s: 45,
        no_fault_first_us: 1_000_000,
        no_fault_max_us: 60_000_000,
        no_fault_alarm: 10,
        force_us: 300_000_003,
        withdraw_after: 2,
        withdraw_after_mass: 6,
        waiting_us: 30_000_000,
        doubt_us: 60_000_001,
    }
}

fn container(state: ContainerState) -> Container {
    Container { state, restarts: 3, last_end: None }
}

fn ended() -> ContainerEnd {
    ContainerEnd {
        exit_code: 137,
        signal: 9,
        reason: word("OOMKilled"),
        started_us: 1_700_000_000_000_000,
        finished_us: 1_700_000_060_000_000,
    }
}

fn pod_seen() -> PodSeen {
    PodSeen {
        host: host(),
        uid: uid(),
        resource_version: 123_456,
        release: 2,
        sha256: Some(digest()),
        step: Some(RecordId { log: LogId([0xab; 16]), seq: Seq(70_001) }),
        phase: Phase::Running,
        reason: word(""),
        deleting: false,
        node: word("node-1.example"),
        scheduling: Scheduling::Done,
        disruption: None,
        ready: true,
        created_us: 1_700_000_000_000_000,
        install: Container { state: ContainerState::Ended(ended()), restarts: 0, last_end: None },
        app: Container {
            state: ContainerState::Running { started_us: 1_700_000_070_000_000 },
            restarts: 1,
            last_end: Some(ContainerEnd { exit_code: -1, signal: 0, ..ended() }),
        },
    }
}

fn pod_samples() -> Vec<PodSeen> {
    let phases = [Phase::Pending, Phase::Succeeded, Phase::Failed, Phase::Unknown].map(|phase| PodSeen { phase, ..pod_seen() });
    let schedulings = [Scheduling::Waiting, Scheduling::Unschedulable].map(|scheduling| PodSeen { scheduling, ..pod_seen() });
    let disruptions =
        [Disruption::Evicted, Disruption::Preempted, Disruption::Tainted, Disruption::Collected, Disruption::Kubelet, Disruption::Other];
    let disrupted = disruptions.map(|why| PodSeen { disruption: Some(why), ..pod_seen() });
    let states = [ContainerState::Absent, ContainerState::Waiting { reason: word("ImagePullBackOff") }];
    let waiting = states.map(|state| PodSeen { app: container(state), sha256: None, step: None, deleting: true, ..pod_seen() });
    let all = [pod_seen()].into_iter().chain(phases).chain(schedulings);
    all.chain(disrupted).chain(waiting).collect()
}

fn verdict(verdict: Verdict) -> VerdictReached {
    VerdictReached { host: host(), uid: Some(uid()), verdict, rule: word("exited-before-live") }
}

const STAGES: [Stage; 6] = [Stage::Scheduling, Stage::Pull, Stage::Install, Stage::Register, Stage::Serving, Stage::Terminating];

const NEVER: [NeverStarted; 6] = [
    NeverStarted::Image,
    NeverStarted::Config,
    NeverStarted::Unschedulable,
    NeverStarted::Quota,
    NeverStarted::Webhook,
    NeverStarted::Runtime,
];

const REFUSALS: [Refusal; 12] = [
    Refusal::Invalid,
    Refusal::Forbidden,
    Refusal::Quota,
    Refusal::Policy,
    Refusal::Webhook,
    Refusal::Namespace,
    Refusal::RuntimeClass,
    Refusal::Foreign,
    Refusal::Different,
    Refusal::Source,
    Refusal::Environment,
    Refusal::NetworkPolicy,
];

fn verdict_samples() -> Vec<VerdictReached> {
    let plain = [FailedWhy::Exited, FailedWhy::NeverRegistered, FailedWhy::KeepsExiting, FailedWhy::InstallFailed];
    let why = plain.into_iter().chain(STAGES.map(FailedWhy::Stuck)).chain(NEVER.map(FailedWhy::NeverStarted));
    let failed = why.chain(REFUSALS.map(FailedWhy::Refused)).map(|why| verdict(Verdict::Failed(why)));
    let absent = VerdictReached { uid: None, ..verdict(Verdict::Live) };
    [verdict(Verdict::Live), absent].into_iter().chain(failed).collect()
}

fn end_samples() -> Vec<PodEnded> {
    let plain = [
        EndCause::AppExit,
        EndCause::Oom,
        EndCause::InstallFailed,
        EndCause::Evicted,
        EndCause::Preempted,
        EndCause::NodeLost,
        EndCause::NodeShutdown,
        EndCause::NodeRefused,
        EndCause::DeletedByUs,
        EndCause::DeletedByOther,
        EndCause::Vanished,
    ];
    let causes = plain.into_iter().chain(STAGES.map(EndCause::Stuck)).chain(NEVER.map(EndCause::NeverStarted));
    let end = |cause| PodEnded {
        host: host(),
        uid: uid(),
        container: word("app"),
        restart: 2,
        cause,
        exit_code: Some(137),
        signal: Some(9),
        reason: word("OOMKilled"),
        stage: Stage::Serving,
        node: word("node-1"),
        at_us: 1_700_000_080_000_000,
        counted: true,
    };
    let silent = PodEnded { exit_code: None, signal: None, counted: false, ..end(EndCause::Vanished) };
    causes.map(end).chain([silent]).collect()
}

fn step_samples() -> Vec<StepIssued> {
    let steps = [
        Step::PutSecret { host: host(), release: 2, sha256: Some(digest()), present_will_do: false },
        Step::PutSecret { host: host(), release: 2, sha256: None, present_will_do: true },
        Step::CreatePod { host: host(), release: 2, sha256: Some(digest()) },
        Step::DeletePod { host: host(), uid: uid(), grace_s: 45, forced: false },
        Step::DeleteSecret { host: host(), uid: uid() },
        Step::ReadPod { host: host() },
        Step::ReadSecret { host: host() },
    ];
    let purposes = [Purpose::Start, Purpose::Revive { counted: true }, Purpose::Revive { counted: false }, Purpose::Stop];
    let issued = |(step, purpose): (Step, Purpose)| StepIssued { step, purpose, rule: word("wanted.absent") };
    steps.into_iter().zip(purposes.into_iter().cycle()).map(issued).collect()
}

fn settled_samples() -> Vec<StepSettled> {
    let plain = [
        Outcome::Done,
        Outcome::AlreadySo,
        Outcome::Gone,
        Outcome::Conflict,
        Outcome::NameHeld,
        Outcome::Revoked,
        Outcome::Unknown,
        Outcome::Unsent,
    ];
    let settled = |outcome| StepSettled {
        step: Seq(70_001),
        outcome,
        object: Some(ObjectSeen { uid: uid(), resource_version: 123_457 }),
        attempts: 2,
        audit_id: [0x5a; 16],
        status: 201,
        took_us: 12_345,
    };
    let unsent = StepSettled { object: None, attempts: 0, audit_id: [0; 16], status: 0, ..settled(Outcome::Unsent) };
    plain.into_iter().chain(REFUSALS.map(Outcome::Refused)).map(settled).chain([unsent]).collect()
}

fn tail_of() -> TailOf {
    TailOf { host: host(), uid: uid(), container: word("app"), ended: true }
}

fn cases<T>(wrap: fn(T) -> Event, payloads: impl IntoIterator<Item = T>) -> Samples {
    payloads.into_iter().map(wrap).collect()
}

fn restart_samples() -> Vec<LogRestarted> {
    let former = FormerLog { id: LogId([0xab; 16]), last: Seq(70_000), acknowledged: Seq(70_010), size: 4_465, root: [0xcd; 32] };
    let reasons = [RestartReason::LostTail, RestartReason::SetAside, RestartReason::TakeOver];
    let before = LogBefore { id: LogId([0xab; 16]), last: Seq(70_000), size: 4_465, root: [0xcd; 32] };
    let log = LogId([0xef; 16]);
    let fresh = LogRestarted { log, reason: RestartReason::NewFolder, former: None, before: None };
    let after = reasons.map(|reason| LogRestarted { log, reason, former: Some(former.clone()), before: None });
    let both = LogRestarted { before: Some(before), ..after[0].clone() };
    [fresh].into_iter().chain(after).chain([both]).collect()
}

fn about_daemon() -> Samples {
    [
        cases(Event::LogRestarted, restart_samples()),
        cases(
            Event::IncarnationStarted,
            [IncarnationStarted { number: 300, version: "0.1.0".to_owned(), world: "world".to_owned(), acts: true }],
        ),
        cases(Event::IncarnationStopped, [IncarnationStopped { reason: word("SIGTERM") }]),
        {
            let all = vec![Setting { key: "plan.crash_limit".to_owned(), value: "5".to_owned() }; 2];
            cases(Event::SettingsTold, [SettingsTold { all }])
        },
        cases(Event::SettingsInForce, [SettingsInForce { plan: plan() }]),
        cases(Event::ClockStepped, [-3_600_000_000, 63].map(|ahead_us| ClockStepped { ahead_us })),
        {
            let reasons = [WatchLossReason::Expired, WatchLossReason::Silent, WatchLossReason::Unreachable];
            let lost = |reason| WatchLost { resource: word("pods"), reason, resource_version: 1 << 40, since_us: 1_700_000_000_000_000 };
            cases(Event::WatchLost, reasons.map(lost))
        },
        cases(Event::Listed, [Listed { resource_version: 99_999, pods: 251 }]),
        cases(Event::Quarantined, [Quarantined { invariant: word("one-pod-a-host"), at: Seq(65_536) }]),
    ]
    .concat()
}

fn about_pods() -> Samples {
    [
        {
            let node = |ready| NodeSeen { node: word("node-1"), ready };
            cases(Event::NodeSeen, [NodeReady::Ready, NodeReady::NotReady, NodeReady::Gone, NodeReady::Unwatched].map(node))
        },
        cases(Event::PodSeen, pod_samples()),
        {
            let gone = |how| PodGone { host: host(), uid: uid(), resource_version: 0, how };
            cases(Event::PodGone, [GoneHow::Deleted, GoneHow::Absent, GoneHow::NotFound].map(gone))
        },
        cases(Event::SecretSeen, [SecretSeen { host: host(), uid: uid(), resource_version: 7 }]),
        cases(Event::SecretGone, [Some(uid()), None].map(|uid| SecretGone { host: host(), uid })),
        cases(Event::VerdictReached, verdict_samples()),
        cases(Event::PodEnded, end_samples()),
        {
            let alarm = |host| AlarmRaised { name: word("no-fault-loop"), host };
            cases(Event::AlarmRaised, [Some(host()), None].map(alarm))
        },
        cases(Event::AlarmCleared, [AlarmCleared { name: word("no-fault-loop") }]),
    ]
    .concat()
}

fn about_wants() -> Samples {
    [
        {
            let want = |live_host| WantSeen {
                answer: 1_000,
                release: 2,
                sha256: digest(),
                host: host(),
                registered: true,
                failed: false,
                live_host,
            };
            cases(Event::WantSeen, [Some(host()), None].map(want))
        },
        cases(Event::WantConfirmed, [WantConfirmed { answer: 1 }]),
        cases(Event::WantMissing, [WantMissing { answer: 250, mass: true }]),
        {
            let faults = [
                WantFault::BadHost,
                WantFault::BadDigest,
                WantFault::BadRelease,
                WantFault::TwiceNamed,
                WantFault::HostShared,
                WantFault::Malformed,
            ];
            cases(Event::WantRefused, faults.map(|fault| WantRefused { answer: 251, fault, host: Some(host()) }))
        },
        { cases(Event::EnvironmentFetched, [EnvironmentFetched { host: host(), digest: [0x11; 16], variables: 12 }]) },
        { cases(Event::SourceKept, [SourceKept { sha256: digest(), bytes: 10_485_760, from: word("gateway") }]) },
    ]
    .concat()
}

fn about_steps() -> Samples {
    [
        cases(Event::StepIssued, step_samples()),
        cases(Event::StepSettled, settled_samples()),
        cases(Event::StepRevoked, [StepRevoked { step: Seq(70_001), rule: word("rolled-back") }]),
        cases(Event::StepWithheld, [StepWithheld { step: Seq(70_001) }]),
        {
            let called = |uid| ApiCalled {
                step: Seq(70_001),
                attempt: 1,
                audit_id: [0x5a; 16],
                verb: word("delete"),
                resource: word("pods"),
                name: word("bot-r2-3c6ef362"),
                uid,
                status: 0,
                answer: word("doubtful"),
                took_us: 60_000_000,
            };
            cases(Event::ApiCalled, [Some(uid()), None].map(called))
        },
        {
            let text = "pods \"bot\" is forbidden: exceeded quota – größer".to_owned();
            cases(Event::StepExplained, [StepExplained { step: Seq(70_001), text }])
        },
    ]
    .concat()
}

fn about_the_rest() -> Samples {
    [
        cases(Event::TailAsked, [TailAsked { of: tail_of() }]),
        { cases(Event::TailKept, [TailKept { of: tail_of(), lines: 40, bytes: 20_000, parts: 2, cut: true }]) },
        {
            let lacks = [TailLack::NoRedaction, TailLack::TimedOut, TailLack::Refused, TailLack::Gone, TailLack::NotStarted];
            cases(Event::TailUnavailable, lacks.map(|why| TailUnavailable { of: tail_of(), why }))
        },
        { cases(Event::TailText, [TailText { of: tail_of(), part: 1, text: "Error: no [TOKEN]\n\u{1b}[31m".to_owned() }]) },
        cases(Event::MessageText, [MessageText { of: tail_of(), text: "panicked".to_owned() }]),
        cases(Event::Frozen, [true, false].map(|everything| Frozen { everything })),
        cases(Event::Thawed, [true, false].map(|everything| Thawed { everything })),
        cases(Event::RetryAsked, [RetryAsked { host: host() }]),
        cases(Event::StopAsked, [StopAsked {}]),
        cases(Event::OperatorSaid, [OperatorSaid { who: word("on-call"), why: "the gateway is being moved".to_owned() }]),
        cases(
            Event::RecordErased,
            [
                RecordErased {
                    record: RecordId { log: LogId([0x11; 16]), seq: Seq(70_000) },
                    who: word("on-call"),
                    why: "größer".to_owned(),
                },
                RecordErased { record: RecordId { log: LogId([0xff; 16]), seq: Seq(1) }, who: word(""), why: "a password".to_owned() },
            ],
        ),
        cases(
            Event::CallRefused,
            [
                CallRefused { who: word("ci"), route: "GET /v1/log/records".to_owned(), code: word("forbidden"), times: 3 },
                CallRefused { who: word(""), route: String::new(), code: word("unauthorized"), times: 70_000 },
            ],
        ),
    ]
    .concat()
}

/// An app of which everything is known.
pub(crate) fn carried_app() -> CarriedApp {
    let end = CarriedEnd {
        seq: Seq(70_005),
        uid: uid(),
        container: word("app"),
        restart: 2,
        cause: EndCause::Stuck(Stage::Install),
        exit_code: Some(137),
        signal: None,
        reason: word("OOMKilled"),
        stage: Stage::Serving,
        node: word("node-1"),
        at_us: 1_700_000_000_000_001,
    };
    let pod = CarriedPod {
        uid: uid(),
        resource_version: 70_000,
        seq: Seq(70_002),
        view: None,
        seen_us: 1_700_000_000_000_000,
        stage: Stage::Register,
        stage_since_us: 1_700_000_000_000_002,
        disruption: Some(Disruption::Preempted),
        deleting_since_us: Some(3),
        delete: Some(CarriedDelete { step: Seq(9), revive: true, forced: false, unanswered: true }),
        end: Some(end.clone()),
        restarts: 2,
        different: true,
    };
    let flight = CarriedFlight {
        step: Step::DeleteSecret { host: host(), uid: uid() },
        purpose: Purpose::Revive { counted: true },
        incarnation: 3,
        issued_us: 5,
        revoking: true,
        withheld: false,
    };
    let host_known = CarriedHost {
        release: 2,
        sha256: Some(digest()),
        pod: Some(pod),
        gone: Some(end.clone()),
        work: CarriedWork::Bringing(Purpose::Start),
        moved: Seq(6),
        secret_put: true,
        secret: CarriedSecret::Present { uid: uid(), resource_version: 300 },
        flights: [(Seq(8), flight)].into(),
        unrecorded: vec![end],
        exits: vec![CarriedExit { at_us: 1, uid: uid(), container: word("app"), restart: 1 }],
        no_fault_us: vec![1, -1],
        verdict: Some(CarriedVerdict { seq: Seq(7), verdict: Verdict::Live, uid: Some(uid()), shown: false }),
        retried: true,
        hindrance: Some(CarriedHindrance { seq: Seq(5), what: CarriedHindered::NameHeld, times: 2, first_us: 1, since_us: 2 }),
        not_back: Some(Seq(4)),
        doubt_since_us: Some(1),
        secret_doubt_since_us: Some(2),
        gone_uids: vec![uid()],
        tails: [(tail_of(), CarriedTail { incarnation: 3, settled: true, kept: Some(Seq(3)) })].into(),
    };
    let want = CarriedWant {
        seq: Seq(2),
        release: 2,
        sha256: digest(),
        host: host(),
        registered: true,
        failed: false,
        live_host: Some(host()),
        answered_us: 1_700_000_000_000_003,
    };
    CarriedApp {
        incarnation: 3,
        acts: true,
        frozen: true,
        listed: Some(Seq(1)),
        confirmed: true,
        want: Some(want),
        missing: CarriedMissing { in_row: 1, before_mass: 1, any_mass: true, ended: (2, 1), seq: Seq(3) },
        stop_asked: Some(Seq(4)),
        hosts: [(host(), host_known)].into(),
        nodes: [(word("node-1"), NodeReady::NotReady)].into(),
        alarms: [(word("waiting"), Some(host()))].into(),
        quarantined: true,
    }
}

fn about_carried() -> Samples {
    let state = encode_state(&carried_app()).expect("small");
    let before_sessions = CarriedDaemonV1 {
        began: Some(LogRestarted { log: LogId([0x11; 16]), reason: RestartReason::NewFolder, former: None, before: None }),
        started: IncarnationStarted { number: 3, version: "0.1.0".to_owned(), world: "prod".to_owned(), acts: true },
        settings: vec![(Seq(3), plan())],
    };
    let daemon = CarriedDaemon { session_settings: vec![(Seq(4), session_samples::plan())], ..before_sessions.clone().into() };
    let [before_sessions, daemon] = [encode_state(&before_sessions), encode_state(&daemon)].map(|bytes| bytes.expect("small"));
    let second = SubjectCarried { layout: STATE_VERSION, part: 1, parts: 2, bytes: vec![0, 1, 0xff] };
    let former = [SubjectCarried::of(STATE_VERSION, &state), SubjectCarried::of(1, &before_sessions), vec![second]].concat();
    former.into_iter().chain(SubjectCarried::of(DAEMON_VERSION, &daemon)).map(Event::SubjectCarried).collect()
}

/// The samples of a kind; none for one that nobody has added here yet.
pub(crate) fn events(kind: Kind) -> Vec<Event> {
    let all =
        [about_daemon(), about_pods(), about_wants(), about_steps(), about_the_rest(), about_carried(), session_samples::all()].concat();
    all.into_iter().filter(|event| event.kind() == kind).collect()
}

/// An event whose payload is `bytes` and at most 4 more long.
pub(crate) fn text(bytes: usize) -> Event {
    Event::StepExplained(StepExplained { step: Seq(1), text: "x".repeat(bytes) })
}
