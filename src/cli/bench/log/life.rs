//! What a measurement appends: the records of one app, brought, seen, lost and brought again, as the daemon would write them.
//! Computes alone.
//!
//! Kinds, their mix and the lengths of their names are those of a real log, because what an append, a decoding and a fold cost
//! depends on them; the state that the records fold into does not grow.

use crate::app::rules::Rules;
use crate::events::kinds::pod::{Container, ContainerState, GoneHow, Phase, PodGone, PodSeen, Scheduling};
use crate::events::kinds::step::{ApiCalled, ObjectSeen, Outcome, Purpose, Step, StepIssued, StepSettled};
use crate::events::kinds::verdict::{EndCause, PodEnded, Stage, Verdict, VerdictReached};
use crate::events::kinds::want::WantSeen;
use crate::events::record::{Draft, Event, Reaction, Record};
use crate::ids::{AppId, BadName, HostName, LogId, PackageDigest, RecordId, Seq, Subject, Uid, Word};

/// Records of one life: want, environment, pod, what the cluster shows, verdict, end.
const LIFE: u64 = 13;
/// A moment in 2026, from which the kubelet's and the API server's times count.
const EPOCH_US: i64 = 1_780_000_000_000_000;

/// One app's records, one after the other, without end.
#[derive(Debug, Clone)]
pub(super) struct Life {
    subject: Subject,
    host: HostName,
    /// Records so far.
    count: u64,
    /// The last step that was issued.
    issued: Seq,
}

impl Life {
    /// The app of that number.
    pub(super) fn new(number: usize) -> Result<Self, BadName> {
        let app = AppId::new(&format!("org{}", number % 20), &format!("app-{number:04}"))?;
        let host = HostName::new(&format!("app-{number:04}-r7-5f3a9c"))?;
        Ok(Self { subject: Subject::App(app), host, count: 0, issued: Seq::NONE })
    }

    /// A reaction of the next `records` records, the first of which will have the number `first`.
    pub(super) fn reaction(&mut self, records: usize, first: Seq, now_us: i64) -> Result<Reaction, BadName> {
        let mut drafts = Vec::with_capacity(records);
        for index in 0..records as u64 {
            let event = self.next(Seq(first.0 + index))?;
            // What was decided names what made it so: here the record before it.
            let cause = if index == 0 { Seq::NONE } else { Seq::provisional(index - 1) };
            drafts.push(Draft { event, cause });
        }
        Ok(Reaction { subject: self.subject.clone(), time_us: now_us, rules: Rules::CURRENT.number(), settings: Seq::NONE, drafts })
    }

    /// Takes the numbers that the records were given, where they were not known before.
    pub(super) fn appended(&mut self, records: &[Record]) {
        if let Some(last) = records.iter().rfind(|record| matches!(record.event, Event::StepIssued(_))) {
            self.issued = last.header.seq;
        }
    }

    fn next(&mut self, seq: Seq) -> Result<Event, BadName> {
        let (life, at) = (self.count / LIFE, self.count % LIFE);
        self.count += 1;
        let uid = Uid::new(&format!("{:08x}-9d1c-4c5e-8f0a-{:012x}", life + 1, self.count - at))?;
        let event = match at {
            0 => Event::WantSeen(WantSeen {
                answer: 40 + self.count,
                release: 7 + life,
                sha256: digest(life),
                host: self.host.clone(),
                registered: life > 0,
                failed: false,
                live_host: (life > 0).then(|| self.host.clone()),
            }),
            1 => self.issue(
                seq,
                Step::PutSecret { host: self.host.clone(), release: 7 + life, sha256: Some(digest(life)), present_will_do: false },
            ),
            2 | 5 => self.settled(uid),
            3 | 6 => self.called(at == 3),
            4 => self.issue(seq, Step::CreatePod { host: self.host.clone(), release: 7 + life, sha256: Some(digest(life)) }),
            7..=9 => self.seen(at, uid, life),
            10 => Event::VerdictReached(VerdictReached {
                host: self.host.clone(),
                uid: Some(uid),
                verdict: Verdict::Live,
                rule: Word::new("live-when-registered"),
            }),
            11 => Event::PodGone(PodGone { host: self.host.clone(), uid, resource_version: 900_000 + self.count, how: GoneHow::Deleted }),
            _ => Event::PodEnded(PodEnded {
                host: self.host.clone(),
                uid,
                // It went while it ran: no container of it was seen to end.
                container: Word::default(),
                restart: 0,
                cause: EndCause::DeletedByOther,
                exit_code: None,
                signal: None,
                reason: Word::default(),
                stage: Stage::Serving,
                node: Word::new("node-17.eu-west-1.internal"),
                at_us: self.us(),
                counted: false,
            }),
        };
        Ok(event)
    }

    fn us(&self) -> i64 {
        EPOCH_US + i64::try_from(self.count).unwrap_or(0) * 1_250_000
    }

    fn issue(&mut self, seq: Seq, step: Step) -> Event {
        self.issued = seq;
        let purpose = if self.count <= LIFE { Purpose::Start } else { Purpose::Revive { counted: false } };
        Event::StepIssued(StepIssued { step, purpose, rule: Word::new("bring-wanted") })
    }

    fn settled(&self, uid: Uid) -> Event {
        Event::StepSettled(StepSettled {
            step: self.issued,
            outcome: Outcome::Done,
            object: Some(ObjectSeen { uid, resource_version: 900_000 + self.count }),
            attempts: 1,
            audit_id: audit_id(self.count),
            status: 201,
            took_us: 7_300 + self.count % 900,
        })
    }

    fn called(&self, secret: bool) -> Event {
        Event::ApiCalled(ApiCalled {
            step: self.issued,
            attempt: 1,
            audit_id: audit_id(self.count),
            verb: Word::new("create"),
            resource: Word::new(if secret { "secrets" } else { "pods" }),
            name: Word::new(self.host.as_str()),
            uid: None,
            status: 201,
            answer: Word::new("done"),
            took_us: 7_300 + self.count % 900,
        })
    }

    /// Scheduled, running, ready.
    fn seen(&self, at: u64, uid: Uid, life: u64) -> Event {
        let runs = at > 7;
        let ready = at > 8;
        let state = |runs: bool| {
            if runs {
                ContainerState::Running { started_us: self.us() }
            } else {
                ContainerState::Waiting { reason: Word::new("PodInitializing") }
            }
        };
        let container = |runs| Container { state: state(runs), restarts: 0, last_end: None };
        Event::PodSeen(PodSeen {
            host: self.host.clone(),
            uid,
            resource_version: 900_000 + self.count,
            release: 7 + life,
            sha256: Some(digest(life)),
            step: Some(RecordId { log: LogId(audit_id(life)), seq: self.issued }),
            phase: if runs { Phase::Running } else { Phase::Pending },
            reason: Word::default(),
            deleting: false,
            node: Word::new("node-17.eu-west-1.internal"),
            scheduling: Scheduling::Done,
            disruption: None,
            ready,
            created_us: self.us(),
            install: container(true),
            app: container(runs),
        })
    }
}

/// Any digest: what matters is its length.
fn digest(number: u64) -> PackageDigest {
    let mut bytes = [0x5a; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    PackageDigest::from_bytes(bytes)
}

fn audit_id(number: u64) -> [u8; 16] {
    let mut id = [0x8b; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id
}
